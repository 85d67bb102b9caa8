"""Changes of what a reduction goes over, and of what it begins with.

A rewrite may rely on there being an element, on there being more than one, and on a beginning that changes nothing: an
empty or single dimension and another initial value show it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, is_tensor, shape_of, tensor
from gcomp.reference.values import special_pool
from gcomp.testing.near.edits import Scene, edit
from gcomp.testing.near.whole import resize_everywhere
from gcomp.testing.reduce.signature import add_input, fresh_name

_GONE_THROUGH: dict[type[Operation], Callable[[Any], list[Size]]] = {
    hlo.ReduceOp: lambda op: [shape_of(op.operands[0])[d] for d in op.value("dimensions")],
    hlo.ReduceWindowOp: lambda op: list(shape_of(op.operands[0])),
    hlo.SortOp: lambda op: [shape_of(op.operands[0])[op.value("dimension")]],
    hlo.DotGeneralOp: lambda op: [shape_of(op.operands[0])[d] for d in op.dimensions.lhs_contracting_dimensions],
    hlo.ConvolutionOp: lambda op: [
        shape_of(op.operands[0])[d]
        for d in (op.dimensions.input_feature_dimension, *op.dimensions.input_spatial_dimensions)
    ],
}
"""The sizes that an op goes through for each element of its result."""


@edit(2)
def fewer_reduced(scene: Scene) -> bool:
    """What is reduced has no element, or one, or two."""
    op = scene.op(lambda op: type(op) in _GONE_THROUGH and is_tensor(op.operands[0].type))
    if op is None:
        return False
    sizes = [size for size in _GONE_THROUGH[type(op)](op) if isinstance(size, int)]
    if not sizes:
        return False
    size = scene.choices.chosen(sizes)
    return resize_everywhere(scene.program, size, scene.choices.chosen([n for n in (0, 1, 0, 1, 2) if n != size]))


@edit(1.5)
def another_beginning(scene: Scene) -> bool:
    """A reduction gets another initial value: one that may decide the result, or an input."""
    op = scene.op(lambda op: isinstance(op, hlo.ReduceOp | hlo.ReduceWindowOp))
    if not isinstance(op, hlo.ReduceOp | hlo.ReduceWindowOp):
        return False
    i = len(op.inputs) + scene.choices.integer(0, len(op.init_values) - 1)
    text = dtype_text(op.operands[i].type)
    if scene.choices.flag(0.2) and op.parent is scene.program.block:
        op.operands[i] = add_input(scene.program, tensor((), text), fresh_name(scene.program, "first"))
        return True
    b = Builder(scene.program, InsertPoint.before(op))
    op.operands[i] = b.full((), scene.choices.fill(special_pool(text), 1)[0], text)
    return True


__all__ = ["another_beginning", "fewer_reduced"]
