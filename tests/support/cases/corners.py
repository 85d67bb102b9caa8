"""Cases on which two plausible meanings part: ties, orders, zeros, the triangle that is not read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import dtype_of
from tests.support.cases.case import Array, Case, Rng, apply, binary_body, body, ints, tensor, type_of


def corners(rng: Rng, full: bool) -> Iterator[Case]:
    """All of them."""
    yield from _long_ties()
    yield from _ordered_updates(rng)
    yield from _unsigned_starts(rng)
    yield from _selected_ties(rng)
    yield from _sums_of_zeros()
    yield from _other_triangle()
    yield from _empty_dilated()
    yield from _starts_below(rng)


def _long_ties() -> Iterator[Case]:
    """64-bit integers next to the middle between two narrow floats: rounding to f64 first would land on it."""
    middles = [(1 << k) + (1 << (k - drop)) for k in (54, 57, 60, 62) for drop in (3, 4, 8, 9, 11)]
    numbers = [sign * (m + step) for m in middles for step in (-1, 0, 1) for sign in (1, -1)]
    for source in ("i64", "ui64"):
        x = np.array([n for n in numbers if n > 0 or source == "i64"], dtype_of(source))
        for target in ("f32", "bf16", "f64"):
            code = apply("stablehlo.convert", [x], [tensor(x.shape, target)])
            yield Case("stablehlo.convert", f"{source}-{target}-ties", code, (x,), "values")


def _ordered_updates(rng: Rng) -> Iterator[Case]:
    """Scatters that hit elements several times, with bodies that tell the order."""
    scalar = tensor((), "i32")
    lines = ["%c = stablehlo.constant dense<3> : tensor<i32>", "%m = stablehlo.multiply %x0, %c : tensor<i32>",
             "%y = stablehlo.add %m, %x1 : tensor<i32>"]  # fmt: skip
    bodies = {"digits": body([scalar, scalar], lines, [("%y", scalar)]),
              "last": body([scalar, scalar], [], [("%x1", scalar)])}  # fmt: skip
    numbers = ("#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")  # fmt: skip
    attributes = {"scatter_dimension_numbers": numbers, "indices_are_sorted": "false", "unique_indices": "false"}
    for label, region in bodies.items():
        x = np.zeros((3, 2), np.int32)
        indices = np.array([1, 0, 1, 5, -1, 1, 2, 0], np.int32)[:, None]
        updates = rng.permutation(np.arange(1, 17, dtype=np.int32)).reshape(8, 2)
        inputs = (x, indices, updates)
        code = apply("stablehlo.scatter", inputs, [type_of(x)], attributes, f" ({region})")
        yield Case("stablehlo.scatter", f"ordered-{label}", code, inputs, "bits")


def _unsigned_starts(rng: Rng) -> Iterator[Case]:
    """Unsigned starts beyond the signed range of their width: far behind the end, and not before the start."""
    x, reason = np.arange(7, dtype=np.int32), "takes an index beyond the signed range for a negative one"
    for text in ("ui8", "ui32", "ui64"):
        high = np.iinfo(dtype_of(text)).max
        for start in (high, (high >> 1) + 1):
            inputs: tuple[Array, Array] = (x, np.array(start, dtype_of(text)))
            code = apply("stablehlo.dynamic_slice", inputs, [tensor((3,), "i32")], {"slice_sizes": ints([3])})
            yield Case("stablehlo.dynamic_slice", f"{text}-{start}", code, inputs, "bits", reason)
        indices = np.array([[1], [high], [(high >> 1) + 1]], dtype_of(text))
        numbers = ("#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], start_index_map = [0], "
                   "index_vector_dim = 1>")  # fmt: skip
        attributes = {"dimension_numbers": numbers, "slice_sizes": ints([2]), "indices_are_sorted": "false"}
        code = apply("stablehlo.gather", (x, indices), [tensor((3, 2), "i32")], attributes)
        yield Case("stablehlo.gather", f"{text}-behind", code, (x, indices), "bits", reason)


def _starts_below(rng: Rng) -> Iterator[Case]:
    """Starts below 0, from where a count from the end would be another place."""
    x = rng.permutation(np.arange(9, dtype=np.int32))
    for text in ("i8", "i32", "i64"):
        for start in (-1, -3):
            at = np.array(start, dtype_of(text))
            code = apply("stablehlo.dynamic_slice", (x, at), [tensor((3,), "i32")], {"slice_sizes": ints([3])})
            yield Case("stablehlo.dynamic_slice", f"below-{text}{start}", code, (x, at), "bits")
            inputs = (x, np.array([-1, -2, -3], np.int32), at)
            code = apply("stablehlo.dynamic_update_slice", inputs, [type_of(x)])
            yield Case("stablehlo.dynamic_update_slice", f"below-{text}{start}", code, inputs, "bits")


def _selected_ties(rng: Rng) -> Iterator[Case]:
    """Windows of few different numbers, with comparisons that do and do not hold for equal ones."""
    for text, kind in (("f32", "FLOAT"), ("i32", "SIGNED")):
        scalar = tensor((), text)
        for direction in ("GE", "GT", "LE"):
            x = rng.integers(0, 2, (4, 4)).astype(dtype_of(text))
            source = rng.permutation(np.arange(1, 10)).reshape(3, 3).astype(dtype_of(text))
            compare = f"%y = stablehlo.compare {direction}, %x0, %x1, {kind} : ({scalar}, {scalar}) -> tensor<i1>"
            select = body([scalar, scalar], [compare], [("%y", "tensor<i1>")])
            attributes = {"window_dimensions": ints([2, 2]), "window_strides": ints([1, 1])}
            inputs = (x, source, np.zeros((), x.dtype))
            regions = f" ({select}, {binary_body('add', text)})"
            code = apply("stablehlo.select_and_scatter", inputs, [type_of(x)], attributes, regions)
            yield Case("stablehlo.select_and_scatter", f"ties-{text}-{direction}", code, inputs, "bits")


def _sums_of_zeros() -> Iterator[Case]:
    """Products that are -0: their sum begins with +0."""
    for text in ("f32", "f64", "bf16"):
        for depth in (1, 3):
            lhs = np.full((2, depth), -0.0).astype(dtype_of(text))
            rhs = np.ones((depth, 2)).astype(dtype_of(text))
            numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
            attributes = {"dot_dimension_numbers": numbers}
            code = apply("stablehlo.dot_general", [lhs, rhs], [tensor((2, 2), text)], attributes)
            yield Case("stablehlo.dot_general", f"zeros-{text}-{depth}", code, (lhs, rhs), "bits")


def _other_triangle() -> Iterator[Case]:
    """Matrices whose triangles differ: only the named one is read. The factor is of whole numbers, and exact."""
    factor = np.array([[2.0, 0, 0], [1, 3, 0], [-1, 2, 1]])
    named = factor @ factor.T
    for text in ("f32", "f64"):
        for lower in (True, False):
            other = np.full((3, 3), 17.0)
            a = np.where(np.tri(3, dtype=np.bool_) if lower else np.tri(3, dtype=np.bool_).T, named, other)
            inputs = (a.astype(dtype_of(text)),)
            attributes = {"lower": "true" if lower else "false"}
            code = apply("stablehlo.cholesky", inputs, [tensor((3, 3), text)], attributes)
            label = f"{text}-other-triangle-{'lower' if lower else 'upper'}"
            yield Case("stablehlo.cholesky", label, code, inputs, "norm", "does not have the op")


def _empty_dilated() -> Iterator[Case]:
    """Base dilation of nothing: no gaps, and only padding in the windows."""
    for low, high in ((1, 1), (2, 0)):
        x, init = np.zeros((0, 2), np.int32), np.array(3, np.int32)
        attributes = {
            "window_dimensions": ints([2, 1]),
            "base_dilations": ints([3, 1]),
            "padding": f"dense<[[{low}, {high}], [0, 0]]> : tensor<2x2xi64>",
        }
        regions = f" ({binary_body('add', 'i32')})"
        code = apply("stablehlo.reduce_window", [x, init], [tensor((1, 2), "i32")], attributes, regions)
        yield Case("stablehlo.reduce_window", f"empty-dilated-{low}-{high}", code, (x, init), "bits")
