"""What is checked of a plan for processors before its code may run: for all sizes, and at those of a call.

Code can do anything, and no check of a plan changes that: who runs an artifact's code trusts who made it. The checks
find what is damaged, or was put together wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from gcomp.dtypes import DTYPES
from gcomp.errors import ArtifactError
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.runtime.plan import DeviceSegment, is_image
from gcomp.runtime.spans import Misplaced, Span, count_of, is_copied, place_buffers, placing
from gcomp.runtime.step_checks import ROLES, Steps, step_problems
from gcomp.runtime.steps import SLOT, Case, Copy, HostCall, Launch, Loop, Step, blocks_of

MAX_SYMBOLS = 1 << 12
Bytes = Mapping[str, bytes | memoryview]


def check(
    plan: CpuPlan, segment: DeviceSegment, symbols: frozenset[str], members: Bytes, donated: frozenset[int]
) -> None:
    """Raises ArtifactError for a plan that a segment cannot mean. `symbols` are known, `members` the images.

    Of the segment's inputs those that are `donated` may be written to.
    """
    for problem in _problems(plan, segment, symbols, members, donated):
        raise ArtifactError(
            "The plan for the processor is not valid.",
            where=f"{segment.text}: {plan.variant[:40]}",
            why=problem,
            fix="Compile the model again.",
        )


def _problems(
    plan: CpuPlan, segment: DeviceSegment, symbols: frozenset[str], members: Bytes, donated: frozenset[int]
) -> Iterator[str]:
    if plan.variant not in VARIANTS:
        yield "it is for a processor that gcomp does not know"
    yield from _code_problems(plan, members)
    if unknown := sorted(set(plan.symbols) - symbols):
        yield f"the dimension {unknown[0][:80]!r} is not known"
    if len(set(plan.symbols)) < len(plan.symbols) or len(plan.symbols) > MAX_SYMBOLS:
        yield "it names a dimension twice, or very many"
    kernels = [(kernel.name, kernel.roles) for kernel in plan.kernels]
    steps = Steps(plan.arena, kernels, plan.buffers, plan.steps, plan.slots)
    yield from step_problems(steps, segment, symbols, donated)


def _code_problems(plan: CpuPlan, members: Bytes) -> Iterator[str]:
    code = plan.code
    if not is_image(code.image) or code.image not in members:
        yield f"it has no code {code.image[:80]!r}"
        return
    size = len(members[code.image])
    places = {"the entry": code.entry, "what starts threads": code.start, "what stops threads": code.stop,
              "what shares a kernel": code.parallel}  # fmt: skip
    places |= {f"kernel {i}": kernel.at for i, kernel in enumerate(plan.kernels)}
    for name, at in places.items():
        if not 0 <= at < size:
            yield f"{name} is at byte {at} of the {size} of its code"
    for i, kernel in enumerate(plan.kernels):
        if unknown := [role for role in kernel.roles if role not in ROLES]:
            yield f"kernel {i} has a parameter for {unknown[0][:40]!r}"


def arena_bytes(plan: CpuPlan, env: Mapping[str, int], limits: Mapping[str, Sequence[int]]) -> int:
    """The bytes of a checked plan's arena at sizes, at which all of the plan is looked at.

    `limits` are the bytes of each `input`, `output` and `weight`. Raises ArtifactError for what does not hold.
    """
    with placing("processor", plan.variant, env):
        slots = [count_of(size, env, f"slot {k}") for k, size in enumerate(plan.slots)]
        arena, spans = place_buffers(plan.arena, plan.buffers, env, {**limits, "slot": slots})
        if arena < slots_end(plan.fixed, slots):
            raise Misplaced(f"the arena has {arena} bytes, and its slots end at byte {slots_end(plan.fixed, slots)}")
        _check_steps(plan, plan.steps, spans, env, is_certain=True)
    return arena


def _check_steps(
    plan: CpuPlan, steps: Sequence[Step], spans: Sequence[Span], env: Mapping[str, int], *, is_certain: bool
) -> None:
    """Look at steps at sizes. In a branch, which may not run at these, a copy may be of another size than its target:
    the code copies no more than both have."""
    for step in steps:
        match step:
            case Copy():
                source, target = spans[step.source], spans[step.target]
                if is_certain or source.bytes == target.bytes:
                    is_copied(source, target)
            case Loop():
                count_of(step.count, env, "a loop")
            case Launch():
                for size in step.grid:
                    count_of(size, env, f"the grid of {plan.kernels[step.kernel].name}")
            case HostCall():
                for value in step.values:
                    count = math.prod([count_of(size, env, "what the host is given") for size in value.dims])
                    if count * DTYPES[value.dtype].itemsize > spans[value.buffer].bytes:
                        raise Misplaced(f"what {step.function} is given is larger than its buffer")
            case _:
                pass
        for block in blocks_of(step):
            _check_steps(plan, block, spans, env, is_certain=is_certain and not isinstance(step, Case))


def slots_end(fixed: int, slots: Sequence[int]) -> int:
    """Where slots end that follow each other: each begins at a multiple of `SLOT` bytes."""
    for size in slots:
        fixed = -(-fixed // SLOT) * SLOT + size
    return fixed


__all__ = ["arena_bytes", "check"]
