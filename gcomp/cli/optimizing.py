"""`gcomp opt`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gcomp.cli.arguments import (
    Constants,
    Dims,
    Links,
    Load,
    PipelineOption,
    PrintAfterChangeOption,
    Structures,
    TimingOption,
)
from gcomp.cli.listing import list_rules_command
from gcomp.cli.options import Source, check_writable, load_files, read_arrays, source_of, write_file
from gcomp.cli.timings import timing_table
from gcomp.dims import symbols_of
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.checking import named_inputs
from gcomp.passes.manager import Instrument, PassManager, PrintAfterChange, Timing, VerifyEach
from gcomp.passes.registry import all_passes, parse_pipeline, transformations
from gcomp.passes.verifying import JudgeEach
from gcomp.sources import import_model
from gcomp.targets.base import target_named
from gcomp.texts import require_weights, weights_of, write_weights


@dataclass(frozen=True)
class OptOptions:
    """The options of `gcomp opt`."""

    pipeline: str | None
    target: str | None
    output: Path | None
    source: Source
    verify_each: bool
    check_each: bool
    inputs: Path | None
    print_after_change: bool
    timing: bool
    bisect_limit: int | None
    locations: bool
    generic: bool
    export: bool


def opt_command(model: Path, options: OptOptions) -> None:
    """Run passes on a program and print it."""
    if options.pipeline is not None and options.target is not None:
        raise UsageError("--pipeline and --target exclude each other")
    if options.output is not None:
        check_writable(options.output)
    pipeline = target_named(options.target).pipeline() if options.target is not None else options.pipeline or ""
    passes = parse_pipeline(pipeline) if pipeline else []
    program = import_model(model, **options.source.keywords())
    timing = Timing()
    instruments: list[Instrument] = [timing]
    if options.verify_each:
        instruments.append(VerifyEach())
    arrays = None if options.inputs is None else named_inputs(program, read_arrays(options.inputs))
    judge = JudgeEach(arrays, settles=True)
    if options.check_each:
        instruments.append(judge)
    if options.print_after_change:
        instruments.append(PrintAfterChange(sys.stderr.write))
    context = PassContext(bisect_limit=options.bisect_limit)
    PassManager(passes, instruments, Path(f"{model.stem}.crash.mlir")).run(program, context)
    program.verify("after all passes")
    _write(program, options)
    errors = Console(stderr=True)
    if options.timing:
        errors.print(timing_table(timing))
    if options.check_each:
        errors.print(f"checked: {judge.follower.told()}", highlight=False, markup=False, soft_wrap=True)
    if options.bisect_limit is not None:
        errors.print(f"{context.applications} rewrites; the last one: {context.last or 'none'}", highlight=False)


def _write(program: Program, options: OptOptions) -> None:
    if options.export:
        from gcomp.lowering.xla import lower

        require_weights(program)
        plan = lower(program)
        text = plan.templates[plan.segments[0].text].fill(_sizes(program))
    else:
        text = program.text(generic=options.generic, locations=options.locations)
    if options.output is not None:
        write_file(options.output, text.encode())
    else:
        sys.stdout.write(text)
    if not options.export and weights_of(program):
        said = _weights_told(program, options.output)
        Console(stderr=True).print(said, highlight=False, markup=False, soft_wrap=True)


def _weights_told(program: Program, output: Path | None) -> str:
    """Write the weights beside the text where there is a file of it; what to say of them."""
    if output is None:
        return "the weights are not in the text: -o FILE.mlir writes them beside it"
    beside = write_weights(output, program) if output.is_file() else None
    if beside is None:
        return f"wrote {output} without the weights that it reads: there are none to write"
    return f"wrote {output}, and its weights to {beside}"


def _sizes(program: Program) -> dict[str, int]:
    """The sizes that export text is written for: every symbol needs one."""
    free = {s for port in program.inputs() for size in port.shape for s in symbols_of(size)}
    if free:
        raise UsageError(
            f"export text has no symbols, and {', '.join(sorted(free))} have no size",
            fix=" ".join(f"--dim {name}=8" for name in sorted(free)),
        )
    return {}


def list_passes_command() -> None:
    """List the passes with their laws."""
    table = Table("pass", "level", "exactness", "law")
    for name, cls in {**all_passes(), **transformations()}.items():
        module = sys.modules[cls.__module__]
        law = (module.__doc__ or cls.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        table.add_row(name, cls.level, cls.exactness.name, law)
    Console().print(table)


def opt(
    model: Annotated[Path | None, typer.Argument(help="an .onnx or .mlir file, or package.module:factory")] = None,
    pipeline: PipelineOption = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="run this target's pipeline")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the text")] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    verify_each: Annotated[bool, typer.Option("--verify-each", help="verify the program after each pass")] = False,
    check_each: Annotated[
        bool,
        typer.Option(
            "--check-each", help="hold each pass to its promises, and compare the meaning before and after it"
        ),
    ] = False,
    inputs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="the inputs that --check-each compares the meaning on")
    ] = None,
    print_ir_after_change: PrintAfterChangeOption = False,
    timing: TimingOption = False,
    bisect_limit: Annotated[int | None, typer.Option(min=0, help="apply only this many rewrites")] = None,
    locations: Annotated[bool, typer.Option("--locations", help="print where each op comes from")] = False,
    generic: Annotated[bool, typer.Option("--generic", help="print generic syntax")] = False,
    export: Annotated[bool, typer.Option("--export", help="print plain StableHLO instead of IR text")] = False,
    load: Load = None,
    list_passes: Annotated[bool, typer.Option("--list-passes", help="list the passes")] = False,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="list the rewrites (of the passes in -p), and what is proved of them")
    ] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="with --list-rules: prove the rules now (needs the extra `prove`)")
    ] = False,
) -> None:
    """Run passes on a program and print it."""
    load_files(load or [])
    others = (model, target, output, dim, structure, constant, verify_each, check_each, inputs, print_ir_after_change,
              timing, bisect_limit, locations, generic, export, pipeline if list_passes else None)  # fmt: skip
    if (list_passes or list_rules) and any(option not in (None, False) for option in others):
        raise UsageError("--list-passes and --list-rules run nothing, and say nothing of a model: leave the rest out")
    if list_passes:
        list_passes_command()
        return
    if prove and not list_rules:
        raise UsageError("--prove goes with --list-rules", fix="gcomp opt --list-rules --prove")
    if list_rules:
        list_rules_command(prove, pipeline)
        return
    if model is None:
        raise UsageError("opt needs a file", fix="gcomp opt model.onnx -p canonicalize, or gcomp opt --list-passes")
    if inputs is not None and not check_each:
        raise UsageError("--inputs says what --check-each compares on", fix="give --check-each, too")
    source = source_of(model, dim, structure, constant, allow_links)
    opt_command(
        model,
        OptOptions(pipeline, target, output, source, verify_each, check_each, inputs, print_ir_after_change, timing,
                   bisect_limit, locations, generic, export),
    )  # fmt: skip
