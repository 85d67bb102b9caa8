"""Products of 8-bit integers that were widened and centered to 32 bits are computed in what the CPU multiplies fast.

The law is that no bit changes: E0. In 8 bits, `sum((x - a) * (w - c))` is
`sum(x * w) - a * sum(w) - c * sum(x) + n * a * c`, modulo 2**32 on both sides; sums of known weights are constants,
unsigned operands are moved by 128 and read as signed. In f32, sums of integers are exact in every order while none can
reach 2**24, which the sizes say, or the weights where they are known.

XLA:CPU runs convolutions of 32-bit integers 2 to 15 times slower than those of f32, and dots 3 to 5 times. In 8 bits,
dots of several rows are up to 1.5 times faster than in f32, dots of one row and convolutions (dilated ones, and those
of few channels) up to 4 times slower (docs/guides/benchmarks.md). So dots of several rows take 8 bits, and so does what
f32 does not hold; everything else takes f32, and stays in it if f32 is what it becomes anyway.

Processors multiply unsigned by signed bytes, and add in i32, four times as fast as f32. With `form="bytes"` products by
weights become such ones: `ui8` on the left, `i8` on the right, padded by the zero point. Grouped convolutions, which
are sums of few terms, and products of two results take f32 where it holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.analysis.quantized_values import (
    LIMITS,
    Differences,
    f32_holds,
    known_integers,
    source_integer,
    stored_integers,
)
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, with_element
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

WORD = 4
"""Bytes of a word, which are multiplied together."""


@dataclass(frozen=True)
class Centered:
    """An operand that is `convert(quantized) - zero` in i32; `zero` (or None) lies along `axes` of it."""

    quantized: SSAValue
    zero: SSAValue | None
    axes: tuple[int, ...]
    kind: str = "i8"
    """The bytes that it is to be multiplied in."""

    @staticmethod
    def of(value: SSAValue) -> Centered | None:
        """What an operand is, if it is that."""
        if (quantized := source_integer(value, "i32")) is not None:
            return Centered(quantized, None, ())
        if not (isinstance(value, OpResult) and isinstance(value.op, hlo.SubtractOp)):
            return None
        quantized, point = source_integer(value.op.lhs, "i32"), value.op.rhs
        if quantized is None:
            return None
        if isinstance(point, OpResult) and isinstance(point.op, hlo.BroadcastInDimOp):
            return Centered(quantized, point.op.operand, tuple(point.op.value("broadcast_dimensions")))
        return Centered(quantized, point, tuple(range(rank_of(point))))

    def real(self, b: Builder) -> SSAValue:
        """The operand in f32."""
        x = b.convert(self.quantized, "f32")
        if self.zero is None:
            return x
        return b.subtract(x, b.broadcast(b.convert(self.zero, "f32"), shape_of(x), self.axes))

    def differences(self, program: Program) -> Differences:
        """What the operand holds, for questions about its size."""
        return Differences(self.quantized, self.zero, program)

    def sums(self, b: Builder, moved: SSAValue, axes: Sequence[int]) -> SSAValue:
        """The sums of the form in bytes over some dims, in i32; of known quantized values they are constants."""
        values = stored_integers(self.quantized, b.program)
        if values is None:
            return b.reduce(hlo.AddOp, b.convert(moved, "i32"), axes)
        return b.constant((values - self.offset).sum(axis=tuple(axes)).astype(np.int32))

    @property
    def offset(self) -> int:
        """How far the form in the kind of bytes lies below the quantized values."""
        return {("ui8", "i8"): 128, ("i8", "ui8"): -128}.get((self._byte, self.kind), 0)

    @property
    def _byte(self) -> str:
        """The type of bytes that holds the values as they are."""
        given = dtype_text(self.quantized.type)
        if given in ("i8", "ui8"):
            return given
        return self.kind if given.startswith("u") else "i8"

    def moved(self, b: Builder) -> SSAValue:
        """The quantized values in the kind of bytes, less the offset."""
        wide = b.convert(self.quantized, self._byte)
        if not self.offset:
            return wide
        flipped = b.emit(hlo.XorOp, wide, b.full_like(wide, 128 if self._byte == "ui8" else -128))
        return b.emit(hlo.BitcastConvertOp, flipped, types=(with_element(flipped, self.kind),))

    def is_plain(self, program: Program) -> bool:
        """Whether the form in bytes needs no zero point: it has none, or one that is known to be 0."""
        if self.zero is None:
            return self.offset == 0
        points = known_integers(self.zero, program)
        return points is not None and bool((points == self.offset).all())

    def point(self, b: Builder) -> tuple[SSAValue, tuple[int, ...]]:
        """The zero point of the form in bytes, in i32, without dims of size 1, and the axes that it lies along."""
        zero = b.full((), 0, "i32") if self.zero is None else self.zero
        kept = [i for i, size in enumerate(shape_of(zero)) if size != 1]
        zero = b.reshape(zero, [shape_of(zero)[i] for i in kept])
        moved = b.subtract(zero, b.full((), self.offset, "i32")) if self.offset else zero
        return moved, tuple(self.axes[i] for i in kept)

    def fits(self, program: Program) -> bool:
        """Whether the zero point is one number of the stored values' dtype, so that tensors can be padded with it."""
        if self.zero is None:
            return True
        if dims.product(shape_of(self.zero)) != 1:
            return False
        source = self.zero
        while isinstance(source, OpResult) and isinstance(source.op, hlo.ReshapeOp):
            source = source.op.operand
        if (narrow := source_integer(source, "i32")) is not None and element_of(narrow) == element_of(self.quantized):
            return True
        points = known_integers(source, program)
        low, high = LIMITS[self.kind]
        return points is not None and low <= int(points.reshape(-1)[0]) - self.offset <= high


def _sides(op: hlo.DotGeneralOp | hlo.ConvolutionOp) -> tuple[Centered, Centered] | None:
    left, right = Centered.of(op.lhs), Centered.of(op.rhs)
    return None if left is None or right is None or dtype_text(op.result.type) != "i32" else (left, right)


def _summed_dims(op: hlo.DotGeneralOp | hlo.ConvolutionOp) -> Sequence[int]:
    """The dims of the right operand that are summed over."""
    if isinstance(op, hlo.DotGeneralOp):
        return op.dimensions.rhs_contracting_dimensions
    return [i for i in range(rank_of(op.rhs)) if i != op.dimensions.kernel_output_feature_dimension]


def _is_weight(value: SSAValue, program: Program) -> bool:
    """Whether a centered operand is of known quantized values."""
    found = Centered.of(value)
    return found is not None and stored_integers(found.quantized, program) is not None


def _is_faster_in_f32(op: hlo.DotGeneralOp | hlo.ConvolutionOp, program: Program, *, bytes: bool) -> bool:
    """Whether f32 is to be taken where it is exact: on XLA:CPU not for dots of several rows, in `bytes` not for
    products by weights."""
    if bytes:
        grouped = isinstance(op, hlo.ConvolutionOp) and op.value("feature_group_count") != 1
        return grouped or not _is_weight(op.rhs, program)
    if isinstance(op, hlo.ConvolutionOp):
        return True
    return dims.product([shape_of(op.lhs)[i] for i in op.dimensions.lhs_free(rank_of(op.lhs))]) == 1


def _in_f32(op: hlo.DotGeneralOp | hlo.ConvolutionOp, b: Builder, added: int = 0) -> SSAValue | None:
    """The product in f32, if that is exact, also when as much as `added` is added to it."""
    if (sides := _sides(op)) is None:
        return None
    left, right = sides
    summed = _summed_dims(op)
    sizes = [shape_of(op.rhs)[i] for i in summed]
    if not f32_holds(left.differences(b.program), right.differences(b.program), summed, sizes, added):
        return None
    kind, properties = with_element(op.result, "f32"), cast("dict[str, Any]", op.properties)
    return b.emit(type(op), left.real(b), right.real(b), types=(kind,), **properties)


class RealSum(Pattern):
    """A product of integers, perhaps plus known ones, that is converted to f32, never leaves f32 if that is exact."""

    name = "real-sum"
    roots = (hlo.ConvertOp,)

    def __init__(self, *, bytes: bool = False) -> None:
        self.bytes = bytes

    def _in_f32(self, op: hlo.DotGeneralOp | hlo.ConvolutionOp, b: Builder, added: int = 0) -> SSAValue | None:
        return _in_f32(op, b, added) if _is_faster_in_f32(op, b.program, bytes=self.bytes) else None

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        if dtype_text(op.result.type) != "f32" or dtype_text(op.operand.type) != "i32":
            return None
        value = op.operand
        if not (isinstance(value, OpResult) and isinstance(value.op, hlo.AddOp)):
            product = _product(value)
            total = None if product is None else self._in_f32(product, b)
            return None if total is None else [total]
        if not value.has_one_use():
            return None
        for left, bias in (value.op.operands, tuple(reversed(value.op.operands))):
            product, numbers = _product(left), known_integers(bias, b.program)
            if product is None or numbers is None or not numbers.size:
                continue
            if (total := self._in_f32(product, b, int(np.abs(numbers).max()))) is not None:
                return [b.add(total, _real(b, bias))]
        return None


def _product(value: SSAValue) -> hlo.DotGeneralOp | hlo.ConvolutionOp | None:
    """The product that makes a value which is used once."""
    if not (isinstance(value, OpResult) and value.has_one_use()):
        return None
    return value.op if isinstance(value.op, hlo.DotGeneralOp | hlo.ConvolutionOp) else None


def _real(b: Builder, value: SSAValue) -> SSAValue:
    """Integers in f32; what is repeated is converted once."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.BroadcastInDimOp)):
        return b.convert(value, "f32")
    places = tuple(value.op.value("broadcast_dimensions"))
    return b.broadcast(b.convert(value.op.operand, "f32"), shape_of(value), places)


class IntegerDot(Pattern):
    """A dot of centered operands as one of 8-bit integers, with corrections for zero points; one row in f32."""

    name = "integer-dot"
    roots = (hlo.DotGeneralOp,)

    def __init__(self, *, bytes: bool = False) -> None:
        self.bytes = bytes

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        sides, d = _sides(op), op.dimensions
        if sides is None:
            return None
        if _is_faster_in_f32(op, b.program, bytes=self.bytes) and (total := _in_f32(op, b)) is not None:
            return [b.convert(total, "i32")]
        left, right = sides
        for side, contracted in ((left, d.lhs_contracting_dimensions), (right, d.rhs_contracting_dimensions)):
            shape = () if side.zero is None else shape_of(side.zero)
            if any(axis in contracted and size != 1 for axis, size in zip(side.axes, shape, strict=True)):
                return None
        if self.bytes:
            if not _is_weight(op.rhs, b.program):
                return None
            left = replace(left, kind="ui8")
        x, w, properties = left.moved(b), right.moved(b), cast("dict[str, Any]", op.properties)
        total = b.emit(hlo.DotGeneralOp, x, w, types=(op.result.type,), **properties)
        return [_correct(op, b, total, (left, x), (right, w))]


def _correct(
    op: hlo.DotGeneralOp, b: Builder, total: SSAValue, left: tuple[Centered, SSAValue], right: tuple[Centered, SSAValue]
) -> SSAValue:
    """The dot of signed quantized values, less what their zero points contribute."""
    d, shape, program = op.dimensions, shape_of(total), b.program
    lhs, rhs = d.places(rank_of(op.lhs), rank_of(op.rhs))
    points: list[SSAValue] = []
    for (side, _), places, (opposite, other), others, contracted in (
        (left, lhs, right, rhs, d.rhs_contracting_dimensions),
        (right, rhs, left, lhs, d.lhs_contracting_dimensions),
    ):
        if side.is_plain(program):
            continue
        point, axes = side.point(b)
        kept = [others[i] for i in range(rank_of(other)) if i not in contracted]
        # The sums' dims are in the operand's order; broadcasting wants them in the result's.
        order = sorted(range(len(kept)), key=lambda i: kept[i])
        sums = b.transpose(opposite.sums(b, other, contracted), order)
        spread = b.broadcast(point, shape, [places[a] for a in axes])
        if axes or left[0].kind == "i8":
            total = b.subtract(total, b.multiply(spread, b.broadcast(sums, shape, sorted(kept))))
        else:  # of known sums this is known, and nothing of it is computed for each element
            part = b.multiply(b.broadcast(point, shape_of(sums), ()), sums)
            total = b.subtract(total, b.broadcast(part, shape, sorted(kept)))
        points.append(spread)
    if len(points) == 2:
        count = b.dim(dims.product([shape_of(op.lhs)[i] for i in d.lhs_contracting_dimensions]), "i32")
        total = b.add(total, b.multiply(b.multiply(*points), b.broadcast(count, shape, ())))
    return total


class IntegerConvolution(Pattern):
    """A convolution of a centered input and kernel as one of 8-bit integers, or of f32."""

    name = "integer-convolution"
    roots = (hlo.ConvolutionOp,)

    def __init__(self, *, bytes: bool = False) -> None:
        self.bytes = bytes

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        sides, window, d = _sides(op), op.window(), op.dimensions
        if sides is None:
            return None
        left, right = sides
        left = replace(left, kind="ui8") if self.bytes else left
        summed = [i for i in range(rank_of(op.rhs)) if i != d.kernel_output_feature_dimension]
        channels = shape_of(op.rhs)[d.kernel_input_feature_dimension]
        in_f32 = _is_faster_in_f32(op, b.program, bytes=self.bytes)
        if in_f32 and (total := _in_f32(op, b)) is not None:
            return [b.convert(total, "i32")]
        if (channels == 1 and not self.bytes) or not self._fits(op, b.program, left, right):
            return None
        x, w = left.moved(b), right.moved(b)
        point, _ = left.point(b)
        low, high = [0] * rank_of(x), [0] * rank_of(x)
        properties: dict[str, Any] = dict(op.properties)
        plain = left.is_plain(b.program), right.is_plain(b.program)
        if plain != (True, True):
            for axis, (before, after) in zip(d.input_spatial_dimensions, window["padding"], strict=True):
                low[axis], high[axis] = before, after
            properties["padding"] = [(0, 0)] * len(window["padding"])
        kernel = w
        if self.bytes and isinstance(channels, int) and channels % WORD:
            # Channels that the weights multiply by 0 fill words up.
            high[d.input_feature_dimension] = -channels % WORD
            filled = [high[d.input_feature_dimension] if i == d.kernel_input_feature_dimension else 0
                      for i in range(rank_of(w))]  # fmt: skip
            kernel = b.pad(w, b.full((), 0, "i8"), [0] * rank_of(w), filled)
        if any((*low, *high)):
            x = b.pad(x, b.convert(point, left.kind), low, high)
        total = b.emit(hlo.ConvolutionOp, x, kernel, types=(op.result.type,), **properties)
        shape, feature, sums = shape_of(total), (d.output_feature_dimension,), right.sums(b, w, summed)
        if not plain[1]:
            own, axes = right.point(b)
            count = b.dim(dims.product([shape_of(kernel)[i] for i in summed]), "i32")
            sums = b.subtract(sums, b.multiply(b.broadcast(own, shape_of(sums), range(len(axes))),
                                               b.broadcast(count, shape_of(sums), ())))  # fmt: skip
            spread = b.broadcast(own, shape, feature[: len(axes)])
            total = b.subtract(total, b.multiply(spread, _window_sums(op, b, x)))
        if plain[0]:
            return [total]
        return [b.subtract(total, b.broadcast(b.multiply(sums, point), shape, feature))]

    def _fits(self, op: hlo.ConvolutionOp, program: Program, left: Centered, right: Centered) -> bool:
        """Whether the 8-bit form can be had: it pads with the input's zero point, and takes a kernel without one, or in
        `bytes` one whose zero point is a number, or one of each feature."""
        plain = op.value("batch_group_count") == 1 and not op.dilates_input
        if self.bytes and (op.value("feature_group_count") != 1 or not _is_weight(op.rhs, program)):
            return False
        return plain and left.fits(program) and (right.is_plain(program) or (self.bytes and _is_of_features(op, right)))


def _is_of_features(op: hlo.ConvolutionOp, right: Centered) -> bool:
    """Whether the zero point of a kernel is a number, or one of each feature; its window is not turned."""
    sizes = () if right.zero is None else shape_of(right.zero)
    along = [axis for axis, size in zip(right.axes, sizes, strict=True) if size != 1] if sizes else []
    is_turned = any(op.window()["window_reversal"])
    return not is_turned and all(axis == op.dimensions.kernel_output_feature_dimension for axis in along)


def _window_sums(op: hlo.ConvolutionOp, b: Builder, x: SSAValue) -> SSAValue:
    """The sum of all that a window of an input without padding reads, in i32, one for each place of the result."""
    d, window, rank = op.dimensions, op.window(), rank_of(x)
    sums = b.reduce(hlo.AddOp, b.convert(x, "i32"), (d.input_feature_dimension,))
    places = [i - (i > d.input_feature_dimension) for i in d.input_spatial_dimensions]
    sizes, strides, dilations = [1] * (rank - 1), [1] * (rank - 1), [1] * (rank - 1)
    for k, place in enumerate(places):
        sizes[place] = cast(int, shape_of(op.rhs)[d.kernel_spatial_dimensions[k]])
        strides[place], dilations[place] = window["window_strides"][k], window["rhs_dilation"][k]
    if any(n != 1 for n in (*sizes, *strides)):
        sums = b.emit(
            hlo.ReduceWindowOp, sums, b.full((), 0, "i32"), regions=(scalar_region(hlo.AddOp, element_of(sums)),),
            window_dimensions=sizes, window_strides=strides, window_dilations=dilations,
        )  # fmt: skip
    into = {d.input_batch_dimension: d.output_batch_dimension}
    into |= dict(zip(d.input_spatial_dimensions, d.output_spatial_dimensions, strict=True))
    axes = [into[axis] for axis in range(rank) if axis != d.input_feature_dimension]
    sums = b.transpose(sums, sorted(range(rank - 1), key=lambda i: axes[i]))
    return b.broadcast(sums, shape_of(op.result), sorted(axes))


@dataclass(frozen=True)
class IntegerProducts(Pass):
    """Multiply 8-bit integers in 8 bits or in f32."""

    name: ClassVar[str] = "integer-products"
    exactness: ClassVar[Exactness] = Exactness.E0

    form: str = "xla"

    def run(self, program: Program, context: PassContext) -> bool:
        bytes = self.form == "bytes"
        changed = apply_rewrites(program, (RealSum(bytes=bytes),), context)
        products = IntegerDot(bytes=bytes), IntegerConvolution(bytes=bytes)
        return apply_rewrites(program, products, context) or changed
