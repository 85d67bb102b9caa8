"""`gcomp reduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn

from gcomp.cli.arguments import Constants, Dims, Inputs, Links, Load, PipelineOption, Structures
from gcomp.cli.options import Source, check_writable, load_files, read_arrays, source_of, write_file
from gcomp.errors import UsageError
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.passes.base import Pass
from gcomp.passes.checking import named_inputs
from gcomp.passes.registry import load_options, parse_pipeline, pipeline_option
from gcomp.reference.inputs import sample_inputs
from gcomp.sources import import_model
from gcomp.targets.base import target_named
from gcomp.testing.check import check_pass, first_failure
from gcomp.testing.reduce import Predicate, Progress, inline_weights, op_count, reduce_program
from gcomp.testing.reduce.casefile import case_text, write_inputs
from gcomp.testing.reduce.predicates import fails_alike, keeps_failure
from gcomp.testing.reduce.record import carrier, record_values, recorded_inputs
from gcomp.testing.reduce.showing import inputs_option, inputs_to_show
from gcomp.testing.targets import TargetCheck, command_showing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ReduceOptions:
    """The options of `gcomp reduce`."""

    check: str | None
    command: str | None
    match: str | None
    target: str | None
    pipeline: str | None
    output: Path | None
    seconds: float
    timeout: float
    inputs: Path | None
    seed: int
    source: Source


@dataclass
class _Task:
    """What to reduce, what to keep, and what to say of the result."""

    program: Program
    interesting: Predicate
    run: str
    """The line that shows the failure, ..."""
    failure: str
    finish: Callable[[Program], str] | None = None
    """Says how the reduced program fails."""
    shown: tuple[str, Sequence[Array]] | None = None
    """The inputs without which the line does not show it, once it is reduced, and the option that takes them."""
    step: Pass | None = None
    """The pass at fault."""
    piped: str = ""
    """... and what follows the inputs in it."""


def reduce_command(case: Path, options: ReduceOptions) -> None:
    """Reduce a failing program and write it with a line that shows the failure."""
    ways = [w for w in (options.check, options.command, options.target) if w is not None]
    if len(ways) != 1:
        raise UsageError(
            "say what the failure is, in one way",
            why=f"{len(ways)} of --check, --command and --target are given",
            fix="gcomp reduce case.mlir --check PASSES",
        )
    if options.match is not None and options.command is None:
        raise UsageError("--match says what the output of --command must contain", fix="give --command, too")
    if options.pipeline is not None and options.target is None:
        raise UsageError("--pipeline replaces the passes of --target", fix="the passes of --check are its own value")
    output = options.output or Path(f"{case.stem}.reduced.mlir")
    check_writable(output)
    program = import_model(case, **options.source.keywords())
    arrays = None if options.inputs is None else named_inputs(program, read_arrays(options.inputs))
    console = Console(stderr=True)
    deadline = Deadline(options.seconds)
    with ExitStack() as stack:
        if options.check is not None:
            task = _check_task(program, options.check, arrays, options, deadline)
        elif options.command is not None:
            task = _command_task(program, options.command, options, deadline)
        else:
            task = _target_task(program, stack, arrays, options, deadline)
        console.print(
            f"reducing {op_count(task.program)} ops: {task.failure}", highlight=False, markup=False, soft_wrap=True
        )
        small, progress = _reduce(task, deadline, console)
        failure = task.finish(small) if task.finish is not None else task.failure
        sizes = f"Reduced from {case.name}: {op_count(task.program)} ops became {op_count(small)}."
        run = task.run
        if task.shown is not None:
            option, arrays = task.shown
            beside = output.with_suffix(".npz")
            named = {port.name: array for port, array in zip(small.inputs(), arrays, strict=True)}
            if write_inputs(beside, small, named):
                run += inputs_option(option, beside)
                said = f"wrote {beside}: the inputs on which it fails"
                console.print(said, highlight=False, markup=False, soft_wrap=True)
        text = case_text(small, run + task.piped, [sizes, *failure.splitlines()])
        write_file(output, text.encode())
    print_ = Console(soft_wrap=True, highlight=False, markup=False).print
    print_(text, end="")
    console.print(
        f"wrote {output}: {op_count(task.program)} ops became {op_count(small)} in {progress.seconds:.1f} s "
        f"({progress.tried} programs tried)\n{failure}", highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def _reduce(task: _Task, deadline: Deadline, console: Console) -> tuple[Program, Progress]:
    last = Progress()
    with Bar(SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True) as bar:
        shown = bar.add_task("looking", total=None)

        def report(progress: Progress) -> None:
            nonlocal last
            last = progress
            bar.update(
                shown,
                description=f"{progress.ops} ops, {progress.seconds:.0f} s, {progress.tried} tried: {progress.stage}",
            )

        small = reduce_program(task.program, task.interesting, seconds=deadline.left, report=report, step=task.step)
    return small, last


def _check_task(
    program: Program, pipeline: str, arrays: Sequence[Array] | None, options: ReduceOptions, deadline: Deadline
) -> _Task:
    found = first_failure(pipeline, program, arrays, seed=options.seed)
    if found is None:
        raise UsageError(
            f"{pipeline} does not fail on the program", fix="give the inputs on which it does, or another --seed"
        )
    failure, step, before = found
    known = None
    if arrays is not None:
        before = before.clone()
        known = record_values(before, arrays)
    inputs = carrier(known)

    def finish(small: Program) -> str:
        """What the reduced program's failure says; its line needs inputs where made ones do not show it."""
        needed = inputs_to_show(step, small, failure, inputs, seeds=(options.seed,))
        task.shown = None if needed is None else ("--inputs", needed)
        for given in (None, inputs) if needed is None else (needed,):
            same = check_pass(step, small, given, seed=options.seed)
            if same is not None and same.fingerprint() == failure.fingerprint():
                return str(same)
        return str(failure)

    keep = keeps_failure(step, failure, inputs, seeds=(options.seed,), deadline=deadline)
    run = f"gcomp opt %s {pipeline_option([step])} --check-each{load_options([step])}"
    task = _Task(before, keep, run, str(failure), finish, step=step, piped=" | filecheck %s")
    return task


def _command_task(program: Program, command: str, options: ReduceOptions, deadline: Deadline) -> _Task:
    program = program.clone()
    inline_weights(program)
    keep = fails_alike(command, program, match=options.match, timeout=options.timeout, deadline=deadline)
    return _Task(program, keep, command.replace("{}", "%s"), f"{command} fails")


def _target_task(
    program: Program, stack: ExitStack, arrays: Sequence[Array] | None, options: ReduceOptions, deadline: Deadline
) -> _Task:
    target = options.target or ""
    steps = parse_pipeline(target_named(target).pipeline() if options.pipeline is None else options.pipeline)
    check = stack.enter_context(TargetCheck(target, steps, timeout=options.timeout))
    failure = check.failure(program, arrays, seed=options.seed)
    if failure is None:
        raise UsageError(
            f"{target} computes what the reference does on the program",
            fix="give the inputs on which it does not, or another --seed",
        )
    known = None
    if arrays is not None:
        program = program.clone()
        known = record_values(program, arrays)
    passes = "" if options.pipeline is None else f" {pipeline_option(steps)}{load_options(steps)}"
    run, option = command_showing(target, failure.kind, passes)
    keep = check.keeps(failure, carrier(known), seed=options.seed)
    # The failure itself must be found; from then on all is done within the time.
    check.deadline = deadline

    def finish(small: Program) -> str:
        shown = recorded_inputs(small, known) if known is not None else None
        task.shown = option, shown or sample_inputs(small, options.seed)
        return str(check.kept or failure)

    task = _Task(program, keep, run, str(failure), finish)
    return task


def reduce(
    case: Annotated[Path, typer.Argument(help="an .mlir or .onnx file that shows a failure")],
    check: Annotated[
        str | None, typer.Option("--check", metavar="PASSES", help="keep the failure of a pass, found in this pipeline")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="'CMD {}'", help="keep the way a command fails on a file of the program ({}): its exit status"
        ),
    ] = None,
    match: Annotated[
        str | None, typer.Option(metavar="REGEX", help="what the command's output must contain too")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="keep the difference between this target and the reference")
    ] = None,
    pipeline: PipelineOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="the file to write: CASE.reduced.mlir")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="stop after this time, with the smallest program so far")] = 60,
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for one run of a command or target")] = 60,
    inputs: Inputs = None,
    seed: Annotated[int, typer.Option(min=0, help="what inputs are made from, where none are given")] = 0,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Make a failing program small, and keep its failure.

    Of --check, --command and --target, one says what the failure is:

      gcomp reduce case.mlir --check canonicalize,cse

      gcomp reduce model.onnx --target xla:cpu

      gcomp reduce case.mlir --command 'gcomp opt {} -p my-pass --load my_pass.py'

    --check keeps the failure's fingerprint: what is broken (a crash, invalid IR, the meaning, ...), the pass, the
    rewrite, and the op it is applied to. --command keeps the exit status, which is not 0; a file of the candidate's
    text takes the place of {}. The result is a file with a RUN line, and is printed.
    """
    load_files(load or [])
    source = source_of(case, dim, structure, constant, allow_links)
    reduce_command(
        case,
        ReduceOptions(check, command, match, target, pipeline, output, seconds, timeout, inputs, seed, source),
    )
