"""Results and rules in a real Prometheus (M38): what is exported is accepted, what the dashboard asks is answered."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from specdec_lab.records.comparison import Comparison
from specdec_lab.report import prometheus

MONITORING = Path(__file__).parents[2] / "containers" / "monitoring"
RECORDED = Path(__file__).parents[1] / "fixtures" / "metrics" / "vllm_0.32_ngram.prom"

promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here; apt-get install prometheus")
server = pytest.mark.skipif(shutil.which("prometheus") is None, reason="no Prometheus; apt-get install prometheus")


@pytest.fixture(scope="module")
def exported(results: Path) -> str:
    prometheus.write(results, results / "specdec.prom")
    return (results / "specdec.prom").read_text(encoding="utf-8")


def tool(*arguments: str | Path, stdin: str | None = None) -> str:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=60, cwd=MONITORING
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_m38_every_measured_row_is_exported_with_its_numbers(results: Path, exported: str) -> None:
    samples = [s for family in text_string_to_metric_families(exported) for s in family.samples]
    comparison = Comparison.read(results / "comparison.json")
    speedups = {tuple(sorted(s.labels.items())): s.value for s in samples if s.name == "specdec_decode_speedup_ratio"}
    rows = [row for row in comparison.cells if row.decode is not None and row.decode.ratio is not None]
    assert len(speedups) == len(rows)
    for row in rows:
        labels = {"run": comparison.name, "kind": row.kind, "load": row.load, "mode": row.mode}
        assert row.decode is not None
        assert speedups[tuple(sorted(labels.items()))] == pytest.approx(row.decode.ratio)
    assert {s.labels["word"] for s in samples if s.name == "specdec_verdict"} >= {"faster", "slower"}


def test_m38_what_was_not_measured_has_no_sample(exported: str) -> None:
    assert "nan" not in exported.lower()
    baseline = [line for line in exported.splitlines() if 'mode="baseline"' in line]
    assert baseline
    assert not [line for line in baseline if line.startswith(("specdec_decode_speedup", "specdec_acceptance"))]


@promtool
def test_m38_promtool_accepts_the_exported_text(exported: str) -> None:
    tool("check", "metrics", stdin=exported)


@promtool
def test_m38_the_rules_are_valid_and_their_own_tests_pass() -> None:
    tool("check", "config", "prometheus.yml")
    assert "SUCCESS" in tool("test", "rules", "rules.test.yml")


class Target:
    """A server whose counters are a real vLLM's, growing by the recorded amount each second."""

    def __init__(self, exported: str) -> None:
        self.began = time.monotonic()
        recorded = RECORDED.read_text(encoding="utf-8").splitlines()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                growth = time.monotonic() - self.began
                body = exported if handler.path == "/results" else "\n".join(self._grown(recorded, growth)) + "\n"
                handler.send_response(200)
                handler.send_header("Content-Type", "text/plain; version=0.0.4")
                handler.end_headers()
                handler.wfile.write(body.encode())

            def log_message(handler, *_: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @staticmethod
    def _grown(lines: list[str], growth: float) -> Iterator[str]:
        for line in lines:
            name = line.split("{")[0].split(" ")[0]
            if line.startswith("vllm:") and name.endswith("_total"):
                head, value = line.rsplit(" ", 1)
                yield f"{head} {float(value) * (1 + growth)}"
            else:
                yield line


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def live(exported: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Prometheus with our rules, scraping five times a second; its address once it has enough samples."""
    folder = tmp_path_factory.mktemp("prometheus")
    target = Target(exported)
    rules = (MONITORING / "rules.yml").read_text().replace("[5m]", "[3s]").replace("[15m]", "[3s]")
    (folder / "rules.yml").write_text(rules.replace("interval: 15s", "interval: 500ms"))
    where = f"127.0.0.1:{target.http.server_port}"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 500ms}\n"
        "rule_files: [rules.yml]\n"
        "scrape_configs:\n"
        f"  - {{job_name: llm, static_configs: [{{targets: ['{where}']}}]}}\n"
        f"  - {{job_name: specdec, metrics_path: /results, static_configs: [{{targets: ['{where}']}}]}}\n"
    )
    port = free_port()
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        base = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 40
        while not ready(base) and time.monotonic() < end:
            time.sleep(0.3)
        yield base
    finally:
        process.terminate()
        process.wait(timeout=20)
        target.http.shutdown()


def ready(base: str) -> bool:
    try:
        return bool(query(base, "specdec:position_accepted:ratio5m") and query(base, "specdec_verdict"))
    except OSError:
        return False


def query(base: str, expression: str) -> list[dict[str, Any]]:
    """The answer to an instant query."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{base}/api/v1/query?query={urllib.parse.quote(expression)}", timeout=10) as answer:
        body = json.loads(answer.read())
    assert body["status"] == "success"
    result: list[dict[str, Any]] = body["data"]["result"]
    return result


@server
def test_m38_live_acceptance_is_what_the_counters_say(live: str) -> None:
    (rate,) = query(live, "specdec:acceptance_rate:ratio5m")
    (length,) = query(live, "specdec:acceptance_length:ratio5m")
    assert float(rate["value"][1]) == pytest.approx(274 / 564, rel=0.02)
    assert float(length["value"][1]) == pytest.approx(1 + 274 / 113, rel=0.02)
    positions = {
        s["metric"]["position"]: float(s["value"][1]) for s in query(live, "specdec:position_accepted:ratio5m")
    }
    assert [round(positions[str(n)], 2) for n in range(5)] == pytest.approx([0.71, 0.65, 0.37, 0.37, 0.32], abs=0.02)


@server
def test_m38_every_panel_of_the_dashboard_gets_an_answer(live: str) -> None:
    dashboard = json.loads((MONITORING / "grafana" / "dashboards" / "specdec.json").read_text())
    asked = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(asked) >= 12
    for name in ("job", "instance", "run"):
        asked = [(title, expr.replace(f"${name}", ".*")) for title, expr in asked]
    for title, expression in asked:
        result = query(live, expression.replace("[5m]", "[3s]"))
        if "time_to_first_token" not in expression:  # the recorded histogram does not grow
            assert result, f"{title}: {expression}"


@server
def test_m38_no_alert_rule_fails_to_evaluate(live: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{live}/api/v1/rules", timeout=10) as answer:
        groups = json.loads(answer.read())["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == 13
    assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
