"""The command line `specdec`: one file per command. Heavy imports happen inside a command, not at start-up."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from ..records.errors import UserError

COMMANDS = {
    "doctor": "Check what this machine and this config need; each line ok, warn or fail with the fix.",
    "bench": "Measure one cell of a running endpoint.",
    "acceptance": "The acceptance between two scrapes of a server's metrics, as JSON.",
    "compare": "Tables and verdicts again, from the raw rows only.",
    "probe": "Ask the baseline's server whether differing texts part at near-ties.",
    "pack": "One archive with everything behind a table; secrets are taken out.",
    "verify": "Check a bundle: checksums, formats, and every table recomputed from the rows.",
    "diff": "Two bundles or results folders side by side; --fail-on makes it a gate.",
    "selftest": "Prove the client against a scripted server with known times.",
}
"""Each command is `run` in the module of its name in this package."""


def build() -> typer.Typer:
    """The application with every command that this version has."""
    app = typer.Typer(
        name="specdec",
        help="Does speculative decoding pay on your hardware, model and traffic?",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    wanted = next((word for word in sys.argv[1:] if word in COMMANDS), None)
    for name, text in COMMANDS.items():
        if wanted in (None, name):
            app.command(name, help=text)(import_module(f".{name}", __name__).run)
    if wanted is not None:
        app.callback()(lambda: None)
    return app


def main() -> None:
    """Entry point. A UserError is printed as cause, place, fix on stderr and ends with exit code 1."""
    try:
        build()()
    except UserError as error:
        print(f"specdec: {error}", file=sys.stderr)  # noqa: T201 - the command line speaks here
        sys.exit(1)
