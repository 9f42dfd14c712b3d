"""Which record each file of the results holds, and the JSON Schemas made from those records.

`python -m specdec_lab.formats` writes the schemas again; a test keeps them in step. A schema's file name carries the
version: when a record's `schema_version` grows, the old schema and its example stay, and must still be readable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from .bundle.manifest import Manifest
from .launchers.images import Image
from .records.base import Record, strict_dumps, strict_loads, write_text_atomic
from .records.cell import Cell
from .records.comparison import Comparison
from .records.decision import Decision
from .records.files import CheckpointFile, DynamicKEntry, ResolvedConfig, RoutingTable
from .records.probe import Probe
from .records.prompt import Prompt
from .records.session import Failure, ServerLifetime, Session

SCHEMAS = Path(__file__).parent / "records" / "schemas"


@dataclass(frozen=True)
class Format:
    """One kind of file: where it lies in a results folder or a store, and what it holds."""

    name: str
    pattern: str
    record: type[Record]
    version: int = 1
    lines: bool = False
    """One record per line (JSONL)."""
    many: bool = False
    """A list of records."""

    @property
    def schema_file(self) -> str:
        """Name of its JSON Schema."""
        return f"{self.name}.v{self.version}.json"

    def schema(self) -> str:
        """The JSON Schema of one record, as text."""
        made = self.record.model_json_schema()
        made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        made["title"] = f"specdec-lab {self.name}, version {self.version}"
        return strict_dumps(made)

    def check(self, content: bytes) -> None:
        """ValueError (pydantic's included) when the content is no such file; NaN and unknown keys are refused."""
        if self.lines:
            for number, line in enumerate(content.decode().split("\n"), start=1):
                if line.strip():
                    try:
                        self.record.model_validate_json(line)
                    except ValueError as error:
                        raise ValueError(f"line {number}: {error}") from error
        elif self.many:
            TypeAdapter(list[Any]).validate_python(strict_loads(content))
            for one in strict_loads(content):
                self.record.model_validate(one)
        else:
            strict_loads(content)
            self.record.model_validate_json(content)


_RESULTS = r"results/[^/]+/"
_SESSION = _RESULTS + r"sessions/[^/]+/r\d+/"
FORMATS = (
    Format("resolved_config", _RESULTS + r"config\.resolved\.json", ResolvedConfig),
    Format("prompt", _RESULTS + r"prompts\.jsonl", Prompt, lines=True),
    Format("checkpoint", _RESULTS + r"checkpoints/[^/]+\.json", CheckpointFile),
    Format("image", _RESULTS + r"image\.json", Image),
    Format("session", _SESSION + r"session\.json", Session),
    Format("failure", _SESSION + r"failure\.json", Failure),
    Format("cell", rf"({_SESSION}(partial/)?|cells/measured/[0-9a-f]{{2}}/)[^/]+\.json", Cell),
    Format("lifetime", r"cells/servers/[^/]+/lifetime\.json", ServerLifetime),
    Format("comparison", _RESULTS + r"comparison\.json", Comparison),
    Format("probe", _RESULTS + r"probe\.json", Probe),
    Format("decision", _RESULTS + r"decision\.json", Decision),
    Format("routes", _RESULTS + r"deploy/routes\.json", RoutingTable),
    Format("dynamic_k", _RESULTS + r"deploy/dynamic_k\.json", DynamicKEntry, many=True),
    Format("manifest", _RESULTS + r"bundle/manifest\.json", Manifest),
)
"""The first whose pattern fits the whole path counts; paths start at the folder that holds results/ and cells/."""


def format_of(path: str) -> Format | None:
    """What a file with this path should hold; None when it has no schema (a page, a log, a table)."""
    return next((one for one in FORMATS if re.fullmatch(one.pattern, path)), None)


def main() -> None:
    """Write every schema."""
    for one in FORMATS:
        write_text_atomic(SCHEMAS / one.schema_file, one.schema())


if __name__ == "__main__":
    main()
