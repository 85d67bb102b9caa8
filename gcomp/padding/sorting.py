"""Orders: padding comes last, behind every real element, however that compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import bit_width, dtype_of, is_float
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import lowest
from gcomp.ir.types import BOOL, dtype_text, shape_of, tensor
from gcomp.padding.reduction import copy_block
from gcomp.padding.sweep import Padded, Scalar, Sweep, refuse
from gcomp.padding.table import pads

_SIGNED_NAN = ("f16", "bf16", "f32", "f64")


@pads("neutral", hlo.SortOp)
def sort(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """A mask is sorted along: what is real comes before what is not, and only real elements are compared."""
    b, axis = sweep.b, op.value("dimension") % len(shape_of(op.inputs[0]))
    inputs = sweep.unified([sweep.compact(x, [axis]) for x in operands])
    layout = inputs[0].layout
    mask = sweep.lengths.mask(layout, [axis])
    if mask is None:
        return [Padded(v, layout) for v in sweep.around(op, [x.value for x in inputs])]
    old: Block = op.comparator.block
    flag = tensor((), BOOL)
    block = Block(arg_types=(*old.arg_types, flag, flag))
    left, right = block.args[-2:]
    with b.inside(block):
        mapping: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args[:-2], strict=True))
        (before,) = copy_block(sweep, old, mapping)
        b.insert(hlo.ReturnOp.of(b.select(b.compare(left, right, "EQ"), before, left)))
    values = b.emit_all(
        hlo.SortOp, *(x.value for x in inputs), mask, dimension=axis, is_stable=op.value("is_stable"),
        regions=[Region(block)],
    )  # fmt: skip
    return [Padded(v, layout) for v in values[:-1]]


def least(text: str) -> Scalar | None:
    """The least value in total order: of floats, the NaN with all bits set; None where a type has none such."""
    if not is_float(text):
        return np.asarray(lowest(text)).astype(dtype_of(text))
    if text not in _SIGNED_NAN:
        return None
    ones = np.asarray(-1, f"i{bit_width(text) // 8}")
    return ones.view(dtype_of(text))


@pads("neutral", chlo.TopKOp)
def top_k(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Padding is the least there is; of equals the first one is taken, and padding comes behind."""
    axis = len(operands[0].layout) - 1
    x = sweep.compact(operands[0], [axis])
    if sweep.sizes.is_padded(x.layout[axis]):
        unit = least(dtype_text(x.value.type))
        if unit is None:
            refuse(sweep, op, f"{dtype_text(x.value.type)} has no value that is less than all others")
        x = sweep.neutral(x, [axis], unit)
    values = sweep.around(op, [x.value])
    layout = (*x.layout[:axis], (shape_of(op.results[0])[axis],))
    return [Padded(v, layout) for v in values]
