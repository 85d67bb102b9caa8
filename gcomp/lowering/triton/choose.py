"""Which configuration a kernel is compiled in, without a GPU: candidates by a roofline, of which the first that fits.

A model of the machine ranks each schedule's candidates; compiling them says how many registers they need. The first
whose registers suffice is taken (a kernel that spills them to memory is slower than its model says), or the one that
spills least. `gcomp tune` replaces the ranking by measurements where there is a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product as combinations
from typing import NamedTuple

from gcomp.analysis.machines import MACHINES, Machine
from gcomp.analysis.work import Nominal, element_bytes
from gcomp.dims import Ranges
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.triton.aot import Compiled, Compiler, KernelError, Progress
from gcomp.lowering.triton.forms import form_of
from gcomp.lowering.triton.printing import printed
from gcomp.lowering.triton.schedules import schedule
from gcomp.lowering.triton.schedules.contraction import space_of
from gcomp.lowering.triton.schedules.kernel import Scheduled, Settings, power_of_two
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import Architecture

DEFAULT = Settings()
MOST = 4
"""Candidates that are compiled for a kernel, at most."""

SPILLED = 1 << 30
"""What a candidate counts as that does not compile."""


class Block(NamedTuple):
    """A candidate for a contraction: the block of the result, the terms of a turn, warps and stages."""

    rows: int
    columns: int
    terms: int
    warps: int
    stages: int


_BLOCKS = [
    Block(rows, columns, terms, max(4, min(8, rows * columns // 2048)), stages)
    for rows, columns in combinations((16, 32, 64, 128, 256), repeat=2)
    for terms, stages in ((32, 4), (64, 3))
    if 1024 <= rows * columns <= 128 * 256
]


def candidates(launch: LaunchOp, ranges: Ranges, on: Architecture) -> list[Settings]:
    """Settings for a launch, those first that its model says are fastest; what needs few registers comes last."""
    found = _CANDIDATES.get(launch.kind_name, _default)(launch, Nominal(ranges), _machine(on))
    return [*found[: MOST - 1], *_SAFE.get(launch.kind_name, [DEFAULT])]


def _machine(on: Architecture) -> Machine:
    return MACHINES.get(on.name, MACHINES["sm_90"])


def _default(launch: LaunchOp, nominal: Nominal, machine: Machine) -> list[Settings]:
    return [DEFAULT]


def _contraction(launch: LaunchOp, nominal: Nominal, machine: Machine) -> list[Settings]:
    found = space_of(launch)
    if found is None:
        return [DEFAULT]
    op, space = found
    batch, rows, columns, terms = [nominal.size(n) for n in space.extents]
    size = element_bytes(op.operands[0].type)
    narrow = size < 4
    # In f32 without tensor cores a thread holds its part of the result in registers, beside the addresses.
    most = 128 * 256 if narrow else 64 * 64 if isinstance(op, hlo.ConvolutionOp) else 64 * 128
    fitting = [
        b for b in _BLOCKS
        if b.rows * b.columns <= most
        and b.rows <= max(16, power_of_two(rows)) and b.columns <= max(16, power_of_two(columns))
        and b.terms <= max(32, power_of_two(terms)) and (narrow or b.terms == 32)
    ]  # fmt: skip
    rate = (machine.contraction if narrow else machine.wide_contraction) / machine.parallel

    def seconds(b: Block) -> float:
        blocks = -(-rows // b.rows) * -(-columns // b.columns) * batch
        turns = -(-terms // b.terms)
        # A small block keeps the units of a multiprocessor waiting for operands.
        compute = 2 * b.rows * b.columns * b.terms / rate * (1 + 2048 / (b.rows * b.columns))
        loads = (b.rows + b.columns) * b.terms * size / (4 * machine.bandwidth / machine.parallel)
        waves = -(-blocks // machine.parallel)
        return waves * turns * max(compute, loads)

    ranked = sorted(fitting, key=lambda b: (seconds(b), b.rows * b.columns))
    return [Settings(b._asdict()) for b in ranked]


_CANDIDATES: Mapping[str, Callable[[LaunchOp, Nominal, Machine], list[Settings]]] = {
    "matmul": _contraction,
    "convolution": _contraction,
}
"""Kind of kernel -> its candidates, the fastest first."""

_SMALL = Settings(Block(32, 32, 32, 4, 2)._asdict())
_SAFE: Mapping[str, list[Settings]] = {
    "matmul": [_SMALL],
    "convolution": [_SMALL],
    "attention": [DEFAULT, Settings({"warps": 8}), Settings({"queries": 16}), Settings({"queries": 16, "keys": 16})],
}
"""Kind of kernel -> what needs the fewest registers, tried last; the default settings where there is none."""


@dataclass(frozen=True)
class Made:
    """A launch's GPU kernels, and their sources, step by step."""

    settings: Settings
    scheduled: Scheduled
    sources: tuple[KernelSource, ...]


def made(launch: LaunchOp, ranges: Ranges, settings: Settings = DEFAULT) -> Made:
    """The GPU kernels of a launch in some settings. UnsupportedError where an op of it has no place in one."""
    scheduled = schedule(launch, named(launch), ranges, settings)
    return Made(settings, scheduled, tuple([printed(step) for step in scheduled.steps]))


def named(launch: LaunchOp) -> str:
    """A launch's name in source text."""
    return re.sub(r"\W+", "_", launch.label_name).strip("_")[:48] or "kernel"


def choose(
    launches: Iterable[LaunchOp], ranges: Ranges, on: Architecture, compiler: Compiler, progress: Progress | None = None
) -> dict[Hashable, Made]:
    """The first of each launch's candidates that fits its registers, by the launch's form; or what spills least.

    Raises UnsupportedError where a launch has no schedule.
    """
    best: dict[Hashable, tuple[int, Made]] = {}
    distinct = {form_of(launch): launch for launch in reversed([*launches])}
    waiting = {form: candidates(launch, ranges, on) for form, launch in distinct.items()}
    while waiting:
        tried = {form: made(distinct[form], ranges, settings[0]) for form, settings in waiting.items()}
        sources = list(dict.fromkeys(source for found in tried.values() for source in found.sources))
        stacks = dict(zip(sources, map(_spilled, compiler.attempt(sources, on, progress)), strict=True))
        for form, found in tried.items():
            spilled = max((stacks[source] for source in found.sources), default=0)
            if form not in best or spilled < best[form][0]:
                best[form] = spilled, found
        waiting = {form: rest[1:] for form, rest in waiting.items() if best[form][0] and len(rest) > 1}
    return {form: found for form, (_, found) in best.items()}


def _spilled(result: Compiled | KernelError) -> int:
    return result.stack if isinstance(result, Compiled) else SPILLED
