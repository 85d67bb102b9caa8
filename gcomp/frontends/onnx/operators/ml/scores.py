"""What the models of ai.onnx.ml share: rows of features, transforms of scores, and class labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import NamesValue
from gcomp.frontends.onnx.model.values import Array, Value
from gcomp.frontends.onnx.operators.reduction import arg_extremum
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.gathering import take
from gcomp.ir.types import dtype_text, rank_of, shape_of

ROUND = 1e-7
"""SOFTMAX_ZERO leaves scores up to this magnitude out."""


def feature_rows(ctx: NodeContext) -> SSAValue:
    """X as a matrix [N, F] of f64 where it is f64, else of f32; one row when its rank is 1."""
    b, x = ctx.b, ctx[0]
    if ctx.rank() not in (1, 2):
        ctx.invalid(f"X has rank {ctx.rank()}", "it must be [N, F], or [F] for one row")
    if ctx.rank() == 1:
        x = b.reshape(x, (1, *shape_of(x)))
    return b.convert(x, "f64" if ctx.element() == "f64" else "f32")


def floats(ctx: NodeContext, name: str) -> Array | None:
    """A list of floats as an array of f32, which is what ONNX stores; None when it is absent or empty."""
    value = ctx.numbers(name)
    return np.asarray(value, np.float32) if value else None


# ---- transforms of scores ----------------------------------------------------------------------------------------


def _softmax(b: Builder, x: SSAValue) -> SSAValue:
    attributes: dict[str, Any] = {"axis": rank_of(x) - 1}
    return composite(b, "gcomp.softmax", [x], attributes)[0]


def _softmax_zero(b: Builder, x: SSAValue) -> SSAValue:
    """Softmax in which a score of zero stays (about) zero; a row of zeros only becomes one half.

    ONNX Runtime divides zero by zero there; ONNX's reference says one half.
    """
    one = [rank_of(x) - 1]
    largest = b.reduce(hlo.MaximumOp, x, one, keepdims=True)
    away = b.compare(b.emit(hlo.AbsOp, x), b.scalar_like(x, ROUND), "GT")
    small = b.multiply(x, b.emit(hlo.ExponentialOp, b.emit(hlo.NegateOp, largest)))
    terms = b.select(away, b.emit(hlo.ExponentialOp, b.subtract(x, largest)), small)
    total = b.reduce(hlo.AddOp, terms, one, keepdims=True)
    empty = b.compare(total, b.scalar_like(x, 0), "EQ")
    return b.select(empty, b.scalar_like(x, 0.5), b.divide(terms, total))


def _probit(b: Builder, x: SSAValue) -> SSAValue:
    """Winitzki's approximation of the inverse of the normal distribution, as both implementations have it."""

    def number(value: float) -> SSAValue:
        return b.scalar_like(x, value)

    y = b.subtract(b.scale(x, 2), number(1))
    log = b.emit(hlo.LogOp, b.multiply(b.subtract(number(1), y), b.add(number(1), y)))
    v = b.add(b.scale(log, 0.5), number(2 / (math.pi * 0.147)))
    root = b.emit(hlo.SqrtOp, b.subtract(b.multiply(v, v), b.scale(log, 1 / 0.147)))
    size = b.scale(b.emit(hlo.SqrtOp, b.subtract(root, v)), math.sqrt(2))
    return b.select(b.compare(y, number(0), "LT"), b.emit(hlo.NegateOp, size), size)


TRANSFORMS: dict[str, Callable[[Builder, SSAValue], SSAValue]] = {
    "NONE": lambda b, x: x,
    "SOFTMAX": _softmax,
    "LOGISTIC": lambda b, x: b.emit(hlo.LogisticOp, x),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""`post_transform` -> its function on scores [N, E]."""


def transform_name(ctx: NodeContext) -> str:
    """The attribute `post_transform`. Raises InvalidModelError for one that ONNX does not define."""
    name = ctx.string("post_transform", "NONE")
    if name not in TRANSFORMS:
        ctx.invalid(f"post_transform is {name!r}", f"it must be one of {', '.join(TRANSFORMS)}")
    return name


# ---- labels ------------------------------------------------------------------------------------------------------


class Labels:
    """The labels of a classifier: integers or strings."""

    def __init__(self, ctx: NodeContext, integers: str) -> None:
        self.ctx = ctx
        ints, strings = ctx.integers(integers) or [], ctx.strings("classlabels_strings") or []
        if bool(ints) == bool(strings):
            both = "both" if ints else "neither"
            ctx.invalid(f"{both} of {integers} and classlabels_strings is given", "exactly one of them must be")
        self.ints: Array | None = np.asarray(ints, np.int64) if ints else None
        self.names = tuple(strings)
        self.count = len(ints or strings)

    def result(self, positions: Callable[[], SSAValue]) -> SSAValue | NamesValue | None:
        """The labels at positions [N] (i64), or None when nobody reads them."""
        if not _is_read(self.ctx, 0):
            return None
        if self.ints is None:
            return NamesValue(Value.of(positions()), self.names)
        if self.ints.tolist() == list(range(self.count)):
            return positions()
        return take(self.ctx.b, self.ctx.b.constant(self.ints), positions(), 0)

    def zero_or_one(self, positions: Callable[[], SSAValue]) -> SSAValue | NamesValue | None:
        """The positions themselves, for one class: 1 when it is the point's, else 0. It has no name for the other."""
        if self.ints is None and _is_read(self.ctx, 0):
            self.ctx.unsupported("it has one class, a string, and nothing says what points of no class are called")
        self.ints = None if self.ints is None else np.arange(self.count)
        return self.result(positions)


def _is_read(ctx: NodeContext, index: int) -> bool:
    if not ctx.wants(index):
        return False
    value = ctx.node.outputs[index]
    return value.is_graph_output() or bool(tuple(value.uses()))


def top_class(b: Builder, scores: SSAValue) -> SSAValue:
    """The position (i64) of each row's first greatest score."""
    return arg_extremum(b, scores, rank_of(scores) - 1, largest=True, last=False)


def above(b: Builder, column: SSAValue, limit: float) -> SSAValue:
    """1 (i64) for each of a column [N, 1] of scores that is above a limit, else 0; of shape [N]."""
    passed = b.compare(column, b.scalar_like(column, limit), "GT")
    return b.reshape(b.convert(passed, "i64"), shape_of(column)[:1])


def pair(b: Builder, first: SSAValue, second: SSAValue) -> SSAValue:
    """Two columns [N, 1] side by side."""
    return b.concatenate([first, second], 1)


def complement(b: Builder, column: SSAValue) -> SSAValue:
    """One minus a column."""
    return b.subtract(b.scalar_like(column, 1), column)


def constants(b: Builder, array: Any, like: SSAValue) -> SSAValue:
    """An array of numbers in the element type of `like`."""
    return b.constant(array, dtype_text(like.type))
