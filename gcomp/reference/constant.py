"""Constants, weights and symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcomp import dims
from gcomp.ir import native
from gcomp.ir import stablehlo as hlo
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.table import Scope, Value, meaning


@meaning(hlo.ConstantOp, elementwise=True)
def constant(op: hlo.ConstantOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The data; a splat stays a view of one element."""
    return (scope.data(op.elements_attr.array()),)


@meaning(native.WeightOp)
def weight(op: native.WeightOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The program's array of that name."""
    return (scope.data(scope.weight(op.symbol, op)),)


@meaning(native.DimOp, elementwise=True)
def dim(op: native.DimOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The size's value in this run."""
    value = np.array(dims.evaluate(op.formula, scope.sizes), np.int64)
    return (convert(value, dtype=scope.dtype(op.results[0])),)
