"""Ops that move elements, in random forms at ranks 0 to 4, with sizes 0 and 1 and elements of odd widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.support.cases.case import Array, Case, Rng, apply, ints, tensor
from tests.support.cases.values import sample

TYPES = ("f32", "f64", "bf16", "f8E4M3FN", "i1", "i4", "ui8", "i32", "complex<f32>")


def _shape(rng: Rng, low: int = 0, high: int = 4) -> tuple[int, ...]:
    return tuple(
        int(n) for n in rng.choice([0, 1, 2, 3, 4], p=[0.08, 0.22, 0.3, 0.25, 0.15], size=rng.integers(low, high + 1))
    )


def _draws(rng: Rng, full: bool, low: int = 0) -> Iterator[tuple[str, str, Array]]:
    """(label, element type, operand) of random cases."""
    for i in range(300 if full else 24):
        text = TYPES[i % len(TYPES)]
        x = sample(rng, text, _shape(rng, low))
        yield f"{i}-{text}", text, x


def _case(
    op: str, label: str, inputs: Sequence[Array], shape: Sequence[int], text: str, attributes: dict[str, str]
) -> Case:
    name = f"stablehlo.{op}"
    return Case(name, label, apply(name, inputs, [tensor(shape, text)], attributes), tuple(inputs), "bits")


def broadcast_in_dim(rng: Rng, full: bool) -> Iterator[Case]:
    """Dimensions in any order; some of size 1 are repeated."""
    for label, text, x in _draws(rng, full):
        rank = x.ndim + int(rng.integers(0, 3))
        places = [int(d) for d in rng.permutation(rank)[: x.ndim]]
        shape = list(_shape(rng, rank, rank))
        for size, place in zip(x.shape, places, strict=True):
            shape[place] = int(rng.integers(0, 4)) if size == 1 else size
        yield _case("broadcast_in_dim", label, [x], shape, text, {"broadcast_dimensions": ints(places)})


def transpose(rng: Rng, full: bool) -> Iterator[Case]:
    """All permutations."""
    for label, text, x in _draws(rng, full):
        order = [int(d) for d in rng.permutation(x.ndim)]
        shape = [x.shape[d] for d in order]
        yield _case("transpose", label, [x], shape, text, {"permutation": ints(order)})


def reverse(rng: Rng, full: bool) -> Iterator[Case]:
    """Any set of dimensions."""
    for label, text, x in _draws(rng, full):
        dimensions = [d for d in range(x.ndim) if rng.random() < 0.5]
        yield _case("reverse", label, [x], x.shape, text, {"dimensions": ints(dimensions)})


def reshape(rng: Rng, full: bool) -> Iterator[Case]:
    """Dimensions merged, and ones put in."""
    for label, text, x in _draws(rng, full):
        shape: list[int] = []
        for size in x.shape:
            if shape and rng.random() < 0.5:
                shape[-1] *= size
            else:
                shape += [1] * int(rng.integers(0, 2)) + [size]
        yield _case("reshape", label, [x], shape, text, {})


def slice_(rng: Rng, full: bool) -> Iterator[Case]:
    """Empty slices and strides beyond the size among them."""
    for label, text, x in _draws(rng, full):
        sizes: tuple[int, ...] = x.shape
        starts = [int(rng.integers(0, n + 1)) for n in sizes]
        limits = [int(rng.integers(s, n + 1)) for s, n in zip(starts, sizes, strict=True)]
        strides = [int(rng.integers(1, 4)) for _ in sizes]
        shape = [-(-(l - s) // t) for s, l, t in zip(starts, limits, strides, strict=True)]
        attributes = {"start_indices": ints(starts), "limit_indices": ints(limits), "strides": ints(strides)}
        yield _case("slice", label, [x], shape, text, attributes)


def pad(rng: Rng, full: bool) -> Iterator[Case]:
    """Positive, negative and interior padding, also of empty dimensions."""
    for label, text, x in _draws(rng, full):
        interior = [int(rng.integers(0, 3)) for _ in x.shape]
        spans: list[int] = [n + max(n - 1, 0) * g for n, g in zip(x.shape, interior, strict=True)]
        low = [int(rng.integers(-min(s, 2), 3)) for s in spans]
        high = [int(rng.integers(-min(max(s + l, 0), 2), 3)) for s, l in zip(spans, low, strict=True)]
        shape = [s + l + h for s, l, h in zip(spans, low, high, strict=True)]
        attributes = {
            "edge_padding_low": ints(low),
            "edge_padding_high": ints(high),
            "interior_padding": ints(interior),
        }
        yield _case("pad", label, [x, sample(rng, text, ())], shape, text, attributes)


def concatenate(rng: Rng, full: bool) -> Iterator[Case]:
    """One to four operands, some of them empty."""
    for label, text, x in _draws(rng, full, low=1):
        axis = int(rng.integers(0, x.ndim))
        others = [(*x.shape[:axis], int(rng.integers(0, 4)), *x.shape[axis + 1 :]) for _ in range(rng.integers(0, 4))]
        inputs = [x, *(sample(rng, text, shape) for shape in others)]
        shape = list(x.shape)
        shape[axis] = sum(i.shape[axis] for i in inputs)
        yield _case("concatenate", label, inputs, shape, text, {"dimension": f"{axis} : i64"})


def iota(rng: Rng, full: bool) -> Iterator[Case]:
    """Element types too narrow for the indices among them."""
    for text in ("f32", "f64", "bf16", "f16", "f8E4M3FN", "i2", "i4", "i8", "ui8", "i32", "ui64", "complex<f32>"):
        for shape in ((0,), (1,), (300,), (3, 2), (2, 0), (2, 3, 4)):
            axis = int(rng.integers(0, len(shape)))
            label = f"{text}-{'x'.join(map(str, shape))}"
            yield _case("iota", label, [], shape, text, {"iota_dimension": f"{axis} : i64"})


def get_dimension_size(rng: Rng, full: bool) -> Iterator[Case]:
    """Of each dimension."""
    x = np.zeros((3, 0, 5), np.float32)
    for axis in range(3):
        yield _case("get_dimension_size", str(axis), [x], (), "i32", {"dimension": f"{axis} : i64"})


def dynamic(rng: Rng, full: bool) -> Iterator[Case]:
    """The forms whose sizes are operands, declared with static result types."""
    for label, text, x in _draws(rng, False):
        rank = x.ndim
        shape = (*x.shape, 2)
        sizes = np.array(shape, np.int64)
        places = {"broadcast_dimensions": ints(range(rank))}
        yield _case("dynamic_broadcast_in_dim", label, [x, sizes], shape, text, places)
        yield _case("dynamic_reshape", label, [x, np.array((1, x.size), np.int32)], (1, x.size), text, {})
        low, high, gaps = (np.array(rng.integers(0, 3, rank), np.int64) for _ in range(3))
        amounts = np.stack([low, high, gaps]).T.tolist()
        padded = [n + max(n - 1, 0) * g + l + h for n, (l, h, g) in zip(x.shape, amounts, strict=True)]
        yield _case("dynamic_pad", label, [x, sample(rng, text, ()), low, high, gaps], padded, text, {})
    for text in ("f32", "i4", "ui64"):
        sizes = np.array([2, 3], np.int32)
        yield _case("dynamic_iota", text, [sizes], (2, 3), text, {"iota_dimension": "1 : i64"})
