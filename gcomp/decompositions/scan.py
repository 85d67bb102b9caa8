"""`chlo.scan` as a loop over the slices along its dimension."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.decompositions.bodies import inline_block
from gcomp.ir import chlo, looping
from gcomp.ir.builder import Builder
from gcomp.ir.types import rank_of, shape_of, with_shape


def scan_by_loop(b: Builder, op: chlo.ScanOp, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of a scan of these operands, its inputs and then its initial values.

    The dimension goes to the front and back, since loops read and write along the leading one.
    """
    axis: int = op.value("dimension")
    count, carries = len(op.inputs), len(op.inits)

    def transpose(x: SSAValue, *, back: bool) -> SSAValue:
        rank = rank_of(x)
        front = [axis, *(i for i in range(rank) if i != axis)]
        return b.transpose(x, [front.index(i) for i in range(rank)] if back else front)

    def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
        results = inline_block(b, op.body.block, [*items, *before])
        return [*results[len(op.outputs) :], *results[: len(op.outputs)]]

    stacks = [
        with_shape(v.type, [shape_of(v)[axis], *(s for i, s in enumerate(shape_of(v)) if i != axis)])
        for v in op.outputs
    ]
    inputs = [transpose(x, back=False) for x in operands[:count]]
    results = looping.scan(
        b, op.scan_size(), list(operands[count:]), inputs, stacks, step, reverse=bool(op.value("is_reverse"))
    )
    return [*(transpose(x, back=True) for x in results[carries:]), *results[:carries]]
