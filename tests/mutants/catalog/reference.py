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
SORTING, LINALG, ROUNDING = "reference.numpy.sorting", "reference.numpy.linalg", "reference.numpy.rounding"

# ---- integers ----

wrong(
    "remainder-floors", classes=(12,), about="the remainder of integers has the divisor's sign",
    edits=[(f"{INTEGERS}:_remainder", "np.fmod", "np.mod")],
)  # fmt: skip
wrong(
    "division-floors", classes=(11, 12), about="integers divide towards minus infinity",
    edits=[(f"{INTEGERS}:divide", "(a - rest) // _harmless(b)", "a // _harmless(b)")],
)  # fmt: skip
wrong(
    "division-by-zero-is-zero", classes=(11,), about="x / 0 of integers is 0, not all ones",
    edits=[(f"{INTEGERS}:divide", "np.invert(np.zeros((), a.dtype))", "np.zeros((), a.dtype)")],
)  # fmt: skip
wrong(
    "shift-by-width-keeps", classes=(14,), about="a left shift by the width takes the amount modulo the width",
    edits=[(f"{INTEGERS}:shift_left", "amount >= width", "amount > width"),
           (f"{INTEGERS}:shift_left", "np.minimum(amount, np.uint64(width - 1))", "(amount % np.uint64(width))")],
)  # fmt: skip
wrong(
    "logical-shift-fills-sign", classes=(14, 15), about="a logical right shift of signed integers repeats the sign",
    edits=[(f"{INTEGERS}:shift_right_logical", "value_bits(wrap(x, dtype))", "wrap(x, dtype)")],
)  # fmt: skip
wrong(
    "power-of-negative-exponent", classes=(14,), about="-1 to a negative exponent is 0",
    edits=[(f"{INTEGERS}:power", "(base == 1) | (base == -1) if is_signed(dtype) else base == 1", "base == 1")],
)  # fmt: skip
wrong(
    "leading-zeros-of-storage", classes=(15,), about="leading zeros of 4-bit integers are counted in a byte",
    edits=[(f"{INTEGERS}:count_leading_zeros", "width - np", "max(width, 8) - np")],
)  # fmt: skip
wrong(
    "narrow-integers-saturate", classes=(14, 15), about="integers narrower than a byte clamp where they should wrap",
    edits=[(f"{INTEGERS}:wrap", "x.astype(np.uint8) & np.uint8((1 << width) - 1)",
            "np.minimum(x.astype(np.uint8), np.uint8((1 << width) - 1))")],
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
    "sign-of-negative-zero", classes=(9,), about="the sign of -0 is +0",
    edits=[(f"{ELEMENTWISE}:_float_sign", "np.where(x == 0, x, np.sign(x))", "np.sign(x) + 0.0")],
)  # fmt: skip
wrong(
    "round-half-up", classes=(29,), about="rounding to nearest takes ties towards plus infinity",
    edits=[(f"{ELEMENTWISE}:round_nearest_afz", "np.copysign(1.0, x), 0.0)",
            "np.where((x < 0) & (x - whole == -0.5), 0.0, np.copysign(1.0, x)), 0.0)")],
)  # fmt: skip
wrong(
    "clamp-prefers-lower-bound", classes=(6, 38), about="where the bounds cross, the lower one wins",
    edits=[(f"{ELEMENTWISE}:clamp", "return minimum(maximum(operand, min), max)",
            "return maximum(minimum(operand, max), min)")],
)  # fmt: skip
wrong(
    "not-equal-is-not-of-equal-ordered", classes=(7,), about="`a >= b` is computed as not `a < b`, true under NaN",
    edits=[(f"{ELEMENTWISE}:compare", "return np.asarray(test(lhs, rhs), np.bool_)",
            'return np.asarray(~np.less(lhs, rhs) if comparison_direction == "GE" else test(lhs, rhs), np.bool_)')],
)  # fmt: skip
wrong(
    "remainder-of-floats-is-ieee", classes=(12,), about="the remainder of floats has the divisor's sign",
    edits=[(f"{ELEMENTWISE}:remainder", "in_double(np.fmod", "in_double(np.mod")],
)  # fmt: skip
wrong(
    "atan2-swapped", classes=(38,), about="the coordinates of atan2 are swapped",
    edits=[(f"{ELEMENTWISE}:atan2", "in_double(np.arctan2, lhs, rhs)", "in_double(np.arctan2, rhs, lhs)")],
)  # fmt: skip
wrong(
    "denormals-flushed", classes=(10,), about="results below the least normal number of f32 become zero",
    edits=[(f"{ROUNDING}:narrow", "return canonical_nan(np.array(wide, dtype=dtype))\n    return",
            "return canonical_nan(np.where(np.abs(wide) < 1.17549435e-38, np.copysign(0, wide), wide).astype(dtype))"
            "\n    return")],
)  # fmt: skip
wrong(
    "doubles-rounded-twice", classes=(18,), about="bfloat16 results are rounded to f32 first",
    edits=[(f"{ROUNDING}:narrow", "_to_odd_f32(np.asarray(wide, F64))", "np.asarray(wide, F64).astype(F32)")],
)  # fmt: skip

# ---- conversions ----

wrong(
    "float-to-integer-wraps", classes=(16,), about="floats beyond an integer type wrap where they should saturate",
    edits=[(f"{CONVERSION}:_float_to_integer", "np.where(whole < low, np.array(low, carrier), exact)",
            "np.where(whole < low, whole.astype(np.int64).astype(carrier), exact)")],
)  # fmt: skip
wrong(
    "float-to-bool-truncates", classes=(16, 19), about="a fraction converts to false, by way of an integer",
    edits=[(f"{CONVERSION}:convert", "(widen(operand) if", "(np.trunc(widen(operand)) if")],
)  # fmt: skip
wrong(
    "long-to-bfloat-by-double", classes=(17, 18), about="64-bit integers reach bfloat16 by way of a double",
    edits=[(f"{CONVERSION}:_to_float", "narrow(integers_to_f64_odd(values), dtype)",
            "narrow(values.astype(F64), dtype)")],
)  # fmt: skip
wrong(
    "bitcast-big-endian", classes=(38,), about="the first of several narrow elements holds the highest bits",
    edits=[(f"{CONVERSION}:bitcast_convert", "np.array(raw[..., None].view(dtype))",
            "np.array(raw[..., None].view(dtype)[..., ::-1])")],
)  # fmt: skip
wrong(
    "reduce-precision-truncates", classes=(18,), about="a reduced precision cuts where it should round to even",
    edits=[(f"{CONVERSION}:reduce_precision", "bits = bits + last + np.uint64((1 << (dropped - 1)) - 1)",
            "bits = bits + np.uint64(1 << (dropped - 1))")],
)  # fmt: skip

# ---- movement, indices, folds ----

wrong(
    "pad-negative-edge-first", classes=(23,), about="a negative edge cuts elements and leaves their gaps",
    edits=[(f"{MOVEMENT}:pad", "first = max(0, -(start // step))", "first = max(0, -(-(-start // step)) if start < 0"
            " and step == 1 else -start // step if start < 0 else 0)")],
)  # fmt: skip
wrong(
    "dynamic-slice-wraps", classes=(30,), about="a negative start counts from the end where it should clamp to 0",
    edits=[(f"{INDEXING}:_clamped", "max(int(start), 0)",
            "(max(int(start) + n, 0) if start < 0 else int(start))")],
)  # fmt: skip
wrong(
    "gather-clamps-to-last", classes=(30,), about="starts clamp to the last element, not to the last whole slice",
    edits=[(f"{INDEXING}:gather", "index.append(position)", "index.append(np.clip(position, 0, operand.shape[d] - 1))"),
           (f"{INDEXING}:gather", "0, limits[d])", "0, operand.shape[d] - 1)")],
)  # fmt: skip
wrong(
    "scatter-clamps", classes=(30, 31), about="updates out of bounds land at the edge where they should be skipped",
    edits=[(f"{INDEXING}:scatter", "valid &= (position >= 0) & (position < size)", "valid &= size > 0")],
)  # fmt: skip
wrong(
    "scatter-last-first", classes=(31,), about="updates of one element are combined in reverse order",
    edits=[(f"{REDUCTION}:turns", "for k in range(int(rank.max(initial=-1)) + 1)",
            "for k in range(int(rank.max(initial=-1)), -1, -1)")],
)  # fmt: skip
wrong(
    "unsigned-indices-negative", classes=(20, 21), about="64-bit unsigned indices are read as signed",
    edits=[(f"{INDEXING}:_start_vectors", "vectors.dtype == np.uint64", "vectors.dtype == np.int8")],
)  # fmt: skip
wrong(
    "empty-reduction-is-zero", classes=(1,), about="a reduction of nothing is 0, not the initial value",
    edits=[(f"{REDUCTION}:reduce", "np.array(np.broadcast_to(init, shape)) for init",
            "np.array(np.broadcast_to(init if count else np.zeros_like(init), shape)) for init")],
)  # fmt: skip
wrong(
    "window-padding-is-zero", classes=(1, 28), about="the padding of a windowed reduction holds 0, not the initial"
    " value",
    edits=[(f"{REDUCTION}:reduce_window", "            init,\n", "            np.zeros_like(init),\n")],
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
    "convolution-kernel-dilation-ignored", classes=(27,), about="the kernel's dilation is taken for the strides",
    edits=[(f"{CONTRACTION}:_grouped", "window_slices(offset, counts, strides, dilations)",
            "window_slices(offset, counts, strides, strides)")],
)  # fmt: skip
wrong(
    "convolution-groups-interleaved", classes=(27, 38), about="groups take every n-th channel, not a run of them",
    edits=[(f"{CONTRACTION}:_grouped", "left.reshape(n, groups, c, *image.shape[2:]).swapaxes(0, 1)",
            "np.moveaxis(left.reshape(n, c, groups, *image.shape[2:]), 2, 0)")],
)  # fmt: skip
wrong(
    "narrow-sums-in-narrow-type", classes=(15, 22), about="products of small integers are summed in 8 bits",
    edits=[(f"{CONTRACTION}:_settled", "integers.wrap(product, dtype)",
            "integers.wrap(integers.wrap(product, np.dtype(np.int8)), dtype)")],
)  # fmt: skip
wrong(
    "sort-not-stable", classes=(31,), about="of equal keys the right one is taken first",
    edits=[(f"{SORTING}:_merge_runs", "for index in (rhs, lhs)", "for index in (lhs, rhs)"),
           (f"{SORTING}:_merge_runs", "np.asarray(comparator(*arguments))", "~np.asarray(comparator(*arguments))")],
)  # fmt: skip
wrong(
    "top-k-ties-last", classes=(31,), about="of equal elements the one of the higher index comes first",
    edits=[(f"{SORTING}:top_k", 'np.argsort(~key, axis=-1, kind="stable")[..., :k]',
            'np.argsort(key, axis=-1, kind="stable")[..., ::-1][..., :k]')],
)  # fmt: skip
wrong(
    "cholesky-reads-other-triangle", classes=(25,), about="the factor is made of the triangle that was not named",
    edits=[(f"{LINALG}:cholesky", "matrix if lower else np.conj(np.swapaxes(matrix, -1, -2))",
            "np.conj(np.swapaxes(matrix, -1, -2)) if lower else matrix")],
)  # fmt: skip
wrong(
    "triangular-solve-side", classes=(25, 38), about="transposing and solving from the right do not cancel",
    edits=[(f"{LINALG}:triangular_solve", '(transpose_a in ("TRANSPOSE", "ADJOINT")) == left_side',
            'transpose_a in ("TRANSPOSE", "ADJOINT")')],
)  # fmt: skip

# ---- correct changes ----

right(
    "division-by-remainder-twice", about="the quotient of integers, with the remainder taken away after the division",
    edits=[(f"{INTEGERS}:divide", "(a - rest) // _harmless(b)", "np.subtract(a, rest) // _harmless(b)")],
)  # fmt: skip
right(
    "clamp-in-two-steps", about="clamp, with its operands in the other order",
    edits=[(f"{ELEMENTWISE}:clamp", "return minimum(maximum(operand, min), max)",
            "return minimum(max, maximum(min, operand))")],
)  # fmt: skip
right(
    "reverse-by-slices", about="a reversal as slices of step -1",
    edits=[(f"{MOVEMENT}:reverse", "np.flip(operand, tuple(dimensions))",
            "operand[tuple(builtins.slice(None, None, -1 if d in dimensions else 1) for d in range(operand.ndim))]")],
)  # fmt: skip
right(
    "convolution-offsets-backwards", about="a convolution sums its kernel's elements from the last to the first",
    edits=[(f"{CONTRACTION}:_grouped", "np.ndindex(*window) if", "reversed(list(np.ndindex(*window))) if")],
)  # fmt: skip
