"""How far a backend's float result may be from the exact one, op by op: the error bounds of E2 comparisons.

A bound is called like the op (same operands, same attributes) and gives, in float64 and in the shape of the
result, the largest |computed - exact| for exact operands when the op is evaluated in its element type in any
order of summation. Integer and boolean results have bound 0. Sums and dot products of n terms err by at most
n * u * sum|terms|, u being the unit roundoff (Jeannerod and Rump, "Improved error bounds for inner products
in floating-point arithmetic", 2013). Elementary functions have the larger of the errors that glibc ("Errors
in Math Functions") and CUDA ("Mathematical Functions") publish, in ulp, plus what a composition of them
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gcomp.reference.numpy import chlo, contraction, elementwise, reduction
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType, float_format, is_complex, is_float
from gcomp.reference.numpy.indexing import scatter
from gcomp.reference.numpy.linalg import fft
from gcomp.reference.numpy.rounding import F32, F64, quiet, widen

Bound = Callable[..., Any]

# fmt: off
EXACT: frozenset[str] = frozenset(
    {
        "and", "bitcast_convert", "broadcast_in_dim", "ceil", "clamp", "compare", "complex", "concatenate",
        "conj", "constant", "constant_like", "count_leading_zeros", "dynamic_broadcast_in_dim", "dynamic_gather",
        "dynamic_iota", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "floor",
        "gather", "get_dimension_size", "imag", "iota", "is_finite", "is_inf", "is_neg_inf", "is_pos_inf",
        "maximum", "minimum", "mulhi", "negate", "next_after", "not", "or", "pad", "popcnt", "real",
        "partition_id", "real_dynamic_slice", "reduce_precision", "remainder", "replica_id", "reshape", "reshard",
        "reverse", "rng_bit_generator", "round_nearest_afz", "round_nearest_even", "select", "sharding_constraint",
        "sharding_group", "shift_left", "shift_right_arithmetic", "shift_right_logical", "slice", "sort", "top_k",
        "transpose", "uniform_quantize", "xor",
    }
)
# fmt: on
"""Ops whose result is one value that every conforming backend gives, to the bit."""

# fmt: off
UNBOUNDED: frozenset[str] = frozenset(
    {
        "batch_norm_grad", "batch_norm_training", "cholesky", "map", "polygamma", "rng", "triangular_solve",
        "uniform_dequantize",
    }
)
# fmt: on
"""Ops without an elementwise bound: E2 compares their error with the original's only."""

ULPS: dict[str, float] = {
    # Correctly rounded in IEEE 754.
    "add": 0.5,
    "subtract": 0.5,
    "multiply": 0.5,
    "divide": 0.5,
    "sqrt": 0.5,
    "sign": 0.5,
    "square": 0.5,
    # Published.
    "acos": 2,
    "acosh": 4,
    "asin": 2,
    "asinh": 3,
    "atan": 2,
    "atan2": 3,
    "atanh": 3,
    "cbrt": 4,
    "cosh": 2,
    "cosine": 2,
    "erf": 2,
    "erf_inv": 3,
    "erfc": 5,
    "exponential": 2,
    "exponential_minus_one": 2,
    "log": 2,
    "log_plus_one": 2,
    "power": 9,
    "rsqrt": 2,
    "sine": 2,
    "sinh": 3,
    "tan": 4,
    "tanh": 3,
    # Compositions and series.
    "bessel_i1e": 16,
    "logistic": 4,
    "zeta": 16,
}
"""The error of real elementwise ops in units in the last place of the result."""

# The least accurate type in which a conforming backend accumulates dot products and convolutions.
_ACCUMULATOR = F32


def gamma(n: int, dtype: DType) -> float:
    """n u / (1 - n u), the relative error of n successive roundings; infinite once n u reaches 1."""
    product = n * float_format(dtype).unit_roundoff
    return product / (1 - product) if product < 1 else float("inf")


def ulp(values: Array, dtype: DType) -> Array:
    """The distance between neighbours of `dtype` at each float64 value, the subnormal one near zero."""
    form = float_format(dtype)
    magnitude = np.abs(values)
    exponent = np.frexp(np.where(np.isfinite(magnitude) & (magnitude > 0), magnitude, 1.0))[1]
    return np.maximum(np.where(magnitude > 0, np.ldexp(form.epsilon, exponent - 1), 0.0), form.smallest)


def _is_inexact(dtype: DType) -> bool:
    return is_float(dtype) or is_complex(dtype)


def _modulus(x: Array) -> Array:
    return np.asarray(np.abs(widen(x)))


def _elementwise(name: str, op: Bound) -> Bound:
    @quiet
    def bound(*operands: Array, **attributes: Any) -> Array:
        dtype = operands[0].dtype
        if not _is_inexact(dtype):
            return np.zeros(np.broadcast_shapes(*(x.shape for x in operands)))
        exact = np.abs(op(*map(widen, operands), **attributes))
        # A complex function's parts may cancel: the bound is relative to the modulus.
        factor = 4.0 if is_complex(dtype) else 1.0
        return factor * ULPS[name] * ulp(exact, dtype)

    return bound


@quiet
def _abs(operand: Array) -> Array:
    if not is_complex(operand.dtype):
        return np.zeros(operand.shape)
    return 2 * ulp(_modulus(operand), operand.dtype)


@quiet
def _digamma_terms(operand: Array) -> Array:
    wide = widen(operand)
    return np.abs(chlo.digamma(wide)) + np.abs(np.log(np.abs(wide))) + np.abs(1 / wide)


@quiet
def _lgamma_terms(operand: Array) -> Array:
    wide = widen(operand)
    return np.abs(chlo.lgamma(wide)) + np.minimum(np.abs(wide), 4.0)


TERMS: Mapping[str, Callable[[Array], Array]] = {"digamma": _digamma_terms, "lgamma": _lgamma_terms}
"""The size, as float64, of the terms of functions' series, which cancel near the functions' zeros: errors are relative
to these."""


def _relative_to_terms(name: str, ulps: float) -> Bound:
    def bound(operand: Array) -> Array:
        return ulps * ulp(TERMS[name](operand), operand.dtype)

    return bound


@quiet
def _convert(operand: Array, *, dtype: DType) -> Array:
    if not _is_inexact(dtype):
        return np.zeros(operand.shape)
    wide = _modulus(convert(operand, dtype=np.dtype(np.complex128 if is_complex(operand.dtype) else F64)))
    return ulp(wide, dtype) / 2


def _sum_of(magnitudes: Array, count: int, dtype: DType) -> Array:
    """The bound on a sum of `count` terms (initial value included) whose moduli add up to `magnitudes`."""
    return np.asarray(count * float_format(dtype).unit_roundoff * magnitudes)


def _add_all(lhs: Array, rhs: Array) -> list[Array]:
    return [np.asarray(lhs + rhs)]


@quiet
def _reduce(
    inputs: Sequence[Array],
    init_values: Sequence[Array],
    *,
    dimensions: Sequence[int],
    body: object = None,
    dtypes: Sequence[DType] | None = None,
) -> list[Array]:
    """For a body that adds; `body` itself is not looked at."""
    del body
    count = int(np.prod([inputs[0].shape[d] for d in dimensions], dtype=np.int64))
    bounds: list[Array] = []
    for i, (x, init) in enumerate(zip(inputs, init_values, strict=True)):
        dtype = dtypes[i] if dtypes is not None else init.dtype
        if not _is_inexact(dtype):
            bounds.append(np.zeros([n for d, n in enumerate(x.shape) if d not in set(dimensions)]))
            continue
        total = _modulus(x).sum(axis=tuple(dimensions)) + _modulus(init)
        bounds.append(_sum_of(np.asarray(total), count, dtype))
    return bounds


@quiet
def _reduce_window(
    inputs: Sequence[Array],
    init_values: Sequence[Array],
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    padding: Sequence[Sequence[int]] | None = None,
    body: object = None,
    dtypes: Sequence[DType] | None = None,
) -> list[Array]:
    """For a body that adds; `body` itself is not looked at."""
    del body
    count = int(np.prod(list(window_dimensions), dtype=np.int64))
    bounds: list[Array] = []
    for i, (x, init) in enumerate(zip(inputs, init_values, strict=True)):
        dtype = dtypes[i] if dtypes is not None else init.dtype
        exact = not _is_inexact(dtype)
        (total,) = reduction.reduce_window(
            [np.zeros(x.shape) if exact else _modulus(x)],
            [np.zeros(()) if exact else _modulus(init)],
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            base_dilations=base_dilations,
            window_dilations=window_dilations,
            padding=padding,
            body=_add_all,
        )
        bounds.append(total if exact else _sum_of(total, count, dtype))
    return bounds


def _contraction(op: Bound) -> Bound:
    @quiet
    def bound(lhs: Array, rhs: Array, *rest: Array, dtype: DType | None = None, **attributes: Any) -> Array:
        dtype = np.dtype(dtype) if dtype is not None else lhs.dtype
        counts: Array = op(np.ones(lhs.shape), np.ones(rhs.shape), *rest, dtype=F64, **attributes)
        if not _is_inexact(dtype):
            return np.zeros(counts.shape)
        magnitudes: Array = op(_modulus(lhs), _modulus(rhs), *rest, dtype=F64, **attributes)
        form = float_format(dtype)
        accumulator = form if form.bits >= float_format(_ACCUMULATOR).bits else float_format(_ACCUMULATOR)
        # A complex product is two real ones.
        terms = (2 * counts + 2) if is_complex(dtype) else counts
        summed = np.asarray(terms * (accumulator.unit_roundoff * magnitudes + accumulator.smallest))
        return summed if accumulator is form else np.asarray(summed + ulp(magnitudes, dtype) / 2)

    return bound


@quiet
def _scatter(
    inputs: Sequence[Array], scatter_indices: Array, updates: Sequence[Array], **attributes: Any
) -> list[Array]:
    """For an update computation that adds; the given one is not looked at."""
    attributes = {**attributes, "dtypes": None, "update_computation": _add_all}
    bounds: list[Array] = []
    for x, update in zip(inputs, updates, strict=True):
        if not _is_inexact(x.dtype):
            bounds.append(np.zeros(x.shape))
            continue
        (totals,) = scatter([_modulus(x)], scatter_indices, [_modulus(update)], **attributes)
        (counts,) = scatter([np.zeros(x.shape)], scatter_indices, [np.ones(update.shape)], **attributes)
        bounds.append(counts * float_format(x.dtype).unit_roundoff * totals)
    return bounds


@quiet
def _select_and_scatter(
    operand: Array, source: Array, init_value: Array, *, dtype: DType | None = None, **attributes: Any
) -> Array:
    """For a scatter that adds; the given one is not looked at."""
    dtype = np.dtype(dtype) if dtype is not None else init_value.dtype
    if not _is_inexact(dtype):
        return np.zeros(operand.shape)
    attributes = {**attributes, "dtype": F64, "scatter": np.add}
    totals = reduction.select_and_scatter(operand, _modulus(source), _modulus(init_value), **attributes)
    counts = reduction.select_and_scatter(operand, np.ones(source.shape), np.zeros(()), **attributes)
    return np.asarray(counts * float_format(dtype).unit_roundoff * totals)


@quiet
def _batch_norm_inference(
    operand: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> Array:
    def along(vector: Array) -> Array:
        aligned = [-1 if d == feature_index else 1 for d in range(operand.ndim)]
        return widen(vector).reshape(aligned)

    spread = (np.abs(widen(operand)) + np.abs(along(mean))) / np.sqrt(along(variance) + epsilon)
    # Six roundings, none of which acts on more than these two terms.
    return 8 * ulp(np.abs(along(scale)) * spread + np.abs(along(offset)), operand.dtype)


@quiet
def _fft(operand: Array, *, fft_type: str, fft_length: Sequence[int]) -> Array:
    """Higham, "Accuracy and Stability of Numerical Algorithms", theorem 24.2, per transformed block."""
    axes = tuple(range(operand.ndim - len(fft_length), operand.ndim))
    shape = fft(operand, fft_type=fft_type, fft_length=fft_length).shape
    points = float(np.prod(list(fft_length), dtype=np.float64))
    norm = np.sqrt((_modulus(operand) ** 2).sum(axis=axes, keepdims=True) * (2.0 if fft_type == "IRFFT" else 1.0))
    grown = norm * np.sqrt(points) / (points if fft_type.startswith("I") else 1.0)
    stages = np.log2(max(points, 1.0)) + 1
    return np.broadcast_to(8 * stages * float_format(operand.dtype).epsilon * grown, shape)


def _bound_by_name(name: str) -> Bound:
    return getattr(elementwise, name, None) or getattr(chlo, name)


BOUNDS: dict[str, Bound] = {
    **{name: _elementwise(name, _bound_by_name(name)) for name in ULPS},
    "abs": _abs,
    "batch_norm_inference": _batch_norm_inference,
    "convert": _convert,
    "convolution": _contraction(contraction.convolution),
    "digamma": _relative_to_terms("digamma", 16),
    "dot_general": _contraction(contraction.dot_general),
    "dynamic_conv": _contraction(contraction.dynamic_conv),
    "fft": _fft,
    "lgamma": _relative_to_terms("lgamma", 8),
    "ragged_dot": _contraction(contraction.ragged_dot),
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
}
"""Op name -> its bound. Ops of `EXACT` have bound 0, those of `UNBOUNDED` none."""
