"""B10: sessions side by side on one machine are told; on different machines, or one after the other, they are not."""

from __future__ import annotations

import pytest

from specdec_lab.analysis.overlap import side_by_side
from specdec_lab.records.session import ServerLifetime, Session
from specdec_lab.records.spec import ServerSpec, SessionSpec
from specdec_lab.records.stack import Engine, Host, Stack

SPEC = SessionSpec(server=ServerSpec(engine="vllm", launcher="docker"), checkpoints={}, against=None)


def session(mode: str, start: int, stop: int | None, boot: str | None = "a") -> Session:
    host = Host(cpu="cpu", cores=8, memory_bytes=1, system="Linux", python="3.11", boot=boot)
    lifetime = ServerLifetime(
        id=mode,
        started_at=f"2026-01-01T00:{start:02d}:00+00:00",
        stopped_at=None if stop is None else f"2026-01-01T00:{stop:02d}:00+00:00",
        stack=Stack(host=host, engine=Engine(software="vllm"), lab="0"),
    )
    return Session(mode=mode, replicate=1, spec=SPEC, cells={}, lifetimes=[lifetime], measured=1)


def test_servers_at_the_same_time_on_one_machine_are_told_once() -> None:
    found = side_by_side([session("ngram", 5, 12), session("baseline", 0, 10), session("draft", 11, 20)])
    assert [one.code for one in found] == ["side_by_side"]
    assert "baseline r1 beside ngram r1, ngram r1 beside draft r1" in found[0].message


@pytest.mark.parametrize(
    "other",
    [session("ngram", 10, 20), session("ngram", 5, 12, boot="b"), session("ngram", 5, 12, boot=None)],
    ids=["after it", "elsewhere", "unknown"],
)
def test_servers_apart_in_time_or_place_are_not(other: Session) -> None:
    assert side_by_side([session("baseline", 0, 10), other]) == []


def test_a_server_that_never_stopped_is_no_proof_of_anything() -> None:
    assert side_by_side([session("baseline", 0, None), session("ngram", 5, 12)]) == []
