"""The failures that users meet, each recognised and answered with cause and fix (mission: twelve failures)."""

from .diagnosis import Diagnosis, diagnose
from .known import FAILURES, KnownFailure, known

__all__ = ["FAILURES", "Diagnosis", "KnownFailure", "diagnose", "known"]
