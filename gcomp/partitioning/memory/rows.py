"""Ops that XLA writes in other words on processors, or wants other orders of elements for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of
from gcomp.partitioning.memory.graph import POINTER, Form, Graph, Node, Rows, Value

Values = Sequence[Value]
_INDEX = 4
"""Bytes of the number of a place."""


def _product(g: Graph, op: hlo.DotGeneralOp, reads: Values, results: Values) -> Values:
    """Products are of matrices: batches first, what is summed beside what is not. Sums of one term are no products."""
    n = op.dimensions
    if all(shape_of(op.lhs)[d] == 1 for d in n.lhs_contracting_dimensions):
        spreads = any(results[0].bytes > v.bytes for v in reads)
        return g.add(Node(Form.LOOP, reads, results, spreads=spreads))
    left, right = (n.lhs_batching_dimensions, n.rhs_batching_dimensions)
    lies = [
        _is_matrix(op.lhs, left, n.lhs_free(rank_of(op.lhs)), n.lhs_contracting_dimensions),
        _is_matrix(op.rhs, right, n.rhs_contracting_dimensions, n.rhs_free(rank_of(op.rhs))),
    ]
    summed, free = len(n.lhs_contracting_dimensions), [n.lhs_free(rank_of(op.lhs)), n.rhs_free(rank_of(op.rhs))]
    reads = [v if here else g.copied(v) for v, here in zip(reads, lies, strict=True)]
    reads = [v if summed == len(own) == 1 else g.viewed(v) for v, own in zip(reads, free, strict=True)]
    (made,) = g.alone(reads, [Value(results[0].bytes, results[0].type)])
    return [made if all(len(own) == 1 for own in free) else g.viewed(made)]


def _is_matrix(x: SSAValue, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether dimensions lie as those of matrices; of plain ones, rows and columns may be exchanged."""
    batch, rows, columns = ([d for d in dims if shape_of(x)[d] != 1] for dims in (batch, rows, columns))
    wanted, turned = [*batch, *rows, *columns], [*batch, *columns, *rows]
    is_plain = not batch or (len(rows) <= 1 and len(columns) <= 1)
    return sorted(wanted) == wanted or (is_plain and sorted(turned) == turned)


def _convolution(g: Graph, op: hlo.ConvolutionOp, reads: Values, results: Values) -> Values:
    """Images have their features last, and kernels the features that they give."""
    n, plain = op.dimensions, [*range(rank_of(op.lhs))]
    images = [n.input_batch_dimension, *n.input_spatial_dimensions, n.input_feature_dimension]
    kernel = [*n.kernel_spatial_dimensions, n.kernel_input_feature_dimension, n.kernel_output_feature_dimension]
    given = [n.output_batch_dimension, *n.output_spatial_dimensions, n.output_feature_dimension]
    x, w = (
        v if lies == plain else g.copied(v, order)
        for v, lies, order in zip(reads, (images, kernel), ("images", "kernels"), strict=True)
    )
    (made,) = g.alone([x, w], results)
    return [made if given == plain else g.copied(made, "images", back=True)]


def _quotient(g: Graph, op: hlo.DivideOp, reads: Values, results: Values) -> Values:
    """What is divided by numbers that are spread out is multiplied by their inverses."""
    by = op.rhs.owner
    if isinstance(by, hlo.ConstantOp) or (isinstance(by, hlo.BroadcastInDimOp) and _is_constant(by.operand)):
        return g.add(Node(Form.LOOP, reads, results, pointwise=True))
    if not isinstance(by, hlo.BroadcastInDimOp):
        return g.add(Node(Form.LOOP, reads, results, costly=True, pointwise=True))
    few = g.value(by.operand)
    (inverse,) = g.add(Node(Form.LOOP, [few], [Value(few.bytes, few.type)], costly=True, pointwise=True))
    spreads = results[0].bytes > few.bytes
    (spread,) = g.add(
        Node(Form.LOOP, [inverse], [Value(results[0].bytes, results[0].type)], spreads=spreads, is_made=True)
    )
    return g.add(Node(Form.LOOP, [reads[0], spread], results, pointwise=True))


def _is_constant(x: SSAValue) -> bool:
    return isinstance(x.owner, hlo.ConstantOp)


def _along(dimension: str) -> Callable[[Graph, Any, Values, Values], Values]:
    """Collectives along a dimension have it first."""

    def write(g: Graph, op: Any, reads: Values, results: Values) -> Values:
        dim = op.value(dimension)
        if not dim:
            return g.alone(reads, results)
        return [g.copied(g.alone([g.copied(reads[0], str(dim))], results)[0], str(dim), back=True)]

    return write


def _exchange(g: Graph, op: hlo.AllToAllOp, reads: Values, results: Values) -> Values:
    """Parts, which lie apart before and after."""
    count, (x,), (y,) = op.value("split_count"), reads, results
    parts = [g.add(Node(Form.LOOP, [x], [Value(x.bytes // count, x.type)]))[0] for _ in range(count)]
    sent = g.alone(parts, [Value(y.bytes // count, y.type) for _ in parts], table=POINTER * count)
    return g.add(Node(Form.LOOP, sent, [y], joins=True))


def _lookup(g: Graph, op: hlo.GatherOp, reads: Values, results: Values) -> Values:
    """What rows are looked up lies in memory."""
    is_row = any(n != 1 for n in op.value("slice_sizes"))
    if not is_row:
        return g.add(Node(Form.LOOP, reads, results))
    return [g.viewed(g.add(Node(Form.STORED, reads, [Value(results[0].bytes, results[0].type)]))[0])]


def _update(g: Graph, op: Operation, reads: Values, results: Values) -> Values:
    return g.add(Node(Form.STORED, reads, results, rewrites=True))


def _scatter(g: Graph, op: Operation, reads: Values, results: Values) -> Values:
    return g.add(Node(Form.ALONE, reads, results, rewrites=len(results) == 1))


def _selected(g: Graph, op: hlo.SelectAndScatterOp, reads: Values, results: Values) -> Values:
    """Numbers of places are folded beside elements, and added to nothing are the sources at those that are found."""
    images, sources = (shape_of(v) for v in op.operands[:2])
    rank, elements, found = len(images), *(_INDEX * prod(map(g.nominal.size, s)) for s in (images, sources))
    places = [g.alone([], [Value(elements)])[0] for _ in range(rank)]
    folded = [Value(reads[1].bytes), *[Value(found) for _ in range(rank)]]
    _, *numbers = g.alone([reads[0], *places], folded, table=POINTER * (rank + 1))
    (joined,) = g.alone(numbers, [Value(found * rank)])
    (base,) = g.alone([], [Value(results[0].bytes, results[0].type)])
    return g.add(Node(Form.ALONE, [base, joined, reads[1]], results, rewrites=True))


ROWS: Rows = {
    hlo.AllGatherOp: _along("all_gather_dim"),
    hlo.AllToAllOp: _exchange,
    hlo.ConvolutionOp: _convolution,
    hlo.DivideOp: _quotient,
    hlo.DotGeneralOp: _product,
    hlo.DynamicUpdateSliceOp: _update,
    hlo.GatherOp: _lookup,
    hlo.ReduceScatterOp: _along("scatter_dimension"),
    hlo.ScatterOp: _scatter,
    hlo.SelectAndScatterOp: _selected,
}

__all__ = ["ROWS"]
