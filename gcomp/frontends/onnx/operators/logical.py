"""Comparisons, logic, bitwise logic and selection."""

from __future__ import annotations

from collections.abc import Callable

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add, imports
from gcomp.frontends.onnx.operators.elementwise import binary
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp

_COMPARISONS = {"Equal": "EQ", "Less": "LT", "LessOrEqual": "LE", "Greater": "GT", "GreaterOrEqual": "GE"}
_LOGIC: dict[str, type[GraphOp]] = {
    "And": hlo.AndOp,
    "Or": hlo.OrOp,
    "Xor": hlo.XorOp,
    "BitwiseAnd": hlo.AndOp,
    "BitwiseOr": hlo.OrOp,
    "BitwiseXor": hlo.XorOp,
}


def _comparison(direction: str) -> Callable[[NodeContext], Results]:
    return lambda ctx: [ctx.b.compare(ctx[0], ctx[1], direction)]


for _name, _direction in _COMPARISONS.items():
    add(_name, _comparison(_direction), since=7)
for _name, _op in _LOGIC.items():
    add(_name, binary(_op), since=7)


@imports("Not", "BitwiseNot")
def complement(ctx: NodeContext) -> Results:
    """Not of booleans, BitwiseNot of integers."""
    return [ctx.b.emit(hlo.NotOp, ctx[0])]


@imports("Where")
def where(ctx: NodeContext) -> Results:
    """Where: broadcasting select."""
    return [ctx.b.select(ctx[0], ctx[1], ctx[2])]
