"""Layer, RMS and batch normalization, written with primitives, become composites, or the op that says it.

The scale and bias that follow are taken in where they vary along the normalized dimensions alone. The composites
compute in f32 or wider and subtract the mean before they square: E2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.analysis.spreads import Read, factors, same
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, match_composite
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, rank_of, static_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.composing import Raising, narrow_composite
from gcomp.passes.rewriting import apply_rewrites, constant_value

Axes = frozenset[int]


def inverse_root(read: Read) -> tuple[Read, float] | None:
    """Of `1 / sqrt(v + epsilon)`, in any spelling: v and epsilon."""
    radicand = read.operand(hlo.RsqrtOp)
    if radicand is None:
        sides = read.operands(hlo.DivideOp)
        radicand = sides[1].operand(hlo.SqrtOp) if sides is not None and sides[0].number() == 1 else None
    if radicand is None:
        return None
    return next(((v, number) for v, e in radicand.orders(hlo.AddOp) if (number := e.number()) is not None), None)


def quotient(op: hlo.MultiplyOp | hlo.DivideOp) -> Iterator[tuple[Read, Read, float, list[Read]]]:
    """The ways to read an op as `c / sqrt(v + epsilon)`: c, v, epsilon, and the other factors."""
    whole = Read.of(op.results[0])
    if isinstance(op, hlo.DivideOp):
        top, bottom = Read.of(op.lhs), Read.of(op.rhs)
        root = bottom.operand(hlo.SqrtOp)
        for v, e in root.orders(hlo.AddOp) if root is not None else ():
            if (epsilon := e.number()) is not None:
                yield top, v, epsilon, []
        return
    parts = factors(whole)
    for i, part in enumerate(parts):
        if (found := inverse_root(part)) is None:
            continue
        rest = [*parts[:i], *parts[i + 1 :]]
        for j, c in enumerate(rest):
            yield c, *found, [*rest[:j], *rest[j + 1 :]]


def square(read: Read) -> Read | None:
    """What is squared."""
    for a, b in read.orders(hlo.MultiplyOp):
        return a if same(a, b) else None
    power = read.operands(hlo.PowerOp)
    return power[0] if power is not None and power[1].number() == 2 else None


def variance(read: Read, x: Read, centered: Read, axes: Axes) -> bool:
    """Whether a value is the variance of x: the mean square of `centered`, or the mean square less the squared mean."""
    found = read.mean()
    if found is not None:
        inner = square(found[0])
        return found[1] == axes and inner is not None and same(inner, centered)
    for zero, rest in read.orders(hlo.MaximumOp):
        if zero.number() == 0:
            return variance(rest, x, centered, axes)
    sides = read.operands(hlo.SubtractOp)
    if sides is None:
        return False
    squares, mean = sides[0].mean(), square(sides[1])
    inner = None if squares is None else square(squares[0])
    average = None if mean is None else mean.mean()
    if squares is None or inner is None or average is None:
        return False
    return squares[1] == axes == average[1] and same(inner, x) and same(average[0], x)


def trailing(axes: Axes, rank: int) -> int | None:
    """The first of the axes, if they are the last dimensions."""
    first = min(axes, default=rank)
    return first if axes and axes == frozenset(range(first, rank)) else None


def vector(read: Read, axis: int, b: Builder) -> SSAValue | None:
    """A value that varies along the dimensions from `axis` alone, in their shape."""
    bare = read.bare()
    kept = [p for p in bare.places if p is not None]
    if any(p < axis and read.shape[p] != 1 for p in kept) or not bare.ordered:
        return None
    wanted = read.shape[axis:]
    kept = [p for p in kept if p >= axis]
    flat = b.reshape(bare.value, [read.shape[p] for p in kept])
    return b.broadcast(flat, wanted, [p - axis for p in kept])


class RaiseLayerNorm(Raising):
    """(x - mean) / sqrt(variance + epsilon), times a scale perhaps."""

    name = "raise-layer-norm"
    roots = (hlo.MultiplyOp, hlo.DivideOp)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp | hlo.DivideOp, b: Builder) -> Sequence[SSAValue] | None:
        for centered, v, epsilon, rest in quotient(op):
            sides = centered.operands(hlo.SubtractOp)
            mean = None if sides is None else sides[1].mean()
            if sides is None or mean is None or not same(mean[0], sides[0]) or len(rest) > 1:
                continue
            axis = trailing(mean[1], rank_of(op.results[0]))
            if axis is None or not sides[0].whole or not variance(v, sides[0], centered, mean[1]):
                continue
            scale = vector(rest[0], axis, b) if rest else ones(sides[0], axis, b)
            if scale is not None:
                return _first(b, "gcomp.layer_norm", [sides[0].value, scale], {"axis": axis, "epsilon": epsilon})
        return None


class RaiseRmsNorm(Raising):
    """x / sqrt(mean(x**2) + epsilon), times a scale perhaps."""

    name = "raise-rms-norm"
    roots = (hlo.MultiplyOp, hlo.DivideOp)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp | hlo.DivideOp, b: Builder) -> Sequence[SSAValue] | None:
        for x, v, epsilon, rest in quotient(op):
            mean = v.mean()
            inner = None if mean is None else square(mean[0])
            if mean is None or inner is None or not same(inner, x) or len(rest) > 1:
                continue
            axis = trailing(mean[1], rank_of(op.results[0]))
            if axis is None or not x.whole:
                continue
            scale = vector(rest[0], axis, b) if rest else ones(x, axis, b)
            if scale is not None:
                return composite(b, "gcomp.rms_norm", [x.value, scale], {"axis": axis, "epsilon": epsilon})
        return None


def ones(x: Read, axis: int, b: Builder) -> SSAValue:
    """A scale of ones, for a norm without one."""
    return b.full(x.shape[axis:], 1, element_of(x.value))


def _first(b: Builder, name: str, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> list[SSAValue]:
    return [composite(b, name, inputs, attributes)[0]]


def _plain(value: SSAValue) -> bool:
    """Whether a scale is 1."""
    array = constant_value(value)
    return array is not None and bool((array == 1).all())


class RaiseScale(Raising):
    """norm(x) * scale, of a norm without a scale."""

    name = "raise-norm-scale"
    roots = (hlo.MultiplyOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp, b: Builder) -> Sequence[SSAValue] | None:
        for norm, scale in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            found = match_composite(b.program, norm, "gcomp.layer_norm", "gcomp.rms_norm")
            if found is None or not _plain(found[0].operands[1]) or len(found[0].operands) > 2:
                continue
            composite, attributes = found
            if norm is not composite.results[0] or not norm.has_one_use():
                continue
            taken = vector(Read.of(scale), attributes["axis"], b)
            if taken is not None:
                return _first(b, composite.composite_name, [composite.operands[0], taken], attributes)
        return None


class RaiseBias(Raising):
    """layer_norm(x, scale) + bias."""

    name = "raise-norm-bias"
    roots = (hlo.AddOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        for norm, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            found = match_composite(b.program, norm, "gcomp.layer_norm")
            if found is None or len(found[0].operands) > 2 or norm is not found[0].results[0] or not norm.has_one_use():
                continue
            composite, attributes = found
            taken = vector(Read.of(bias), attributes["axis"], b)
            if taken is not None:
                return _first(b, composite.composite_name, [*composite.operands, taken], attributes)
        return None


class RaiseNarrowNorm(Raising):
    """A norm of x in f32 without scale, converted back to the narrow type of x: the composite does that by itself."""

    name = "raise-narrow-norm"
    roots = (hlo.ConvertOp,)
    exactness = Exactness.E0

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        if (found := narrow_composite(op, b, "gcomp.layer_norm", "gcomp.rms_norm")) is None:
            return None
        composite, source, attributes = found
        if len(composite.operands) > 2 or not _plain(composite.operands[1]):
            return None
        scale = ones(Read.of(source), attributes["axis"], b)
        return _first(b, composite.composite_name, [source, scale], attributes)


class RaiseBatchNorm(Raising):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, all of one dimension's size: batch_norm_inference."""

    name = "raise-batch-norm"
    roots = (hlo.AddOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        for product, bias in Read.of(op.result).orders(hlo.AddOp):
            for centered, scale, v, epsilon in _match_scaled(product):
                sides = centered.operands(hlo.SubtractOp)
                if sides is None or not sides[0].whole or static_shape(sides[0].value) is None:
                    continue
                x, mean = sides
                vectors = [scale, bias, mean, v]
                along = frozenset[int]().union(*(read.bare().along for read in vectors))
                if len(along) != 1 or not _is_single(epsilon, x.element):
                    continue
                (feature,) = along
                if any(read.bare().along != along for read in vectors):
                    continue
                size = [x.shape[feature]]
                flat = [b.reshape(read.bare().value, size) for read in vectors]
                return [b.emit(hlo.BatchNormInferenceOp, x.value, *flat, epsilon=epsilon, feature_index=feature)]
        return None


def _is_single(epsilon: float, element: str) -> bool:
    """Whether the op computes in the element type, and its attribute, an f32, holds the epsilon."""
    return element == "f32" or (element == "f64" and float(np.float32(epsilon)) == epsilon)


def _match_scaled(read: Read) -> Iterator[tuple[Read, Read, Read, float]]:
    """The ways to read a value as `c / sqrt(v + epsilon) * scale`: c, scale, v, epsilon."""
    op = read.bare().op(hlo.MultiplyOp)
    if not isinstance(op, hlo.MultiplyOp) or read.bare().value is not read.value:
        return
    for c, v, epsilon, rest in quotient(op):
        if len(rest) == 1:
            yield c, rest[0], v, epsilon
    for divided, scale in read.orders(hlo.MultiplyOp):
        inner = divided.bare().op(hlo.DivideOp)
        if isinstance(inner, hlo.DivideOp) and divided.bare().value is divided.value:
            for c, v, epsilon, _ in quotient(inner):
                yield c, scale, v, epsilon


@dataclass(frozen=True)
class RaiseNorms(Pass):
    """Find layer, RMS and batch normalization."""

    name: ClassVar[str] = "raise-norms"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        patterns = (RaiseLayerNorm(), RaiseRmsNorm(), RaiseNarrowNorm(), RaiseScale(), RaiseBias(), RaiseBatchNorm())
        return apply_rewrites(program, patterns, context)
