"""What an infinity or NaN may become where a convolution is computed in another way. E2 leaves that open.

In tiles of its results (`gcomp.ir.winograd`), all results of a tile are computed from all of what the tile reads: where
that holds a number that is not finite, or so large that sums of it overflow, any of them may be NaN. By the sum of
weights (`merge-convolutions`), where several that read one image are added, an infinity is multiplied once: infinities
of both signs, whose sum is NaN, are one infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp.dtypes import is_complex, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.ir.winograd import PAIRS, WINDOW
from gcomp.reference.table import Scope, Value
from gcomp.reference.varied import PlainRow, VariedInterpreter

Array = np.ndarray[Any, Any]

_SUMS = 64.0
"""How many times larger than an image's numbers their sums may be, at most, beside the weights."""


class Spreading(VariedInterpreter):
    """An interpreter in which convolutions give NaN wherever a tile may have read what is not finite, or too large."""

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if not isinstance(op, hlo.ConvolutionOp) or not may_be_in_tiles(op):
                return results
            image, weights, found = (cast(Array, value) for value in (*args, results[0]))
            open_ = _reached(op, _is_odd(op, image, weights))
            return [np.where(_in_layout(op, open_), np.float32(np.nan), found)] if open_.any() else results

        return run


class Merging(VariedInterpreter):
    """An interpreter in which terms of a sum that may be one convolution are some value where an infinity is read."""

    def __init__(self, program: Program, value: float, *, max_steps: int | None = None) -> None:
        super().__init__(program, max_steps=max_steps)
        self.value = value

    def varied(self, row: PlainRow) -> PlainRow:
        def run(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            if not may_be_merged(op):
                return results
            image, other, found = (cast(Array, value) for value in (*args, results[0]))
            odd = ~np.isfinite(image)
            if isinstance(op, hlo.MultiplyOp):
                odd |= ~np.isfinite(other)
            elif odd.any():
                odd = cast(Array, row(op, [odd.astype(image.dtype), np.ones_like(other)], scope)[0]) != 0
            value = complex(self.value, self.value) if found.dtype.kind == "c" else self.value
            return [np.where(odd, np.asarray(value).astype(found.dtype), found)] if odd.any() else results

        return run


def may_be_merged(op: Operation) -> bool:
    """Whether an op may be a term of a sum that is one convolution: one by itself, or a product with its image, of
    floats, beside another convolution of that image."""
    if not isinstance(op, hlo.ConvolutionOp | hlo.MultiplyOp):
        return False
    text = dtype_text(op.lhs.type)
    images = op.operands if isinstance(op, hlo.MultiplyOp) else [op.lhs]
    kinds = (hlo.ConvolutionOp,) if isinstance(op, hlo.MultiplyOp) else (hlo.ConvolutionOp, hlo.MultiplyOp)
    others = [use.operation for image in images for use in image.uses if use.operation is not op]
    return (is_float(text) or is_complex(text)) and any(isinstance(other, kinds) for other in others)


def may_be_in_tiles(op: hlo.ConvolutionOp) -> bool:
    """Whether a convolution is one of f32 by windows of 3x3, at every position and without groups."""
    window, dimensions = op.window(), op.dimensions
    return (
        {dtype_text(v.type) for v in (op.lhs, op.rhs, op.result)} == {"f32"}
        and [shape_of(op.rhs)[k] for k in dimensions.kernel_spatial_dimensions] == [WINDOW] * 2
        and op.value("feature_group_count") == op.value("batch_group_count") == 1
        and all(step == 1 for name in ("window_strides", "lhs_dilation", "rhs_dilation") for step in window[name])
    )


def _is_odd(op: hlo.ConvolutionOp, image: Array, weights: Array) -> Array:
    """Where an image [n, y, x] has a number, of any channel, that is not finite or whose sums may overflow."""
    numbers = op.dimensions
    channels, features = numbers.input_feature_dimension, numbers.kernel_output_feature_dimension
    others = tuple(k for k in range(weights.ndim) if k != features)
    with np.errstate(all="ignore"):
        factor = np.abs(weights, dtype=np.float64).sum(axis=others).max(initial=1.0) * _SUMS
        found = ~(np.abs(image, dtype=np.float64) * factor < np.finfo(np.float32).max).all(axis=channels)
    kept = [k for k in range(image.ndim) if k != channels]
    order = [kept.index(k) for k in (numbers.input_batch_dimension, *numbers.input_spatial_dimensions)]
    return found.transpose(order)


def _reached(op: hlo.ConvolutionOp, odd: Array) -> Array:
    """The positions [n, y, x] of results whose tiles, wherever they begin, may read one of those of the image."""
    before, after = max(PAIRS) - 1, max(PAIRS) + WINDOW - 2
    pairs = op.window()["padding"]
    sizes = [size + low + high - WINDOW + 1 for size, (low, high) in zip(odd.shape[1:], pairs, strict=True)]
    found = np.zeros((odd.shape[0], *sizes), np.bool_)
    for image, y, x in np.argwhere(odd):
        # The first and the last result that may share a tile with one that reads it.
        at = [slice(max(0, place + pair[0] - after), max(0, place + pair[0] + before + 1))
              for place, pair in zip((y, x), pairs, strict=True)]  # fmt: skip
        found[image, at[0], at[1]] = True
    return found


def _in_layout(op: hlo.ConvolutionOp, positions: Array) -> Array:
    """Positions [n, y, x] as the results lie, for all features."""
    numbers = op.dimensions
    places = (numbers.output_batch_dimension, *numbers.output_spatial_dimensions)
    order = [k for k, _ in sorted(enumerate(places), key=lambda pair: pair[1])]
    return np.expand_dims(positions.transpose(order), numbers.output_feature_dimension)


__all__ = ["Merging", "Spreading", "may_be_in_tiles", "may_be_merged"]
