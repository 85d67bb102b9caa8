"""Convolutions of one input by known weights that are added are one convolution, by the sum of their weights.

Networks that are trained with several branches in each layer, to be merged afterwards (RepVGG, MobileOne), are
often exported as they were trained: a layer is a sum of convolutions by windows of 3x3 and 1x1, of the input scaled by
channel, and of biases. A smaller window has zeros around it where a larger one has points. The arithmetic on weights is
emitted as ops; `fold-constants` evaluates it. Other terms are added first: E2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.analysis.constants import is_stored, stored_along, stored_array
from gcomp.dtypes import finfo, is_complex, is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, static_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class MergeConvolutions(Pattern):
    """A sum in which convolutions of one input, or one and its scaled input, are one."""

    name = "merge-convolutions"
    roots = (hlo.AddOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.AddOp, b: Builder) -> Sequence[SSAValue] | None:
        if _is_term(op.result):
            return None  # The sum that it is a term of is looked at as a whole.
        terms = _terms(op)
        for wide in _widest(terms):
            merged = {t: kernel for t in terms if t != wide.result and (kernel := _kernel(t, wide)) is not None}
            if not merged or not _stays_finite([wide.rhs, *(k.weights for k in merged.values())], b.program):
                continue
            weights = reduce(b.add, (kernel.within(wide, b) for kernel in merged.values()), wide.rhs)
            properties: dict[str, Any] = dict(wide.properties)
            total = [b.emit(hlo.ConvolutionOp, wide.lhs, weights, types=(wide.result.type,), **properties)]
            feature = wide.dimensions.output_feature_dimension
            biases: list[SSAValue] = []
            for term in terms:  # of which one value may be several
                if term != wide.result and term not in merged:
                    bias = stored_along(term, feature)
                    (total if bias is None else biases).append(term if bias is None else bias)
            if biases:
                bias = reduce(b.add, biases)
                total.append(b.broadcast(bias, shape_of(op.result), (feature,)[: rank_of(bias)]))
            return [reduce(b.add, total)]
        return None


def _is_term(value: SSAValue) -> bool:
    """Whether a value is added to something, and used for nothing else."""
    return value.has_one_use() and value.first_use is not None and isinstance(value.first_use.operation, hlo.AddOp)


def _terms(op: hlo.AddOp) -> list[SSAValue]:
    """What a sum is of; sums that are used elsewhere, too, are terms."""
    found: list[SSAValue] = []
    left = [*reversed(op.operands)]
    while left:
        value = left.pop()
        if isinstance(value.owner, hlo.AddOp) and _is_term(value):
            left += reversed(value.owner.operands)
        else:
            found.append(value)
    return found


def _widest(terms: Sequence[SSAValue]) -> list[hlo.ConvolutionOp]:
    """The convolution with the most points of each input and kind."""
    found: dict[Hashable, hlo.ConvolutionOp] = {}
    for term in terms:
        if (conv := _convolution(term)) is not None:
            kind = (conv.lhs, _geometry(conv))
            if kind not in found or prod(_points(conv)) > prod(_points(found[kind])):
                found[kind] = conv
    return [*found.values()]


def _convolution(term: SSAValue) -> hlo.ConvolutionOp | None:
    """The convolution by known weights that a term of a sum is."""
    op = term.owner
    if not isinstance(op, hlo.ConvolutionOp) or not _is_term(term) or not is_stored(op.rhs):
        return None
    plain = element_of(op.lhs) == element_of(op.rhs) == element_of(term) and op.value("batch_group_count") == 1
    return op if plain and static_shape(op.rhs) is not None and not any(op.window()["window_reversal"]) else None


def _geometry(conv: hlo.ConvolutionOp) -> Hashable:
    """What convolutions that can be one have in common, but for their windows."""
    window, d = conv.window(), conv.dimensions
    features = [shape_of(conv.rhs)[i] for i in (d.kernel_input_feature_dimension, d.kernel_output_feature_dimension)]
    return (d, conv.value("feature_group_count"), conv.precision_config, window["window_strides"],
            window["lhs_dilation"], *features)  # fmt: skip


def _points(conv: hlo.ConvolutionOp) -> list[int]:
    """The size of its window."""
    return [cast(int, shape_of(conv.rhs)[i]) for i in conv.dimensions.kernel_spatial_dimensions]


@dataclass(frozen=True)
class _Kernel:
    """What a term multiplies an input by: the weights of a window, whose points lie among those of a larger one."""

    weights: SSAValue
    """As a convolution has them; or a vector or a number, by which the channels are scaled."""
    first: Sequence[int]
    """The place of its first point in the larger window, in each dimension."""
    steps: Sequence[int]
    """From one of its points to the next."""

    def within(self, wide: hlo.ConvolutionOp, b: Builder) -> SSAValue:
        """The weights at the points of a larger window, and zeros between and around them."""
        d, shape = wide.dimensions, shape_of(wide.rhs)
        weights = self.weights
        if rank_of(weights) < len(shape):
            weights = self._diagonal(wide, b)
        low, high, gaps = [0] * len(shape), [0] * len(shape), [0] * len(shape)
        for axis, first, step in zip(d.kernel_spatial_dimensions, self.first, self.steps, strict=True):
            points, all_points = cast(int, shape_of(weights)[axis]), cast(int, shape[axis])
            low[axis], gaps[axis] = first, step - 1
            high[axis] = all_points - first - ((points - 1) * step + 1)
        return b.pad(weights, b.scalar_like(weights, 0), low, high, gaps)

    def _diagonal(self, wide: hlo.ConvolutionOp, b: Builder) -> SSAValue:
        """Scales of channels as weights of a window of one point: each output has its own input."""
        d = wide.dimensions
        into, out = d.kernel_input_feature_dimension, d.kernel_output_feature_dimension
        shape = [n if axis in (into, out) else 1 for axis, n in enumerate(shape_of(wide.rhs))]
        each = b.constant(cast(int, shape[into]), "i64")
        own = b.emit(hlo.RemainderOp, b.iota(shape, out), b.broadcast(each, shape, ()))
        spread = b.broadcast(self.weights, shape, (out,)[: rank_of(self.weights)])
        return b.select(b.compare(own, b.iota(shape, into), "EQ"), spread, b.full_like(spread, 0))


def _kernel(term: SSAValue, wide: hlo.ConvolutionOp) -> _Kernel | None:
    """The weights of a term which the wider convolution can have in its own; None where it cannot."""
    conv = _convolution(term)
    if conv is None:
        return _scale(term, wide)
    if conv.lhs != wide.lhs or _geometry(conv) != _geometry(wide):
        return None
    window = conv.window()
    return _placed(conv.rhs, wide, _points(conv), [low for low, _ in window["padding"]], window["rhs_dilation"])


def _scale(term: SSAValue, wide: hlo.ConvolutionOp) -> _Kernel | None:
    """A term that is the convolution's input, each channel by a known number."""
    op, d, window = term.owner, wide.dimensions, wide.window()
    if not isinstance(op, hlo.MultiplyOp) or not _is_term(term) or wide.lhs not in op.operands:
        return None
    factor = op.rhs if op.lhs == wide.lhs else op.lhs
    scale = stored_along(factor, d.input_feature_dimension)
    same_places = (d.input_batch_dimension, d.input_feature_dimension, *d.input_spatial_dimensions) == (
        d.output_batch_dimension, d.output_feature_dimension, *d.output_spatial_dimensions)  # fmt: skip
    if scale is None or not same_places or any(n != 1 for n in (*window["window_strides"], *window["lhs_dilation"])):
        return None
    ones = [1] * len(d.input_spatial_dimensions)
    return _placed(scale, wide, ones, [0] * len(ones), ones)


def _placed(
    weights: SSAValue, wide: hlo.ConvolutionOp, points: Sequence[int], padding: Sequence[int], dilations: Sequence[int]
) -> _Kernel | None:
    """Weights of a window of so many points, with what is padded before it, whose points the wider one has, too."""
    window, first, steps = wide.window(), list[int](), list[int]()
    for (before, _), dilation, all_points, count, low, own in zip(
        window["padding"], window["rhs_dilation"], _points(wide), points, padding, dilations, strict=True
    ):
        start, off = divmod(before - low, dilation)
        step, between = divmod(own, dilation) if count > 1 else (1, 0)
        if off or between or start < 0 or start + (count - 1) * step >= all_points:
            return None
        first.append(start)
        steps.append(step)
    return _Kernel(weights, first, steps)


def _stays_finite(weights: Sequence[SSAValue], program: Program) -> bool:
    """Whether the sum of weights is of numbers, and no infinite weight meets another's zeros."""
    text = dtype_text(weights[0].type)
    arrays = [array for value in weights if (array := stored_array(value, program)) is not None]
    if not (is_float(text) or is_complex(text)) or len(arrays) < len(weights):
        return True  # whole numbers wrap around; IR text without its weights does not run either
    largest = sum(float(np.abs(array).max(initial=0)) for array in arrays)
    return bool(largest < float(finfo(arrays[0].dtype).max))


@dataclass(frozen=True)
class MergeConvolutionsPass(Pass):
    """Merge convolutions of one input that are added."""

    name: ClassVar[str] = "merge-convolutions"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (MergeConvolutions(),), context)
