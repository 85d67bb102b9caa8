"""The commands and their options, and how errors become exit codes.

0: done. 1: gcomp refused the input. 2: the command was used wrongly. 3: a bug in gcomp.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from gcomp.errors import GcompError, InternalError, UsageError
from gcomp.version import __version__

app = typer.Typer(
    help="gcomp compiles ONNX models and StableHLO programs to one file that runs anywhere.\n\n"
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

Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", "-d", metavar="NAME=SIZE", help="a symbolic dimension: batch=8, batch=1..64"),
]
PipelineOption = Annotated[
    str | None, typer.Option("--pipeline", "-p", metavar="PASSES", help="passes to run, as in canonicalize,cse")
]
Target = Annotated[str, typer.Option("--target", "-t", help="what to compile for: xla:cpu")]
TimingOption = Annotated[bool, typer.Option("--timing", help="print a table of the time that each pass takes")]
PrintAfterChange = Annotated[
    bool, typer.Option("--print-ir-after-change", help="print the program after each pass that changes it")
]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    """The options before a command."""
    if version:
        typer.echo(f"gcomp {__version__}")
        raise typer.Exit


@app.command()
def compile(
    model: Annotated[Path, typer.Argument(help="an .onnx or .mlir file")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the artifact to write")] = Path("model.gcomp"),
    target: Target = "xla:cpu",
    dim: Dims = None,
    pipeline: PipelineOption = None,
    verify: Annotated[str, typer.Option(help="off, each (check the meaning after every pass) or full")] = "off",
    donate: Annotated[list[str] | None, typer.Option(help="an input whose memory outputs may reuse")] = None,
    timing: TimingOption = False,
    print_ir_after_change: PrintAfterChange = False,
) -> None:
    """Compile a model into one artifact."""
    from gcomp.cli.compiling import compile_command

    compile_command(model, output, target, dim or [], pipeline, verify, donate or [], timing, print_ir_after_change)


@app.command()
def run(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact, or an .onnx or .mlir file to compile first")],
    input: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE", help="an input, from an .npy file")
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option("--output", "-o", metavar="NAME=FILE", help="write an output to an .npy file")
    ] = None,
    fetch: Annotated[list[str] | None, typer.Option(metavar="NAME", help="only these outputs")] = None,
    random: Annotated[bool, typer.Option("--random", help="random values for the inputs that are not given")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**64 - 1, help="the seed of the model's random operators")
    ] = None,
    dim: Dims = None,
    repeat: Annotated[int, typer.Option(min=1, help="run this many times and print the median time")] = 1,
) -> None:
    """Run a model on inputs from .npy files."""
    from gcomp.cli.running import run_command

    run_command(artifact, input or [], output or [], fetch or [], random, seed, dim or [], repeat)


@app.command()
def opt(
    model: Annotated[Path | None, typer.Argument(help="an .onnx or .mlir file")] = None,
    pipeline: PipelineOption = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="run this target's pipeline")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the text")] = None,
    dim: Dims = None,
    verify_each: Annotated[bool, typer.Option("--verify-each", help="verify the program after each pass")] = False,
    check_each: Annotated[
        bool, typer.Option("--check-each", help="compare the meaning before and after each pass with the reference")
    ] = False,
    print_ir_after_change: PrintAfterChange = False,
    timing: TimingOption = False,
    bisect_limit: Annotated[int | None, typer.Option(help="apply only this many rewrites")] = None,
    locations: Annotated[bool, typer.Option("--locations", help="print where each op comes from")] = False,
    generic: Annotated[bool, typer.Option("--generic", help="print generic syntax")] = False,
    export: Annotated[bool, typer.Option("--export", help="print plain StableHLO instead of IR text")] = False,
    list_passes: Annotated[bool, typer.Option("--list-passes", help="list the passes")] = False,
) -> None:
    """Run passes on a program and print it."""
    from gcomp.cli.optimizing import OptOptions, list_passes_command, opt_command

    if list_passes:
        list_passes_command()
        return
    if model is None:
        raise UsageError("opt needs a file", fix="gcomp opt model.onnx -p canonicalize, or gcomp opt --list-passes")
    opt_command(
        model,
        OptOptions(pipeline, target, output, dim or [], verify_each, check_each, print_ir_after_change, timing,
                   bisect_limit, locations, generic, export),
    )  # fmt: skip


@app.command()
def inspect(
    artifact: Annotated[Path, typer.Argument(help="a .gcomp artifact")],
    dim: Dims = None,
    text: Annotated[bool, typer.Option("--text", help="print the program's text")] = False,
    json: Annotated[bool, typer.Option("--json", help="print the manifest as JSON")] = False,
) -> None:
    """Show what an artifact holds: signature, ops, flops, weights, memory, segments."""
    from gcomp.cli.inspecting import inspect_command

    inspect_command(artifact, dim or [], text, json)


def main() -> None:
    """The entry point of the `gcomp` command."""
    try:
        app()
    except UsageError as error:
        _fail(error, 2)
    except InternalError as error:
        _fail(error, 3)
    except GcompError as error:
        _fail(error, 1)
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        traceback.print_exc()
        why = f"{type(error).__name__}: {error}"
        _fail(InternalError("gcomp crashed", why=why, fix="please report this, with the lines above"), 3)


def _fail(error: GcompError, code: int) -> None:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(str(error), err=True)
    sys.exit(code)
