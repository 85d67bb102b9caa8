"""Batch normalization with known statistics becomes a scale and an offset, folded into the convolution before it.

`bn(conv(x, w) + c)` is `conv(x, w * s) + (offset + (c - mean) * s)` with `s = scale / sqrt(variance + epsilon)`. The
arithmetic on weights is emitted as ops; `fold-constants` evaluates it. Rounds differently: E2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.constants import is_stored, stored_along, stored_array
from gcomp.dtypes import finfo
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

Array: TypeAlias = "np.ndarray[Any, Any]"


def _is_tame(op: hlo.BatchNormInferenceOp, program: Program) -> bool:
    """Whether folding only rounds otherwise: an infinite factor times 0, or a huge mean times it, would make a NaN."""
    arrays = [array for value in op.operands[1:] if (array := stored_array(value, program)) is not None]
    if len(arrays) < 4:
        return True  # IR text without its weights, which does not run either
    scale, offset, mean, variance = (array.astype(np.float64) for array in arrays)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + op.value("epsilon"))
        terms = (factor, mean, mean * factor, offset - mean * factor)
        # A square root of the greatest number leaves room for inputs of any sensible size.
        largest = float(finfo(arrays[0].dtype).max) ** 0.5
    return all(bool((np.abs(term) < largest).all()) for term in (*terms, *_around(op, program)))


def _around(op: hlo.BatchNormInferenceOp, program: Program) -> Iterator[Array]:
    """The weights and the bias that the batch normalization is folded into, if it is."""
    values = [op.operands[0]]
    if isinstance(values[0], OpResult) and isinstance(values[0].op, hlo.AddOp):
        values = [*values[0].op.operands]
    for value in values:
        owner = value.op if isinstance(value, OpResult) else None
        known = owner.operands[-1] if isinstance(owner, hlo.ConvolutionOp | hlo.BroadcastInDimOp) else None
        if known is not None and is_stored(known) and (array := stored_array(known, program)) is not None:
            yield array.astype(np.float64)


def _convolution(value: SSAValue) -> hlo.ConvolutionOp | None:
    """The convolution that computes `value` and only it, with known weights."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConvolutionOp) and value.has_one_use()):
        return None
    # A kernel of another element type would be rounded when it is scaled, or cannot be.
    return value.op if is_stored(value.op.rhs) and element_of(value.op.rhs) == element_of(value) else None


class FoldBatchNorm(Pattern):
    """batch_norm_inference of known statistics becomes multiply and add, or goes into the convolution before it."""

    name = "fold-batch-norm"
    roots = (hlo.BatchNormInferenceOp,)
    exactness = Exactness.E2

    def applies(self, op: hlo.BatchNormInferenceOp) -> bool:
        return all(is_stored(v) for v in op.operands[1:])

    def rewrite(self, op: hlo.BatchNormInferenceOp, b: Builder) -> Sequence[SSAValue] | None:
        x, scale, offset, mean, variance = op.operands
        if not _is_tame(op, b.program):
            return None
        feature: int = op.value("feature_index")
        # The attribute is an f32; adding it in the element type is what the reference does.
        epsilon = b.full_like(variance, np.float32(op.value("epsilon")))
        factor = b.multiply(scale, b.emit(hlo.RsqrtOp, b.add(variance, epsilon)))
        source, shift = self._fold(x, feature, factor, mean, b)
        total = b.add(offset, b.multiply(shift, factor))
        if source is None:
            source = b.multiply(x, b.broadcast(factor, shape_of(x), (feature,)))
        return [b.add(source, b.broadcast(total, shape_of(source), (feature,)))]

    def _fold(
        self, x: SSAValue, feature: int, factor: SSAValue, mean: SSAValue, b: Builder
    ) -> tuple[SSAValue | None, SSAValue]:
        """The convolution with scaled weights, if there is one, and what is added before scaling."""
        minus_mean = b.emit(hlo.NegateOp, mean)
        if (conv := _convolution(x)) is not None and conv.dimensions.output_feature_dimension == feature:
            return _scale_convolution(conv, factor, b), minus_mean
        if isinstance(x, OpResult) and isinstance(x.op, hlo.AddOp) and x.has_one_use():
            for left, right in (x.op.operands, tuple(reversed(x.op.operands))):
                bias, conv = stored_along(right, feature), _convolution(left)
                if bias is not None and conv is not None and conv.dimensions.output_feature_dimension == feature:
                    return _scale_convolution(conv, factor, b), b.subtract(bias, mean)
        return None, minus_mean


def _scale_convolution(conv: hlo.ConvolutionOp, factor: SSAValue, b: Builder) -> SSAValue:
    axis = conv.dimensions.kernel_output_feature_dimension
    kernel = b.multiply(conv.rhs, b.broadcast(factor, shape_of(conv.rhs), (axis,)))
    properties: dict[str, Any] = dict(conv.properties)
    return b.emit(hlo.ConvolutionOp, conv.lhs, kernel, types=(conv.result.type,), **properties)


@dataclass(frozen=True)
class FoldBatchNormPass(Pass):
    """Fold batch normalizations of known statistics."""

    name: ClassVar[str] = "fold-batch-norm"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (FoldBatchNorm(),), context)
