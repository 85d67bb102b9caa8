"""CHLO's broadcasting and constants; its functions are generic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from gcomp.ir import chlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.reference.table import Array, Row, Scope, Value, meaning


def broadcasting(function: Callable[..., Array]) -> Row:
    """The row of a function whose operands are broadcast before, at `broadcast_dimensions` or at the end."""

    def row(op: GraphOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
        properties = dict(scope.properties(op))
        dimensions: tuple[int, ...] | None = properties.pop("broadcast_dimensions", None)
        rank = max(x.ndim for x in args)
        aligned = [x if dimensions is None or x.ndim == rank else _place(x, dimensions, rank) for x in args]
        shape = np.broadcast_shapes(*(x.shape for x in aligned))
        return (function(*(np.broadcast_to(x, shape) for x in aligned), **properties),)

    return row


def _place(x: Array, dimensions: Sequence[int], rank: int) -> Array:
    """`x` with its dimensions at the given places of a shape of ones."""
    sizes = dict(zip(dimensions, x.shape, strict=True))
    return x.reshape([sizes.get(d, 1) for d in range(rank)])


@meaning(chlo.ConstantOp, elementwise=True)
def constant(op: chlo.ConstantOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The data; a splat stays a view of one element."""
    return (scope.data(cast(ElementsAttr, op.properties["value"]).array()),)
