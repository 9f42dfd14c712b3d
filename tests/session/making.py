"""Records of sessions, made for tests."""

from specdec_lab.records.cell import Acceptance, Cell, CounterWindow, Row, Summary
from specdec_lab.records.session import ServerLifetime
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec
from specdec_lab.records.stack import Engine, Host, Stack
from specdec_lab.session.store import Ground

SPEC = SessionSpec(
    server=ServerSpec(
        engine="llama_cpp",
        launcher="process",
        args={"ctx-size": 2048},
        speculative={"method": "ngram-simple", "ngram-simple-size-n": 4},
        gpus=0,
    ),
    checkpoints={"target": CheckpointSpec(bundled="smollm2-135m-q4_1")},
    against="baseline",
)
CELL = CellSpec(kind="code", load=Load(concurrency=1), requests=8, warmup=2)
GROUND = Ground(
    prompts="p",
    checkpoints={"target": "t"},
    launch="l",
    image=None,
    engine="xllamacpp 1",
    hardware="cpu, 2 cores",
    code="c",
)
STACK = Stack(
    host=Host(cpu="cpu", cores=2, memory_bytes=1, system="Linux", python="3.11"),
    engine=Engine(software="llama_cpp", version="b1"),
    checkpoints={"target": "t"},
    lab="0",
)


def a_cell(key: str, *, order: int = 0, mode: str = "ngram", cell: CellSpec = CELL) -> Cell:
    """A complete cell of one good request."""
    row = Row(id="code-1", kind=cell.kind, status="ok", completion_tokens=3, text="a b c", arrivals=[0.1, 0.2, 0.3])
    return Cell(
        key=key,
        mode=mode,
        replicate=1,
        cell=cell,
        session=SPEC,
        digests={"prompts": "p"},
        stack=STACK,
        server="x",
        order=order,
        started_at="2026-01-01T00:00:00+00:00",
        summary=Summary(requests=1, failed=0),
        counters=CounterWindow(source="none", acceptance=Acceptance(status="not_applicable")),
        rows=[row],
    )


def a_server(identity: str) -> ServerLifetime:
    """A server lifetime without any cell."""
    return ServerLifetime(id=identity, started_at="2026-01-01T00:00:00+00:00", stack=STACK)
