"""The plan of a device segment for one GPU architecture: kernels, buffers, and the steps of a call, as data.

Where the numbers depend on sizes that only a call knows, they are formulas of `gcomp.dims`, as canonical texts. What
can be wrong in a plan for all sizes is refused when it is read; what depends on sizes, when they are known (`binding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from gcomp.runtime import strict_json
from gcomp.runtime.plan_text import plans_from_text, plans_to_text
from gcomp.runtime.steps import Buffer, Launch, Step, launches_html, steps_from_json, steps_to_json, walk
from gcomp.runtime.strict_json import Json

SCALARS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
"""Bytes of the integers that kernels take by value."""


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

    @property
    def is_narrow(self) -> bool:
        """Whether it reads or writes floats of 16 bits or fewer, which matrix units take."""
        return any(parameter.type.startswith(("*bf16", "*fp16", "*fp8")) for parameter in self.parameters)

    @property
    def roles(self) -> tuple[str, ...]:
        """What its parameters are."""
        return tuple([parameter.role for parameter in self.parameters])


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

    def _repr_html_(self) -> str:
        """For notebooks: the launches in order."""
        return launches_html(self.architecture, self.arena, [kernel.name for kernel in self.kernels], self.steps)


def to_text(plans: Mapping[str, CudaPlan]) -> str:
    """The canonical text of the plans for several architectures."""
    return plans_to_text(plans, _encode)


def from_text(text: str, where: str) -> dict[str, CudaPlan]:
    """The plans that `to_text` wrote, by architecture. Raises ArtifactError."""
    return plans_from_text(text, where, "GPU", _decode, _encode, lambda plan: plan.architecture)


# ---- text ----


@dataclass(frozen=True)
class _Fields:
    architecture: str
    arena: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Json, ...]


def _encode(plan: CudaPlan) -> Json:
    fields = asdict(_Fields(plan.architecture, plan.arena, plan.kernels, plan.buffers, ()))
    return {**fields, "steps": steps_to_json(plan.steps)}


def _decode(row: Json, where: str) -> CudaPlan:
    fields = strict_json.decode(_Fields, row, where)
    steps = steps_from_json(fields.steps)
    return CudaPlan(fields.architecture, fields.arena, fields.kernels, fields.buffers, steps)
