"""`gcomp compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from gcomp.cli.arguments import (
    Automatic,
    Checks,
    Constants,
    Dims,
    Fetch,
    Links,
    Load,
    MeshOption,
    ModelFile,
    PipelineOption,
    PrintAfterChangeOption,
    Shardings,
    Structures,
    Target,
    TimingOption,
    Tuned,
)
from gcomp.cli.emitting import check_emitted
from gcomp.cli.emitting import emit as emit_files
from gcomp.cli.lengths import LengthOptions, buckets_of
from gcomp.cli.options import check_writable, load_files, pairs, read_arrays, source_of, split_list
from gcomp.cli.spinner import spinner
from gcomp.driver import compile_with
from gcomp.errors import UsageError
from gcomp.exactness import Numerics
from gcomp.options import DEFAULT_TARGET, Options, Verify
from gcomp.passes.manager import Instrument, PrintAfterChange, Timing
from gcomp.records import record
from gcomp.runtime.model import Model
from gcomp.runtime.strict_json import Json

if TYPE_CHECKING:
    from rich.table import Table

_STEPS = {"import": "reading the model", "passes": "running passes", "emission": "lowering"}


NumericsOption = Annotated[
    str | None,
    typer.Option(
        metavar="exact|standard|fast",
        help="how exact cpu is: sums in one order, errors at most twice theirs (the default), or eight times",
    ),
]


def verified_text(verified: Json) -> str:
    """What a verified compilation compared, in words: a line for the passes, and one for the target if it was held."""
    parts = cast("dict[str, dict[str, str]]", verified)
    return "\n".join(f"verified {name}: {part['told']}" for name, part in parts.items())


def compile(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="the artifact to write")] = Path("model.gcomp"),
    target: Target = DEFAULT_TARGET,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    pipeline: PipelineOption = None,
    verify: Annotated[
        str,
        typer.Option(
            help="off; each: check the program and its meaning after every pass; full: and the target's answer"
        ),
    ] = "off",
    verify_inputs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="the inputs that --verify compares answers on")
    ] = None,
    load: Load = None,
    donate: Annotated[list[str] | None, typer.Option(help="an input whose memory outputs may reuse")] = None,
    timing: TimingOption = False,
    print_ir_after_change: PrintAfterChangeOption = False,
    emit: Annotated[
        tuple[str, Path] | None,
        typer.Option(
            metavar="WHAT FOLDER", help="write files too: triton-source, of GPU kernels; c-library, to call from C"
        ),
    ] = None,
    fetch: Fetch = None,
    check: Checks = None,
    lengths: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="lengths that calls will have, one in each line")
    ] = None,
    buckets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]N", help="pad a dimension to N sizes, the best for --lengths; or to NAME=32,64,128"
        ),
    ] = None,
    bucket_multiple: Annotated[int, typer.Option(min=1, help="sizes to choose are multiples of this")] = 1,
    bucket_cost: Annotated[
        str, typer.Option(metavar="linear|flops", help="what a size costs: the size, or what the target counts")
    ] = "linear",
    tuned: Tuned = None,
    memory_budget: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="run kernels again where that keeps the plan's memory within, as in 2GiB"),
    ] = None,
    numerics: NumericsOption = None,
    mesh: MeshOption = None,
    sharding: Shardings = None,
    auto: Automatic = False,
) -> None:
    """Compile a model into one artifact."""
    source = source_of(model, dim, structure, constant, allow_links)
    load_files(load or [])
    if emit is not None:
        check_emitted(emit[0])
    if verify not in get_args(Verify):
        raise UsageError(f"--verify is off, each or full, not {verify!r}")
    check_writable(output)
    found = LengthOptions(lengths or [], buckets or [], bucket_multiple, bucket_cost)
    given = None if verify_inputs is None else read_arrays(verify_inputs)
    options = Options(
        **source.keywords(), target=target, pipeline=pipeline, verify=cast(Verify, verify), verify_inputs=given,
        donate=donate or [], fetch=fetch or None, checks=split_list(check), tuned=tuned, memory_budget=memory_budget,
        numerics=cast("Numerics | None", numerics), reproducer=output.with_suffix(".crash.mlir"), prepare=False,
        mesh=mesh, shardings=_shardings(sharding, auto=auto),
    )  # fmt: skip
    chosen, tables = buckets_of(found, model, target, source)
    _write(model, output, replace(options, buckets=chosen or None), _Shown(timing, print_ir_after_change, emit, tables))


def _shardings(given: list[str] | None, *, auto: bool) -> Mapping[str, str] | Literal["auto"] | None:
    if auto and given:
        raise UsageError("--auto finds what --sharding says", fix="give one of them")
    return "auto" if auto else pairs(given, "--sharding") if given else None


@record
class _Shown:
    """What is printed and written besides the artifact."""

    timing: bool
    after_change: bool
    emitted: tuple[str, Path] | None
    tables: Sequence[Table]


def _write(model: Path, output: Path, options: Options, shown: _Shown) -> None:
    """Compile a model, write it, and say what was done."""
    timing = Timing()
    watching: list[Instrument] = [timing] if shown.timing else []
    if shown.after_change:
        watching.append(PrintAfterChange(typer.echo))
    compiled = _compile(model, output, replace(options, instruments=watching), shown.emitted)
    _print_tables(shown, timing, compiled.timings["passes"])
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in compiled.timings.items())
    size = f"{output.stat().st_size / 1e6:.2f} MB"
    typer.echo(f"wrote {output} ({size}) for {options.target}: {seconds}", err=True)
    if compiled.verified is not None:
        typer.echo(verified_text(compiled.verified), err=True)


def _print_tables(shown: _Shown, timing: Timing, passes: float) -> None:
    """The tables that were asked for."""
    if not shown.timing and not shown.tables:
        return
    from rich.console import Console  # as in `spinner`

    from gcomp.cli.timings import timing_table

    console = Console(stderr=True)
    for table in shown.tables:
        console.print(table)
    if shown.timing:
        console.print(timing_table(timing, passes))


def _compile(model: Path, output: Path, options: Options, emitted: tuple[str, Path] | None) -> Model:
    """The model, compiled and written, with what is made of it, while a line says what is being done."""
    with spinner() as say:

        def report(step: str) -> None:
            say(_STEPS.get(step, step))

        compiled = compile_with(model, (), replace(options, progress=report))
        say(f"writing {output}")
        # What cannot be made of the model is refused before anything is written.
        count = 0 if emitted is None else emit_files(emitted[0], compiled, emitted[1])
        compiled.save(output)
    if emitted is not None:
        typer.echo(f"wrote {count} files to {emitted[1]}", err=True)
    return compiled
