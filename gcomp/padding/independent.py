"""Ops that indexing maps show to be independent along padded dimensions: elementwise ones, and those with batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.types import dtype_text, is_tensor
from gcomp.padding.sweep import Padded, Scalar, Sweep, refuse
from gcomp.padding.table import pads

MIXES = "along a padded dimension it reads elements that are not at the result's own place"


_QUANTIZED = (hlo.UniformQuantizeOp, hlo.UniformDequantizeOp)


@pads("independent", *(op for op in POINTWISE if op not in _QUANTIZED))
def pointwise(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Element by element: what all padding holds, too."""
    fills = [x.fill for x in operands if x.fill is not None]
    (result,) = mapped(sweep, op, operands)
    return [Padded(result.value, result.layout, _fill(sweep, op, fills) if len(fills) == len(operands) else None)]


def _fill(sweep: Sweep, op: Any, fills: Sequence[Scalar]) -> Scalar | None:
    try:
        return sweep.evaluated(op, fills)
    except GcompError:
        return None  # what padding holds need not be known


@pads(
    "independent",
    *PLAIN, hlo.BroadcastOp, hlo.TransposeOp, hlo.MapOp, hlo.BitcastConvertOp,
    hlo.UniformQuantizeOp, hlo.UniformDequantizeOp, hlo.BatchNormInferenceOp, hlo.CholeskyOp, hlo.TriangularSolveOp,
    hlo.FftOp, chlo.RaggedDotOp, hlo.BatchNormTrainingOp, hlo.BatchNormGradOp,
)  # fmt: skip
def mapped(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """As the indexing maps say: in dimensions that every element of a result shares with what it reads."""
    layouts = sweep.carried(op, operands)
    if any(layout is None for layout in layouts):
        operands = [sweep.compact(x) for x in operands]
        layouts = sweep.carried(op, operands)
    if any(layout is None for layout in layouts):
        refuse(sweep, op, MIXES)
    values = sweep.around(op, [x.value for x in operands])
    fill = operands[0].fill if isinstance(op, hlo.TransposeOp) else None
    return [Padded(v, layout, fill) for v, layout in zip(values, layouts, strict=True) if layout is not None]


@pads("independent", chlo.ConstantLikeOp)
def constant_like(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """A constant, in padding too."""
    value = sweep.around(op, [operands[0].value])[0]
    return [Padded(value, operands[0].layout, np.asarray(op.value("value"), dtype_of(dtype_text(value.type))))]


@pads("independent", hlo.OptimizationBarrierOp)
def barrier(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Each result is its own operand."""
    values = sweep.around(op, [x.value for x in operands])
    return [Padded(v, x.layout if is_tensor(v.type) else (), x.fill) for v, x in zip(values, operands, strict=True)]
