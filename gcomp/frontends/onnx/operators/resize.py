"""Resize and Upsample: separable interpolation, one axis after the other.

For each axis the positions and weights of the input elements that an output element is made of are computed here; the
IR holds a repetition, a strided slice or a gather where each output is one input, and a weighted sum otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.dtypes import is_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.model.values import limits
from gcomp.frontends.onnx.operators.interpolation import NEAREST, Interpolation, Taps
from gcomp.frontends.onnx.operators.resize_symbolic import Region, interpolate
from gcomp.frontends.onnx.operators.resize_targets import Scale, by_scales, data_dependent_scales, to_sizes
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.gathering import take
from gcomp.ir.types import dtype_text, element_of, shape_of

Array: TypeAlias = np.ndarray[Any, Any]
_MAX_TAPS = 4


_MODES = ("nearest", "linear", "cubic")
_TRANSFORMS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip

_TF_HALF_PIXEL = "tf_half_pixel_for_nn"
"""Opset 13 took it away again."""


@imports("Upsample", since=7)
def upsample_attributes(ctx: NodeContext) -> Results:
    """Upsample-7: scales are an attribute."""
    return [resize_by_scales(ctx, _plain(ctx), ctx.numbers("scales") or [], range(ctx.rank()))]


@imports("Upsample", since=9)
@imports("Resize", since=10)
def resize_scales(ctx: NodeContext) -> Results:
    """Upsample-9, Resize-10: scales are an input."""
    return [_resize(ctx, _plain(ctx), _scales(ctx, 1), None, None, range(ctx.rank()))]


def _plain(ctx: NodeContext) -> Interpolation:
    mode = ctx.string("mode", "nearest")
    if mode not in _MODES:
        ctx.invalid(f"the mode is {mode!r}", f"it must be one of {', '.join(_MODES)}")
    return plain_interpolation(mode)


def plain_interpolation(mode: str) -> Interpolation:
    """How Upsample interpolates."""
    return Interpolation(mode, "asymmetric", "floor", -0.75, False, False)


@imports("Resize", since=11)
def resize(ctx: NodeContext) -> Results:
    """Resize-11: by scales or to sizes, with a choice of coordinates; from opset 18 on for some axes only."""
    mode, nearest = ctx.string("mode", "nearest"), ctx.string("nearest_mode", "round_prefer_floor")
    transform = ctx.string("coordinate_transformation_mode", "half_pixel")
    transforms = _TRANSFORMS if ctx.opset >= 13 else (*_TRANSFORMS, _TF_HALF_PIXEL)
    for name, value, known in (("mode", mode, _MODES), ("nearest_mode", nearest, tuple(NEAREST)),
                               ("coordinate_transformation_mode", transform, transforms)):  # fmt: skip
        if value not in known:
            ctx.invalid(f"{name} is {value!r}", f"it must be one of {', '.join(known)}")
    how = Interpolation(
        mode, transform, nearest, ctx.number("cubic_coeff_a", -0.75), ctx.flag("antialias"), ctx.flag("exclude_outside")
    )
    axes = [ctx.axis(a, ctx.rank()) for a in ctx.integers("axes") or range(ctx.rank())]
    roi = _region(ctx, axes) if transform == "tf_crop_and_resize" else None
    scales = _scales(ctx, 2)
    sizes = operand_sizes(ctx, 3, "sizes") if ctx.has(3) and not scales else None
    if not scales and not sizes:
        ctx.invalid("it has neither scales nor sizes", "one of them is required")
    return [_resize(ctx, how, scales or None, sizes, roi, axes)]


def _floats(ctx: NodeContext, index: int, role: str) -> list[float]:
    return [float(v) for v in ctx.constant(index, role)] if _is_given(ctx, index, role) else []


def _region(ctx: NodeContext, axes: Sequence[int]) -> list[Region] | None:
    """The part of each axis that is resized: the operand holds all starts, then all ends."""
    b, count = ctx.b, len(axes)
    if not _is_given(ctx, 1, "roi"):
        return None
    if ctx.known_value(1) is not None:
        numbers: Sequence[float | SSAValue] = _floats(ctx, 1, "roi")
    else:
        roi, length = b.convert(ctx[1], "f64"), ctx.static(ctx.shape(1)[0], "number of ends of its roi")
        numbers = [b.reshape(b.slice_axis(roi, 0, i, i + 1), ()) for i in range(length)]
    if len(numbers) != 2 * count:
        ctx.invalid(f"its roi has {len(numbers)} numbers", f"{2 * count} are expected")
    return list(zip(numbers[:count], numbers[count:], strict=True))


def _scales(ctx: NodeContext, index: int) -> list[Scale]:
    if _is_given(ctx, index, "scales") and ctx.known_value(index) is None:
        return data_dependent_scales(ctx, index)
    return _positive(ctx, _floats(ctx, index, "scales"))


def _is_given(ctx: NodeContext, index: int, role: str) -> bool:
    if ctx.has(index) and ctx.rank(index) != 1:
        ctx.invalid(f"its {role} have rank {ctx.rank(index)}", "a list is expected")
    return ctx.has(index) and ctx.shape(index) != (0,)


def _positive(ctx: NodeContext, scales: Sequence[float]) -> list[Scale]:
    if any(not (math.isfinite(s) and s > 0) for s in scales):
        ctx.invalid(f"its scales are {[*scales]}", "they must be positive and finite")
    return [Scale.of(s) for s in scales]


def resize_by_scales(ctx: NodeContext, how: Interpolation, scales: Sequence[float], axes: Sequence[int]) -> SSAValue:
    """The input resized along `axes` by scales."""
    return _resize(ctx, how, _positive(ctx, scales), None, None, axes)


def _resize(ctx: NodeContext, how: Interpolation, scales: Sequence[Scale] | None, sizes: Sequence[Size] | None,
             roi: Sequence[Region] | None, axes: Sequence[int]) -> SSAValue:  # fmt: skip
    """The input resized along `axes`, by scales or to sizes."""
    x, text = ctx[0], ctx.element()
    exact = how.mode == "nearest" and how.transform != "tf_crop_and_resize"
    wide = text if exact or text in ("f32", "f64") else ("f32" if is_float(text) else "f64")
    x = ctx.b.convert(x, wide)
    if len(scales or sizes or ()) != len(axes):
        ctx.invalid(f"it has {len(scales or sizes or ())} scales or sizes", f"{len(axes)} are expected")
    shape = [ctx.shape()[a] for a in axes]
    if scales is not None:
        factors, targets = scales, by_scales(ctx, shape, scales)
    else:
        factors, targets = to_sizes(ctx, shape, sizes or ())
    if any(isinstance(target, int) and target > _LARGEST for target in targets):
        ctx.unsupported(f"a dim becomes {max(t for t in targets if isinstance(t, int))} long; the limit is {_LARGEST}")
    for i, (axis, factor, target) in enumerate(zip(axes, factors, targets, strict=True)):
        region: Region = (0.0, 1.0) if not roi else roi[i]
        same = shape_of(x)[axis] == target and region == (0.0, 1.0)
        if same and factor.number is not None and math.isclose(factor.number, 1.0):
            continue
        x = _along(ctx, how, x, axis, factor, target, region)
    return _narrow(ctx, x, text)


_LARGEST = 1 << 20
"""Each position of an axis has a row in tables made here; sizes come from the model, and may be anything."""


def _along(
    ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, scale: Scale, target: Size,
    roi: Region,
) -> SSAValue:  # fmt: skip
    """`x` resized along one axis."""
    b, size, factor = ctx.b, shape_of(x)[axis], scale.number
    start, end = roi
    if (isinstance(size, Dim) or isinstance(target, Dim) or factor is None
            or isinstance(start, SSAValue) or isinstance(end, SSAValue)):  # fmt: skip
        if factor is not None and _repeats(how, factor):
            return _repeat(ctx, x, axis, int(factor))
        return interpolate(ctx, how, x, axis, scale, target, roi)
    if not target or not size:
        return b.full([target if i == axis else s for i, s in enumerate(shape_of(x))], 0, element_of(x))
    taps = how.taps(size, target, factor, (start, end))
    if bool(((taps.weights == 0) | (taps.weights == 1)).all()):
        chosen = np.take_along_axis(taps.positions, taps.weights.argmax(axis=1)[:, None], axis=1)[:, 0]
        result = _pick(ctx, x, axis, chosen)
    else:
        result = _weight(ctx, x, axis, taps)
    if taps.outside is None or not bool(taps.outside.any()):
        return result
    mask = b.broadcast(b.constant(taps.outside), shape_of(result), (axis,))
    return b.select(mask, ctx.b.scalar_like(x, ctx.number("extrapolation_value")), result)


def _repeats(how: Interpolation, factor: float) -> bool:
    """Whether an axis of any size is resized by repeating each element: positions have the period of the factor."""
    if how.mode != "nearest" or factor != int(factor) or how.transform in ("align_corners", "tf_crop_and_resize"):
        return False
    times, size = int(factor), 8
    taps = how.taps(size, size * times, factor, (0.0, 1.0))
    chosen = np.take_along_axis(taps.positions, taps.weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    return bool((chosen == np.arange(size * times) // times).all())


def _pick(ctx: NodeContext, x: SSAValue, axis: int, positions: Array) -> SSAValue:
    """The elements at `positions`, without a gather where they repeat or step evenly."""
    size, out = cast(int, shape_of(x)[axis]), len(positions)
    if out % size == 0 and bool((positions == np.arange(out) // (out // size)).all()):
        return _repeat(ctx, x, axis, out // size)
    step = int(positions[1] - positions[0]) if out > 1 else 1
    if step > 0 and bool((positions == positions[0] + step * np.arange(out)).all()):
        return ctx.b.slice_axis(x, axis, int(positions[0]), int(positions[-1]) + 1, step)
    return take(ctx.b, x, ctx.b.constant(positions, "i64"), axis)


def _repeat(ctx: NodeContext, x: SSAValue, axis: int, times: int) -> SSAValue:
    shape = shape_of(x)
    spread = (*shape[: axis + 1], times, *shape[axis + 1 :])
    wide = ctx.b.broadcast(x, spread, [i if i <= axis else i + 1 for i in range(len(shape))])
    return ctx.b.reshape(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


def _weight(ctx: NodeContext, x: SSAValue, axis: int, taps: Taps) -> SSAValue:
    b, text = ctx.b, dtype_text(x.type)
    out, count = taps.weights.shape
    if count > _MAX_TAPS:
        size, rank = cast(int, shape_of(x)[axis]), len(shape_of(x))
        matrix = np.zeros((out, size))
        rows = cast(Array, np.arange(out)).reshape(-1, 1)
        np.add.at(matrix, (rows, taps.positions), taps.weights)
        product = b.dot(x, b.constant(matrix, text), DotDimensions((), (), (axis,), (1,)))
        return b.transpose(product, [*range(axis), rank - 1, *range(axis, rank - 1)])
    total: SSAValue | None = None
    for k in range(count):
        part = _pick(ctx, x, axis, taps.positions[:, k])
        weights = b.broadcast(b.constant(taps.weights[:, k], text), shape_of(part), (axis,))
        part = b.multiply(part, weights)
        total = part if total is None else b.add(total, part)
    return cast(SSAValue, total)


def _narrow(ctx: NodeContext, x: SSAValue, text: str) -> SSAValue:
    """Back in the input's element type; integers round to even and saturate."""
    b = ctx.b
    if is_float(text) or dtype_text(x.type) == text:
        return b.convert(x, text)
    low, high = (b.scalar_like(x, v) for v in limits(text))
    return b.convert(b.emit(hlo.ClampOp, low, b.emit(hlo.RoundNearestEvenOp, x), high), text)
