"""Ops that the specification has dropped, as the ops that replaced them."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.ir import stablehlo as hlo
from gcomp.reference.numpy import contraction, movement
from gcomp.reference.table import Scope, Value, meaning


@meaning(hlo.BroadcastOp)
def broadcast(op: hlo.BroadcastOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The operand repeated along new leading dimensions."""
    sizes = scope.properties(op)["broadcast_sizes"]
    (x,) = args
    kept = range(len(sizes), len(sizes) + x.ndim)
    return (movement.broadcast_in_dim(x, broadcast_dimensions=kept, shape=(*sizes, *x.shape)),)


@meaning(hlo.DotOp)
def dot(op: hlo.DotOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The last dimension of the left operand with the first of the right one."""
    lhs, rhs = args
    product = contraction.dot_general(
        lhs,
        rhs,
        lhs_contracting_dimensions=(lhs.ndim - 1,),
        rhs_contracting_dimensions=(0,),
        dtype=scope.dtype(op.results[0]),
    )
    return (product,)
