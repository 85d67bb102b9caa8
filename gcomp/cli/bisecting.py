"""`gcomp bisect`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gcomp.cli.arguments import Constants, Dims, Inputs, Links, Load, ModelFile, PipelineOption, Structures, Target
from gcomp.cli.options import Source, load_files, read_arrays, source_of
from gcomp.errors import GcompError
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.judging.targets import TargetFailure
from gcomp.options import DEFAULT_TARGET
from gcomp.passes.base import Pass
from gcomp.passes.checking import named_inputs
from gcomp.passes.compared import Compared
from gcomp.passes.manager import PassManager
from gcomp.passes.references import sets_for_model
from gcomp.passes.registry import load_options, parse_pipeline, pipeline_option
from gcomp.passes.verifying import Follower
from gcomp.reference.inputs import InputSet, sample_inputs
from gcomp.sources import import_model
from gcomp.targets.base import target_named
from gcomp.testing.bisect import Culprit, bisect_pipeline, find_nonfinite, first_op
from gcomp.testing.targets import TargetCheck
from gcomp.texts import require_weights

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class BisectOptions:
    """The options of `gcomp bisect`."""

    inputs: Path | None
    pipeline: str | None
    target: str
    nan: bool
    run_target: bool
    seconds: float
    seed: int
    source: Source


def bisect_command(model: Path, options: BisectOptions) -> None:
    """Find the first pass and rewrite that change the answer, or the first op that makes a NaN. Exits 1 if found."""
    program = import_model(model, **options.source.keywords())
    require_weights(program, model)
    given = None if options.inputs is None else read_arrays(options.inputs)
    arrays = None if given is None else named_inputs(program, given)
    pipeline = target_named(options.target).pipeline() if options.pipeline is None else options.pipeline
    passes = parse_pipeline(pipeline)
    out = Console(soft_wrap=True, highlight=False, markup=False)
    if options.nan:
        found = _nonfinite(program, passes, sample_inputs(program, options.seed) if arrays is None else arrays, out)
    else:
        found = _wrong_pass(model, program, passes, arrays, options, out)
    if found:
        sys.exit(1)


def _nonfinite(program: Program, passes: Sequence[Pass], arrays: Sequence[Array], out: Console) -> bool:
    original = find_nonfinite(program, arrays)
    optimized = program.clone()
    PassManager(passes).run(optimized)
    after = find_nonfinite(optimized, arrays)
    for title, origins in (("the model as it was read", original), ("the model after all passes", after)):
        out.print(f"{title}:")
        for origin in origins:
            out.print("  " + str(origin).replace("\n", "\n  "))
        if not origins:
            out.print("  no NaN and no infinity")
    return bool(original or after)


def _wrong_pass(
    model: Path,
    program: Program,
    passes: Sequence[Pass],
    arrays: Sequence[Array] | None,
    options: BisectOptions,
    out: Console,
) -> bool:
    follower = Follower(seed=options.seed)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def report(position: int, step: Pass) -> None:
            progress.update(task, description=f"pass {position + 1} of {len(passes)}: {step.spec()}")

        culprit = bisect_pipeline(program, passes, arrays, report=report, follower=follower)
        if culprit is None and options.run_target:
            progress.update(task, description=f"running {options.target}")
            return _wrong_target(model, program, passes, arrays, options, out)
    if culprit is None:
        out.print(f"none of {len(passes)} passes changes the answer beyond its class: {follower.told()}")
        if not options.run_target:
            out.print(f"whether {options.target} computes it is what --run-target tells")
        return False
    _print_culprit(culprit, model, passes, options, out)
    return True


def _print_culprit(culprit: Culprit, model: Path, passes: Sequence[Pass], options: BisectOptions, out: Console) -> None:
    failure = culprit.failure
    out.print(f"pass {culprit.position + 1} of {len(passes)}: {failure}")
    if culprit.change:
        out.print("what the rewrite changed:\n" + "\n".join(f"    {line}" for line in culprit.change.splitlines()))
    run = passes[: culprit.position + 1]
    given, loaded = options.source.options(), load_options(run)
    if culprit.applications:
        limit = f"--bisect-limit {culprit.applications}"
        out.print(f"see it:    gcomp opt {quote(str(model))} {pipeline_option(run)} {limit}{given}{loaded}")
    checked = pipeline_option(run).removeprefix("-p ")
    out.print(
        f"make it small:  gcomp reduce {quote(str(model))} --check {checked}{_tried_inputs(options)}{given}{loaded}"
    )


def _tried_inputs(options: BisectOptions) -> str:
    """The inputs that were tried, as options."""
    return f" --seed {options.seed}" if options.inputs is None else f" --inputs {quote(str(options.inputs))}"


def _wrong_target(
    model: Path,
    program: Program,
    passes: Sequence[Pass],
    arrays: Sequence[Array] | None,
    options: BisectOptions,
    out: Console,
) -> bool:
    """Whether the target computes something else than the reference; if so, from which op on."""
    optimized, deadline = program.clone(), Deadline(options.seconds)
    PassManager(passes).run(optimized)
    with TargetCheck(options.target) as check:

        def failure(part: Program, given: Sequence[Array]) -> TargetFailure | None:
            names = {port.name for port in part.inputs()}
            pairs = zip(program.inputs(), given, strict=False)
            try:
                return check.failure(part, [array for port, array in pairs if port.name in names])
            except GcompError:
                return None

        found, given, compared = _first_failure(optimized, arrays, options, check, deadline)
        if found is None or found.kind == "deviation":
            known = "" if found is None else f", but for a known way: {found}"
            told = compared.told(program.ranges)
            out.print(f"no pass changes the answer beyond its class, and {options.target} computes it on {told}{known}")
            return False
        place = first_op(optimized, lambda part: _is_wrong(failure(part, given)), deadline)
    out.print(f"all {len(passes)} passes keep the answer, and {found}")
    if place is not None:
        op, before = place
        rest = f", or one of the {before} before it: the time ended (--seconds)" if before else ""
        out.print(f"the first op whose value differs is {where(op)}{rest}")
    run = "" if options.pipeline is None else f" {pipeline_option(passes)}{load_options(passes)}"
    shown = f"{_tried_inputs(options)}{options.source.options()}"
    out.print(f"make it small:  gcomp reduce {quote(str(model))} --target {options.target}{run}{shown}")
    return True


def _is_wrong(failure: TargetFailure | None) -> bool:
    return failure is not None and failure.kind != "deviation"


def _first_failure(
    program: Program, arrays: Sequence[Array] | None, options: BisectOptions, check: TargetCheck, deadline: Deadline
) -> tuple[TargetFailure | None, Sequence[Array], Compared]:
    """The first thing that a target does wrong, with the inputs; else a known way in which it differs, if any.

    The first inputs are always tried, the others until half of the time is spent: the op is to be found, too.
    """
    sets: Sequence[InputSet | Sequence[Array]] = sets_for_model(program, options.seed) if arrays is None else [arrays]
    compared, known = Compared(), None
    end = Deadline(options.seconds / 2)
    for i, one in enumerate(sets):
        made = one if isinstance(one, InputSet) else None
        given = one.arrays if isinstance(one, InputSet) else one
        if i and end.is_over:
            compared.left(made, "the time ended (--seconds)")
            continue
        try:
            found = check.failure(program, given)
        except GcompError as error:
            if not i:
                raise
            compared.left(made, error.what)
            continue
        finally:
            check.deadline = deadline
        if _is_wrong(found):
            return found, given, compared
        known = known or found
        compared.saw(made, [])
    return known, sets[0].arrays if isinstance(sets[0], InputSet) else sets[0], compared


def bisect(
    model: ModelFile,
    inputs: Inputs = None,
    pipeline: PipelineOption = None,
    target: Target = DEFAULT_TARGET,
    nan: Annotated[
        bool, typer.Option("--nan", help="find the first op that makes a NaN or an infinity instead")
    ] = False,
    run_target: Annotated[
        bool, typer.Option("--run-target", help="where all passes are right, compare the target with the reference too")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=1, help="with --run-target: stop after this time, with the ops that are left")
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="what inputs are made from, where none are given")] = 0,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    load: Load = None,
) -> None:
    """Find where a wrong answer comes from: the pass, the rewrite, the op, and the source line or node.

      gcomp bisect model.onnx --inputs x.npz

      gcomp bisect model.onnx --inputs x.npz --nan

    Each pass's program is run by the reference on the inputs; the first that changes the answer by more than its class
    allows is at fault, and of its rewrites the first that does.
    """
    load_files(load or [])
    source = source_of(model, dim, structure, constant, allow_links)
    bisect_command(model, BisectOptions(inputs, pipeline, target, nan, run_target, seconds, seed, source))
