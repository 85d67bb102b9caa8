"""Derivatives of calls and composites: those of what functions compute, in fewer ops where a name says what that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from gcomp.autodiff.sweeps import Forward, Maybe, Reverse, Row, register
from gcomp.autodiff.table import ByTangents, Expanded, expands
from gcomp.decompositions.bodies import inline_block
from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import attention, composite, is_trusted
from gcomp.ir.locations import where
from gcomp.ir.types import element_of


def _call(b: Builder, op: Any, name: str) -> Sequence[SSAValue]:
    function = b.program.function(name)
    if function is None:
        raise InvalidModelError(f"there is no function @{name}", where=where(op))
    return inline_block(b, function.body.block, list(op.operands))


@expands(CallOp)
def call(b: Builder, op: Any) -> Sequence[SSAValue]:
    """What the function computes."""
    return _call(b, op, op.callee.root_reference.data)


# ---- composites that are known by name ----

Weights = Callable[[Builder, SSAValue, SSAValue], SSAValue]
"""Of the operand and the result: the operand's softmax."""
Tangent = Callable[[Builder, SSAValue, SSAValue, SSAValue], SSAValue]
"""Of that softmax, the operand's tangent, and the mean of it with these weights: the result's tangent."""


def _along_axis(weights: Weights, tangent: Tangent) -> Row:
    """The row of a composite along `axis` that subtracts a maximum, which has no derivative: the result is the same
    whatever is subtracted."""

    def tangents(b: Builder, op: Any, given: Sequence[Maybe]) -> Sequence[Maybe]:
        (x,), (t,), attributes = op.operands, given, op.attributes_of()
        if t is None:
            return [None]
        wide, result = b.widen(x), op.results[0]
        if wide is not x:  # as if it had not been rounded
            (result,) = composite(b, op.composite_name, [wide], attributes)
        p, t = weights(b, wide, result), b.widen(t)
        mean = b.reduce(hlo.AddOp, b.multiply(p, t), (attributes["axis"],), keepdims=True)
        return [b.convert(tangent(b, p, t, mean), element_of(x))]

    return ByTangents(tangents)


def _itself(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return y


def _of_logarithm(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.emit(hlo.ExponentialOp, y)


def _of_total(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.emit(hlo.ExponentialOp, b.subtract(x, y))


def _softmax(b: Builder, p: SSAValue, t: SSAValue, mean: SSAValue) -> SSAValue:
    return b.multiply(p, b.subtract(t, mean))


def _log_softmax(b: Builder, p: SSAValue, t: SSAValue, mean: SSAValue) -> SSAValue:
    return b.subtract(t, mean)


def _logsumexp(b: Builder, p: SSAValue, t: SSAValue, mean: SSAValue) -> SSAValue:
    return mean


def _weigh(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    return composite(b, "gcomp.softmax", inputs, attributes)


def _attention(b: Builder, op: Any) -> Sequence[SSAValue]:
    """Its decomposition, in which the softmax is a composite."""
    return attention(b, list(op.operands), op.attributes_of(), _weigh)


NAMED: Mapping[str, Row] = {
    "gcomp.attention": Expanded(_attention),
    "gcomp.log_softmax": _along_axis(_of_logarithm, _log_softmax),
    "gcomp.logsumexp": _along_axis(_of_total, _logsumexp),
    "gcomp.softmax": _along_axis(_itself, _softmax),
}
"""Composite name -> its row."""


def _decomposition(b: Builder, op: Any) -> Sequence[SSAValue]:
    return _call(b, op, op.decomposition_name)


_DECOMPOSED = Expanded(_decomposition)


class Composite(Row):
    """The row of its name, if it is canonical; else that of what its decomposition computes."""

    def push(self, sweep: Forward, op: Operation) -> None:
        _composite(sweep.b, op).push(sweep, op)

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        _composite(sweep.b, op).pull(sweep, op, cotangents)


def _composite(b: Builder, op: Any) -> Row:
    row = NAMED.get(op.composite_name)
    return row if row is not None and is_trusted(b.program, op) else _DECOMPOSED


register(Composite(), hlo.CompositeOp)
