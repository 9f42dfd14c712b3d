"""The made-up results folder and its pages are those of the report's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tests.report.conftest import page, poor_page, results

__all__ = ["page", "poor_page", "results"]
