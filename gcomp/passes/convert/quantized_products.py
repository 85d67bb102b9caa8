"""Dots and convolutions of dequantized 8-bit tensors become products of integers, scaled once.

`sum((x - a) * s * (w - c) * t)` is `s * t * sum((x - a) * (w - c))` where the scales do not vary along what is summed.
The sum of integers is exact (it is not done where 32 bits could overflow), so that three roundings are left: of the
sum, of the product of scales, and of theirs. The original rounds every term twice and then sums: E2. Scales must be
known and of a size that neither over- nor underflows.

`integer-products` then computes the 32-bit products in f32 or in 8 bits. Convolutions and dots of one row, which are
slow in 8 bits, are left as they are where f32 would not hold their sums; not with `form="bytes"`, for processors whose
products of bytes are all fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.analysis.constants import stored_array
from gcomp.analysis.quantized_values import LIMITS, Differences, f32_holds, source_integer, words_hold
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text, rank_of, shape_of, static_shape, tensor, with_element, with_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value

_LEAST_SCALE, _GREATEST_SCALE = 2.0**-60, 2.0**40
"""Between them two scales and a 32-bit integer multiply without overflow or loss of bits, in any order."""


@dataclass(frozen=True)
class Spread:
    """A tensor that repeats a smaller one, which lies along `axes` of it."""

    source: SSAValue
    axes: tuple[int, ...]

    @staticmethod
    def of(value: SSAValue) -> Spread:
        """What a broadcast repeats; any other tensor repeats itself once."""
        if isinstance(value, OpResult) and isinstance(value.op, hlo.BroadcastInDimOp):
            return Spread(value.op.operand, tuple(value.op.value("broadcast_dimensions")))
        return Spread(value, tuple(range(rank_of(value))))

    @property
    def number(self) -> Any:
        """The number that a scalar or splat constant holds; None for other values."""
        constant = self.source.op if isinstance(self.source, OpResult) else None
        if not isinstance(constant, hlo.ConstantOp) or not constant.elements_attr.is_splat:
            return None
        return constant.elements_attr.splat()

    def along(self) -> set[int]:
        """The dims along which it varies."""
        if self.number is not None:
            return set()
        return {a for a, size in zip(self.axes, shape_of(self.source), strict=True) if size != 1}

    def squeezed(self, b: Builder) -> Spread:
        """The same without dims of size 1; of one number, without any."""
        if (number := self.number) is not None:
            return Spread(b.full((), number, dtype_text(self.source.type)), ())
        shape = shape_of(self.source)
        kept = [i for i, size in enumerate(shape) if size != 1]
        return Spread(b.reshape(self.source, [shape[i] for i in kept]), tuple(self.axes[i] for i in kept))


@dataclass(frozen=True)
class Dequantized:
    """An operand that is `(convert(quantized) - zero) * scale` in f32."""

    quantized: SSAValue
    zero: Spread | None
    scale: Spread

    @staticmethod
    def of(value: SSAValue, program: Program) -> Dequantized | None:
        """What an operand is, if it is that and its scale is a known one of a moderate size."""
        if not (isinstance(value, OpResult) and isinstance(value.op, hlo.MultiplyOp)):
            return None
        scale = Spread.of(value.op.rhs)
        if dtype_text(value.type) != "f32" or not _moderate(scale.source, program):
            return None
        inner = value.op.lhs
        if (quantized := source_integer(inner, "f32")) is not None:
            return Dequantized(quantized, None, scale)
        if not (isinstance(inner, OpResult) and isinstance(inner.op, hlo.SubtractOp)):
            return None
        quantized, zero = source_integer(inner.op.lhs, "f32"), Spread.of(inner.op.rhs)
        if quantized is None or (point := source_integer(zero.source, "f32")) is None:
            return None
        return Dequantized(quantized, Spread(point, zero.axes), scale)

    def centered(self, b: Builder) -> SSAValue:
        """The quantized values in i32 less the zero point."""
        wide = b.convert(self.quantized, "i32")
        if self.zero is None:
            return wide
        return b.subtract(wide, b.broadcast(b.convert(self.zero.source, "i32"), shape_of(wide), self.zero.axes))

    def scaled_along(self) -> set[int]:
        """The dims along which the scale varies."""
        return self.scale.along()

    def varies_along(self) -> set[int]:
        """The dims along which the scale or the zero point varies."""
        return self.scale.along() | (set[int]() if self.zero is None else self.zero.along())

    def differences(self, program: Program) -> Differences:
        """What is summed, for questions about its size."""
        return Differences(self.quantized, None if self.zero is None else self.zero.source, program)


def _moderate(value: SSAValue, program: Program) -> bool:
    """Whether a scale is known, positive, and neither large nor small."""
    while isinstance(value, OpResult) and isinstance(value.op, hlo.ReshapeOp):
        value = value.op.operand
    known = stored_array(value, program)
    return known is not None and bool(np.all((known >= _LEAST_SCALE) & (known <= _GREATEST_SCALE)))


def _scale(b: Builder, total: SSAValue, scales: Sequence[tuple[Spread, Mapping[int, int]]]) -> SSAValue:
    """Sums in i32 times two scales, each with the places of its operand's dims in the result."""
    shape = shape_of(total)
    (left, at_left), (right, at_right) = ((s.squeezed(b), places) for s, places in scales)
    axes = [[places[a] for a in s.axes] for s, places in ((left, at_left), (right, at_right))]
    small = sorted({*axes[0], *axes[1]})
    sizes = [shape[a] for a in small]
    parts = [
        b.broadcast(s.source, sizes, [small.index(a) for a in at]) for s, at in zip((left, right), axes, strict=True)
    ]
    return b.multiply(b.convert(total, "f32"), b.broadcast(b.multiply(*parts), shape, small))


class QuantizedDot(Pattern):
    """A dot of dequantized operands."""

    name = "quantized-dot"
    roots = (hlo.DotGeneralOp,)
    exactness = Exactness.E2

    def __init__(self, *, bytes: bool = False) -> None:
        self.bytes = bytes

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        left, right, d = Dequantized.of(op.lhs, b.program), Dequantized.of(op.rhs, b.program), op.dimensions
        if left is None or right is None or dtype_text(op.result.type) != "f32":
            return None
        contracted = d.lhs_contracting_dimensions, d.rhs_contracting_dimensions
        if left.varies_along() & {*contracted[0]} or right.varies_along() & {*contracted[1]}:
            return None
        sizes = [shape_of(op.rhs)[i] for i in contracted[1]]
        rows = dims.product([shape_of(op.lhs)[i] for i in d.lhs_free(rank_of(op.lhs))])
        summands = left.differences(b.program), right.differences(b.program)
        is_slow = rows == 1 and not self.bytes
        if not words_hold(*summands, sizes) or (is_slow and not f32_holds(*summands, contracted[1], sizes)):
            return None
        type = with_element(op.result, "i32")
        properties = _integer_properties(op.properties)
        total = b.emit(hlo.DotGeneralOp, left.centered(b), right.centered(b), types=(type,), **properties)
        at_left, at_right = d.places(rank_of(op.lhs), rank_of(op.rhs))
        return [_scale(b, total, ((left.scale, at_left), (right.scale, at_right)))]


def _integer_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An op's properties without those that say how exact floats are to be."""
    return {name: value for name, value in properties.items() if name not in ("precision_config", "algorithm")}


class QuantizedConvolution(Pattern):
    """A convolution of a dequantized input, of one scale, and kernel, of one scale or one for each output channel."""

    name = "quantized-convolution"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def __init__(self, *, bytes: bool = False) -> None:
        self.bytes = bytes

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        left, right, d = Dequantized.of(op.lhs, b.program), Dequantized.of(op.rhs, b.program), op.dimensions
        if left is None or right is None or dtype_text(op.result.type) != "f32":
            return None
        out, kernel = d.kernel_output_feature_dimension, shape_of(op.rhs)
        if left.scaled_along() or right.scaled_along() - {out} or op.value("batch_group_count") != 1:
            return None
        summed = [i for i in range(len(kernel)) if i != out]
        summands = left.differences(b.program), right.differences(b.program)
        sizes = [kernel[i] for i in summed]
        if not (words_hold(*summands, sizes) if self.bytes else f32_holds(*summands, summed, sizes)):
            return None
        type = with_element(op.result, "i32")
        properties = _integer_properties(op.properties)
        total = b.emit(hlo.ConvolutionOp, left.centered(b), right.centered(b), types=(type,), **properties)
        scales = ((left.scale, cast("dict[int, int]", {})), (right.scale, {out: d.output_feature_dimension}))
        return [_scale(b, total, scales)]


class QuantizedMaximum(Pattern):
    """The maxima of windows over a dequantized tensor, of one scale and zero point, are those of its quantized values,
    dequantized: both grow together. Each window reads some element of the tensor."""

    name = "quantized-maximum"
    roots = (hlo.ReduceWindowOp,)

    def rewrite(self, op: hlo.ReduceWindowOp, b: Builder) -> Sequence[SSAValue] | None:
        if applied_op(op.body) is not hlo.MaximumOp or len(op.operands) != 2 or not _reads_elements(op):
            return None
        found, init = Dequantized.of(op.operands[0], b.program), constant_value(op.operands[1])
        if found is None or found.varies_along() or init is None or init != -np.inf:
            return None
        quantized = found.quantized
        kind, shape = dtype_text(quantized.type), shape_of(op.results[0])
        if kind not in ("i8", "ui8"):
            return None
        scalar = tensor((), kind)
        least = b.full((), LIMITS[kind][0], kind)
        body = b.region((scalar, scalar), lambda values: [b.maximum(*values)])
        properties: dict[str, Any] = dict(op.properties)
        pooled = b.emit(
            hlo.ReduceWindowOp, quantized, least, types=(with_shape(quantized, shape),), regions=[body], **properties
        )
        wide, scale = b.convert(pooled, "f32"), found.scale.squeezed(b).source
        if found.zero is not None:
            wide = b.subtract(wide, b.broadcast(b.convert(found.zero.squeezed(b).source, "f32"), shape, ()))
        return [b.multiply(wide, b.broadcast(scale, shape, ()))]


def _reads_elements(op: hlo.ReduceWindowOp) -> bool:
    """Whether no window lies in padding alone."""
    w = op.window()
    whole = all(low >= 0 and high >= 0 for low, high in w["padding"])
    dense = all(d == 1 for d in (*w["base_dilations"], *w["window_dilations"]))
    if 0 in (static_shape(op.operands[0]) or (0,)):
        return False
    sizes = zip(w["window_dimensions"], w["padding"], strict=True)
    return whole and dense and all(max(pair) < size for size, pair in sizes)


@dataclass(frozen=True)
class QuantizedProducts(Pass):
    """Sum products of quantized values in integers, and with `form="bytes"` compare quantized values in windows."""

    name: ClassVar[str] = "quantized-products"
    exactness: ClassVar[Exactness] = Exactness.E2

    form: str = "xla"

    def run(self, program: Program, context: PassContext) -> bool:
        bytes = self.form == "bytes"
        more = (QuantizedMaximum(),) if bytes else ()
        products = QuantizedDot(bytes=bytes), QuantizedConvolution(bytes=bytes)
        return apply_rewrites(program, (*products, *more), context)
