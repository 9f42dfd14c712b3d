"""Streaming clients side by side on the same paced server: CPU per million chunks, and the ratios to ours.

    python benchmarks/clients.py [--vllm PATH] [--guidellm PATH] [--aiperf PATH] [--tokenizer DIR]

Ours, a bare asyncio protocol on uvloop, and plain httpx always run; a peer runs when its command is given or on PATH.
Each client is a process of its own. Its CPU time for many requests, less that for few, is what its chunks cost;
starting and importing thus cancel out and are reported by themselves. All run in turn on one server, in several rounds,
and of each the least counts, for whatever else runs on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from specdec_lab.client import Client, Endpoint, bare
from specdec_lab.client.paced import Pace, PacedServer
from specdec_lab.client.request import body, wires
from specdec_lab.client.selftest import prompts
from specdec_lab.records.spec import Load, Sampling

FEW = 8


def ours(url: str, n: int, tokens: int, concurrency: int) -> None:
    with Client(Endpoint(url, "paced")) as client:
        measured = client.measure(prompts(n, tokens, tokens), Load(concurrency=concurrency))
    assert not measured.summary.failed


def plain(url: str, n: int, tokens: int, concurrency: int) -> None:
    endpoint = Endpoint(url, "paced")
    requests = wires(endpoint, [body(endpoint, one, sampling=Sampling()) for one in prompts(n, tokens, tokens)])
    bare.run(endpoint.url.host, endpoint.url.port or 80, requests, min(concurrency, n))


def httpx_alone(url: str, n: int, tokens: int, concurrency: int) -> None:
    import httpx

    endpoint = Endpoint(url, "paced")
    waiting = [body(endpoint, one, sampling=Sampling()) for one in prompts(n, tokens, tokens)]

    async def work(client: httpx.AsyncClient) -> None:
        while waiting:
            stamps, parts = [], []
            async with client.stream("POST", endpoint.url, json=waiting.pop()) as response:
                async for line in response.aiter_lines():
                    stamps.append(time.perf_counter())
                    if line.startswith("data: {"):
                        for choice in json.loads(line[6:])["choices"]:
                            parts.append(choice["delta"].get("content"))

    async def run() -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=None, trust_env=False, limits=limits) as client:
            await asyncio.gather(*(work(client) for _ in range(concurrency)))

    asyncio.run(run())


OWN = {"specdec-lab": ours, "bare asyncio protocol": plain, "plain httpx": httpx_alone}


def vllm(command: str, url: str, n: int, tokens: int, concurrency: int, tokenizer: str, folder: str) -> list[str]:
    return [
        *(command, "bench", "serve", "--backend", "openai-chat", "--base-url", url),
        *("--endpoint", "/v1/chat/completions", "--model", "paced", "--tokenizer", tokenizer, "--disable-tqdm"),
        *("--dataset-name", "random", "--random-input-len", "8", "--random-output-len", str(tokens), "--ignore-eos"),
        *("--num-prompts", str(n), "--max-concurrency", str(concurrency), "--result-dir", folder),
    ]


def guidellm(command: str, url: str, n: int, tokens: int, concurrency: int, tokenizer: str, folder: str) -> list[str]:
    return [
        *(command, "run", "--backend", f"kind=openai_http,target={url},model=paced", "--disable-console"),
        *("--profile", f"kind=concurrent,streams={concurrency}", "--constraint", f"kind=max_requests,count={n}"),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=8,output_tokens={tokens}"),
        *("--output", f"kind=json,path={folder}/guidellm.json"),
    ]


def aiperf(command: str, url: str, n: int, tokens: int, concurrency: int, tokenizer: str, folder: str) -> list[str]:
    return [
        *(command, "profile", "--url", url, "-m", "paced", "--tokenizer", tokenizer, "--endpoint-type", "chat"),
        *("--streaming", "--concurrency", str(concurrency), "--request-count", str(n), "--isl", "8", "--ui", "none"),
        *("--osl", str(tokens), "--extra-inputs", f"max_tokens:{tokens}", "--artifact-dir", folder),
    ]


PEERS = {"vllm bench serve": ("vllm", vllm), "aiperf": ("aiperf", aiperf), "guidellm": ("guidellm", guidellm)}


def cpu_of(argv: list[str]) -> float:
    """CPU seconds of a command and all it starts; RuntimeError with its last words if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NO_PROXY": "*"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-400:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", choices=OWN, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=200, help="chunks of one token in each answer")
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], choices=OWN, help="leave one out")
    parser.add_argument("--tokenizer", default="", help="folder of any tokenizer, which the peers ask for")
    for command, _ in PEERS.values():
        parser.add_argument(f"--{command}", default=shutil.which(command), help="its command")
    asked = parser.parse_args()
    if asked.own:
        OWN[asked.own](asked.url, asked.requests, asked.tokens, asked.concurrency)
        return

    costs: dict[str, list[tuple[float, float]]] = {}
    failed: dict[str, str] = {}
    with PacedServer(Pace(first_s=0.1, gap_s=0.02)) as server, tempfile.TemporaryDirectory() as folder:

        def argv(name: str, n: int) -> list[str]:
            if name in OWN:
                own = [sys.executable, str(Path(__file__)), "--own", name, "--url", server.base_url]
                sizes = ("--requests", str(n), "--tokens", str(asked.tokens), "--concurrency", str(asked.concurrency))
                return [*own, *sizes]
            command, make = PEERS[name]
            path = getattr(asked, command)
            return make(path, server.base_url, n, asked.tokens, asked.concurrency, asked.tokenizer, folder)

        names = [
            *(name for name in OWN if name not in asked.without),
            *(name for name, (command, _) in PEERS.items() if getattr(asked, command)),
        ]
        for number in range(asked.rounds):
            for name in names:
                if name in failed:
                    continue
                try:
                    few, many = cpu_of(argv(name, FEW)), cpu_of(argv(name, asked.requests))
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                    failed[name] = str(error)
                    continue
                costs.setdefault(name, []).append((few, many))
                sys.stderr.write(f"round {number + 1}: {name}: {few:.2f} s for {FEW}, {many:.2f} s for all requests\n")

    chunks = (asked.requests - FEW) * asked.tokens
    least = {
        name: 1e6 * (min(many for _, many in rounds) - min(few for few, _ in rounds)) / chunks
        for name, rounds in costs.items()
    }
    mine = least["specdec-lab"]
    lines = ["| client | CPU s per million chunks | ours / it | CPU s to start |", "|---|---|---|---|"]
    for name, cost in sorted(least.items(), key=lambda item: item[1]):
        start = min(few for few, _ in costs[name])
        lines.append(f"| {name} | {cost:.1f} | {mine / cost:.2f} | {start:.1f} |")
    load = f"load average {os.getloadavg()[0]:.1f}"
    setting = f"{asked.requests} requests of {asked.tokens} chunks, {asked.concurrency} at a time, 20 ms between chunks"
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    sys.stdout.write("\n".join([*lines, "", f"{setting}; least of {asked.rounds} rounds; {machine}; {load}", ""]))
    for name, words in failed.items():
        sys.stdout.write(f"not measured: {name}: {words}\n")


if __name__ == "__main__":
    main()
