"""Derivatives of ragged_dot: a dot of all groups, of which each row, or run of the contracted dim, keeps its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.autodiff.table import expands
from gcomp.decompositions.groups import runs
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.structures import RaggedDotDimensions
from gcomp.ir.types import element_of, rank_of, shape_of


@expands(chlo.RaggedDotOp)
def ragged_dot(b: Builder, op: Any) -> Sequence[SSAValue]:
    """By what the ragged dim is: free in lhs, contracted, or a batch dim."""
    d = op.dimensions
    (ragged,) = d.lhs_ragged_dimensions
    numbers = DotDimensions(*d[:4])
    if ragged in d.lhs_batching_dimensions:
        return [b.dot(op.lhs, op.rhs, numbers, element_of(op.result))]
    return [_contract(b, op) if ragged in d.lhs_contracting_dimensions else _free(b, op, numbers)]


def _free(b: Builder, op: Any, numbers: DotDimensions) -> SSAValue:
    d = op.dimensions
    rows = [*d.lhs_batching_dimensions, *numbers.lhs_free(rank_of(op.lhs))]
    group = len(rows) + numbers.rhs_free(rank_of(op.rhs)).index(d.rhs_group_dimensions[0])
    product = b.dot(op.lhs, op.rhs, numbers, element_of(op.result))
    places = [rows.index(i) for i in op.outer_dimensions()]
    inside = runs(b, op, shape_of(product), places, rows.index(d.lhs_ragged_dimensions[0]), group)
    return b.reduce(hlo.AddOp, b.select(inside, product, b.full_like(product, 0)), [group])


def _contract(b: Builder, op: Any) -> SSAValue:
    d: RaggedDotDimensions = op.dimensions
    outer: list[int] = op.outer_dimensions()
    left = (*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions)
    partner = dict(zip(left, (*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions), strict=True))
    (ragged,) = d.lhs_ragged_dimensions
    operands: list[SSAValue] = []
    for x, places, place in ((op.lhs, outer, ragged), (op.rhs, [partner[i] for i in outer], partner[ragged])):
        shape = (shape_of(op.group_sizes)[-1], *shape_of(x))
        copies = b.broadcast(x, shape, range(1, len(shape)))
        inside = runs(b, op, shape, [p + 1 for p in places], place + 1, 0)
        operands.append(b.select(inside, copies, b.full_like(copies, 0)))
    left_batch, right_batch, left_sum, right_sum = (tuple(i + 1 for i in dimensions) for dimensions in d[:4])
    numbers = DotDimensions((0, *left_batch), (0, *right_batch), left_sum, right_sum)
    return b.dot(operands[0], operands[1], numbers, element_of(op.result))
