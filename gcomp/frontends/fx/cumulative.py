"""Running extremes with their places, and running logarithms of sums (running sums and products: `pooling`)."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.looping import running
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, shape_of


def _running(b: Builder, op: type[GraphOp], x: SSAValue, axis: int) -> SSAValue:
    return running(b, x, axis, lambda y, z: b.emit(op, y, z), b.scalar_like(x, identity(op, dtype_text(x.type))))


def _extreme(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The extremes so far and their last places; NaN, once there, stays, and each new one counts."""
        b, x = ctx.b, ctx["self"]
        if not ctx.rank():
            return [x, b.full((), 0, "i64")]
        axis = ctx.axis()
        values = _running(b, op, x, axis)
        reached = b.compare(x, values, "EQ")
        if is_float(ctx.dtype()):
            reached = b.emit(hlo.OrOp, reached, b.compare(x, x, "NE"))
        places = b.iota(shape_of(x), axis)
        return [values, _running(b, hlo.MaximumOp, b.select(reached, places, b.full((), 0, "i64")), axis)]

    return run


imports_table({"cummax": _extreme(hlo.MaximumOp), "cummin": _extreme(hlo.MinimumOp)})


@imports("logcumsumexp")
def log_sums(ctx: NodeContext) -> Results:
    """The logarithm of the sum of the exponentials so far."""
    b, x = ctx.b, ctx["self"]
    if is_complex(ctx.dtype()):
        ctx.unsupported("its numbers are complex")
    if not ctx.rank():
        return x
    return running(b, x, ctx.axis(), lambda y, z: _log_add(b, y, z), b.scalar_like(x, float("-inf")))


def _log_add(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """log(exp(x) + exp(y))."""
    apart = b.subtract(x, y)
    most = b.maximum(x, y)
    found = b.add(
        most, b.emit(hlo.LogPlusOneOp, b.emit(hlo.ExponentialOp, b.emit(hlo.NegateOp, b.emit(hlo.AbsOp, apart))))
    )
    # Equal infinities are not apart; NaN stays.
    return b.select(b.compare(apart, apart, "NE"), b.add(x, y), found)
