"""Two bundles side by side: stack first, then speed, acceptance, identity, decisions (M37).

The unit is the server start, as everywhere: B's starts of a mode are held against A's starts of the same mode with the
formulas of `analysis.statistics`. A difference between two dates or machines has more behind it than starts show, so
`no difference shown` is the safe word and the stack stands first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..analysis.cells import Measured
from ..analysis.load import open_folder
from ..analysis.statistics import gain, noise_floor, pooled, shown
from ..analysis.statistics import logs as logs_of
from ..records.base import Finding
from ..records.comparison import CellResult, Comparison, Gain
from ..records.decision import Decision
from ..records.errors import UserError
from ..records.reading import must_read
from . import gaps
from .decisions import compared
from .difference import QUANTITIES, CellChange, Change, Difference
from .stacks import changes, facts
from .verify import opened

CONFIDENCE = 0.95
_AGAIN = "Get the bundle again; or, for a results folder, run the workflow or `specdec compare` on it first."
Key = tuple[str, str, str]
"""Kind, load, mode."""


@dataclass
class _Starts:
    """One number per server start of a mode, and the texts of its first start."""

    decode: list[float | None] = field(default_factory=list)
    aggregate: list[float | None] = field(default_factory=list)
    ttft: list[float | None] = field(default_factory=list)
    texts: dict[str, object] = field(default_factory=dict)

    def add(self, cell: Measured) -> None:
        """One more start; its requests are not kept."""
        self.decode.append(cell.p50_decode)
        self.aggregate.append(cell.agg_tok_s)
        self.ttft.append(cell.p50_ttft)
        if not self.texts:
            self.texts = dict(cell.texts)


@dataclass
class _Side:
    """One bundle, read."""

    name: str
    comparison: Comparison
    decision: Decision | None
    starts: dict[Key, _Starts]
    digests: dict[str, str]
    prompts: dict[Key, set[str]]

    @property
    def rows(self) -> dict[Key, CellResult]:
        """The rows of its table that were measured."""
        return {(row.kind, row.load, row.mode): row for row in self.comparison.cells if row.starts}


def diff(a: Path, b: Path) -> Difference:
    """B against A; each an archive, an unpacked bundle, or a results folder. UserError when one is none of these."""
    with opened(a) as folder:
        ours = _read(folder, a)
    with opened(b) as folder:
        theirs = _read(folder, b)
    both = [key for key in ours.rows if key in theirs.rows]
    cells = [_cell(key, ours, theirs) for key in both]
    modes = ours.comparison.specs.keys() & theirs.comparison.specs.keys()
    decisions, undecided = compared(ours.decision, theirs.decision)
    return Difference(
        a=ours.name,
        b=theirs.name,
        stack=changes(*(facts(side.comparison, side.digests, modes) for side in (ours, theirs))),
        cells=cells,
        only_a=[" ".join(key) for key in ours.rows if key not in theirs.rows],
        only_b=[" ".join(key) for key in theirs.rows if key not in ours.rows],
        decisions=decisions,
        undecided=undecided,
        findings=list(_findings(ours, theirs, both)),
    )


def _read(folder: Path, given: Path) -> _Side:
    results = _results(folder, given)
    comparison = must_read(results / "comparison.json", Comparison, fix=_AGAIN)
    decided = results / "decision.json"
    side = _Side(
        name=given.name.removesuffix(".tar.gz"),
        comparison=comparison,
        decision=must_read(decided, Decision, fix=_AGAIN) if decided.is_file() else None,
        starts={},
        digests={},
        prompts={},
    )
    there: Counter[Key] = Counter()
    for _, cells in open_folder(results).groups():
        for cell in cells:
            key = (cell.cell.kind, cell.cell.load.label, cell.mode)
            there[key] += 1
            if cell.key:
                side.starts.setdefault(key, _Starts()).add(cell)
                side.prompts.setdefault(key, set()).add(cell.digests.get("prompts", ""))
                side.digests = side.digests or cell.digests
    bare = [" ".join(key) for key, row in side.rows.items() if there[key] != row.starts or key not in side.starts]
    if bare:
        raise UserError(
            f"{len(bare)} rows of the table do not have their measured cells beside it: {', '.join(bare[:3])}.",
            place=str(given),
            fix=_AGAIN,
            code="old_table",
        )
    return side


def _results(folder: Path, given: Path) -> Path:
    if (folder / "comparison.json").is_file():
        return folder
    found = sorted(path.parent for path in folder.glob("results/*/comparison.json"))
    if len(found) == 1:
        return found[0]
    raise UserError(
        "There is no table here." if not found else f"There are {len(found)} results here.",
        place=str(given),
        fix="Give a bundle, or a results folder that has a comparison.json.",
        code="no_results",
    )


def _cell(key: Key, a: _Side, b: _Side) -> CellChange:
    kind, load, mode = key
    ours, theirs = a.starts[key], b.starts[key]
    group = [side.starts[other] for side in (a, b) for other in side.starts if other[:2] == key[:2]]
    row_a, row_b = a.rows[key], b.rows[key]
    remark = gaps.of_prompts(a.prompts[key], b.prompts[key])
    gains = {
        "decode": _gain(theirs.decode, ours.decode, [one.decode for one in group]),
        "throughput": _gain(theirs.aggregate, ours.aggregate, [one.aggregate for one in group]),
        "ttft": _gain(theirs.ttft, ours.ttft, [one.ttft for one in group]),
    }
    word = _word(gains["decode"], ours, theirs, [one.decode for one in group])
    same = [theirs.texts[one] == ours.texts[one] for one in ours.texts if one in theirs.texts]
    unknown = gaps.of_row(row_a, row_b, gains)
    if remark:
        gains = {name: Gain(refused=remark) for name in gains}
        word, same = "not comparable", []
        unknown = dict.fromkeys(QUANTITIES, remark)
    return CellChange(
        kind=kind,
        load=load,
        mode=mode,
        decode=gains["decode"],
        aggregate=gains["throughput"],
        ttft=gains["ttft"],
        word=word,
        remark=remark,
        acceptance_a=row_a.acceptance.acceptance_rate if row_a.acceptance else None,
        acceptance_b=row_b.acceptance.acceptance_rate if row_b.acceptance else None,
        length_a=row_a.acceptance.acceptance_length if row_a.acceptance else None,
        length_b=row_b.acceptance.acceptance_length if row_b.acceptance else None,
        identical_a=gaps.share(row_a),
        identical_b=gaps.share(row_b),
        same_text=None if remark else sum(same),
        same_text_n=None if remark else len(same),
        unknown=unknown,
    )


def _gain(b: list[float | None], a: list[float | None], group: list[list[float | None]]) -> Gain:
    floor = max((one for one in (noise_floor(a), noise_floor(b)) if one is not None), default=None)
    made = gain(b, a, spread=pooled([logs_of(one) for one in group]), floor=floor, margin=0.0, confidence=CONFIDENCE)
    if made.refused:
        made = made.model_copy(update={"refused": made.refused.replace("the mode", "B").replace("the baseline", "A")})
    return made


def _word(decode: Gain, a: _Starts, b: _Starts, group: list[list[float | None]]) -> Change:
    if decode.ratio is None:
        return "not comparable"
    spread = pooled([logs_of(one) for one in group])
    if shown(decode, b.decode, a.decode, spread):
        return "faster"
    back = _gain(a.decode, b.decode, group)
    return "slower" if shown(back, a.decode, b.decode, spread) else "no difference shown"


def _findings(a: _Side, b: _Side, both: list[Key]) -> Iterator[Finding]:
    if not both:
        yield Finding(
            code="nothing_in_common",
            severity="error",
            message="The two have no row in common.",
            hint="Compare results of the same kinds, loads and modes.",
        )
    for side in (a, b):
        if side.comparison.stack is None:
            yield Finding(code="no_stack", message=f"{side.name} does not say on what it was measured.")
    if any(gaps.of_prompts(a.prompts[key], b.prompts[key]) for key in both):
        yield Finding(
            code="prompts_differ",
            message="Not all rows were surely measured with the same prompts; those are not compared.",
            hint="Use the same workload in both.",
        )
