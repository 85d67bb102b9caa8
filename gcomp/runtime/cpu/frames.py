"""What calls of a segment's code are given: each an arena of its own, and slots with the addresses of everything.

Frames are kept and used again, and there are no more of them than processors: further calls wait for one.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from threading import Condition

from gcomp.errors import InternalError
from gcomp.processors import processors
from gcomp.records import record
from gcomp.runtime.cpu.calls import Hook, HostCalls
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.cpu.threads import Pool

_WORD = 8


@record
class Slots:
    """The slots of a call, 8 bytes each: the arena, the pool of threads, the inputs, the weights, the outputs, then the
    sizes. These are how many there are of each. The last is for what calls the host."""

    inputs: int
    weights: int
    outputs: int
    symbols: int

    @property
    def count(self) -> int:
        """All slots."""
        return 3 + self.inputs + self.weights + self.outputs + self.symbols


@dataclass(frozen=True, eq=False)
class Bound:
    """A segment at known sizes: the bytes of its arena, and the sizes that its code is given."""

    arena: int
    sizes: tuple[int, ...]


class _Frame:
    """The arena and the slots of one call at a time, and what they were filled for."""

    def __init__(self, slots: int, calls: HostCalls) -> None:
        self.slots = (ctypes.c_uint64 * slots)()
        self.address = ctypes.addressof(self.slots)
        self.bound: Bound | None = None
        self.pool: Pool | None = None
        self.arena: Pages | None = None
        self.hook: Hook | None = None
        if calls:
            self.hook = Hook(calls, lambda: self.bound.sizes if self.bound is not None else ())
            self.slots[slots - 1] = self.hook.address


class Frames:
    """The frames of a segment, and its calls."""

    def __init__(self, image: Image, entry: int, slots: Slots, weights: Sequence[int], calls: HostCalls) -> None:
        """`entry` is where the code begins in the image, `weights` are addresses."""
        self._host = calls
        self._image, self._call = image, image.entry(entry)
        self._slots, self._weights = slots, tuple(weights)
        self._head = Struct(f"={2 + slots.inputs}Q")
        self._kept, self._sizes = Struct(f"={slots.weights}Q"), Struct(f"={slots.symbols}q")
        self._made = Struct(f"={slots.outputs}Q")
        self._weights_at = _WORD * (2 + slots.inputs)
        self._made_at = self._weights_at + _WORD * slots.weights
        self._sizes_at = self._made_at + _WORD * slots.outputs
        self._limit = max(2, processors())
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Begin without frames: in a process that was forked, some may be in use by threads that are not there."""
        self._free: list[_Frame] = []
        self._there = self._waiting = 0
        self._changed = Condition()

    def run(self, bound: Bound, pool: Pool | None, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run the code on inputs and outputs at these addresses. Raises GcompError."""
        try:
            frame = self._free.pop()  # the one used last, whose arena the caches hold
        except IndexError:
            frame = self._next()
        try:
            if frame.bound is not bound or frame.pool is not pool:
                self._fill(frame, bound, pool)
            threads = 0
            if pool is not None:
                threads = pool.address
                if not pool.ready:
                    pool.start()
            self._head.pack_into(frame.slots, 0, frame.arena.address, threads, *inputs)  # pyright: ignore
            self._made.pack_into(frame.slots, self._made_at, *outputs)
            status = self._call(frame.address)
            if frame.hook is not None:
                frame.hook.check()
        finally:
            self._free.append(frame)
            if self._waiting:
                with self._changed:
                    self._changed.notify()
        if status:
            raise InternalError("The code of the model did not end well.", why=f"It gave {status}.")

    @contextmanager
    def arena(self, bound: Bound) -> Generator[int]:
        """The address of an arena that no call uses meanwhile. Raises UnsupportedError where there is no memory."""
        frame = self._next()
        try:
            if frame.bound is not bound:
                self._fill(frame, bound, frame.pool)
            assert frame.arena is not None, "a frame that is filled has an arena"
            yield frame.arena.address
        finally:
            self._free.append(frame)
            with self._changed:
                self._changed.notify()

    def prepare(self, bound: Bound) -> None:
        """Have memory for a call. Raises UnsupportedError where there is none."""
        frame = self._next()
        try:
            self._fill(frame, bound, frame.pool)
        finally:
            self._free.append(frame)

    def _next(self) -> _Frame:
        """A frame that is free, a new one, or the next that becomes free."""
        with self._changed:
            self._waiting += 1  # before the look: who gives one back later sees it
            try:
                while True:
                    if self._free:
                        return self._free.pop()
                    if self._there < self._limit:
                        self._there += 1
                        return _Frame(self._slots.count, self._host)
                    self._changed.wait()
            finally:
                self._waiting -= 1

    def _fill(self, frame: _Frame, bound: Bound, pool: Pool | None) -> None:
        """Fill what is the same in all calls at known sizes."""
        frame.bound = None
        if frame.arena is None or frame.arena.size < bound.arena:
            frame.arena = None  # the old one goes first
            frame.arena = Pages(bound.arena, "the arena of a call")
        self._kept.pack_into(frame.slots, self._weights_at, *self._weights)
        self._sizes.pack_into(frame.slots, self._sizes_at, *bound.sizes)
        frame.bound, frame.pool = bound, pool


_all: weakref.WeakSet[Frames] = weakref.WeakSet()


def _forked() -> None:
    for frames in list(_all):
        frames.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

__all__ = ["Bound", "Frames", "Slots"]
