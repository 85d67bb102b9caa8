"""How far a window reaches."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size, ceildiv, dmax, dmin
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import IDENTITIES, identity
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text, shape_of


def offsets_of(op: hlo.ReduceWindowOp) -> tuple[Size, ...]:
    """How many offsets in a window to look at: pooling over a whole image of any size is written as a window which is
    far larger, and beyond the image there are only values that change nothing."""
    (x, *more), w = op.inputs, op.window()
    fold, kind = applied_op(op.body), dtype_text(x.type)
    if more or fold not in IDENTITIES or not _is(op.init_values[0], identity(fold, kind)):
        return w["window_dimensions"]
    offsets: list[Size] = []
    for axis, width in enumerate(w["window_dimensions"]):
        last = w["padding"][axis][0] + (_extent(x, axis, identity(fold, kind)) - 1) * w["base_dilations"][axis]
        offsets.append(dmax(0, dmin(width, ceildiv(last + 1, w["window_dilations"][axis]))))
    return tuple(offsets)


def _extent(x: SSAValue, axis: int, fill: Any) -> Size:
    """The size of a dimension, less what pads its end with a value."""
    op, size = x.owner, shape_of(x)[axis]
    if not isinstance(op, hlo.PadOp) or op.value("interior_padding")[axis] or not _is(op.padding_value, fill):
        return size
    return dmin(size, sizes_of(op.edge_padding_low)[axis] + shape_of(op.operand)[axis])


def _is(scalar: SSAValue, number: Any) -> bool:
    op = scalar.owner
    return isinstance(op, hlo.ConstantOp) and op.elements_attr.splat() == number
