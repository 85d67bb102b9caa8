"""The plan of a device segment for one kind of processor: its code, its memory, and the steps of a call, as data.

The code does what the steps say: a call is one call into it. They are there for reports, and so that what can be wrong
with the memory of a plan is found before anything runs (`checking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from gcomp.records import record
from gcomp.runtime import strict_json
from gcomp.runtime.plan_text import plans_from_text, plans_to_text
from gcomp.runtime.steps import Buffer, Launch, Step, launches_html, steps_from_json, steps_to_json, walk
from gcomp.runtime.strict_json import Json

SHARED_WORK = 320_000
"""Launches of less work than this are not shared: one thread does it in about the time that waking others takes.

Work is in flops, and a byte that is moved counts as two: with 16 flops in a nanosecond this is 20 us.
"""


@record
class Kernel:
    """A kernel in an image: where its code begins, the member with its source, and the roles of its parameters."""

    name: str
    at: int
    text: str
    roles: tuple[str, ...]


@record
class Code:
    """An image: the member that holds it, the SHA-256 of its bytes, and where its functions begin.

    `entry` runs the segment; `start` and `stop` begin and end a pool of threads, and `parallel` runs a kernel by one.
    Their types are in docs/guides/cpu.md.
    """

    image: str
    sha256: str
    entry: int
    start: int
    stop: int
    parallel: int


@record
class CpuPlan:
    """What a device segment does on one kind of processor (`variants.VARIANTS`).

    `arena` is the size of the arena in bytes, with its `slots`, which begin at its byte `fixed`. `symbols` are those
    whose values the code is given, in order.
    """

    variant: str
    code: Code
    arena: str
    fixed: int
    slots: tuple[str, ...]
    symbols: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]

    @property
    def architecture(self) -> str:
        """The kind of processor that it is for, as reports name it."""
        return self.variant

    def launches(self) -> Iterator[Launch]:
        """All launches, those in loops and cases once."""
        return (step for step in walk(self.steps) if isinstance(step, Launch))

    def _repr_html_(self) -> str:
        """For notebooks: the launches in order."""
        return launches_html(self.architecture, self.arena, [kernel.name for kernel in self.kernels], self.steps)


def to_text(plans: Mapping[str, CpuPlan]) -> str:
    """The canonical text of the plans for several kinds of processors."""
    return plans_to_text(plans, _encoded)


def from_text(text: str, where: str) -> dict[str, CpuPlan]:
    """The plans that `to_text` wrote, by kind of processor. Raises ArtifactError."""
    return plans_from_text(text, where, "processor", _decoded, _encoded, lambda plan: plan.variant)


@record
class _Fields:
    variant: str
    code: Code
    arena: str
    fixed: int
    slots: tuple[str, ...]
    symbols: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Json, ...]


def _encoded(plan: CpuPlan) -> Json:
    fields = (plan.variant, plan.code, plan.arena, plan.fixed, plan.slots, plan.symbols, plan.kernels, plan.buffers)
    return {**asdict(_Fields(*fields, ())), "steps": steps_to_json(plan.steps)}


def _decoded(row: Json, where: str) -> CpuPlan:
    fields = strict_json.decode(_Fields, row, where)
    return CpuPlan(
        fields.variant, fields.code, fields.arena, fields.fixed, fields.slots, fields.symbols, fields.kernels,
        fields.buffers, steps_from_json(fields.steps),
    )  # fmt: skip


__all__ = ["Code", "CpuPlan", "Kernel", "from_text", "to_text"]
