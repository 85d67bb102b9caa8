"""The plan of a device segment for one GPU architecture: kernels, buffers, and the steps of a call, as data.

Where the numbers depend on sizes that only a call knows, they are formulas of `gcomp.dims`, as canonical texts. What
can be wrong in a plan for all sizes is refused when it is read; what depends on sizes, when they are known (`binding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from gcomp.errors import ArtifactError
from gcomp.runtime import strict_json
from gcomp.runtime.strict_json import Json, JsonError

PLACES = ("arena", "input", "output", "weight")
"""Where a buffer can be. Inputs and weights are not written to."""

WRITTEN = ("out", "inout", "scratch")
ROLES = ("in", *WRITTEN, "size")

SCALARS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
"""Bytes of the integers that kernels take by value."""

MAX_DEPTH = 16
"""Of loops and cases in one another."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: its type (`*fp32`, `i32`), its role, and what its value is a multiple of."""

    type: str
    role: str
    alignment: int

    @property
    def bytes(self) -> int:
        """The bytes that its value takes."""
        return SCALARS.get(self.type, 8)


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel: its function's name, the members that hold its binary and its source, and how it is launched.

    `shared` is in bytes for a block, `scratch` in bytes for each block of the grid, `registers` and `stack` for each
    thread. Behind its own parameters it takes a pointer to scratch memory, which the runtime has for the launch that
    needs the most, and one that is always null.
    """

    name: str
    binary: str
    text: str
    parameters: tuple[Parameter, ...]
    warps: int
    ctas: int
    shared: int
    scratch: int
    scratch_alignment: int
    registers: int
    stack: int


@dataclass(frozen=True)
class Buffer:
    """A span of device memory. `at` is its offset in the arena, or the number of the input, output or weight."""

    place: str
    at: int
    bytes: str


@dataclass(frozen=True)
class Launch:
    """One launch. `arguments` are numbers of buffers where the kernel takes pointers, and texts of sizes elsewhere.

    `flops` and `bytes` say what it computes and moves, for reports.
    """

    kernel: int
    grid: tuple[str, ...]
    arguments: tuple[Json, ...]
    label: str = ""
    flops: str = "0"
    bytes: str = "0"


@dataclass(frozen=True)
class Fill:
    """Every byte of a buffer is set to `byte`."""

    buffer: int
    byte: int


@dataclass(frozen=True)
class Copy:
    """A buffer is copied to another of the same size."""

    source: int
    target: int


@dataclass(frozen=True)
class Loop:
    """The body runs `count` times."""

    count: str
    body: tuple[Step, ...]


@dataclass(frozen=True)
class While:
    """`before` runs, and as long as the one byte of `condition` then is not 0, the body and `before` again."""

    condition: int
    before: tuple[Step, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Case:
    """One branch runs. A selector of one byte takes the first if it is not 0, else the second; one of four bytes is the
    branch's number, and takes the last where there is none of that number."""

    selector: int
    branches: tuple[tuple[Step, ...], ...]


Step = Launch | Fill | Copy | Loop | While | Case
_KINDS: Mapping[str, type[Any]] = {
    "launch": Launch, "fill": Fill, "copy": Copy, "loop": Loop, "while": While, "case": Case,
}  # fmt: skip
_BLOCKS = {"loop": ("body",), "while": ("before", "body"), "case": ()}


@dataclass(frozen=True)
class CudaPlan:
    """What a device segment does on one architecture; `arena` is the size of the arena in bytes."""

    architecture: str
    arena: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]

    def launches(self) -> Iterator[Launch]:
        """All launches, those in loops and cases once."""
        return (step for step in walk(self.steps) if isinstance(step, Launch))


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps and those inside of them, in order."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from walk(block)


def blocks_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps inside of a step."""
    match step:
        case Loop():
            return (step.body,)
        case While():
            return (step.before, step.body)
        case Case():
            return step.branches
        case _:
            return ()


def to_text(plans: Mapping[str, CudaPlan]) -> str:
    """The canonical text of the plans for several architectures."""
    return strict_json.dumps({name: _encoded(plan) for name, plan in plans.items()}).decode()


def from_text(text: str, where: str) -> dict[str, CudaPlan]:
    """The plans that `to_text` wrote, by architecture. Raises ArtifactError."""
    try:
        rows = strict_json.loads(text.encode())
        if not isinstance(rows, dict):
            raise JsonError("it is no table of architectures")
        plans = {name: _decoded(row, name) for name, row in cast("dict[str, Json]", rows).items()}
        if to_text(plans) != text:
            raise JsonError("its text is not canonical")
        for name, plan in plans.items():
            if name != plan.architecture:
                raise JsonError(f"the plan for {name[:40]!r} is for {plan.architecture[:40]!r}")
    except JsonError as error:
        raise ArtifactError(
            "The plan for the GPU is not valid.", where=where, why=str(error), fix="Compile the model again."
        ) from None
    return plans


# ---- text ----


@dataclass(frozen=True)
class _Fields:
    architecture: str
    arena: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Json, ...]


def _encoded(plan: CudaPlan) -> Json:
    fields = asdict(_Fields(plan.architecture, plan.arena, plan.kernels, plan.buffers, ()))
    return {**fields, "steps": [_encoded_step(step) for step in plan.steps]}


def _encoded_step(step: Step) -> Json:
    kind = next(kind for kind, cls in _KINDS.items() if cls is type(step))
    blocks = [[_encoded_step(inner) for inner in block] for block in blocks_of(step)]
    match step:
        case Loop():
            return {"kind": kind, "count": step.count, "body": blocks[0]}
        case While():
            return {"kind": kind, "condition": step.condition, "before": blocks[0], "body": blocks[1]}
        case Case():
            return {"kind": kind, "selector": step.selector, "branches": blocks}
        case _:
            return {"kind": kind, **asdict(step)}


def _decoded(row: Json, where: str) -> CudaPlan:
    fields = strict_json.decode(_Fields, row, f"the plan for {where[:40]}")
    steps = _decoded_steps(list(fields.steps), "steps", MAX_DEPTH)
    return CudaPlan(fields.architecture, fields.arena, fields.kernels, fields.buffers, steps)


def _decoded_steps(rows: Json, where: str, depth: int) -> tuple[Step, ...]:
    if not isinstance(rows, list) or not depth:
        raise JsonError(f"{where} is no list of steps, or nested too deeply")
    return tuple(_decoded_step(row, f"{where}[{i}]", depth) for i, row in enumerate(cast("list[Json]", rows)))


def _decoded_step(row: Json, where: str, depth: int) -> Step:
    if not isinstance(row, dict):
        raise JsonError(f"{where} is no step")
    fields = dict(cast("dict[str, Json]", row))
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise JsonError(f"{where} is of an unknown kind")
    if kind not in _BLOCKS:
        return cast(Step, strict_json.decode(_KINDS[kind], fields, where))
    if kind == "case":
        rows = fields.pop("branches", None)
        if not isinstance(rows, list):
            raise JsonError(f"{where} has no branches")
        branches = tuple(_decoded_steps(row, f"{where}.branches", depth - 1) for row in cast("list[Json]", rows))
        return Case(strict_json.decode(_Selector, fields, where).selector, branches)
    blocks = {name: _decoded_steps(fields.pop(name, None), f"{where}.{name}", depth - 1) for name in _BLOCKS[kind]}
    if kind == "loop":
        return Loop(strict_json.decode(_Count, fields, where).count, **blocks)
    return While(strict_json.decode(_Condition, fields, where).condition, **blocks)


@dataclass(frozen=True)
class _Selector:
    selector: int


@dataclass(frozen=True)
class _Count:
    count: str


@dataclass(frozen=True)
class _Condition:
    condition: int
