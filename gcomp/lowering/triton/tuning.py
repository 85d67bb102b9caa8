"""Times of kernels in their candidate configurations on a GPU, each by itself.

    results = tune(launches, ranges, architecture, compiler, driver())
    Path("results.json").write_bytes(to_bytes(results))
    lower(program, "triton:sm_90", tuned=read_for(path, "triton:sm_90"))

The file is that of `gcomp.lowering.tuned`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from gcomp.analysis.work import Nominal
from gcomp.dims import Ranges
from gcomp.errors import GcompError, UnsupportedError
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering import tuned
from gcomp.lowering.tiles.forms import digest_of, form_of, symbols_of_launch
from gcomp.lowering.triton import cache
from gcomp.lowering.triton.aot import Compiled, Compiler
from gcomp.lowering.triton.choose import GpuKernels, candidates, make_kernels, trials
from gcomp.lowering.triton.estimates import predict_seconds
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture, parse_target, triton_version
from gcomp.lowering.triton.timing import Timer
from gcomp.lowering.tuned import FORMAT, Form, Progress, Results, Trial
from gcomp.runtime.cuda.driver import Driver
from gcomp.version import __version__


def versions() -> dict[str, str]:
    """The versions of what makes kernels."""
    return {"gcomp": __version__, "triton": triton_version(), "assembler": cache.assembler()}


def read_for(path: Path, target: str) -> Results:
    """The results in a file, for a target. Raises UsageError, ArtifactError."""
    return tuned.read_for(path, versions(), "triton", [on.name for on in parse_target(target)])


def tune(
    launches: Iterable[LaunchOp], ranges: Ranges, on: Architecture, compiler: Compiler, gpu: Driver,
    progress: Progress | None = None,
) -> Results:  # fmt: skip
    """Time the candidates of every distinct kernel. Raises GcompError where the GPU does not run one."""
    check_gpu(gpu, on)
    tell = progress or _silent
    distinct = {form_of(launch): launch for launch in reversed([*launches])}
    tried = {form: _make_candidates(launch, ranges, on) for form, launch in distinct.items()}
    sources = list(dict.fromkeys(source for found in tried.values() for one in found for source in one.kernels))
    attempted = compiler.attempt(sources, on, lambda done, total: tell("compiling candidates", done, total))
    binaries = {s: c for s, c in zip(sources, attempted, strict=True) if isinstance(c, Compiled)}
    forms: list[Form] = []
    with Timer(gpu) as timer:
        for n, (form, launch) in enumerate(distinct.items()):
            tell("timing kernels", n, len(distinct))
            if found := _time_candidates(launch, ranges, on, tried[form], binaries, timer):
                forms.append(found)
    forms.sort(key=lambda one: one.digest)
    return Results(FORMAT, on.name, gpu.name, versions(), tuple(forms))


def _silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def check_gpu(gpu: Driver, on: Architecture) -> None:
    """UnsupportedError for a GPU of another architecture."""
    if gpu.architecture != on.name:
        raise UnsupportedError(
            f"Kernels for {on.name} cannot be timed on this GPU, which is of {gpu.architecture}.",
            where=gpu.name,
            fix=f"Tune for triton:{gpu.architecture}, or on another GPU.",
        )


def _make_candidates(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[GpuKernels]:
    """A launch's candidates, one for each text; those among which `choose` chooses come first."""
    found: dict[Hashable, GpuKernels] = {}
    for settings in trials(launch, ranges, on):
        one = make_kernels(launch, ranges, settings)
        found.setdefault(one.kernels, one)
    return [*found.values()]


def _time_candidates(
    launch: LaunchOp, ranges: Ranges, on: Architecture, tried: Sequence[GpuKernels],
    binaries: Mapping[KernelSource, Compiled], timer: Timer,
) -> Form | None:  # fmt: skip
    """The times of a launch's candidates; None where it has no GPU kernels, or none of them compiles."""
    runnable = [one for one in tried if one.kernels and all(source in binaries for source in one.kernels)]
    if not runnable:
        return None
    # As `choose` does: of its candidates that which spills least, and of those the one that comes first.
    own = {make_kernels(launch, ranges, settings).kernels for settings in candidates(launch, ranges, on)}
    chosen = min(runnable, key=lambda one: (one.kernels not in own, max(binaries[s].spilled for s in one.kernels)))
    runnable = [chosen, *(one for one in runnable if one is not chosen)]
    nominal = Nominal(ranges)
    sizes = nominal.sizes(symbols_of_launch(launch))
    found: list[Trial] = []
    with timer.memory_of(launch, sizes) as memory:
        for one in runnable:
            try:
                steps = timer.seconds(memory, one.scheduled, [binaries[source] for source in one.kernels])
            except GcompError as error:
                where = f"kernel {launch.label_name} in the settings {dict(one.settings.values)}"
                raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from None
            names = tuple([source.member for source in one.kernels])
            guess = predict_seconds(launch, ranges, on, one.settings)
            found.append(Trial(dict(one.settings.values), guess, sum(steps), names, tuple(steps)))
    return Form(digest_of(launch, ranges), launch.kind_name, launch.label_name, sizes, tuple(found))


__all__ = ["check_gpu", "read_for", "tune", "versions"]
