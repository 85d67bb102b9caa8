"""A row piece of a tile in registers: lanes that are all the same, that rise evenly, or that are a vector.

Positions are mostly the first two: what is the same for all lanes is computed once, as a scalar, and a row of
neighbours in memory is seen as one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from gcomp.dtypes import bit_width, dtype_of
from gcomp.lowering.llvm.writer import Index, Writer, scalar_type, type_of, vector


@dataclass(slots=True)
class Lanes:  # not frozen: those take three times as long to make, and kernels have ten thousands
    """`count` elements. With `base`, lane k holds base + k * stride, and base is a multiple of `multiple`; of `steps`,
    which have no stride, it holds base + steps[k]."""

    dtype: str
    count: int
    base: str | None = None
    stride: int = 0
    multiple: int = 1
    number: int | None = None
    """The value of an integer base that is known when the kernel is printed."""
    vector: str | None = None
    steps: tuple[int, ...] | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes are the same."""
        return self.base is not None and self.steps is None and (self.stride == 0 or self.count == 1)

    @property
    def distances(self) -> Sequence[int]:
        """How far each lane is from the base."""
        return [k * self.stride for k in range(self.count)] if self.steps is None else self.steps

    @property
    def first(self) -> Lanes:
        """The base alone, where lanes have one."""
        return Lanes(self.dtype, 1, self.base, multiple=self.multiple, number=self.number)

    @property
    def type(self) -> str:
        """LLVM's type."""
        return type_of(self.dtype, self.count)

    def repeat(self, count: int) -> Lanes:
        """So many lanes of the one value."""
        assert self.is_uniform
        if (count, 0) == (self.count, self.stride):
            return self
        return Lanes(self.dtype, count, self.base, multiple=self.multiple, number=self.number)


def uniform(dtype: str, value: str, count: int = 1, multiple: int = 1) -> Lanes:
    """Lanes that are all the same scalar."""
    return Lanes(dtype, count, base=value, multiple=multiple)


def constant_lanes(dtype: str, number: int, count: int = 1) -> Lanes:
    """Lanes that are all the same integer."""
    return Lanes(dtype, count, base=integer_text(dtype, number), multiple=abs(number), number=number)


def stepped(lanes: Lanes, distances: Sequence[int]) -> Lanes:
    """Lanes of one base that lie so far from it, evenly or not."""
    count = len(distances)
    stride = distances[1] - distances[0] if count > 1 else 0
    if all(distance == k * stride for k, distance in enumerate(distances)):
        return replace(lanes, count=count, stride=stride, steps=None)
    return replace(lanes, count=count, stride=0, steps=tuple(distances))


def position(w: Writer, place: Index, count: int, stride: int = 1) -> Lanes:
    """Positions that begin at a place, as i64."""
    number = place if isinstance(place, int) else None
    multiple = 1 if number is None else abs(number)
    return Lanes("i64", count, base=str(place), stride=stride, multiple=multiple, number=number)


def vectorial(dtype: str, count: int, value: str) -> Lanes:
    """Lanes that a vector holds; one lane is a scalar."""
    return Lanes(dtype, 1, base=value) if count == 1 else Lanes(dtype, count, vector=value)


def constant(value: Any, dtype: str, count: int) -> Lanes:
    """Lanes that are all the same constant of the element type."""
    array = np.asarray(value, dtype_of(dtype))
    if dtype == "i1":
        return constant_lanes(dtype, int(bool(array)), count)
    if dtype in ("f32", "f64"):
        return uniform(dtype, float_text(float(array)), count)
    if bit_width(dtype) <= 16 and array.dtype.kind not in "iu":
        return constant_lanes(dtype, int.from_bytes(array.tobytes(), "little"), count)
    return constant_lanes(dtype, int(array), count)


def integer_text(dtype: str, number: int) -> str:
    """An integer as LLVM writes it."""
    return ("true" if number else "false") if dtype == "i1" else str(number)


def float_text(value: float) -> str:
    """A float as LLVM writes it: the bits of the number in f64."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def whole(w: Writer, lanes: Lanes) -> str:
    """The lanes as one value of LLVM: a vector, or a scalar where there is one."""
    if lanes.vector is not None:
        return lanes.vector
    assert lanes.base is not None
    if lanes.count == 1:
        return lanes.base
    found = splat(w, scalar_type(lanes.dtype), lanes.base, lanes.count)
    if lanes.is_uniform:
        return found
    kind = scalar_type(lanes.dtype)
    steps = ", ".join(f"{kind} {_wrap(distance, lanes.dtype)}" for distance in lanes.distances)
    if lanes.number == 0:
        return f"<{steps}>"
    return w.pure(f"add {lanes.type} {found}, <{steps}>")


def _wrap(number: int, dtype: str) -> int:
    """A number as a signed one of the type's width."""
    width = bit_width(dtype)
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


def splat(w: Writer, type: str, value: str, count: int) -> str:
    """A vector of one scalar."""
    if count == 1:
        return value
    if not value.startswith("%"):
        return f"splat ({type} {value})"
    one = w.pure(f"insertelement {vector(type, count)} poison, {type} {value}, i64 0")
    return w.pure(
        f"shufflevector {vector(type, count)} {one}, {vector(type, count)} poison, <{count} x i32> zeroinitializer"
    )


def part(w: Writer, lanes: Lanes, first: int, count: int) -> Lanes:
    """Some of the lanes, one after the other."""
    if (first, count) == (0, lanes.count):
        return lanes
    if lanes.base is not None:
        moved = lanes.stride * first if lanes.steps is None else lanes.steps[first]
        if lanes.number is not None:
            found = constant_lanes(lanes.dtype, lanes.number + moved, count)
        else:
            base = w.pure(f"add {scalar_type(lanes.dtype)} {lanes.base}, {moved}") if moved else lanes.base
            found = replace(lanes, base=base, multiple=gcd(lanes.multiple, moved))
        if lanes.steps is None:
            return replace(found, count=count, stride=lanes.stride if count > 1 else 0)
        return stepped(found, [distance - moved for distance in lanes.steps[first : first + count]])
    if count == 1:
        return uniform(lanes.dtype, w.pure(f"extractelement {lanes.type} {lanes.vector}, i64 {first}"))
    assert lanes.vector is not None
    return vectorial(lanes.dtype, count, shuffle(w, lanes.type, lanes.vector, "poison", range(first, first + count)))


def shuffle(w: Writer, type: str, one: str, other: str, places: Sequence[int]) -> str:
    """A vector of elements of two vectors of one type, by their places: the second's follow the first's, and -1 is any
    element."""
    picked = ", ".join("i32 poison" if place < 0 else f"i32 {place}" for place in places)
    return w.pure(f"shufflevector {type} {one}, {type} {other}, <{len(places)} x i32> <{picked}>")


def join(w: Writer, scalars: list[Lanes]) -> Lanes:
    """Lanes of single ones."""
    dtype, count = scalars[0].dtype, len(scalars)
    if count == 1:
        return scalars[0]
    if all(s.base == scalars[0].base for s in scalars):
        return scalars[0].repeat(count)
    numbers = [s.number for s in scalars]
    if numbers[0] is not None and numbers[1] is not None and dtype != "i1":
        stride = numbers[1] - numbers[0]
        if all(n is not None and n == numbers[0] + k * stride for k, n in enumerate(numbers)):
            return replace(constant_lanes(dtype, numbers[0], count), stride=stride)
    found = "poison"
    for k, scalar in enumerate(scalars):
        found = w.pure(f"insertelement {type_of(dtype, count)} {found}, {scalar_type(dtype)} {scalar.base}, i64 {k}")
    return vectorial(dtype, count, found)
