"""The commands, each in a file of its own, and how errors become exit codes.

0: done. 1: gcomp refused the input. 2: the command was used wrongly. 3: a bug in gcomp.
"""

from __future__ import annotations

import ast
import gc
import sys
import traceback
from contextvars import copy_context
from functools import cache
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from gcomp.cli.values import convert_simply
from gcomp.collecting import rare_collections
from gcomp.errors import GcompError, InternalError, UsageError, UserCodeError
from gcomp.owners import is_users, is_users_fault, line_of
from gcomp.runtime.folders import turn_off
from gcomp.version import __version__

COMMANDS = {
    "compile": "compiling",
    "tune": "tuning",
    "run": "running",
    "launch": "launching",
    "opt": "optimizing",
    "inspect": "inspecting",
    "explain": "explaining",
    "report": "reporting",
    "reduce": "reducing",
    "bisect": "bisecting",
    "fuzz": "fuzzing",
    "new": "making",
    "bench": "benching",
    "try": "trying",
    "train-step": "training",
    "train": "training",
    "write-parameters": "training",
}
"""Command -> the module of `gcomp.cli` with the function of that name, which is imported when it is asked for."""


def function_name(command: str) -> str:
    """What a command's function is called."""
    name = command.replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


class Command(TyperCommand):
    """A command that needs no pydantic for texts and paths."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [convert_simply(parameter) for parameter in super().get_params(ctx)]


class Commands(TyperGroup):
    """The commands, of which only the one that runs is imported."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [convert_simply(parameter) for parameter in super().get_params(ctx)]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in COMMANDS])


@cache
def load_command(name: str) -> Any:
    """A command by name."""
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    one.command(name, cls=Command)(getattr(import_module(f"gcomp.cli.{COMMANDS[name]}"), function_name(name)))
    return typer.main.get_command(one)


def summary(name: str) -> str:
    """The first line of a command's docstring, read without importing what the command needs."""
    source = Path(__file__).with_name(f"{COMMANDS[name]}.py").read_text("utf-8")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    own = next(node for node in functions if node.name == function_name(name))
    return (ast.get_docstring(own) or "").partition("\n")[0]


app = typer.Typer(
    cls=Commands,
    help="gcomp compiles ONNX models, JAX functions, PyTorch modules and StableHLO text to one file, which gcomp loads "
    "without them.\n\n"
    "A first session:\n\n"
    "  gcomp compile model.onnx -o model.gcomp --dim batch=1..64\n\n"
    "  gcomp inspect model.gcomp\n\n"
    "  gcomp run model.gcomp --input x=x.npy --output y=y.npy\n\n"
    "  gcomp opt model.onnx -p canonicalize,cse --timing",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="compile anew: neither read nor write the cache of compiled code")
    ] = False,
) -> None:
    """The options before a command."""
    if no_cache:
        turn_off()
    if version:
        typer.echo(f"gcomp {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the `gcomp` command."""
    # What a command loads and makes lives as long as its process. Garbage that is looked for often, and once more when
    # collections are no longer rare, and at the end, takes a quarter of the time of compiling a small model.
    try:
        with rare_collections():
            try:
                copy_context().run(app)
            finally:
                gc.freeze()
    except UsageError as error:
        _fail(error, 2)
    except InternalError as error:
        _fail(error, 3)
    except GcompError as error:
        _fail(error, 1)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if is_users_fault(error.__traceback__):
            _fail_of_users(error, why)
        traceback.print_exc()
        _fail(InternalError("gcomp crashed", why=why, fix="please report this, with the lines above"), 3)


def _fail_of_users(error: Exception, why: str) -> NoReturn:
    """Show the user's lines of a traceback: what gcomp did in between is not their concern."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    typer.echo("".join(traceback.format_list(frames)), err=True, nl=False)
    _fail(UserCodeError("your code failed", where=line_of(error.__traceback__), why=why, fix="mend it there"), 1)


def _fail(error: GcompError, code: int) -> NoReturn:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(str(error), err=True)
    sys.exit(code)
