"""Batch normalization by its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dtypes import dtype_of, is_narrow_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of


def _along(b: Builder, op: Any, vector: SSAValue) -> SSAValue:
    return b.broadcast(vector, shape_of(op.operand), (op.value("feature_index"),))


def _others(op: Any) -> list[int]:
    return [i for i in range(rank_of(op.operand)) if i != op.value("feature_index")]


def _deviation(b: Builder, op: Any, variance: SSAValue) -> SSAValue:
    return b.emit(hlo.SqrtOp, b.add(variance, b.full_like(variance, op.value("epsilon"))))


def _normalize(b: Builder, op: Any, centered: SSAValue, variance: SSAValue) -> SSAValue:
    scaled = b.multiply(b.divide(centered, _along(b, op, _deviation(b, op, variance))), _along(b, op, op.scale))
    return b.add(scaled, _along(b, op, op.offset))


def inference(b: Builder, op: Any) -> Sequence[SSAValue]:
    """`(operand - mean) / sqrt(variance + epsilon) * scale + offset`."""
    return [_normalize(b, op, b.subtract(op.operand, _along(b, op, op.mean)), op.variance)]


def training(b: Builder, op: Any) -> Sequence[SSAValue]:
    """As above with the batch's own statistics."""
    axes = _others(op)
    mean = b.mean(op.operand, axes)
    centered = b.subtract(op.operand, _along(b, op, mean))
    variance = b.mean(b.multiply(centered, centered), axes)
    return [_normalize(b, op, centered, variance), mean, variance]


def gradient(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The gradients of `training`.

    The specification multiplies by the count and by squares of what is centered, and divides by them at the end: large
    numbers overflow on the way. Here what is normalized is multiplied, and averages are taken first.
    """
    axes, x = _others(op), op.operand
    count = b.convert(b.dim(dims.product([shape_of(x)[a] for a in axes])), element_of(x))
    deviation = _along(b, op, _deviation(b, op, op.variance))
    normalized = b.divide(b.subtract(x, _along(b, op, op.mean)), deviation)
    total = b.reduce(hlo.AddOp, op.grad_output, axes)
    scale = b.reduce(hlo.AddOp, b.multiply(op.grad_output, normalized), axes)
    mean, slope = (_along(b, op, b.divide(v, b.broadcast(count, shape_of(v), ()))) for v in (total, scale))
    inner = b.subtract(b.subtract(op.grad_output, mean), b.multiply(normalized, slope))
    return [b.multiply(b.divide(_along(b, op, op.scale), deviation), inner), scale, total]


NORMALIZATIONS: Mapping[type[Any], Callable[[Builder, Any], Sequence[SSAValue]]] = {
    hlo.BatchNormGradOp: gradient,
    hlo.BatchNormInferenceOp: inference,
    hlo.BatchNormTrainingOp: training,
}
"""Op class -> its definition."""


def normalize(b: Builder, op: Any) -> Sequence[SSAValue]:
    """What an op's definition computes: in f32 where its elements are narrower, and then rounded once.

    On the way there are squares and sums over the batch, which narrow elements cannot hold.
    """
    text = dtype_text(op.operand.type)
    if not is_narrow_float(text):
        return NORMALIZATIONS[type(op)](b, op)
    # The epsilon is of the operands' type.
    properties: dict[str, Any] = op.attributes_dict()
    properties["epsilon"] = float(np.asarray(properties["epsilon"], dtype_of(text)))
    kind = cast("type[GraphOp]", type(op))
    wide = kind.of(*map(b.widen, op.operands), **properties)
    results = [b.convert(v, text) for v in NORMALIZATIONS[kind](b, wide)]
    wide.erase()
    return results
