"""Who lives together with whom, as arrays: neighbours of a buffer, and time cut into sections."""

from __future__ import annotations

import numpy as np

from gcomp.memory.problem import Ints
from gcomp.records import record


def degrees(lower: Ints, upper: Ints) -> Ints:
    """How many buffers each buffer shares a step with, itself left out."""
    begun = np.searchsorted(np.sort(lower), upper, side="left")
    ended = np.searchsorted(np.sort(upper), lower, side="right")
    return (begun - ended - 1).astype(np.int64)


class Neighbourhoods:
    """Who lives together with whom: those born while a buffer lives are a range in the order of births."""

    def __init__(self, lower: Ints, upper: Ints) -> None:
        self.born = np.argsort(lower, kind="stable")
        self.rank = np.empty_like(self.born)
        self.rank[self.born] = np.arange(len(lower))
        self.until = np.searchsorted(lower[self.born], upper[self.born], side="left")
        count = self.until - np.arange(len(lower)) - 1
        older = np.repeat(np.arange(len(lower)), count)
        younger = np.arange(len(older)) - np.repeat(np.cumsum(count) - count, count) + older + 1
        order = np.argsort(younger, kind="stable")
        self.older: Ints = self.born[older[order]]
        self.starts: Ints = np.searchsorted(younger[order], np.arange(len(lower) + 1))

    def of(self, buffer: int) -> Ints:
        """The buffers that live at some step at which this one does."""
        rank = int(self.rank[buffer])
        older = self.older[self.starts[rank] : self.starts[rank + 1]]
        return np.concatenate([older, self.born[rank + 1 : self.until[rank]]])


@record
class Sections:
    """Time by who is alive. A section is a greatest set of buffers alive at one step; a buffer spans the sections
    `first <= s < last`. Two buffers live together if and only if they share a section."""

    count: int
    first: Ints
    last: Ints
    members: Ints
    """The buffers of each section, one section after another, each closed by the index after the last buffer."""
    starts: Ints
    """Where in `members` each section begins."""

    def sums(self, values: Ints) -> Ints:
        """For each section, the sum of its buffers' values."""
        changes = np.zeros(self.count + 1, np.int64)
        np.add.at(changes, self.first, values)
        np.add.at(changes, self.last, -values)
        return np.cumsum(changes)[:-1]

    def greatest(self, values: Ints, buffers: Ints) -> Ints:
        """For some buffers, the greatest value among the sections that each spans."""
        spans = np.column_stack([self.first[buffers], self.last[buffers]]).ravel()
        return np.maximum.reduceat(np.append(values, 0), spans)[::2]


def sections_of(lower: Ints, upper: Ints) -> Sections:
    """The sections of some lifetimes.

    One ends where a buffer dies after another was born: between two such steps the live set first only shrinks, and
    then only grows.
    """
    both = np.sort(np.concatenate([lower, upper]))
    steps = both[np.diff(both, prepend=both[:1] - 1) != 0]  # numpy.unique loads numpy.ma
    begins, ends = np.isin(steps, lower), np.isin(steps, upper)
    number = np.zeros(len(steps), np.int64)
    count, grown = 0, False
    for at, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if end and grown:
            count, grown = count + 1, False
        number[at] = count
        grown = grown or begin
    first, last = number[np.searchsorted(steps, lower)], number[np.searchsorted(steps, upper)]
    spans = last - first
    buffers = np.repeat(np.arange(len(lower)), spans)
    section = np.arange(len(buffers)) - np.repeat(np.cumsum(spans) - spans, spans) + first[buffers]
    # The index after the last buffer closes each section, so that none is ever empty.
    section, buffers = np.append(section, np.arange(count)), np.append(buffers, np.full(count, len(lower)))
    order = np.lexsort((buffers, section))
    return Sections(count, first, last, buffers[order], np.searchsorted(section[order], np.arange(count + 1)))
