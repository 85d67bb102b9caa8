"""Drafts of device segments: the order of launches and their buffers, independent of what a target's kernel is.

    draft = Draft(arena=4096)
    x, y = draft.buffer("input", 0, 4 * n), draft.buffer("output", 0, 4 * n)
    t = draft.buffer("arena", 256, 4 * n)
    draft.launch(scale, {"x": x, "o": t, "n": n}, flops=n)
    draft.launch(softmax, {"x": t, "o": y, "n": n})
    part = Part(inputs=(0,), weights=(), outputs=(value,), drafts={"sm_90": draft})

A draft is made for each architecture, since tiles, and with them grids, differ.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from gcomp.dims import Size
from gcomp.errors import InternalError
from gcomp.records import record
from gcomp.runtime.plan import Value
from gcomp.runtime.steps import Buffer, Case, Copy, Fill, HostCall, Launch, Loop, Step, While
from gcomp.runtime.strict_json import Json


class Parameter(Protocol):
    """A parameter of a kernel; `role` is one of `tile.ROLES`."""

    @property
    def name(self) -> str:
        """Its name, by which a launch gives its argument."""
        ...

    @property
    def role(self) -> str:
        """What it is for."""
        ...


class Launchable(Hashable, Protocol):
    """A kernel as a target makes it; equal ones are one. `grid` has one to three sizes."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def arguments(self) -> Sequence[Parameter]:
        """What it takes, in order."""
        ...

    @property
    def grid(self) -> Sequence[Size]:
        """How many programs it has along each axis."""
        ...


K = TypeVar("K", bound=Launchable)


@dataclass
class Draft(Generic[K]):
    """A device segment for one architecture in the making. Steps run in the order in which they are added.

    `arena` is the size of the arena in bytes; kernels' scratch memory is not in it. Constants that are too large for a
    kernel's text are weights.
    """

    arena: Size = 0
    slots: list[Size] = field(default_factory=list[Size])
    """The bytes of memory without a bound, which follows the arena."""
    _kernels: dict[K, int] = field(default_factory=dict[K, int])
    _buffers: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    _blocks: list[list[Step]] = field(default_factory=lambda: [list[Step]()])

    @property
    def kernels(self) -> tuple[K, ...]:
        """The kernels that are launched, by number."""
        return tuple(self._kernels)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers, by number."""
        return tuple(self._buffers)

    @property
    def steps(self) -> list[Step]:
        """The steps of the block that is being filled."""
        return self._blocks[-1]

    def buffer(self, place: str, at: int, size: Size) -> int:
        """The number of a buffer of `size` bytes: at an offset in the `arena`, or a numbered place."""
        return self._buffers.setdefault(Buffer(place, at, str(size)), len(self._buffers))

    def launch(
        self, kernel: K, arguments: Mapping[str, Size], *, label: str = "", flops: Size = 0, moved: Size = 0
    ) -> None:
        """Launch a kernel. By its arguments' names: numbers of buffers for pointers, sizes for sizes.

        `label` names the launch in reports, `flops` and `moved` (in bytes) say what it costs.
        """
        given: list[Json] = []
        for argument in kernel.arguments:
            if argument.name not in arguments or len(arguments) != len(kernel.arguments):
                raise InternalError(f"A launch of {kernel.name} gives {sorted(arguments)}.", where=argument.name)
            value = arguments[argument.name]
            given.append(str(value) if argument.role == "size" else value)
        grid = tuple(map(str, kernel.grid))
        number = self._kernels.setdefault(kernel, len(self._kernels))
        self.steps.append(Launch(number, grid, tuple(given), label, str(flops), str(moved)))

    def fill(self, buffer: int, byte: int) -> None:
        """Set every byte of a buffer, such as one that atomic operations add to."""
        self.steps.append(Fill(buffer, byte))

    def copy(self, source: int, target: int) -> None:
        """Copy a buffer to one of the same size."""
        self.steps.append(Copy(source, target))

    def call_host(self, call: HostCall) -> None:
        """Have the host compute what it reads and writes in buffers."""
        self.steps.append(call)

    @contextmanager
    def block(self) -> Generator[list[Step]]:
        """A list that takes the steps added inside of the `with`: the body of a loop, a branch of a case."""
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    def loop(self, count: Size, body: Sequence[Step]) -> None:
        """Run a block so many times."""
        self.steps.append(Loop(str(count), tuple(body)))

    def loop_while(self, condition: int, before: Sequence[Step], body: Sequence[Step]) -> None:
        """Run `before`, and as long as `condition` (one byte) then is not 0, the body and `before` again."""
        self.steps.append(While(condition, tuple(before), tuple(body)))

    def case(self, selector: int, branches: Sequence[Sequence[Step]]) -> None:
        """Run one of the branches (see `Case`)."""
        self.steps.append(Case(selector, tuple(map(tuple, branches))))


@record
class Part(Generic[K]):
    """A device segment (see `DeviceSegment`), with a draft for each architecture by name."""

    inputs: tuple[int, ...]
    weights: tuple[str, ...]
    outputs: tuple[Value, ...]
    drafts: Mapping[str, Draft[K]]
    aliases: tuple[tuple[int, int], ...] = ()
