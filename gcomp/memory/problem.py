"""The problem of offsets: buffers with lifetimes and sizes, one arena, no two live buffers on the same byte."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gcomp.errors import UsageError, VerificationError
from gcomp.records import record

Ints = np.ndarray[Any, np.dtype[np.int64]]

LIMIT = 2**53
"""Steps, offsets and the sum of all sizes are below it, so that sums fit 64 bits and are exact as floats too."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes, alive at the steps `lower <= t < upper`, at a multiple of `alignment`.

    `offset` is None where the planner may choose; else the buffer lies there and nowhere else.
    """

    name: str
    lower: int
    upper: int
    size: int
    alignment: int = 1
    offset: int | None = None


def flaw(buffer: Buffer) -> str | None:
    """What is wrong with a buffer on its own, if anything."""
    if not 0 <= buffer.lower < buffer.upper < LIMIT:
        return f"it lives at the steps {buffer.lower} <= t < {buffer.upper}, which is no lifetime"
    if not 0 <= buffer.size < LIMIT:
        return f"its size is {buffer.size}, which is not between 0 and 2^53"
    if not 1 <= buffer.alignment < LIMIT:
        return f"its alignment is {buffer.alignment}, which is not between 1 and 2^53"
    if buffer.offset is None:
        return None
    if not 0 <= buffer.offset < LIMIT:
        return f"its fixed offset is {buffer.offset}, which is not between 0 and 2^53"
    if buffer.offset % buffer.alignment:
        return f"its fixed offset {buffer.offset} is not a multiple of its alignment {buffer.alignment}"
    return None


@record
class Problem:
    """Buffers, and the bytes that they must fit into; `capacity=None` asks for as few bytes as possible."""

    buffers: tuple[Buffer, ...]
    capacity: int | None = None

    def __init__(self, buffers: Iterable[Buffer], capacity: int | None = None) -> None:
        object.__setattr__(self, "buffers", tuple(buffers))
        object.__setattr__(self, "capacity", capacity)
        for buffer in self.buffers:
            if (why := flaw(buffer)) is not None:
                raise UsageError("A buffer cannot be planned.", where=f"buffer {buffer.name!r}", why=why)
        repeated = [name for name, count in Counter(buffer.name for buffer in self.buffers).items() if count > 1]
        if repeated:
            raise UsageError("Two buffers have the same name.", where=f"buffer {repeated[0]!r}", fix="rename one")
        if sum(buffer.size + buffer.alignment for buffer in self.buffers) >= LIMIT:
            raise UsageError("The buffers have 2^53 bytes or more together.")
        if capacity is not None and not 0 <= capacity < LIMIT:
            raise UsageError(f"A capacity of {capacity} bytes is not between 0 and 2^53.")

    def __len__(self) -> int:
        return len(self.buffers)

    @cached_property
    def lower(self) -> Ints:
        """The first live step of each buffer."""
        return np.array([buffer.lower for buffer in self.buffers], np.int64)

    @cached_property
    def upper(self) -> Ints:
        """The first dead step of each buffer."""
        return np.array([buffer.upper for buffer in self.buffers], np.int64)

    @cached_property
    def size(self) -> Ints:
        """The bytes of each buffer."""
        return np.array([buffer.size for buffer in self.buffers], np.int64)

    @cached_property
    def alignment(self) -> Ints:
        """What each offset must be a multiple of."""
        return np.array([buffer.alignment for buffer in self.buffers], np.int64)

    @cached_property
    def fixed(self) -> Ints:
        """The offset of each buffer that has one already; -1 for the others."""
        return np.array([-1 if buffer.offset is None else buffer.offset for buffer in self.buffers], np.int64)


@record
class Assignment:
    """An offset for each buffer of a problem, in the problem's order, and what is known of its quality."""

    offsets: tuple[int, ...]
    peak: int
    """The bytes of the arena: the greatest end of a buffer."""
    lower_bound: int
    """No assignment has a lower peak than this."""
    method: str
    """What found it."""
    seconds: float
    out_of_time: bool = False
    """Whether a search was ended by the clock: only then may another run find another plan."""

    @property
    def optimal(self) -> bool:
        """Whether no assignment has a lower peak, as far as is proven."""
        return self.peak == self.lower_bound

    @property
    def gap(self) -> float:
        """How far the peak may be above the optimum, as a fraction of the bound."""
        return (self.peak - self.lower_bound) / self.lower_bound if self.lower_bound else float(self.peak > 0)


def peak_of(problem: Problem, offsets: Sequence[int] | Ints) -> int:
    """The greatest end of a buffer."""
    return int((np.asarray(offsets, np.int64) + problem.size).max()) if len(problem) else 0


def live_bytes(problem: Problem, sizes: Ints) -> int:
    """The greatest sum of sizes at one step."""
    steps = np.concatenate([problem.lower, problem.upper])
    order = np.argsort(steps, kind="stable")
    running = np.cumsum(np.concatenate([sizes, -sizes])[order])
    # Steps hold many changes; the sum counts after the last one.
    last = np.append(steps[order][1:] != steps[order][:-1], True)
    return int(running[last].max())


def lower_bound(problem: Problem) -> int:
    """Bytes that every assignment needs: the greatest sum of live sizes, and the end of each fixed buffer.

    Where all live buffers are aligned to `a`, all but the topmost take a multiple of `a`; so sizes rounded up to the
    greatest common divisor of all alignments count in full, less what rounding gave the one that it gave most.
    """
    if not len(problem):
        return 0
    unit = int(np.gcd.reduce(problem.alignment))
    rounded = -(-problem.size // unit) * unit
    fixed_end = int(np.where(problem.fixed >= 0, problem.fixed + problem.size, 0).max())
    aligned = live_bytes(problem, rounded) - int((rounded - problem.size).max())
    return max(live_bytes(problem, problem.size), aligned, fixed_end)


def conflict(problem: Problem, offsets: Sequence[int] | Ints) -> tuple[int, int] | None:
    """Two buffers that share a byte at a step, by their indices, or None.

    A sweep over time keeps the live buffers sorted by offset; neighbours in that order are all that can meet first.
    """
    places = [int(offset) for offset in offsets]
    real = [index for index, buffer in enumerate(problem.buffers) if buffer.size > 0]
    events = [(problem.buffers[index].lower, 1, index) for index in real]
    events += [(problem.buffers[index].upper, 0, index) for index in real]
    live: list[tuple[int, int]] = []
    for _, begins, index in sorted(events):
        entry = (places[index], index)
        at = bisect_left(live, entry)
        if not begins:
            del live[at]
            continue
        if at > 0 and live[at - 1][0] + problem.buffers[live[at - 1][1]].size > entry[0]:
            return live[at - 1][1], index
        if at < len(live) and live[at][0] < entry[0] + problem.buffers[index].size:
            return live[at][1], index
        live.insert(at, entry)
    return None


def check(problem: Problem, assignment: Assignment) -> None:
    """Refuse an assignment that breaks a rule, by a sweep that shares nothing with what plans."""
    if len(assignment.offsets) != len(problem):
        raise VerificationError(f"An assignment of {len(assignment.offsets)} offsets is for {len(problem)} buffers.")
    for buffer, offset in zip(problem.buffers, assignment.offsets, strict=True):
        if offset < 0 or offset % buffer.alignment:
            why = "it is negative" if offset < 0 else f"it is not a multiple of {buffer.alignment}"
            raise VerificationError(f"Buffer {buffer.name!r} has the offset {offset}.", why=why)
        if buffer.offset is not None and offset != buffer.offset:
            raise VerificationError(f"Buffer {buffer.name!r} is fixed at {buffer.offset}, and was put at {offset}.")
        if offset + buffer.size > assignment.peak:
            raise VerificationError(
                f"Buffer {buffer.name!r} ends at {offset + buffer.size}, above the stated peak of {assignment.peak}."
            )
        if problem.capacity is not None and offset + buffer.size > problem.capacity:
            raise VerificationError(
                f"Buffer {buffer.name!r} ends at {offset + buffer.size}, outside the capacity {problem.capacity}."
            )
    if (pair := conflict(problem, assignment.offsets)) is not None:
        where = " and ".join(place(problem, assignment, index) for index in pair)
        raise VerificationError("Two live buffers share bytes.", where=where)


def place(problem: Problem, assignment: Assignment, index: int) -> str:
    """Where and when a buffer lives, for a message."""
    buffer, offset = problem.buffers[index], assignment.offsets[index]
    return f"{buffer.name!r} (bytes {offset} to {offset + buffer.size}, steps {buffer.lower} to {buffer.upper})"


def check_fixed(problem: Problem) -> None:
    """Refuse fixed offsets that contradict each other: no assignment exists."""
    fixed = Problem(buffer for buffer in problem.buffers if buffer.offset is not None)
    if (pair := conflict(fixed, fixed.fixed)) is not None:
        names = " and ".join(repr(fixed.buffers[index].name) for index in pair)
        raise UsageError("Two buffers with fixed offsets share bytes while both live.", where=names)
