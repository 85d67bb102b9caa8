"""`gcomp bisect`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gcomp.cli.options import Source, read_arrays
from gcomp.driver import import_model
from gcomp.errors import GcompError
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.checking import named_inputs
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import pipeline_for
from gcomp.passes.registry import parse_pipeline, pipeline_text
from gcomp.reference.inputs import sample_inputs
from gcomp.testing.bisect import Culprit, bisect_pipeline, find_nonfinite, first_op
from gcomp.testing.reduce.predicates import TargetCheck, TargetFailure
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
    seed: int
    source: Source


def bisect_command(model: Path, options: BisectOptions) -> None:
    """Find the first pass and rewrite that change the answer, or the first op that makes a NaN. Exits 1 if found."""
    program = import_model(model, **options.source.keywords())
    require_weights(program, model)
    given = None if options.inputs is None else read_arrays(options.inputs)
    arrays = sample_inputs(program, options.seed) if given is None else named_inputs(program, given)
    pipeline = pipeline_for(options.target) if options.pipeline is None else options.pipeline
    passes = parse_pipeline(pipeline)
    out = Console(soft_wrap=True, highlight=False, markup=False)
    if options.nan:
        found = _nonfinite(program, passes, arrays, out)
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
    model: Path, program: Program, passes: Sequence[Pass], arrays: Sequence[Array], options: BisectOptions, out: Console
) -> bool:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def report(position: int, step: Pass) -> None:
            progress.update(task, description=f"pass {position + 1} of {len(passes)}: {step.spec()}")

        culprit = bisect_pipeline(program, passes, arrays, report=report)
        if culprit is None and options.run_target:
            progress.update(task, description=f"running {options.target}")
            return _wrong_target(model, program, passes, arrays, options, out)
    if culprit is None:
        out.print(f"none of {len(passes)} passes changes the answer beyond its class")
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
    upto = pipeline_text(passes[: culprit.position + 1])
    given = f" --inputs {options.inputs}" if options.inputs is not None else f" --seed {options.seed}"
    if culprit.applications:
        out.print(f'see it:    gcomp opt {model} -p "{upto}" --bisect-limit {culprit.applications}')
    out.print(f'make it small:  gcomp reduce {model} --check "{upto}"{given}')


def _wrong_target(
    model: Path, program: Program, passes: Sequence[Pass], arrays: Sequence[Array], options: BisectOptions, out: Console
) -> bool:
    """Whether the target computes something else than the reference; if so, from which op on."""
    optimized = program.clone()
    PassManager(passes).run(optimized)
    with TargetCheck(options.target) as check:

        def failure(part: Program) -> TargetFailure | None:
            try:
                return check.failure(part, [a for p, a in zip(program.inputs(), arrays, strict=False)
                                            if p.name in {port.name for port in part.inputs()}])  # fmt: skip
            except GcompError:
                return None

        found = failure(optimized)
        if found is None:
            out.print(f"no pass changes the answer beyond its class, and {options.target} computes it")
            return False
        op = first_op(optimized, lambda part: failure(part) is not None)
    out.print(f"all {len(passes)} passes keep the answer, and {found}")
    if op is not None:
        out.print(f"the first op whose value differs is {where(op)}")
    given = f" --inputs {options.inputs}" if options.inputs is not None else f" --seed {options.seed}"
    out.print(f"make it small:  gcomp reduce {model} --target {options.target}{given}")
    return True
