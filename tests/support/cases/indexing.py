"""gather, scatter and dynamic slices, with indices far out of bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import dtype_of
from tests.support.cases.case import Array, Case, Rng, apply, binary_body, ints, tensor, type_of
from tests.support.cases.values import sample

_INDEX_TYPES = ("i32", "i64", "ui8", "i8", "ui64")


def _indices(rng: Rng, text: str, shape: tuple[int, ...], high: int) -> Array:
    values = rng.integers(0 if text[0] == "u" else -3, high + 3, shape)
    wild = rng.random(shape) < 0.1
    info = np.iinfo(dtype_of(text))
    # Beyond the signed range of its width, the C++ interpreter takes an unsigned index for a negative one.
    high_end = info.max if text[0] == "i" else info.max >> 1
    extremes = np.where(rng.random(shape) < 0.5, info.min, high_end).astype(dtype_of(text))
    return np.where(wild, extremes, values.astype(dtype_of(text)))


def dynamic_slice(rng: Rng, full: bool) -> Iterator[Case]:
    """Starts below 0 and beyond the end; empty and whole slices."""
    for i in range(100 if full else 24):
        text, index = ("f32", "i4", "bf16")[i % 3], _INDEX_TYPES[i % 5]
        shape = tuple(int(n) for n in rng.integers(0, 6, rng.integers(0, 4)))
        x = sample(rng, text, shape)
        sizes = tuple(int(rng.integers(0, n + 1)) for n in shape)
        starts = [_indices(rng, index, (), 5) for _ in shape]
        inputs = (x, *starts)
        code = apply("stablehlo.dynamic_slice", inputs, [tensor(sizes, text)], {"slice_sizes": ints(sizes)})
        yield Case("stablehlo.dynamic_slice", f"{i}-{text}", code, inputs, "bits")
        update = sample(rng, text, sizes)
        inputs = (x, update, *starts)
        code = apply("stablehlo.dynamic_update_slice", inputs, [type_of(x)])
        yield Case("stablehlo.dynamic_update_slice", f"{i}-{text}", code, inputs, "bits")


class _Numbers:
    """Random dimension numbers of a gather; a scatter's are the same under other names."""

    def __init__(self, rng: Rng) -> None:
        self.operand = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        rank = len(self.operand)
        kinds = rng.choice(["window", "collapsed", "batch"], size=rank, p=[0.5, 0.3, 0.2])
        self.batching = [d for d in range(rank) if kinds[d] == "batch"][:2]
        self.collapsed = [d for d in range(rank) if kinds[d] == "collapsed"]
        self.window = [d for d in range(rank) if d not in {*self.batching, *self.collapsed}]
        indexed = [d for d in range(rank) if d not in self.batching and rng.random() < 0.7]
        self.index_map = [int(d) for d in rng.permutation(indexed)]
        plain = [int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 4, rng.integers(0, 3))]
        batch = [*plain, *(self.operand[d] for d in self.batching)]
        order = [int(d) for d in rng.permutation(len(batch))]
        shape = [batch[d] for d in order]
        places = [order.index(len(plain) + i) for i in range(len(self.batching))]
        self.index_vector_dim = int(rng.integers(0, len(shape) + 1))
        if len(self.index_map) == 1 and rng.random() < 0.5:
            self.index_vector_dim = len(shape)
            self.indices = tuple(shape)
        else:
            at = self.index_vector_dim
            self.indices = (*shape[:at], len(self.index_map), *shape[at:])
        after = self.index_vector_dim < len(self.indices)
        self.index_batching = [p + (after and p >= self.index_vector_dim) for p in places]
        self.sizes = [int(rng.integers(1, n + 1)) if d in self.window else 1 for d, n in enumerate(self.operand)]
        total = len(shape) + len(self.window)
        self.offsets = sorted(int(d) for d in rng.permutation(total)[: len(self.window)])
        inside, rest = iter(self.sizes[d] for d in self.window), iter(shape)
        self.result = tuple(next(inside) if d in self.offsets else next(rest) for d in range(total))


def gather(rng: Rng, full: bool) -> Iterator[Case]:
    """All dimension numbers at random, batching dimensions included."""
    for i in range(300 if full else 60):
        n, text, index = _Numbers(rng), ("f32", "i4", "bf16")[i % 3], _INDEX_TYPES[i % 5]
        x, indices = sample(rng, text, n.operand), _indices(rng, index, n.indices, 4)
        numbers = (
            f"#stablehlo.gather<offset_dims = {n.offsets}, collapsed_slice_dims = {n.collapsed}, "
            f"operand_batching_dims = {n.batching}, start_indices_batching_dims = {n.index_batching}, "
            f"start_index_map = {n.index_map}, index_vector_dim = {n.index_vector_dim}>"
        )
        attributes = {"dimension_numbers": numbers, "slice_sizes": ints(n.sizes), "indices_are_sorted": "false"}
        code = apply("stablehlo.gather", [x, indices], [tensor(n.result, text)], attributes)
        yield Case("stablehlo.gather", f"{i}-{text}", code, (x, indices), "bits")
        sizes = np.array(n.sizes, np.int64)
        attributes = {"dimension_numbers": numbers, "indices_are_sorted": "false"}
        code = apply("stablehlo.dynamic_gather", [x, indices, sizes], [tensor(n.result, text)], attributes)
        if i % 6 == 0:
            yield Case("stablehlo.dynamic_gather", f"{i}-{text}", code, (x, indices, sizes), "bits")


def scatter(rng: Rng, full: bool) -> Iterator[Case]:
    """The same dimension numbers, with targets hit more than once; subtract shows the order of updates."""
    for i in range(300 if full else 60):
        n, text, index = _Numbers(rng), ("f32", "i32", "bf16")[i % 3], _INDEX_TYPES[i % 5]
        x, indices, updates = (
            sample(rng, text, n.operand),
            _indices(rng, index, n.indices, 4),
            sample(rng, text, n.result),
        )
        numbers = (
            f"#stablehlo.scatter<update_window_dims = {n.offsets}, inserted_window_dims = {n.collapsed}, "
            f"input_batching_dims = {n.batching}, scatter_indices_batching_dims = {n.index_batching}, "
            f"scatter_dims_to_operand_dims = {n.index_map}, index_vector_dim = {n.index_vector_dim}>"
        )
        attributes = {
            "scatter_dimension_numbers": numbers,
            "indices_are_sorted": "false",
            "unique_indices": "false",
        }
        op = ("add", "subtract", "maximum")[i // 3 % 3]
        regions = f" ({binary_body(op, text)})"
        inputs = (x, indices, updates)
        code = apply("stablehlo.scatter", inputs, [type_of(x)], attributes, regions)
        yield Case("stablehlo.scatter", f"{i}-{text}-{op}", code, inputs, "values")
