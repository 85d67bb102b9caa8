"""Branches that sizes decide: `stablehlo.if` on a `gcomp.dim`. Once the sizes are known, only one branch is there.

The other one need not fit these sizes: what its program says of them may be no program at all.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, OpResult, SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import DimOp
from gcomp.ir.types import dtype_text


def deciding_size(op: hlo.IfOp) -> tuple[Size, bool] | None:
    """The size that decides a branch, and whether the first is taken where it is not 0; None where data decide."""
    owner = _owner(op.pred)
    if isinstance(owner, DimOp):
        return owner.formula, True
    if not isinstance(owner, hlo.CompareOp):
        return None
    size, number = (_owner(operand) for operand in owner.operands)
    direction = owner.value("comparison_direction")
    if not isinstance(size, DimOp) or direction not in ("EQ", "NE") or not isinstance(number, hlo.ConstantOp):
        return None
    value = number.properties["value"]
    if not isinstance(value, ElementsAttr) or np.any(value.array()):
        return None
    return size.formula, direction == "NE"


def _owner(value: SSAValue) -> object:
    """The op that makes a value, apart from what only writes it in another way."""
    owner: object = value.owner
    while isinstance(value, OpResult) and isinstance(owner, hlo.ConvertOp | hlo.ReshapeOp):
        value = owner.operands[0]
        owner = value.owner
    return owner


def zero_text(type: Attribute) -> str:
    """A zero in the text of `dense<...>`."""
    text = dtype_text(type)
    if text == "i1":
        return "false"
    return "(0.0, 0.0)" if is_complex(text) else "0.0" if is_float(text) else "0"
