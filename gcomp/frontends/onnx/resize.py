"""Resize and Upsample: separable interpolation, one axis after the other.

For each axis the positions and weights of the input elements that an output element is made of are computed here; the
IR holds a repetition, a strided slice or a gather where each output is one input, and a weighted sum otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.dtypes import is_float
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.indexing import take
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.frontends.onnx.resize_symbolic import interpolated
from gcomp.frontends.onnx.values import limits
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import dtype_text, element_of, shape_of

Array: TypeAlias = np.ndarray[Any, Any]
_MAX_TAPS = 4


@dataclass(frozen=True)
class Taps:
    """For each output position: which input positions it reads, their weights, and whether it lies outside."""

    positions: Array
    weights: Array
    outside: Array | None


@dataclass(frozen=True)
class Interpolation:
    """How a Resize node interpolates."""

    mode: str
    transform: str
    nearest: str
    cubic_a: float
    antialias: bool
    exclude_outside: bool

    def taps(self, size: int, out: int, scale: float, roi: tuple[float, float]) -> Taps:
        """The taps of one axis."""
        x, outside = self._source(size, out, scale, roi)
        base = np.floor(x).astype(np.int64)
        offsets, weights = self._kernel(x - base, scale)
        positions = base[:, None] + offsets[None, :]
        if self.exclude_outside:
            weights = np.where((positions < 0) | (positions >= size), 0.0, weights)
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
        return Taps(np.clip(positions, 0, size - 1), weights, outside)

    def _source(self, size: int, out: int, scale: float, roi: tuple[float, float]) -> tuple[Array, Array | None]:
        """Where output positions lie in the input."""
        y, width = np.arange(out, dtype=np.float64), scale * size
        match self.transform:
            case "align_corners":
                return (np.zeros(out) if width == 1 else y * (size - 1) / (width - 1)), None
            case "asymmetric":
                return y / scale, None
            case "tf_half_pixel_for_nn":
                return (y + 0.5) / scale, None
            case "tf_crop_and_resize":
                span = (roi[1] - roi[0]) * (size - 1)
                x = np.full(out, span / 2) if width == 1 else y * span / (width - 1)
                x = x + roi[0] * (size - 1)
                return x, (x < 0) | (x > size - 1)
            case "pytorch_half_pixel" if width == 1:
                return np.full(out, -0.5), None
            case "half_pixel_symmetric":
                return size / 2 * (1 - out / width) + (y + 0.5) / scale - 0.5, None
            case _:
                return (y + 0.5) / scale - 0.5, None

    def _kernel(self, ratio: Array, scale: float) -> tuple[Array, Array]:
        """Offsets from the position on the left, and weights for each ratio."""
        if self.mode == "nearest":
            pick = _NEAREST[self.nearest](ratio).astype(np.float64)
            return np.array([0, 1]), np.stack([1 - pick, pick], axis=1)
        reach = 1 if self.mode == "linear" else 2
        shrink = min(scale, 1.0) if self.antialias else 1.0
        first = math.floor(-reach / shrink) + 1
        offsets = np.arange(first, 2 - first)
        distance = np.abs((offsets[None, :] - ratio[:, None]) * shrink)
        weights = np.clip(1 - distance, 0, 1) if self.mode == "linear" else self._cubic(distance)
        return offsets, weights / weights.sum(axis=1, keepdims=True) if self.antialias else weights

    def _cubic(self, x: Array) -> Array:
        a = self.cubic_a
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda r: r > 0.5,
    "round_prefer_ceil": lambda r: r >= 0.5,
    "floor": lambda r: np.zeros_like(r, bool),
    "ceil": lambda r: r > 0,
}
_MODES = ("nearest", "linear", "cubic")
_TRANSFORMS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip

_TF_HALF_PIXEL = "tf_half_pixel_for_nn"
"""Opset 13 took it away again."""


@imports("Upsample", since=7)
def upsample_attributes(ctx: NodeContext) -> Results:
    """Upsample-7: scales are an attribute."""
    return [resized(ctx, _plain(ctx), ctx.numbers("scales") or [], None, None, range(ctx.rank()))]


@imports("Upsample", since=9)
@imports("Resize", since=10)
def resize_scales(ctx: NodeContext) -> Results:
    """Upsample-9, Resize-10: scales are an input."""
    scales = _floats(ctx, 1, "scales")
    return [resized(ctx, _plain(ctx), scales, None, None, range(ctx.rank()))]


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
    for name, value, known in (("mode", mode, _MODES), ("nearest_mode", nearest, tuple(_NEAREST)),
                               ("coordinate_transformation_mode", transform, transforms)):  # fmt: skip
        if value not in known:
            ctx.invalid(f"{name} is {value!r}", f"it must be one of {', '.join(known)}")
    how = Interpolation(
        mode, transform, nearest, ctx.number("cubic_coeff_a", -0.75), ctx.flag("antialias"), ctx.flag("exclude_outside")
    )
    axes = [ctx.axis(a, ctx.rank()) for a in ctx.integers("axes") or range(ctx.rank())]
    roi = _floats(ctx, 1, "roi") if transform == "tf_crop_and_resize" else None
    scales = _floats(ctx, 2, "scales")
    sizes = ctx.sizes(3, "sizes") if ctx.has(3) and not scales else None
    if not scales and not sizes:
        ctx.invalid("it has neither scales nor sizes", "one of them is required")
    return [resized(ctx, how, scales or None, sizes, roi, axes)]


def _floats(ctx: NodeContext, index: int, role: str) -> list[float]:
    if not ctx.has(index) or 0 in ctx.shape(index):
        return []
    if ctx.rank(index) != 1:
        ctx.invalid(f"its {role} have rank {ctx.rank(index)}", "a list is expected")
    return [float(v) for v in ctx.constant(index, role)]


def resized(ctx: NodeContext, how: Interpolation, scales: Sequence[float] | None, sizes: Sequence[Size] | None,
            roi: Sequence[float] | None, axes: Sequence[int]) -> SSAValue:  # fmt: skip
    """The input resized along `axes`, by scales or to sizes."""
    x, text = ctx[0], ctx.element()
    exact = how.mode == "nearest" and how.transform != "tf_crop_and_resize"
    wide = text if exact or text in ("f32", "f64") else ("f32" if is_float(text) else "f64")
    x = ctx.b.convert(x, wide)
    if len(scales or sizes or ()) != len(axes):
        ctx.invalid(f"it has {len(scales or sizes or ())} scales or sizes", f"{len(axes)} are expected")
    if any(not (math.isfinite(s) and s > 0) for s in scales or ()):
        ctx.invalid(f"its scales are {scales}", "they must be positive and finite")
    factors, targets = _targets(ctx, scales, sizes, axes)
    if any(isinstance(target, int) and target > _LARGEST for target in targets):
        ctx.unsupported(f"a dim becomes {max(t for t in targets if isinstance(t, int))} long; the limit is {_LARGEST}")
    for i, (axis, factor, target) in enumerate(zip(axes, factors, targets, strict=True)):
        region = (0.0, 1.0) if not roi else (roi[i], roi[i + len(axes)])
        if factor is not None and math.isclose(factor, 1.0) and shape_of(x)[axis] == target and region == (0.0, 1.0):
            continue
        x = _along(ctx, how, x, axis, factor, target, region)
    return _narrowed(ctx, x, text)


_LARGEST = 1 << 20
"""Each position of an axis has a row in tables made here; sizes come from the model, and may be anything."""


def _targets(
    ctx: NodeContext, scales: Sequence[float] | None, sizes: Sequence[Size] | None, axes: Sequence[int]
) -> tuple[list[float | None], list[Size]]:
    """The scale and the size of each axis; no scale where it depends on symbolic sizes."""
    shape = [ctx.shape()[a] for a in axes]
    if scales is not None:
        return [*scales], [_scaled(ctx, s, f) for s, f in zip(shape, scales, strict=True)]
    targets = list(cast("Sequence[Size]", sizes))
    policy = ctx.string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        # A size that is the same, written otherwise, is the input's: its axis is left alone.
        targets = [n if ctx.ranges.equal(k, n) else k for k, n in zip(targets, shape, strict=True)]
        return [_factor(ctx, n, k) for k, n in zip(targets, shape, strict=True)], targets
    known = [ctx.static(s, "size to resize to") for s in targets]
    lengths = [ctx.static(s, "size to resize from") for s in shape]
    factors = [k / n for k, n in zip(known, lengths, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        ctx.invalid(f"keep_aspect_ratio_policy is {policy!r}", "it must be stretch, not_larger or not_smaller")
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [factor] * len(axes), [int(factor * n + 0.5) for n in lengths]


def _factor(ctx: NodeContext, size: Size, target: Size) -> float | None:
    """The scale between two sizes, where it is a number."""
    if size == target:
        return 1.0
    if isinstance(size, int) and isinstance(target, int):
        if size == 0:
            ctx.invalid(f"a dim of size 0 is resized to {target}", "there is nothing to interpolate")
        return target / size
    times = dims.exact_div(target, size) if isinstance(size, Dim) else None
    return float(times) if isinstance(times, int) else None


def _scaled(ctx: NodeContext, size: Size, factor: float) -> Size:
    if isinstance(size, int):
        return int(factor * size)
    if factor == int(factor) and factor >= 1:
        return size * int(factor)
    ratio = float(factor).as_integer_ratio()
    if ratio[1] > 1 << 10:
        ctx.unsupported(f"the symbolic size {size} is scaled by {factor}", fix="bind the size with dims=")
    return dims.floordiv(size * ratio[0], ratio[1])


def _along(
    ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, factor: float | None, target: Size,
    roi: tuple[float, float],
) -> SSAValue:  # fmt: skip
    """`x` resized along one axis."""
    b, size = ctx.b, shape_of(x)[axis]
    if isinstance(size, Dim) or isinstance(target, Dim) or factor is None:
        if factor is not None and _repeats(how, factor):
            return _repeated(ctx, x, axis, int(factor))
        return interpolated(ctx, how, x, axis, factor, target)
    taps = how.taps(size, target, factor, roi)
    if not target or not size:
        return b.full([target if i == axis else s for i, s in enumerate(shape_of(x))], 0, element_of(x))
    if bool(((taps.weights == 0) | (taps.weights == 1)).all()):
        chosen = np.take_along_axis(taps.positions, taps.weights.argmax(axis=1)[:, None], axis=1)[:, 0]
        result = _picked(ctx, x, axis, chosen)
    else:
        result = _weighted(ctx, x, axis, taps)
    if taps.outside is None or not bool(taps.outside.any()):
        return result
    mask = b.broadcast(b.constant(taps.outside), shape_of(result), (axis,))
    return b.select(mask, ctx.full_like(x, ctx.number("extrapolation_value")), result)


def _repeats(how: Interpolation, factor: float) -> bool:
    """Whether an axis of any size is resized by repeating each element: positions have the period of the factor."""
    if how.mode != "nearest" or factor != int(factor) or how.transform in ("align_corners", "tf_crop_and_resize"):
        return False
    times, size = int(factor), 8
    taps = how.taps(size, size * times, factor, (0.0, 1.0))
    chosen = np.take_along_axis(taps.positions, taps.weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    return bool((chosen == np.arange(size * times) // times).all())


def _picked(ctx: NodeContext, x: SSAValue, axis: int, positions: Array) -> SSAValue:
    """The elements at `positions`, without a gather where they repeat or step evenly."""
    size, out = cast(int, shape_of(x)[axis]), len(positions)
    if out % size == 0 and bool((positions == np.arange(out) // (out // size)).all()):
        return _repeated(ctx, x, axis, out // size)
    step = int(positions[1] - positions[0]) if out > 1 else 1
    if step > 0 and bool((positions == positions[0] + step * np.arange(out)).all()):
        return ctx.b.slice_axis(x, axis, int(positions[0]), int(positions[-1]) + 1, step)
    return take(ctx.b, x, ctx.b.constant(positions, "i64"), axis)


def _repeated(ctx: NodeContext, x: SSAValue, axis: int, times: int) -> SSAValue:
    shape = shape_of(x)
    spread = (*shape[: axis + 1], times, *shape[axis + 1 :])
    wide = ctx.b.broadcast(x, spread, [i if i <= axis else i + 1 for i in range(len(shape))])
    return ctx.b.reshape(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


def _weighted(ctx: NodeContext, x: SSAValue, axis: int, taps: Taps) -> SSAValue:
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
        part = _picked(ctx, x, axis, taps.positions[:, k])
        weights = b.broadcast(b.constant(taps.weights[:, k], text), shape_of(part), (axis,))
        part = b.multiply(part, weights)
        total = part if total is None else b.add(total, part)
    return cast(SSAValue, total)


def _narrowed(ctx: NodeContext, x: SSAValue, text: str) -> SSAValue:
    """Back in the input's element type; integers round to even and saturate."""
    b = ctx.b
    if is_float(text) or dtype_text(x.type) == text:
        return b.convert(x, text)
    low, high = (b.full((), v, element_of(x)) for v in limits(text))
    return b.convert(b.emit(hlo.ClampOp, low, b.emit(hlo.RoundNearestEvenOp, x), high), text)
