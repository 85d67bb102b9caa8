"""Where gradients stop: a value that counts as a constant for derivatives, and is the same value for all else.

It is a reshape to the same shape, marked by an attribute. Passes remove it, as any reshape that changes nothing:
differentiation comes before them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, OpResult, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder

STOP = "gcomp.stop_gradient"


def stop_derivative(b: Builder, x: SSAValue) -> SSAValue:
    """The value, through which no derivative goes."""
    value = b.emit(hlo.ReshapeOp, x, types=(x.type,))
    if isinstance(value, OpResult):
        value.op.attributes[STOP] = UnitAttr()
    return value


def stops(op: Operation) -> bool:
    """Whether no derivative goes through an op."""
    return STOP in op.attributes
