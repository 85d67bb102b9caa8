"""Mistakes in what ops mean: in the functions of `gcomp/reference/numpy` and how the interpreter calls them."""

from __future__ import annotations

from functools import partial

from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong

wrong = partial(_wrong, target="reference")
right = partial(_right, target="reference")

ELEMENTWISE, INTEGERS = "reference.numpy.elementwise", "reference.numpy.integers"
REDUCTION, INDEXING, MOVEMENT = "reference.numpy.reduction", "reference.numpy.indexing", "reference.numpy.movement"
CONVERSION, CONTRACTION = "reference.numpy.conversion", "reference.numpy.contraction"
LINALG, ROUNDING = "reference.numpy.linalg", "reference.numpy.rounding"

# ---- integers ----

wrong(
    "division-floors", classes=(11, 12), about="integers divide towards minus infinity",
    edits=[(f"{INTEGERS}:divide", "(a - rest) // _harmless(b)", "a // _harmless(b)")],
)  # fmt: skip
wrong(
    "logical-shift-fills-sign", classes=(14, 15), about="a logical right shift of signed integers repeats the sign",
    edits=[(f"{INTEGERS}:shift_right_logical", "value_bits(wrap(x, dtype))", "wrap(x, dtype)")],
)  # fmt: skip

# ---- floats ----

wrong(
    "maximum-drops-nan", classes=(6,), about="the maximum of a number and NaN is the number",
    edits=[(f"{ELEMENTWISE}:_extremum", "is_nan(lhs) | is_nan(rhs)", "is_nan(lhs) & is_nan(rhs)")],
)  # fmt: skip
wrong(
    "maximum-of-zeros-keeps-right", classes=(9,), about="the maximum of -0 and +0 depends on their order",
    edits=[(f"{ELEMENTWISE}:_extremum", "if zeros.any():", "if False:")],
)  # fmt: skip
wrong(
    "round-half-up", classes=(29,), about="rounding to nearest takes ties towards plus infinity",
    edits=[(f"{ELEMENTWISE}:round_nearest_afz", "np.copysign(1.0, x), 0.0)",
            "np.where((x < 0) & (x - whole == -0.5), 0.0, np.copysign(1.0, x)), 0.0)")],
)  # fmt: skip
wrong(
    "not-equal-is-not-of-equal-ordered", classes=(7,), about="`a >= b` is computed as not `a < b`, true under NaN",
    edits=[(f"{ELEMENTWISE}:compare", "return np.asarray(test(lhs, rhs), np.bool_)",
            'return np.asarray(~np.less(lhs, rhs) if comparison_direction == "GE" else test(lhs, rhs), np.bool_)')],
)  # fmt: skip
wrong(
    "atan2-swapped", classes=(38,), about="the coordinates of atan2 are swapped",
    edits=[(f"{ELEMENTWISE}:atan2", "in_double(np.arctan2, lhs, rhs)", "in_double(np.arctan2, rhs, lhs)")],
)  # fmt: skip
wrong(
    "denormals-flushed", classes=(10,), about="results below the least normal number of f32 become zero",
    edits=[(f"{ROUNDING}:narrow", "return canonical_nan(np.array(wide, dtype=dtype))\n    wide =",
            "return canonical_nan(np.where(np.abs(wide) < 1.17549435e-38, np.copysign(0, wide), wide).astype(dtype))"
            "\n    wide =")],
)  # fmt: skip

# ---- conversions ----

wrong(
    "float-to-bool-truncates", classes=(16, 19), about="a fraction converts to false, by way of an integer",
    edits=[(f"{CONVERSION}:convert", "(widen(operand) if", "(np.trunc(widen(operand)) if")],
)  # fmt: skip
wrong(
    "long-to-bfloat-by-double", classes=(17, 18), about="64-bit integers reach bfloat16 by way of a double",
    edits=[(f"{CONVERSION}:_to_float", "narrow(integers_to_f64_odd(values), dtype)",
            "narrow(values.astype(F64), dtype)")],
)  # fmt: skip

# ---- movement, indices, folds ----

wrong(
    "pad-negative-edge-first", classes=(23,), about="a negative edge cuts elements and leaves their gaps",
    edits=[(f"{MOVEMENT}:pad", "first = max(0, -(start // step))", "first = max(0, -(-(-start // step)) if start < 0"
            " and step == 1 else -start // step if start < 0 else 0)")],
)  # fmt: skip
wrong(
    "scatter-clamps", classes=(30, 31), about="updates out of bounds land at the edge where they should be skipped",
    edits=[(f"{INDEXING}:scatter", "valid &= (position >= 0) & (position < size)", "valid &= size > 0")],
)  # fmt: skip
wrong(
    "unsigned-indices-negative", classes=(20, 21), about="64-bit unsigned indices are read as signed",
    edits=[(f"{INDEXING}:_start_vectors", "vectors.dtype == np.uint64", "vectors.dtype == np.int8")],
)  # fmt: skip
wrong(
    "window-padding-is-zero", classes=(1, 28), about="the padding of a windowed reduction holds 0, not the initial"
    " value",
    edits=[(f"{REDUCTION}:reduce_window", "pad(\n            x,\n            init,",
            "pad(\n            x,\n            np.zeros_like(init),")],
)  # fmt: skip
wrong(
    "select-and-scatter-last-tie", classes=(36,), about="of equal elements the last is selected",
    edits=[(f"{REDUCTION}:_choose", "~np.asarray(select(best, candidate))",
            "np.asarray(select(candidate, best))")],
)  # fmt: skip
wrong(
    "window-counts-round-up", classes=(28, 39), about="a last window that does not fit counts",
    edits=[(f"{REDUCTION}:window_counts", "(n - span) // stride + 1", "(n - 1) // stride + 1 - (span - 1) // stride")],
)  # fmt: skip

# ---- contractions, sorting, matrices ----

wrong(
    "convolution-groups-interleaved", classes=(27, 38), about="groups take every n-th channel, not a run of them",
    edits=[(f"{CONTRACTION}:_group", "left.reshape(n, groups, c, *image.shape[2:]).swapaxes(0, 1)",
            "np.moveaxis(left.reshape(n, c, groups, *image.shape[2:]), 2, 0)")],
)  # fmt: skip
wrong(
    "narrow-sums-in-narrow-type", classes=(15, 22), about="products of small integers are summed in 8 bits",
    edits=[(f"{CONTRACTION}:_settle", "integers.wrap(product, dtype)",
            "integers.wrap(integers.wrap(product, np.dtype(np.int8)), dtype)")],
)  # fmt: skip
wrong(
    "cholesky-reads-other-triangle", classes=(25,), about="the factor is made of the triangle that was not named",
    edits=[(f"{LINALG}:cholesky", "matrix if lower else np.conj(np.swapaxes(matrix, -1, -2))",
            "np.conj(np.swapaxes(matrix, -1, -2)) if lower else matrix")],
)  # fmt: skip

# ---- correct changes ----

right(
    "clamp-in-two-steps", about="clamp, with its operands in the other order",
    edits=[(f"{ELEMENTWISE}:clamp", "return minimum(maximum(operand, min), max)",
            "return minimum(max, maximum(min, operand))")],
)  # fmt: skip
