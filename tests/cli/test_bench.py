"""`specdec bench` on a scripted endpoint: one cell with its envelope, without Snakemake."""

from __future__ import annotations

import json
import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, Timer

import pytest
import typer
from typer.testing import CliRunner

from specdec_lab.cli.bench import run
from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Seen, Step, delta, paced, sse, usage
from specdec_lab.records.cell import Cell
from specdec_lab.records.errors import UserError

ANSWER = paced(
    [sse(delta(content="a")), sse(delta(content="b")), sse(delta(finish="stop")), sse(usage(2)), DONE], gap_s=0.01
)
METRICS = """# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{{engine="0",model_name="m"}} {drafts}
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{{engine="0",model_name="m"}} {draft_tokens}
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{{engine="0",model_name="m"}} {accepted}
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {generated}
"""


def without_metrics(seen: Seen) -> Script:
    return ANSWER if seen.method == "POST" else Script(status=404)


def command() -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(run)
    return app


@pytest.fixture
def prompt_file(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    rows = [
        {"id": f"{kind}{i}", "kind": kind, "messages": [{"role": "user", "content": f"{kind} {i}"}], "max_tokens": 20}
        for kind in ("code", "chat")
        for i in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def bench(server: ScriptedServer, prompt_file: Path, *more: str) -> tuple[int, str, Path]:
    out = prompt_file.parent / "cell.json"
    arguments = ["--base-url", server.base_url, "--prompts", str(prompt_file), "--model", "m", "--out", str(out)]
    result = CliRunner().invoke(command(), [*arguments, "--no-selftest", *more])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, out


def test_a_cell_is_written_with_its_envelope_and_the_chosen_prompts(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        code, printed, out = bench(server, prompt_file, "--concurrency", "2", "--kind", "code", "--limit", "4")
    cell = Cell.read(out)
    assert code == 0
    assert [row.id for row in cell.rows] == ["code0", "code1", "code2", "code3"]
    assert cell.schema_version == 1
    assert (cell.summary.requests, cell.summary.failed, cell.summary.peak_in_flight) == (4, 0, 2)
    assert cell.counters.source == "none"
    assert cell.counters.acceptance.acceptance_rate is None
    assert cell.cell.load.concurrency == 2
    assert cell.warmup == {"requests": 2, "failed": 0}
    assert "throughput" in printed


def test_the_warm_up_sends_no_measured_prompt(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        bench(server, prompt_file, "--concurrency", "3")
        sent = [seen.json["messages"][0]["content"] for seen in server.posts]
    assert len(sent) == 3 + 12
    assert not set(sent[:3]) & set(sent[3:])
    assert len(set(sent[3:])) == 12


def test_json_on_stdout_can_be_read_by_a_machine(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        code, printed, _ = bench(server, prompt_file, "--rate", "100", "--ttft-objective", "1", "--json")
    made = json.loads(printed)
    assert code == 0
    assert made["summary"]["requested_rate"] == 100
    assert made["summary"]["goodput"] == 1.0


def test_acceptance_is_the_windows_after_the_warm_up(prompt_file: Path) -> None:
    posts = 0

    def script(seen: Seen) -> Script:
        nonlocal posts
        if seen.method == "POST":
            posts += 1
            return ANSWER
        if seen.path != "/metrics":
            return Script(status=404)
        text = METRICS.format(drafts=10 * posts, draft_tokens=50 * posts, accepted=20 * posts, generated=2 * posts)
        return Script([Step(0, text.encode())], content_type="text/plain")

    with ScriptedServer(script) as server:
        code, _, out = bench(server, prompt_file, "--concurrency", "2")
    cell = Cell.read(out)
    assert code == 0
    assert cell.counters.acceptance.status == "measured"
    assert cell.counters.acceptance.drafts == 10 * 12
    assert cell.counters.acceptance.acceptance_rate == pytest.approx(0.4)


def test_a_server_that_refuses_everything_gives_exit_code_1_and_a_partial_cell(prompt_file: Path) -> None:
    bad = Script([Step(0, b'{"error":{"message":"overloaded"}}')], status=503, content_type="application/json")
    with ScriptedServer(lambda seen: bad if seen.method == "POST" else Script(status=404)) as server:
        code, printed, out = bench(server, prompt_file, "--concurrency", "1", "--warmup", "0")
    cell = Cell.read(out)
    assert code == 1
    assert cell.summary.completed is False
    assert "overloaded" in printed


def test_what_is_asked_wrongly_is_refused_before_any_request(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        for wrong in (
            [],
            ["--concurrency", "1", "--rate", "1"],
            ["--concurrency", "1", "--kind", "nope"],
            ["--concurrency", "1", "--limit", "99"],
            ["--concurrency", "1", "--engine", "nope"],
            ["--concurrency", "1", "--api-key-env", "SPECDEC_NOT_SET"],
        ):
            with pytest.raises(UserError):
                bench(server, prompt_file, *wrong)
        assert not server.posts


def test_a_key_goes_into_the_header_and_into_no_file(prompt_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", "hf_TESTSECRET123")
    with ScriptedServer(without_metrics) as server:
        code, printed, out = bench(server, prompt_file, "--concurrency", "1", "--api-key-env", "ENDPOINT_KEY")
        assert {seen.headers["authorization"] for seen in server.posts} == {"Bearer hf_TESTSECRET123"}
    assert code == 0
    assert "TESTSECRET" not in printed + out.read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ["there.json", "folder", "prompts.jsonl/x.json"])
def test_a_place_that_cannot_take_the_cell_is_refused_before_the_first_request(prompt_file: Path, place: str) -> None:
    folder = prompt_file.parent
    (folder / "there.json").write_text("measured before", encoding="utf-8")
    (folder / "folder").mkdir()
    with ScriptedServer(without_metrics) as server:
        arguments = ["--base-url", server.base_url, "--prompts", str(prompt_file), "--model", "m", "--concurrency", "1"]
        result = CliRunner().invoke(command(), [*arguments, "--no-selftest", "--out", str(folder / place)])
        assert isinstance(result.exception, UserError)
        assert server.posts == []
    assert (folder / "there.json").read_text(encoding="utf-8") == "measured before"


def test_an_earlier_cell_is_replaced_only_when_asked(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        bench(server, prompt_file, "--concurrency", "1", "--limit", "3")
        with pytest.raises(UserError, match="not replaced unasked"):
            bench(server, prompt_file, "--concurrency", "1", "--limit", "2")
        code, _, out = bench(server, prompt_file, "--concurrency", "1", "--limit", "2", "--overwrite")
    assert code == 0
    assert Cell.read(out).summary.requests == 2


PAGE = Script([Step(0, b"<html><body>Hello</body></html>")], content_type="text/html")
NO_MODEL = Script(
    [Step(0, b'{"error":{"message":"The model `m` does not exist."}}')], status=404, content_type="application/json"
)
WHOLE = Script([Step(0, b'{"choices":[{"message":{"content":"a"}}]}')], content_type="application/json")


@pytest.mark.parametrize("warmup", [[], ["--warmup", "0"]])
@pytest.mark.parametrize(
    ("answer", "cause", "fix"),
    [
        (Script(status=404), "There are no chat completions at this address: HTTP 404", "up to /v1"),
        (Script(status=405), "There are no chat completions at this address: HTTP 405", "--base-url"),
        (Script(status=501), "There are no chat completions at this address: HTTP 501", "/v1/models"),
        (PAGE, "streams no chat completions: the server answered with text/html: Hello", "OpenAI-compatible"),
        (WHOLE, "streams no chat completions", "OpenAI-compatible"),
        (NO_MODEL, "does not know the model: The model `m` does not exist.", "--model"),
        (Script(status=401), "wants a key", "--api-key-env NAME"),
    ],
)
def test_what_is_no_llm_server_is_told_and_no_cell_is_written(
    prompt_file: Path, answer: Script, cause: str, fix: str, warmup: list[str]
) -> None:
    with (
        ScriptedServer(lambda _seen: answer) as server,
        pytest.raises(UserError) as caught,
    ):
        bench(server, prompt_file, "--concurrency", "1", "--limit", "2", *warmup)
    assert cause in caught.value.cause
    assert fix in caught.value.fix
    assert caught.value.place == f"{server.base_url}/v1/chat/completions"
    assert not (prompt_file.parent / "cell.json").exists()


def test_tls_to_a_plain_server_is_told_as_that(prompt_file: Path) -> None:
    # Not the scripted server: that one waits for the rest of what it takes for a request.
    plain = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    Thread(target=plain.serve_forever, daemon=True).start()
    try:
        secure = f"https://127.0.0.1:{plain.server_port}"
        with ScriptedServer(without_metrics) as server, pytest.raises(UserError, match="TLS with ") as caught:
            bench(server, prompt_file, "--concurrency", "1", "--base-url", secure)
    finally:
        plain.shutdown()
        plain.server_close()
    assert "Write http://" in caught.value.fix


def test_more_in_flight_than_there_are_prompts_is_refused(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        with pytest.raises(UserError, match="4 prompts can never be 5 in flight") as caught:
            bench(server, prompt_file, "--concurrency", "5", "--limit", "4")
        assert server.posts == []
        assert caught.value.place == "--concurrency"
        code, _, _ = bench(server, prompt_file, "--concurrency", "4", "--limit", "4")
    assert code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rate", "nan"],
        ["--rate", "inf"],
        ["--rate", "0"],
        ["--concurrency", "1", "--deadline", "nan"],
        ["--concurrency", "1", "--deadline", "0"],
        ["--concurrency", "1", "--deadline", "-1"],
        ["--concurrency", "1", "--ttft-objective", "nan"],
        ["--concurrency", "1", "--tpot-objective", "0"],
    ],
)
def test_a_number_that_cannot_be_meant_is_refused_with_what_to_write(prompt_file: Path, wrong: list[str]) -> None:
    option = wrong[-2]
    with ScriptedServer(without_metrics) as server:
        with pytest.raises(UserError) as caught:
            bench(server, prompt_file, *wrong)
        assert not server.posts
    assert caught.value.place == option
    assert f"Write it like {option} " in caught.value.fix


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("SECRET-schlüssel", "not ASCII"),
        ("SECRET\n", "a line end"),
        ("SECRET\r\nx-other: 1", "a line end"),
        ("SECRET two", "a space"),
        ("SECRET\x7f", "control character"),
        ("", "is empty"),
    ],
)
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    prompt_file: Path, monkeypatch: pytest.MonkeyPatch, key: str, why: str
) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", key)
    with ScriptedServer(without_metrics) as server:
        with pytest.raises(UserError) as caught:
            bench(server, prompt_file, "--concurrency", "1", "--api-key-env", "ENDPOINT_KEY")
        assert not server.posts
    assert why in caught.value.cause
    assert "ENDPOINT_KEY" in caught.value.fix
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_stream_of_something_else_is_told_as_that_and_not_as_tls(prompt_file: Path) -> None:
    def script(seen: Seen) -> Script:
        return paced([b"data: {nope\n\n", DONE], gap_s=0.001) if seen.method == "POST" else Script(status=404)

    with ScriptedServer(script) as server:
        code, said, out = bench(server, prompt_file, "--concurrency", "2")
    assert code == 1
    assert "an event of the stream is no JSON object" in said
    assert "https" not in said
    assert Cell.read(out).summary.failed == 12


def test_overwrite_replaces_a_cell_and_nothing_else(prompt_file: Path) -> None:
    with ScriptedServer(without_metrics) as server:
        for content in ("notes of mine\n", '{"id": "p1"}\n'):
            (prompt_file.parent / "cell.json").write_text(content)
            with pytest.raises(UserError, match="no cell, and --overwrite replaces nothing else"):
                bench(server, prompt_file, "--concurrency", "2", "--overwrite")
            assert (prompt_file.parent / "cell.json").read_text() == content
        assert not [seen for seen in server.posts if seen.json.get("stream")]


def test_the_prompts_are_never_written_over(prompt_file: Path) -> None:
    content = prompt_file.read_text()
    arguments = [
        "--base-url",
        "http://127.0.0.1:9",
        "--prompts",
        str(prompt_file),
        "--model",
        "m",
        "--concurrency",
        "1",
    ]
    result = CliRunner().invoke(command(), [*arguments, "--out", str(prompt_file), "--overwrite"])
    assert isinstance(result.exception, UserError)
    assert "the file of the prompts" in result.exception.cause
    assert prompt_file.read_text() == content


def test_ctrl_c_keeps_the_rows_that_are_there(prompt_file: Path) -> None:
    slow = paced([sse(delta(content="a")), sse(delta(finish="stop")), sse(usage(1)), DONE], gap_s=0.15)
    with ScriptedServer(lambda seen: slow if seen.method == "POST" else Script(status=404)) as server:
        timer = Timer(1.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        code, said, out = bench(server, prompt_file, "--concurrency", "1", "--warmup", "0")
    assert code == 1
    assert "ABORTED" in said
    cell = Cell.read(out)
    assert not cell.summary.completed
    assert 1 <= len(cell.rows) < 12
    assert cell.rows[0].status == "ok"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
