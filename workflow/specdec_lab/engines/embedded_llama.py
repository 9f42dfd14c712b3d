"""The embedded engine: llama.cpp's own HTTP server out of the `xllamacpp` wheel, with llama-server's flag names.

    python -m specdec_lab.engines.embedded_llama --model FILE.gguf --port 8080 --spec-type ngram-simple

Flags are those of `llama_flags` (`--help` lists them); anything else ends with exit code 2. The first line of the log
is one JSON object with the engine's version and the arguments as they took effect. TERM ends the server at once, and so
does the death of its parent. It listens on 127.0.0.1 unless `--host` says otherwise.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .llama_flags import ALL_FLAGS, METHODS, WORDS, Flag

FACTS_KEY = "specdec_engine"
"""Key of the JSON object in the log's first line."""
_PR_SET_PDEATHSIG = 1
_READERS: dict[str, Any] = {"text": str, "whole": int, "number": float, "names": str}


def parser() -> argparse.ArgumentParser:
    """The documented subset of llama-server's flags."""
    made = argparse.ArgumentParser(
        prog="embedded-llama",
        description="llama.cpp's server as a library, with llama-server's flags (a subset).",
        allow_abbrev=False,
    )
    for flag in ALL_FLAGS:
        spellings = [f"-{s}" if len(s) <= 4 else f"--{s}" for s in flag.short] + [f"--{flag.name}"]
        text = flag.note or (f"for {', '.join(flag.methods)}" if flag.methods else None)
        dest = flag.name.replace("-", "_")
        if flag.kind == "switch":
            made.add_argument(*spellings, dest=dest, action="store_true", default=None, help=text)
            made.add_argument(f"--no-{flag.name}", dest=dest, action="store_false", default=None)
        elif flag.kind in WORDS:
            made.add_argument(*spellings, dest=dest, choices=list(WORDS[flag.kind]), help=text)
        else:
            made.add_argument(*spellings, dest=dest, type=_READERS[flag.kind], help=text)
    made.add_argument("--spec-type", default="none", help="none, or a comma list of: " + ", ".join(METHODS))
    return made


def wanted(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The given arguments by flag name, and the speculation types. Exits with 2 on anything unknown."""
    made = parser()
    options = made.parse_args(argv)
    given = {f.name: value for f in ALL_FLAGS if (value := getattr(options, f.name.replace("-", "_"))) is not None}
    types = [name.strip() for name in options.spec_type.split(",") if name.strip() and name.strip() != "none"]
    for name in types:
        if name not in METHODS:
            made.error(f"argument --spec-type: unknown type {name!r} (choose from none, {', '.join(METHODS)})")
    if "model" not in given:
        made.error("the following arguments are required: --model")
    if any(name.startswith("draft-") and name != "draft-mtp" for name in types) and "spec-draft-model" not in given:
        made.error(f"--spec-type {','.join(types)} needs --spec-draft-model")
    return given, types


def _set(params: Any, flag: Flag, value: Any) -> None:
    *path, last = flag.target.split(".")
    place = params
    for name in path:
        place = getattr(place, name)
    if flag.name == "host":
        value = [value]
    elif flag.kind == "names":
        value = set(value.split(","))
    elif flag.kind in WORDS:
        value = WORDS[flag.kind][value]
    setattr(place, last, value)


def _get(params: Any, flag: Flag) -> Any:
    value = params
    for name in flag.target.split("."):
        value = getattr(value, name)
    if flag.kind in WORDS:
        return next(word for word, meant in WORDS[flag.kind].items() if meant == int(value))
    if flag.name == "host":
        return ",".join(value)
    return sorted(value) if isinstance(value, set | list | tuple) else value


def build_params(library: Any, given: dict[str, Any], types: Sequence[str]) -> Any:
    """llama.cpp's parameters with the given arguments set and everything else as the library has it."""
    params = library.CommonParams()
    for flag in ALL_FLAGS:
        if flag.name in given:
            _set(params, flag, given[flag.name])
    if types:
        prefix = "COMMON_SPECULATIVE_TYPE_"
        params.speculative.types = [
            getattr(library.common_speculative_type, prefix + name.upper().replace("-", "_")) for name in types
        ]
    return params


def effective(params: Any, types: Sequence[str]) -> dict[str, Any]:
    """Every argument as it took effect; those of methods that are off are left out."""
    shown = {f.name: _get(params, f) for f in ALL_FLAGS if not f.methods or set(f.methods) & set(types)}
    return {**shown, "spec-type": ",".join(types) or "none"}


def _own_version() -> str | None:
    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return None


def _die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies (Linux); elsewhere the launcher's clean-up must do."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("embedded-llama: the parent ended during the start")


def _become_child_of_init() -> None:
    """As the first process of a container the kernel gives us no default TERM: serve in a child, pass signals on."""
    child = os.fork()
    if child == 0:
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: os.kill(child, got))
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(0 if code == -signal.SIGTERM else abs(code))


def main(argv: Sequence[str] | None = None) -> None:
    """Start the server and serve until a signal ends it."""
    given, types = wanted(sys.argv[1:] if argv is None else argv)
    try:
        import xllamacpp
    except ImportError as error:
        sys.exit(f"embedded-llama: {error}. Install the engine: pip install 'specdec-lab[demo]'")
    if os.getpid() == 1:
        _become_child_of_init()
    _die_with_parent()
    # The library holds the interpreter while it loads the model, so a Python handler would wait that long.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    params = build_params(xllamacpp, given, types)
    if not params.port:
        sys.exit("embedded-llama: give --port")
    release = _own_version()
    facts = {
        "software": "llama.cpp",
        "package": f"xllamacpp {release}",
        "version": f"b{release.rsplit('.', 1)[-1]}" if release else None,
        "build": dict(xllamacpp.BUILD_INFO),
        "system": xllamacpp.get_system_info().strip(),
        "args": effective(params, types),
    }
    print(json.dumps({FACTS_KEY: facts}, ensure_ascii=False), flush=True)  # noqa: T201 - the log is this program's output
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(f"embedded-llama: {error}")
    print(f"embedded-llama: serving on {server.listening_address}", flush=True)  # noqa: T201
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
