"""What can be wrong in a plan's buffers and steps for all sizes: numbers of things that are not there, arguments that
do not fit, writes to what is not written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gcomp import dims
from gcomp.dims import DimError
from gcomp.dtypes import DTYPES
from gcomp.records import record
from gcomp.runtime.hosting import host_functions
from gcomp.runtime.plan import DeviceSegment
from gcomp.runtime.steps import PLACES, Buffer, Case, Copy, Fill, HostCall, Launch, Loop, Step, While, walk

WRITTEN = ("out", "inout", "scratch")
ROLES = ("in", *WRITTEN, "size")
"""What a kernel's parameter is: memory that is read or written, or a number."""

SELECTORS = ("1", "4")
"""Bytes that the selector of a case may have."""

MAX_GRID = 3


@record
class Steps:
    """A plan's steps on its memory; `kernels` are the names and the roles of the parameters of what it launches."""

    arena: str
    kernels: Sequence[tuple[str, Sequence[str]]]
    buffers: Sequence[Buffer]
    steps: Sequence[Step]
    slots: Sequence[str] = ()


def step_problems(
    plan: Steps, segment: DeviceSegment, symbols: frozenset[str], donated: frozenset[int]
) -> Iterator[str]:
    """Why a segment cannot mean a plan. `symbols` are known; of its inputs those that are `donated` may be written."""
    counts = {"input": len(segment.inputs), "output": len(segment.outputs), "weight": len(segment.weights)}
    counts["slot"] = len(plan.slots)
    for i, buffer in enumerate(plan.buffers):
        if buffer.place not in PLACES or not 0 <= buffer.at < counts.get(buffer.place, 1 << 62):
            yield f"buffer {i} is at {buffer.at} of {buffer.place[:40]!r}, which does not exist"
    for text in _formulas(plan):
        if (problem := formula_problem(text, symbols)) is not None:
            yield problem
    if any(argument not in donated for argument, _ in segment.aliases):
        yield "a result is to lie in an input that is not donated"
    constant = {n: b for n, b in enumerate(plan.buffers) if not _may_be_written(b, donated)}
    for i, step in enumerate(walk(plan.steps)):
        yield from (f"step {i} {problem}" for problem in _step_problems(step, plan, constant))


def _formulas(plan: Steps) -> Iterator[str]:
    """All texts of sizes in a plan."""
    yield plan.arena
    yield from plan.slots
    yield from (buffer.bytes for buffer in plan.buffers)
    for step in walk(plan.steps):
        if isinstance(step, Launch):
            yield from (*step.grid, step.flops, step.bytes)
            yield from (argument for argument in step.arguments if isinstance(argument, str))
        elif isinstance(step, Loop):
            yield step.count
        elif isinstance(step, HostCall):
            yield from (size for value in step.values for size in value.dims)


def formula_problem(text: str, symbols: frozenset[str]) -> str | None:
    """Why a text is no formula of these symbols."""
    try:
        size = dims.parse(text)
    except DimError as error:
        return str(error)
    if str(size) != text:
        return f"{text[:80]!r} is not canonical"
    unknown = sorted(dims.symbols_of(size) - symbols)
    return f"the dimension {unknown[0]!r} is not known" if unknown else None


def _step_problems(step: Step, plan: Steps, constant: Mapping[int, Buffer]) -> Iterator[str]:
    named = _used_buffers(step)
    if any(not 0 <= number < len(plan.buffers) for number in named):
        yield "uses a buffer that does not exist"
        return
    match step:
        case Launch():
            yield from _launch_problems(step, plan, constant)
        case Fill():
            if not 0 <= step.byte < 256:
                yield f"fills with {step.byte}, which is no byte"
            yield from _write_problems(step.buffer, constant)
        case Copy():
            yield from _write_problems(step.target, constant)
        case Loop():
            pass
        case While():
            if plan.buffers[step.condition].bytes != "1":
                yield "asks a condition that is not of one byte"
        case HostCall():
            yield from _host_problems(step, constant)
        case Case():
            size = plan.buffers[step.selector].bytes
            if size not in SELECTORS or not step.branches or (size == "1" and len(step.branches) != 2):
                yield "has branches that its selector cannot choose among"


def _used_buffers(step: Step) -> Sequence[int]:
    """The numbers of the buffers that a step itself uses."""
    match step:
        case Launch():
            numbers = [argument for argument in step.arguments if not isinstance(argument, str)]
            # JSON's true is not the number 1, and what is no number is no buffer.
            return [n if type(n) is int else -1 for n in numbers]
        case Fill():
            return [step.buffer]
        case Copy():
            return [step.source, step.target]
        case Loop():
            return []
        case While():
            return [step.condition]
        case Case():
            return [step.selector]
        case HostCall():
            return [value.buffer for value in step.values]


def _launch_problems(step: Launch, plan: Steps, constant: Mapping[int, Buffer]) -> Iterator[str]:
    if not 0 <= step.kernel < len(plan.kernels):
        yield "launches a kernel that does not exist"
        return
    name, roles = plan.kernels[step.kernel]
    if not 1 <= len(step.grid) <= MAX_GRID:
        yield f"has a grid of {len(step.grid)} sizes"
    if len(step.arguments) != len(roles):
        yield f"gives {len(step.arguments)} arguments to {name[:80]}, which takes {len(roles)}"
        return
    argument: int | str
    for argument, role in zip(step.arguments, roles, strict=True):
        if isinstance(argument, str) != (role == "size"):
            yield f"gives {name[:80]} a buffer for a size, or a size for a buffer"
        elif isinstance(argument, int) and role in WRITTEN:
            yield from _write_problems(argument, constant)


def _host_problems(step: HostCall, constant: Mapping[int, Buffer]) -> Iterator[str]:
    if step.function not in host_functions():
        yield f"calls a host function that gcomp does not have, {step.function[:80]!r}"
    if unknown := [value.dtype for value in step.values if value.dtype not in DTYPES]:
        yield f"gives the host elements of {unknown[0][:40]!r}"
    for value in step.outputs:
        yield from _write_problems(value.buffer, constant)


def _may_be_written(buffer: Buffer, donated: frozenset[int]) -> bool:
    return buffer.place in ("arena", "slot", "output") or (buffer.place == "input" and buffer.at in donated)


def _write_problems(number: int, constant: Mapping[int, Buffer]) -> Iterator[str]:
    if (buffer := constant.get(number)) is not None:
        yield "writes to an input that is not donated" if buffer.place == "input" else f"writes to a {buffer.place}"


__all__ = ["ROLES", "SELECTORS", "WRITTEN", "Steps", "formula_problem", "step_problems"]
