"""Regions as functions of arrays: the bodies of folds, scatters, sorts and maps.

A body is written on rank 0 tensors. Where each of its ops is elementwise, it is run once on arrays that hold the values
of many elements, rank 0 constants beside them; otherwise element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Operation

from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of
from gcomp.reference.table import MEANINGS, Array, Entry, Value

IDENTITIES: frozenset[type[Operation]] = frozenset(
    {hlo.ReshapeOp, hlo.BroadcastInDimOp, hlo.TransposeOp, hlo.ReverseOp}
)
"""Ops that between rank 0 tensors do nothing."""

TERMINATORS: frozenset[type[Operation]] = frozenset({hlo.ReturnOp, FuncReturnOp, sdy.ReturnOp})


def is_elementwise(block: Block, callee: Callable[[CallOp], Block | None], depth: int = 8) -> bool:
    """Whether every op of a block on rank 0 tensors may be run on arrays of one shape instead."""
    for op in block.ops:
        kind = type(op)
        if kind in TERMINATORS:
            continue
        if not all(isinstance(v.type, TensorType) and rank_of(v) == 0 for v in (*op.operands, *op.results)):
            return False
        if isinstance(op, CallOp):
            called = callee(op) if depth else None
            if called is None or not is_elementwise(called, callee, depth - 1):
                return False
        elif kind not in IDENTITIES and not (kind in MEANINGS and MEANINGS[kind].elementwise):
            return False
    return True


class Runner(Protocol):
    """Runs an entry to its end; `batched` says that arrays stand for rank 0 tensors."""

    def __call__(self, entry: Entry, *, batched: bool = False) -> list[Value]: ...


def batch_body(run: Runner, entry: Entry) -> Callable[..., list[Array]]:
    """The body as a function of arrays, run once for all elements."""

    def body(*arrays: Array) -> list[Array]:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        results = run(Entry(entry.block, arrays, entry.captured), batched=True)
        return [r if r.shape == shape else np.array(np.broadcast_to(r, shape)) for r in results]

    return body


def scalar_body(run: Runner, entry: Entry, dtypes: Sequence[np.dtype[np.generic]]) -> Callable[..., list[Array]]:
    """The body as a function of arrays, run once for each element."""

    def body(*arrays: Array) -> list[Array]:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        columns = [np.broadcast_to(a, shape) for a in arrays]
        results = [np.empty(shape, dtype) for dtype in dtypes]
        for index in np.ndindex(*shape):
            values = run(Entry(entry.block, [np.array(c[index]) for c in columns], entry.captured))
            for result, value in zip(results, values, strict=True):
                result[index] = value
        return results

    return body
