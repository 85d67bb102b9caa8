"""From a program of planned kernels to a plan for GPUs: each launch scheduled, printed, compiled, and put in order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial

from gcomp.ir.host import HostOp
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.signatures import signature_of
from gcomp.lowering.tiles import segments
from gcomp.lowering.tiles.drafts import Part
from gcomp.lowering.tiles.segments import Lowering, Numbers, check_planned
from gcomp.lowering.triton.aot import Compiler, Progress
from gcomp.lowering.triton.choose import GpuKernels, choose, make_kernels
from gcomp.lowering.triton.package import package
from gcomp.lowering.triton.source import KernelSource
from gcomp.lowering.triton.targets import parse_target
from gcomp.lowering.tuned import Results
from gcomp.runtime.plan import Plan


def lower(
    program: Program, target: str, *, compiler: Compiler | None = None, progress: Progress | None = None,
    tuned: Results | None = None,
) -> Plan:  # fmt: skip
    """The plan that runs a program of planned kernels on GPUs; weights stay in `program.weights`.

    `target` is `triton:sm_90`, or several architectures as `triton:sm_80,sm_90`. Raises UnsupportedError, naming op and
    place, for what has no GPU kernel, and KernelError for a kernel that Triton does not compile. `tuned` are times of
    candidates, of which the fastest are taken.
    """
    check_planned(program)
    if compiler is None:
        with Compiler() as compiler:
            return lower(program, target, compiler=compiler, progress=progress, tuned=tuned)
    launches = [op for op in program.ops() if isinstance(op, LaunchOp)]
    found: dict[str, list[Lowering[KernelSource] | HostOp]] = {}
    for on in parse_target(target):
        measured = partial(tuned.settings, ranges=program.ranges) if tuned and tuned.target == on.name else None
        found[on.name] = drafts(program, choose(launches, program.ranges, on, compiler, progress, measured))
    numbers = Numbers(program)
    parts = [numbers.part(dict(zip(found, steps, strict=True))) for steps in zip(*found.values(), strict=True)]
    return package(
        target,
        signature_of(program, [pair for part in parts if isinstance(part, Part) for pair in part.aliases]),
        parts,
        numbers.results(),
        numbers.weights,
        compiler=compiler,
        progress=progress,
    )


def drafts(
    program: Program, chosen: Mapping[Hashable, GpuKernels] | None = None
) -> list[Lowering[KernelSource] | HostOp]:
    """The device segments of a program, their kernels as sources, and its host steps, in order.

    `chosen` has the kernels of launches by their forms; others are made in their schedules' default settings.
    """
    return segments.drafts(program, lambda launch: make_kernels(launch, program.ranges), chosen)
