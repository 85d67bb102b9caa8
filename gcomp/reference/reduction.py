"""Folds over dimensions and windows, and the elementwise map.

The meaning of a fold is sequential, in ascending order of the index (`numpy.reduction`). A fold by one plain op has two
shortcuts that give the same bits: NumPy's own running sums, and a tree where the op is associative bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.reference.numpy import reduction
from gcomp.reference.numpy.rounding import canonical_nan, quiet
from gcomp.reference.table import Array, Scope, Value, meaning, result_dtypes

_RUNNING: dict[type[GraphOp], Callable[..., Any]] = {hlo.AddOp: np.add, hlo.MultiplyOp: np.multiply}


@meaning(hlo.ReduceOp)
def reduce(op: hlo.ReduceOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """A fold of all inputs together."""
    count = len(op.inputs)
    dimensions, body = op.value("dimensions"), scope.body(op.body)
    applied = applied_op(op.body)
    if applied is not None and scope.dtype(op.results[0]) == args[0].dtype:
        rows, init = _rows(args[0], dimensions), args[1]
        text = text_of(rows.dtype)
        if applied in _RUNNING and text in ("f32", "f64"):
            return (_running(_RUNNING[applied], rows, init),)
        if not is_complex(text) and not (is_float(text) and applied in _RUNNING):
            return (_tree(body, rows, init),)
    dtypes = result_dtypes(op.body, scope)
    return reduction.reduce(args[:count], args[count:], dimensions=dimensions, body=body, dtypes=dtypes)


def _rows(x: Array, dimensions: Sequence[int]) -> Array:
    """The elements of each result element along the last dimension, in order."""
    kept = [d for d in range(x.ndim) if d not in dimensions]
    count = int(np.prod([x.shape[d] for d in dimensions], dtype=np.int64))
    return np.transpose(x, [*kept, *sorted(dimensions)]).reshape(*(x.shape[d] for d in kept), count)


@quiet
def _running(function: Any, rows: Array, init: Array) -> Array:
    """`accumulate` is sequential by definition, where NumPy's `reduce` adds in pairs."""
    start = np.broadcast_to(init, (*rows.shape[:-1], 1))
    return canonical_nan(np.array(function.accumulate(np.concatenate([start, rows], axis=-1), axis=-1)[..., -1]))


def _tree(body: Callable[..., list[Array]], rows: Array, init: Array) -> Array:
    while (half := rows.shape[-1] // 2) > 0:
        (folded,) = body(rows[..., :half], rows[..., half : 2 * half])
        rows = np.concatenate([folded, rows[..., 2 * half :]], axis=-1)
    start = np.broadcast_to(init, rows.shape[:-1])
    return body(start, rows[..., 0])[0] if rows.shape[-1] else np.array(start)


@meaning(hlo.ReduceWindowOp)
def reduce_window(op: hlo.ReduceWindowOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """A fold of each window."""
    count = len(op.inputs)
    body, dtypes = scope.body(op.body), result_dtypes(op.body, scope)
    return reduction.reduce_window(args[:count], args[count:], body=body, dtypes=dtypes, **op.window())


@meaning(hlo.SelectAndScatterOp)
def select_and_scatter(op: hlo.SelectAndScatterOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Two bodies of one result each."""
    result = reduction.select_and_scatter(
        *args,
        select=_single(scope.body(op.select)),
        scatter=_single(scope.body(op.scatter)),
        dtype=scope.dtype(op.results[0]),
        **op.window(),
    )
    return (result,)


@meaning(hlo.MapOp)
def map(op: hlo.MapOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The body at every element."""
    return (reduction.map(args, dimensions=op.value("dimensions"), computation=_single(scope.body(op.computation))),)


def _single(body: Callable[..., list[Array]]) -> Callable[..., Array]:
    """A body of one result."""

    def run(*values: Array) -> Array:
        return body(*values)[0]

    return run
