"""Batch normalization by its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, rank_of, shape_of


def _along(b: Builder, op: Any, vector: SSAValue) -> SSAValue:
    return b.broadcast(vector, shape_of(op.operand), (op.value("feature_index"),))


def _others(op: Any) -> list[int]:
    return [i for i in range(rank_of(op.operand)) if i != op.value("feature_index")]


def _deviation(b: Builder, op: Any, variance: SSAValue) -> SSAValue:
    return b.emit(hlo.SqrtOp, b.add(variance, b.full_like(variance, op.value("epsilon"))))


def _normalized(b: Builder, op: Any, centered: SSAValue, variance: SSAValue) -> SSAValue:
    scaled = b.multiply(b.divide(centered, _along(b, op, _deviation(b, op, variance))), _along(b, op, op.scale))
    return b.add(scaled, _along(b, op, op.offset))


def inference(b: Builder, op: Any) -> Sequence[SSAValue]:
    """`(operand - mean) / sqrt(variance + epsilon) * scale + offset`."""
    return [_normalized(b, op, b.subtract(op.operand, _along(b, op, op.mean)), op.variance)]


def training(b: Builder, op: Any) -> Sequence[SSAValue]:
    """As above with the batch's own statistics."""
    axes = _others(op)
    mean = b.mean(op.operand, axes)
    centered = b.subtract(op.operand, _along(b, op, mean))
    variance = b.mean(b.multiply(centered, centered), axes)
    return [_normalized(b, op, centered, variance), mean, variance]


def gradient(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The gradients of `training`, as the specification computes them."""
    axes, x = _others(op), op.operand
    count = b.convert(b.dim(dims.product([shape_of(x)[a] for a in axes])), element_of(x))
    centered = b.subtract(x, _along(b, op, op.mean))
    shifted = b.add(op.variance, b.full_like(op.variance, op.value("epsilon")))
    deviation = _along(b, op, b.emit(hlo.SqrtOp, shifted))
    total = b.reduce(hlo.AddOp, op.grad_output, axes)
    scale = b.reduce(hlo.AddOp, b.multiply(op.grad_output, b.divide(centered, deviation)), axes)
    projected = b.reduce(hlo.AddOp, b.multiply(op.grad_output, centered), axes)
    inner = b.subtract(b.multiply(op.grad_output, count), _along(b, op, total))
    inner = b.subtract(inner, b.divide(b.multiply(_along(b, op, projected), centered), _along(b, op, shifted)))
    own = b.multiply(b.divide(b.divide(_along(b, op, op.scale), deviation), count), inner)
    return [own, scale, total]


NORMALIZATIONS: Mapping[type[Any], Callable[[Builder, Any], Sequence[SSAValue]]] = {
    hlo.BatchNormGradOp: gradient,
    hlo.BatchNormInferenceOp: inference,
    hlo.BatchNormTrainingOp: training,
}
"""Op class -> its definition."""
