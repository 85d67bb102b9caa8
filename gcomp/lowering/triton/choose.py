"""Which configuration a kernel is compiled in, without a GPU: candidates by a roofline, of which the first that fits.

A model of the machine ranks each schedule's candidates; compiling them says how many registers they need. The first
whose registers suffice is taken (a kernel that spills them to memory is slower than its model says), or the one that
spills least. What `gcomp tune` measured on a GPU comes before all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product as combinations

from gcomp.dims import Ranges
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.tiles import segments
from gcomp.lowering.tiles.forms import form_of
from gcomp.lowering.tiles.schedules import schedule
from gcomp.lowering.tiles.schedules.kernel import Settings
from gcomp.lowering.triton.aot import Compiled, Compiler, KernelError, Progress
from gcomp.lowering.triton.estimates import Block, rank_settings
from gcomp.lowering.triton.printing import print_kernel
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture
from gcomp.records import record

DEFAULT = Settings()
MOST = 4
"""Candidates that are compiled for a kernel, at most."""

SPILLED = 1 << 30
"""What a candidate counts as that does not compile."""


TRIALS = 12
"""Contractions' candidates that `gcomp tune` times, at most."""


def candidates(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[Settings]:
    """Settings for a launch, those first that its model says are fastest; what needs few registers comes last."""
    found = rank_settings(launch, ranges, on)
    return [*(found[: MOST - 1] or [DEFAULT]), *_SAFE.get(launch.kind_name, [DEFAULT])]


def trials(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[Settings]:
    """Settings of a launch that are worth timing, that first which is taken without."""
    found: dict[object, Settings] = {}
    for settings in (*candidates(launch, ranges, on), *_trials(launch, ranges, on)):
        found.setdefault(frozenset(settings.values.items()), settings)
    return [*found.values()]


def _trials(launch: LaunchOp, ranges: Ranges, on: Architecture) -> Iterator[Settings]:
    yield from rank_settings(launch, ranges, on)[:TRIALS]
    for choices in _VARIED.get(launch.kind_name, ()):
        for values in combinations(*choices.values()):
            yield Settings(dict(zip(choices, values, strict=True)))


_VARIED: Mapping[str, Sequence[Mapping[str, Sequence[int]]]] = {
    "loop": ({"block": (512, 2048, 4096)}, {"rows": (16, 64), "columns": (32, 64)}),
    "reduction": ({"rows": (1, 2, 4, 8), "columns": (1024, 2048, 4096)}, {"warps": (4, 8, 16)}, {"pieces": (1,)}),
    "attention": ({"queries": (64, 128), "keys": (32, 64, 128), "warps": (4, 8)}, {"splits": (1, 2, 4, 8, 16)}),
    "scan": ({"columns": (64, 256, 1024)}, {"pieces": (1,)}),
    "window": ({"block": (256, 512)},),
    "scatter": ({"block": (256, 512, 2048)},),
}
"""Kind of kernel -> choices of its schedule that `gcomp tune` combines; contractions have those of the model."""

_SMALL = Settings(Block(32, 32, 32, 4, 2)._asdict())
_SAFE: Mapping[str, list[Settings]] = {
    "matmul": [_SMALL],
    "convolution": [_SMALL],
    "attention": [DEFAULT, Settings({"warps": 8}), Settings({"queries": 16}), Settings({"queries": 16, "keys": 16})],
}
"""Kind of kernel -> what needs the fewest registers, tried last; the default settings where there is none."""


@record
class GpuKernels(segments.LoweredLaunch[KernelSource]):
    """A launch's GPU kernels, and their sources, step by step."""

    settings: Settings


def make_kernels(launch: LaunchOp, ranges: Ranges, settings: Settings = DEFAULT) -> GpuKernels:
    """The GPU kernels of a launch in some settings. UnsupportedError where an op of it has no place in one."""
    scheduled = schedule(launch, segments.launch_name(launch), ranges, settings)
    return GpuKernels(scheduled, tuple([print_kernel(step) for step in scheduled.steps]), settings)


Tuned = Callable[[LaunchOp], Settings | None]
"""Of a launch, the settings that were measured to be the fastest; None where it was not measured."""


def choose(
    launches: Iterable[LaunchOp], ranges: Ranges, on: Architecture, compiler: Compiler,
    progress: Progress | None = None, tuned: Tuned | None = None,
) -> dict[Hashable, GpuKernels]:  # fmt: skip
    """The first of each launch's candidates that fits its registers, by the launch's form; or what spills least.

    What `tuned` says of a launch is taken as it is. Raises UnsupportedError where a launch has no schedule.
    """
    best: dict[Hashable, tuple[int, GpuKernels]] = {}
    distinct = {form_of(launch): launch for launch in reversed([*launches])}
    waiting: dict[Hashable, list[Settings]] = {}
    for form, launch in distinct.items():
        measured = None if tuned is None else tuned(launch)
        waiting[form] = candidates(launch, ranges, on) if measured is None else [measured]
    while waiting:
        tried = {form: make_kernels(distinct[form], ranges, settings[0]) for form, settings in waiting.items()}
        sources = list(dict.fromkeys(source for found in tried.values() for source in found.kernels))
        stacks = dict(zip(sources, map(_spilled_bytes, compiler.attempt(sources, on, progress)), strict=True))
        for form, found in tried.items():
            spilled = max((stacks[source] for source in found.kernels), default=0)
            if form not in best or spilled < best[form][0]:
                best[form] = spilled, found
        waiting = {form: rest[1:] for form, rest in waiting.items() if best[form][0] and len(rest) > 1}
    return {form: found for form, (_, found) in best.items()}


def _spilled_bytes(result: Compiled | KernelError) -> int:
    return result.spilled if isinstance(result, Compiled) else SPILLED
