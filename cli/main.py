"""The command: its subcommands, and how it fails.

A problem in what the user gave or wrote is drawn on standard error and ends the command with status 1.  A traceback
is printed for faults of gradsmith's own, and with `--traceback`.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import annotate, build, cache, check, doctor, explain, ops, show


class Commands(TyperGroup):
    """Subcommands whose problems are drawn rather than traced."""

    def invoke(self, ctx: Any) -> Any:
        from gradsmith.transpiler.errors import RuleError, TranspileError

        from .console import report, show_warnings
        with warnings.catch_warnings():
            show_warnings()
            try:
                return super().invoke(ctx)
            except TranspileError as fault:
                problems = fault.problems
                if ctx.params.get("traceback"):
                    raise
            except RuleError as fault:
                problems = fault.at(None).problems
                if ctx.params.get("traceback"):
                    raise
        for number, problem in enumerate(problems):
            if number:
                print(file=sys.stderr)
            report(problem)
        raise typer.Exit(1)


app = typer.Typer(name="gradsmith", cls=Commands, no_args_is_help=True, add_completion=False,
                  pretty_exceptions_enable=False, rich_markup_mode=None,
                  context_settings={"help_option_names": ["-h", "--help"]})


def _version(value: bool) -> None:
    if value:
        from gradsmith import __version__
        print(f"gradsmith {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                          help="Print the version and exit.")] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where in gradsmith an error arose.")] = False,
) -> None:
    """Write, show and check derivatives of Python and NumPy functions."""


for command in (build, show, annotate, check, ops, explain, doctor):
    app.command(name=command.__name__.rpartition(".")[2])(command.command)
app.add_typer(cache.app, name="cache")


def main() -> None:
    """Run the command with the arguments of this process."""
    app()
