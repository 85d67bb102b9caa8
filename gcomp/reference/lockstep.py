"""Several devices in lockstep: each runs until it comes to what all do together, and none goes on before all have.

Devices that come to different ops, or of which some have ended, would wait for each other forever on real ones: that is
refused. What an op gives each device is a row of `MEETINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias

from xdsl.ir import Operation, Region, SSAValue

from gcomp.errors import InternalError, InvalidModelError
from gcomp.ir.locations import where
from gcomp.reference.table import Array, DType, Exchange, Place, Value
from gcomp.sharding import Mesh

Running: TypeAlias = "Generator[Exchange, list[Value], list[Value]]"
"""A run on one device, which stops at each exchange."""


class Device(Protocol):
    """One of the devices that meet."""

    @property
    def place(self) -> Place | None:
        """Which one."""
        ...

    def dtype(self, value: SSAValue) -> DType:
        """The dtype in which values of a tensor type are held."""
        ...

    def body(self, region: Region) -> Callable[..., list[Array]]:
        """The region as an elementwise function."""
        ...

    def meshes(self) -> Mapping[str, Mesh]:
        """The module's meshes by name."""
        ...


Meeting = Callable[[Any, Sequence[Sequence[Value]], Sequence[Device]], "Sequence[Sequence[Value]]"]
"""Of an op and what each device gives: what each device gets. Devices are in order of their number as a process."""

MEETINGS: dict[type[Operation], Meeting] = {}
"""Op class -> what comes of it between devices."""


def meets(*ops: type[Operation]) -> Callable[[Meeting], Meeting]:
    """Register a function as what comes of op classes between devices."""

    def register(meeting: Meeting) -> Meeting:
        MEETINGS.update(dict.fromkeys(ops, meeting))
        return meeting

    return register


def run_in_lockstep(devices: Sequence[Device], running: Sequence[Running]) -> list[list[Value]]:
    """What each run gives. InvalidModelError where devices do not come to the same ops in the same order."""
    replies: Sequence[Sequence[Value] | None] = [None] * len(running)
    while True:
        at = [_advance(run, reply) for run, reply in zip(running, replies, strict=True)]
        waiting = [x for x in at if isinstance(x, Exchange)]
        if not waiting:
            return [x for x in at if not isinstance(x, Exchange)]
        op = waiting[0].op
        if len(waiting) < len(at) or any(x.op is not op for x in waiting):
            _refuse(at)
        meeting = MEETINGS.get(type(op))
        if meeting is None:
            raise InternalError(f"nothing says what comes of {op.name} between devices", where=where(op))
        replies = meeting(op, [x.args for x in waiting], devices)


def _advance(run: Running, reply: Sequence[Value] | None) -> Exchange | list[Value]:
    """Let a device go on: what it comes to next, or what it gives at its end."""
    try:
        return run.send(reply)  # pyright: ignore[reportArgumentType]  a generator is started by None
    except StopIteration as done:
        return done.value


def _refuse(at: Sequence[Exchange | list[Value]]) -> NoReturn:
    """Say which devices wait for what."""
    places: dict[Operation | None, list[int]] = {}
    for number, state in enumerate(at):
        places.setdefault(state.op if isinstance(state, Exchange) else None, []).append(number)
    told = [
        f"{_names(numbers)} at {'the end' if op is None else f'{op.name} ({where(op)})'}"
        for op, numbers in places.items()
    ]
    first = next(state.op for state in at if isinstance(state, Exchange))
    raise InvalidModelError(
        "the devices disagree about the order of collectives", where=where(first), why=", and ".join(told),
        fix="let all devices run the same collectives in the same order: no branch or loop around them may differ",
    )  # fmt: skip


def _names(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"device {shown} is" if len(numbers) == 1 else f"devices {shown} are"


__all__ = ["MEETINGS", "Device", "Meeting", "Running", "meets", "run_in_lockstep"]
