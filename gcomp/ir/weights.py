"""A program's weights: arrays outside the IR, by name, shared by content."""

from __future__ import annotations

import hashlib
import mmap
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from gcomp.processors import processors

Array = np.ndarray[Any, Any]

_ALIGNMENT = 64
_TILE = 128
_SHARED = 1 << 22
"""Bytes from which copying is worth several threads."""


class Weights:
    """Named read-only arrays. Memory-mapped arrays stay mapped; equal objects are held once."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._hashes: dict[int, tuple[Array, str]] = {}

    def add(self, name: str, array: Array) -> str:
        """Add an array under `name`, or under a variant of it when the name is taken; returns the name used."""
        base = symbol_of(name)
        unique, count = base, 1
        while unique in self._arrays:
            unique, count = f"{base}.{count}", count + 1
        self._arrays[unique] = array
        return unique

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def items(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays, in the order in which they were added."""
        yield from self._arrays.items()

    def remove(self, name: str) -> None:
        """Forget a weight, so that its memory can be freed."""
        array = self._arrays.pop(name)
        self._hashes.pop(id(array), None)
        forget_pages(array)

    def keep_only(self, names: set[str]) -> None:
        """Forget every weight that is not in `names`."""
        for name in [n for n in self._arrays if n not in names]:
            self.remove(name)

    def materialize(self) -> None:
        """Lay every array out in row-major order at an aligned address, copying only those that are not.

        Folding leaves views (a transposed weight, say); this gives each its final bytes, once. As many are copied at a
        time as there are processors; each source is let go when it is copied, and names that share an array go on
        sharing it.
        """
        groups = self._misplaced()
        large = sum([self._arrays[names[0]].nbytes for names in groups]) >= _SHARED
        workers = min(len(groups), processors()) if large else 1
        if workers < 2:
            for names in groups:
                self._place(names)
            return
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(self._place, groups):
                pass

    def _place(self, names: Sequence[str]) -> None:
        """Give an array of these names its final place."""
        source = self._arrays[names[0]]
        copy = copy_aligned(source)
        copy.flags.writeable = False
        forget_pages(source)
        for name in names:
            self._hashes.pop(id(self._arrays[name]), None)
            self._arrays[name] = copy

    def _misplaced(self) -> list[list[str]]:
        """The names of arrays that are not contiguous or not aligned, those of one array together."""
        groups: dict[tuple[Any, ...], list[str]] = {}
        for name, array in self._arrays.items():
            if not (array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0):
                groups.setdefault((array.ctypes.data, array.dtype, array.shape, array.strides), []).append(name)
        return list(groups.values())

    @property
    def nbytes(self) -> int:
        """The bytes of all weights."""
        return sum(a.nbytes for a in self._arrays.values())

    def sha256(self, name: str) -> str:
        """The hash of a weight's bytes in row-major order, computed once."""
        array = self._arrays[name]
        if id(array) not in self._hashes:
            data = np.ascontiguousarray(array)
            self._hashes[id(array)] = (array, hashlib.sha256(data.reshape(-1).view(np.uint8).data).hexdigest())
        return self._hashes[id(array)][1]


def symbol_of(name: str) -> str:
    """What the IR calls a weight of a name, where that is free."""
    base = re.sub(r"[^A-Za-z0-9_.$-]", "_", name) or "weight"
    return base if re.match(r"[A-Za-z_]", base) else f"_{base}"


def allocate_aligned(size: int) -> Array:
    """`size` bytes, not set, that start at a multiple of 64."""
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size]


def copy_aligned(array: Array) -> Array:
    """A contiguous copy whose data starts at a multiple of 64 bytes, so that a device on the CPU can share it."""
    result = allocate_aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    for part in _tiles(array):
        np.copyto(result[part], array[part])
    return result


def _tiles(array: Array) -> Iterator[tuple[Any, ...]]:
    """The parts in which to copy an array into row-major order.

    Where neighbours in memory are not neighbours in the last dimension (a transposed matrix), tiles over both keep
    every line of memory in the cache until all of it is used.
    """
    strides = [abs(s) if n > 1 else sys.maxsize for s, n in zip(array.strides, array.shape, strict=True)]
    rows = strides.index(min(strides)) if strides else 0
    if array.ndim < 2 or rows == array.ndim - 1 or array.size <= _TILE * _TILE:
        yield (...,)
        return
    for i in range(0, array.shape[rows], _TILE):
        for j in range(0, array.shape[-1], _TILE):
            part = [slice(None)] * array.ndim
            part[rows], part[-1] = slice(i, i + _TILE), slice(j, j + _TILE)
            yield tuple(part)


def forget_pages(array: Array) -> None:
    """Let the system have back the pages of a mapped file that an array covers; they return when they are read again.

    Nothing happens to an array that does not show a mapped file, or one that could be changed through the mapping.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = cast(Any, owner).base
    mapped: Any = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(mapped, mmap.mmap) or not memoryview(mapped).readonly:
        return
    origin = np.frombuffer(mapped, np.uint8).ctypes.data
    low, high = (bound - origin for bound in byte_bounds(array))
    start, stop = -(-low // mmap.PAGESIZE) * mmap.PAGESIZE, high // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)
