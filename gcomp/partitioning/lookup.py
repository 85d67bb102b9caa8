"""Where data say which element is meant: what a part makes of an index, in whatever arithmetic numbers are.

The partitioner states it in a program, and proofs in formulas: one home for both.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from gcomp.dims import Size

X = TypeVar("X")


class Arithmetic(Protocol[X]):
    """What is done with indices."""

    def number(self, size: Size) -> X:
        """A size as a number."""
        ...

    def minus(self, x: X, y: X) -> X:
        """`x - y`."""
        ...

    def clamped(self, x: X, least: X, most: X) -> X:
        """The number between two that is nearest."""
        ...

    def within(self, x: X, least: X, end: X) -> X:
        """Whether `least <= x < end`."""
        ...

    def chosen(self, condition: X, x: X, y: X) -> X:
        """`x` where a condition holds, else `y`."""
        ...


def looked_up(on: Arithmetic[X], index: X, begin: X, whole: Size, own: Size) -> tuple[X, X]:
    """Whether a part of `own` indices from `begin` on has the element at an index, which is first clamped to those of
    the whole; and the index in the part, clamped to those of the part."""
    zero = on.number(0)
    here = on.minus(on.clamped(index, zero, on.number(whole - 1)), begin)
    return on.within(here, zero, on.number(own)), on.clamped(here, zero, on.number(own - 1))


def put(on: Arithmetic[X], index: X, begin: X, own: Size) -> X:
    """The index in a part of what is put at an index: past the end if the part does not have it, and so left out."""
    here = on.minus(index, begin)
    return on.chosen(on.within(here, on.number(0), on.number(own)), here, on.number(own))
