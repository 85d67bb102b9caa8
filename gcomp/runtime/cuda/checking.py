"""What can be wrong in a plan for GPUs for all sizes: in its kernels, and as in any plan (`step_checks`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gcomp.errors import ArtifactError
from gcomp.runtime.cuda import cubin
from gcomp.runtime.cuda.plan import SCALARS, CudaPlan, Kernel
from gcomp.runtime.plan import DeviceSegment
from gcomp.runtime.step_checks import ROLES, Steps, step_problems
from gcomp.runtime.steps import HostCall, walk

_POINTER = re.compile(r"\*[a-z][a-z0-9]{0,15}")
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}")

MAX_WARPS, MAX_CTAS, MAX_SHARED = 32, 16, 1 << 20
MAX_ALIGNMENT = 256
"""What the addresses of an arena and of weights are multiples of."""


def check(
    plan: CudaPlan, segment: DeviceSegment, symbols: frozenset[str], members: Mapping[str, bytes | memoryview],
    donated: frozenset[int] = frozenset(),
) -> None:  # fmt: skip
    """Raises ArtifactError for a plan that a segment cannot mean. `symbols` are known, `members` the binaries.

    Of the segment's inputs those that are `donated` may be written to.
    """
    for problem in _problems(plan, segment, symbols, members, donated):
        raise ArtifactError(
            "The plan for the GPU is not valid.",
            where=f"{segment.text}: {plan.architecture[:40]}",
            why=problem,
            fix="Compile the model again.",
        )
    for kernel in plan.kernels:
        sizes = (*(parameter.bytes for parameter in kernel.parameters), 8, 8)
        table = cubin.read(members[kernel.binary], kernel.binary)
        cubin.check(table, kernel.name, sizes, 32 * kernel.warps, kernel.binary)


def _problems(
    plan: CudaPlan, segment: DeviceSegment, symbols: frozenset[str], members: Mapping[str, bytes | memoryview],
    donated: frozenset[int],
) -> Iterator[str]:  # fmt: skip
    if not _ARCHITECTURE.fullmatch(plan.architecture):
        yield "its architecture is none of NVIDIA's"
    for i, kernel in enumerate(plan.kernels):
        yield from (f"kernel {i} {problem}" for problem in _kernel_problems(kernel, members))
    kernels = [(kernel.name, [parameter.role for parameter in kernel.parameters]) for kernel in plan.kernels]
    if any(isinstance(step, HostCall) for step in walk(plan.steps)):
        yield "it calls the host, which no GPU does"
    yield from step_problems(Steps(plan.arena, kernels, plan.buffers, plan.steps), segment, symbols, donated)


def _kernel_problems(kernel: Kernel, members: Mapping[str, bytes | memoryview]) -> Iterator[str]:
    if kernel.binary not in members:
        yield f"has no binary {kernel.binary[:80]!r}"
    if not 1 <= kernel.warps <= MAX_WARPS or not 1 <= kernel.ctas <= MAX_CTAS or not 0 <= kernel.shared <= MAX_SHARED:
        yield "is launched in a way that no GPU has"
    alignments = [kernel.scratch_alignment, *(parameter.alignment for parameter in kernel.parameters)]
    if kernel.scratch < 0 or not all(1 <= alignment <= MAX_ALIGNMENT for alignment in alignments):
        yield "asks for memory that cannot be"
    for parameter in kernel.parameters:
        known = parameter.type in SCALARS if parameter.role == "size" else _POINTER.fullmatch(parameter.type)
        if parameter.role not in ROLES or not known:
            yield f"has a parameter of type {parameter.type[:40]!r} for {parameter.role[:40]!r}"
