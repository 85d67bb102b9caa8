"""Uniform quantization on plain arrays: integers with their scales and zero points beside them.

StableHLO keeps the parameters in the element type; here they are operands that broadcast against the values
(shaped with ones for per-axis quantization). Ops on quantized tensors are dequantize, op, quantize
(specification, "dequantize_op_quantize").
"""

from __future__ import annotations

import numpy as np

from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType, integer_limits
from gcomp.reference.numpy.elementwise import add, clamp, divide, multiply, round_nearest_even, subtract


def uniform_quantize(
    operand: Array,
    scale: Array,
    zero_point: Array,
    *,
    dtype: DType,
    storage_min: int | None = None,
    storage_max: int | None = None,
) -> Array:
    """round_nearest_even(clamp(operand / scale + zero_point)) in the storage type `dtype`; NaN gives 0.

    Each step is rounded to the operand's element type, as the specification spells it out.
    """
    dtype = np.dtype(dtype)
    low, high = integer_limits(dtype)
    bounds = [
        convert(np.array(bound, np.int64), dtype=operand.dtype)
        for bound in (low if storage_min is None else storage_min, high if storage_max is None else storage_max)
    ]
    shifted = add(divide(operand, scale), convert(zero_point, dtype=operand.dtype))
    return convert(round_nearest_even(clamp(bounds[0], shifted, bounds[1])), dtype=dtype)


def uniform_dequantize(operand: Array, scale: Array, zero_point: Array) -> Array:
    """(operand - zero_point) * scale in the element type of `scale`; the difference does not wrap."""
    difference = subtract(operand.astype(np.int64), zero_point.astype(np.int64))
    return multiply(convert(difference, dtype=scale.dtype), scale)
