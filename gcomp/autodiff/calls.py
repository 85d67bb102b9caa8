"""Derivatives of calls and composites: those of what functions compute, in fewer ops where a name says what that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from gcomp.autodiff.bodies import inlined
from gcomp.autodiff.sweeps import Forward, Reverse
from gcomp.autodiff.table import ByTangents, Expanded, Maybe, Row, expands, register
from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import decode
from gcomp.ir.builder import Builder
from gcomp.ir.composites import attention, is_trusted
from gcomp.ir.locations import where
from gcomp.ir.types import element_of


def _called(b: Builder, op: Any, name: str) -> Sequence[SSAValue]:
    function = b.program.function(name)
    if function is None:
        raise InvalidModelError(f"there is no function @{name}", where=where(op))
    return inlined(b, function.body.block, list(op.operands))


@expands(CallOp)
def call(b: Builder, op: Any) -> Sequence[SSAValue]:
    """What the function computes."""
    return _called(b, op, op.callee.root_reference.data)


# ---- composites that are known by name ----

Weighted = Callable[[Builder, SSAValue, SSAValue, SSAValue, Callable[[SSAValue], SSAValue]], SSAValue]
"""Of the operand and the result, as wide as the composite computes, the operand's tangent, and how to add up along the
axis: the result's tangent. The maximum that is subtracted has none: whatever is subtracted, the result is the same."""


def _softmax(b: Builder, x: SSAValue, y: SSAValue, t: SSAValue, total: Callable[[SSAValue], SSAValue]) -> SSAValue:
    return b.multiply(y, b.subtract(t, total(b.multiply(y, t))))


def _log_softmax(b: Builder, x: SSAValue, y: SSAValue, t: SSAValue, total: Callable[[SSAValue], SSAValue]) -> SSAValue:
    return b.subtract(t, total(b.multiply(b.emit(hlo.ExponentialOp, y), t)))


def _logsumexp(b: Builder, x: SSAValue, y: SSAValue, t: SSAValue, total: Callable[[SSAValue], SSAValue]) -> SSAValue:
    return total(b.multiply(b.emit(hlo.ExponentialOp, b.subtract(x, y)), t))


def _along_axis(rule: Weighted) -> Row:
    """The row of a composite along `axis`."""

    def tangents(b: Builder, op: Any, given: Sequence[Maybe]) -> Sequence[Maybe]:
        (x,), (tangent,), attributes = op.operands, given, _attributes(op)
        if tangent is None:
            return [None]
        wide, result = b.widened(x), op.results[0]
        if wide is not x:  # as if it had not been rounded
            (result,) = b.composite(op.composite_name, [wide], attributes)
        made = rule(
            b, wide, result, b.widened(tangent), lambda v: b.reduce(hlo.AddOp, v, (attributes["axis"],), keepdims=True)
        )
        return [b.convert(made, element_of(x))]

    return ByTangents(tangents)


def _weighed(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    return b.composite("gcomp.softmax", inputs, attributes)


def _attention(b: Builder, op: Any) -> Sequence[SSAValue]:
    """Its decomposition, in which the softmax is a composite."""
    return attention(b, list(op.operands), _attributes(op), _weighed)


def _attributes(op: Any) -> dict[str, Any]:
    return {name: decode(value) for name, value in op.attributes_of().items()}


NAMED: Mapping[str, Row] = {
    "gcomp.attention": Expanded(_attention),
    "gcomp.log_softmax": _along_axis(_log_softmax),
    "gcomp.logsumexp": _along_axis(_logsumexp),
    "gcomp.softmax": _along_axis(_softmax),
}
"""Composite name -> its row."""


def _decomposition(b: Builder, op: Any) -> Sequence[SSAValue]:
    return _called(b, op, op.decomposition_name)


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
