"""What can be wrong in a plan for all sizes: numbers of things that are not there, arguments that do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gcomp import dims
from gcomp.dims import DimError
from gcomp.errors import ArtifactError
from gcomp.runtime.cuda import cubin
from gcomp.runtime.cuda.plan import ROLES, SCALARS, WRITTEN, CudaPlan, Kernel
from gcomp.runtime.plan import DeviceSegment
from gcomp.runtime.steps import PLACES, Buffer, Case, Copy, Fill, Launch, Loop, Step, While, walk

_POINTER = re.compile(r"\*[a-z][a-z0-9]{0,15}")
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}")

MAX_WARPS, MAX_CTAS, MAX_SHARED = 32, 16, 1 << 20
MAX_ALIGNMENT = 256
"""What the addresses of an arena and of weights are multiples of."""

SELECTORS = ("1", "4")
"""Bytes that the selector of a case may have."""


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
    counts = {"input": len(segment.inputs), "output": len(segment.outputs), "weight": len(segment.weights)}
    for i, buffer in enumerate(plan.buffers):
        if buffer.place not in PLACES or not 0 <= buffer.at < counts.get(buffer.place, 1 << 62):
            yield f"buffer {i} is at {buffer.at} of {buffer.place[:40]!r}, which does not exist"
    for text in _formulas(plan):
        if (problem := _formula_problem(text, symbols)) is not None:
            yield problem
    if any(argument not in donated for argument, _ in segment.aliases):
        yield "a result is to lie in an input that is not donated"
    constant = {n: b for n, b in enumerate(plan.buffers) if not _may_be_written(b, donated)}
    for i, step in enumerate(walk(plan.steps)):
        yield from (f"step {i} {problem}" for problem in _step_problems(step, plan, constant))


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


def _formulas(plan: CudaPlan) -> Iterator[str]:
    """All texts of sizes in a plan."""
    yield plan.arena
    yield from (buffer.bytes for buffer in plan.buffers)
    for step in walk(plan.steps):
        if isinstance(step, Launch):
            yield from (*step.grid, step.flops, step.bytes)
            yield from (argument for argument in step.arguments if isinstance(argument, str))
        elif isinstance(step, Loop):
            yield step.count


def _formula_problem(text: str, symbols: frozenset[str]) -> str | None:
    try:
        size = dims.parse(text)
    except DimError as error:
        return str(error)
    if str(size) != text:
        return f"{text[:80]!r} is not canonical"
    unknown = sorted(dims.symbols_of(size) - symbols)
    return f"the dimension {unknown[0]!r} is not known" if unknown else None


def _step_problems(step: Step, plan: CudaPlan, constant: Mapping[int, Buffer]) -> Iterator[str]:
    named = _named(step)
    if any(not 0 <= number < len(plan.buffers) for number in named):
        yield "uses a buffer that does not exist"
        return
    match step:
        case Launch():
            yield from _launch_problems(step, plan, constant)
        case Fill():
            if not 0 <= step.byte < 256:
                yield f"fills with {step.byte}, which is no byte"
            yield from _written_problems(step.buffer, constant)
        case Copy():
            yield from _written_problems(step.target, constant)
        case Loop():
            pass
        case While():
            if plan.buffers[step.condition].bytes != "1":
                yield "asks a condition that is not of one byte"
        case Case():
            size = plan.buffers[step.selector].bytes
            if size not in SELECTORS or not step.branches or (size == "1" and len(step.branches) != 2):
                yield "has branches that its selector cannot choose among"


def _named(step: Step) -> Sequence[int]:
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


def _launch_problems(step: Launch, plan: CudaPlan, constant: Mapping[int, Buffer]) -> Iterator[str]:
    if not 0 <= step.kernel < len(plan.kernels):
        yield "launches a kernel that does not exist"
        return
    kernel = plan.kernels[step.kernel]
    if not 1 <= len(step.grid) <= 3:
        yield f"has a grid of {len(step.grid)} sizes"
    if len(step.arguments) != len(kernel.parameters):
        yield f"gives {len(step.arguments)} arguments to {kernel.name[:80]}, which takes {len(kernel.parameters)}"
        return
    argument: int | str
    for argument, parameter in zip(step.arguments, kernel.parameters, strict=True):
        if isinstance(argument, str) != (parameter.role == "size"):
            yield f"gives {kernel.name[:80]} a buffer for a size, or a size for a buffer"
        elif isinstance(argument, int) and parameter.role in WRITTEN:
            yield from _written_problems(argument, constant)


def _may_be_written(buffer: Buffer, donated: frozenset[int]) -> bool:
    return buffer.place in ("arena", "output") or (buffer.place == "input" and buffer.at in donated)


def _written_problems(number: int, constant: Mapping[int, Buffer]) -> Iterator[str]:
    if (buffer := constant.get(number)) is not None:
        yield "writes to an input that is not donated" if buffer.place == "input" else f"writes to a {buffer.place}"
