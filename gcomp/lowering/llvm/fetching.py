"""Memory that is fetched before it is read, by iterations that compute something else meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from gcomp.lowering.llvm.writer import Index, Writer
from gcomp.records import record

LINE = 64
"""Bytes that a cache fetches at a time."""
LEAST = 64
"""Lines that are fetched ahead, at least: fewer are read before they arrive."""
AHEAD = 64
"""How many lines before they are read those of a stream are fetched: by itself a processor stops at a page's end."""


@record
class Following:
    """What lies in memory where the next tile is read: so many lines of a cache, and where each begins."""

    lines: int
    address: Callable[[Index], str]
    continues: bool = False
    """Whether the lines before the first are those of this tile: it is one stream through memory."""


def fetch(w: Writer, following: Following, iteration: Index, iterations: int, *, near: bool = False) -> None:
    """Bring one iteration's share of what follows into the second cache, or the nearest one; nothing of what is less
    than `LEAST` lines."""
    if following.lines < LEAST:
        return
    first = w.divide(w.multiply(iteration, following.lines), iterations)
    for line in range(-(-following.lines // iterations)):
        _prefetch(w, following.address(w.add(first, line)), near=near)


def _prefetch(w: Writer, address: str, *, near: bool) -> None:
    w.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    w.emit(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 {3 if near else 2}, i32 1)")


def fetch_stream(w: Writer, following: Following, first: Index, count: int) -> None:
    """Bring lines of a tile that is one stream into the second cache, `AHEAD` before they are read: those that are so
    far behind the lines `first` to `first + count`, which are read now."""
    for line in range(count):
        _prefetch(w, following.address(w.add(first, line + AHEAD - following.lines)), near=False)


__all__ = ["LINE", "Following", "fetch", "fetch_stream"]
