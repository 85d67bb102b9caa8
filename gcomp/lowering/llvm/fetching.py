"""Memory that is fetched before it is read, by iterations that compute something else meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from gcomp.lowering.llvm.writer import Index, Writer
from gcomp.records import record

LINE = 64
"""Bytes that a cache fetches at a time."""
LEAST = 64
"""Lines that are fetched ahead, at least: fewer are read before they arrive."""


@record
class Following:
    """What lies in memory where the next tile is read: so many lines of a cache, and where each begins."""

    lines: int
    address: Callable[[Index], str]


def fetch(w: Writer, following: Following, iteration: Index, iterations: int, *, near: bool = False) -> None:
    """Bring one iteration's share of what follows into the second cache, or the nearest one; nothing of what is less
    than `LEAST` lines."""
    if following.lines < LEAST:
        return
    first = w.divide(w.multiply(iteration, following.lines), iterations)
    w.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    for line in range(-(-following.lines // iterations)):
        address = following.address(w.add(first, line))
        w.emit(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 {3 if near else 2}, i32 1)")


__all__ = ["LINE", "Following", "fetch"]
