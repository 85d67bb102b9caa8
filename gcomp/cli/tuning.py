"""`gcomp tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import gcomp
from gcomp.analysis.work import Nominal
from gcomp.cli.arguments import Constants, Dims, Links, Load, ModelFile, PipelineOption, Structures
from gcomp.cli.options import Source, check_writable, load_files, source_of, write_file
from gcomp.errors import UsageError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.llvm.lower import lower
from gcomp.lowering.llvm.tuning import Chosen
from gcomp.lowering.llvm.tuning import tune as time_in_place
from gcomp.lowering.triton.aot import Compiler
from gcomp.lowering.triton.targets import PREFIX, parse_target
from gcomp.lowering.triton.tuning import check_gpu
from gcomp.lowering.triton.tuning import tune as time_candidates
from gcomp.lowering.tuned import Form, Results, rank_correlation, to_bytes
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cpu.threads import thread_count
from gcomp.runtime.cpu.variants import VARIANTS, runs
from gcomp.runtime.cuda.driver import driver
from gcomp.runtime.plan import Plan
from gcomp.runtime.profiling import seconds_by_place
from gcomp.runtime.sampling import random_inputs
from gcomp.runtime.stateful import model_of
from gcomp.sources import import_model
from gcomp.targets.base import target_named

_SHOWN = 20
"""Kernels that are listed: those for which the model's choice loses the most time."""


def tune_command(
    model: Path, target: str | None, source: Source, pipeline: str | None, output: Path | None, results: Path | None
) -> None:
    """Time the candidates of every kernel of `model` on this machine's GPU."""
    if model.suffix == ".gcomp":
        raise UsageError(
            f"{model} is compiled already: it has the kernels that were chosen, and not what others are made from",
            fix="tune the model that it was compiled from; gcomp inspect --roofline shows what the artifact has",
        )
    results = results or (output or model).with_suffix(".tuned.json")
    for path in filter(None, (output, results)):
        check_writable(path)
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading the model", total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=f"{what}: {done} of {total}")

        of_processor = target is not None and target_named(target).family == "cpu"
        target, found = (tune_processor if of_processor else _tune_gpu)(model, target, source, pipeline, tell)
    write_file(results, to_bytes(found))
    console.print(f"wrote {results}: {_describe_counts(found)}", highlight=False, soft_wrap=True)
    _report(found, Console())
    if output is not None:
        keywords = source.keywords()
        compiled = gcomp.compile(model, target=target, **keywords, pipeline=pipeline, tuned=results, prepare=False)
        compiled.save(output)
        console.print(f"wrote {output} for {target}", highlight=False, soft_wrap=True)


Tell = Callable[[str, int, int], object]


def _tune_gpu(model: Path, target: str | None, source: Source, pipeline: str | None, tell: Tell) -> tuple[str, Results]:
    """The times of every kernel by itself on this machine's GPU, and the target that it is."""
    gpu = driver()
    target = target or f"{PREFIX}{gpu.architecture}"
    on, *others = parse_target(target)
    if others:
        raise UsageError("a GPU is of one architecture", fix=f"tune for {PREFIX}{gpu.architecture}")
    check_gpu(gpu, on)
    program = _planned(model, target, source, pipeline)
    launches = [op for op in program.ops() if isinstance(op, LaunchOp)]
    with Compiler() as compiler:
        return target, time_candidates(launches, program.ranges, on, compiler, gpu, tell)


def _planned(model: Path, target: str, source: Source, pipeline: str | None) -> Program:
    """The program of a model after its passes."""
    program = import_model(model, **source.keywords())
    PassManager(parse_pipeline(target_named(target).pipeline() if pipeline is None else pipeline)).run(program)
    return program


class _Timed:
    """A model with made-up inputs, whose calls are profiled."""

    def __init__(self, plan: Plan, program: Program) -> None:
        self._model = model_of(plan, dict(program.weights.items()))
        self._inputs = random_inputs(self._model, Nominal(program.ranges).sizes(self._model.signature.symbols))

    def results(self) -> list[Any]:
        """The results of a call."""
        return [*self._model.named(**self._inputs).values()]

    def seconds(self) -> Mapping[tuple[str, str], float]:
        """The seconds of the kernels of a call, by label and place."""
        return seconds_by_place(self._model.profile(**self._inputs, repeat=1))


def tune_processor(
    model: Path, target: str | None, source: Source, pipeline: str | None, tell: Tell
) -> tuple[str, Results]:
    """The times of every kernel in calls of the whole model on this machine, and the target that it is."""
    name = target_named(target or "cpu").name
    (variant, *others) = [VARIANTS[n] for n in target_named(name).variants]
    if others or not runs(variant):
        raise UsageError(f"{name} is not tuned here", fix="tune for cpu, the kind of this machine's processor")
    program = _planned(model, name, source, pipeline)

    def make(chosen: Chosen) -> _Timed:
        own = program.clone()
        return _Timed(lower(own, name, [variant], tuned=chosen), own)

    return name, time_in_place(program, variant, f"{variant.name}, {thread_count()} threads", make, tell)


def _describe_counts(found: Results) -> str:
    trials = sum(len(form.trials) for form in found.forms)
    return f"{len(found.forms)} kernels in {trials} configurations, on {found.device}"


def _report(found: Results, console: Console) -> None:
    """What the analytic model says beside what was measured."""
    table = Table("kernel", "tried", "predicted us", "chosen us", "best us", "gap", "order", "best settings")
    table.title = f"{_describe_counts(found)} ({found.target})"
    for column in table.columns[1:-1]:
        column.justify = "right"
    for form in sorted(found.forms, key=_lost_time, reverse=True)[:_SHOWN]:
        chosen, best = form.trials[0], form.best
        table.add_row(
            escape(form.label), str(len(form.trials)), _us(chosen.predicted), _us(chosen.measured), _us(best.measured),
            f"{100 * form.gap:.0f} %", _order([form]),
            escape(_difference(chosen.settings, best.settings)),
        )  # fmt: skip
    console.print(table)
    chosen_time, best_time = (sum(map(of, found.forms)) for of in _TIMES)
    gap = 100 * (chosen_time / best_time - 1) if best_time else 0.0
    console.print(
        f"all kernels once: {_us(chosen_time)} us as chosen without measurements, {_us(best_time)} us at best, a gap "
        f"of {gap:.1f} %; rank correlation of predicted and measured times: {_order(found.forms)}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


_TIMES: Sequence[Callable[[Form], float]] = (lambda f: f.trials[0].measured, lambda f: f.best.measured)


def _lost_time(form: Form) -> float:
    return form.trials[0].measured - form.best.measured


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def _difference(chosen: Mapping[str, int], best: Mapping[str, int]) -> str:
    """The settings of the best that are others than those that are chosen without measurements."""
    found = [f"{name}={value}" for name, value in best.items() if chosen.get(name) != value]
    return ", ".join(found) or "as chosen"


def _order(forms: Sequence[Form]) -> str:
    found = rank_correlation(forms)
    return "" if found is None else f"{found:.2f}"


def tune(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="an artifact of the fastest configurations to write")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="where to write the times: MODEL.tuned.json")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="cpu, or triton:sm_90 or the like: this GPU's")
    ] = None,
    dim: Dims = None,
    structure: Structures = None,
    constant: Constants = None,
    allow_links: Links = None,
    pipeline: PipelineOption = None,
    load: Load = None,
) -> None:
    """Time the candidates of every kernel of a model on this machine's GPU, or in whole calls on its processor.

      gcomp tune model.onnx --results tuned.json -o tuned.gcomp

      gcomp compile model.onnx --target triton:sm_90 --tuned tuned.json

      gcomp tune model.onnx --target cpu -o tuned.gcomp

    The times are data: they serve where there is no GPU, for the same versions of gcomp and of what compiles kernels.
    """
    load_files(load or [])
    tune_command(model, target, source_of(model, dim, structure, constant, allow_links), pipeline, output, results)
