"""`Gradient` of `ai.onnx.preview.training`: derivatives of a part of the graph that the node stands in, by names.

The part is imported once more, at the values that the node is given, and gone through backward; nodes that compute the
same twice become one in the passes that follow. What the part reads besides `xs` and `zs` are constants of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add
from gcomp.frontends.onnx.model.containers import AnyValue
from gcomp.frontends.onnx.model.values import Value
from gcomp.frontends.onnx.operators.training import DOMAIN
from gcomp.ir import stablehlo as hlo


def gradient(ctx: NodeContext) -> Results:
    """The derivative of the number `y` in each of the tensors `xs`, where these and `zs` are the node's inputs."""
    from gcomp.autodiff import rows as rows  # fills the table of derivatives
    from gcomp.autodiff.sweeps import Reverse, differentiable, reached_values

    xs, zs, b = ctx.strings("xs") or [], ctx.strings("zs") or [], ctx.b
    if len(ctx.values) != len(xs) + len(zs):
        ctx.invalid(f"it has {len(ctx.values)} inputs", f"{len(xs) + len(zs)} are named by xs and zs")
    operands = [ctx[i] for i in range(len(xs))]
    if integers := [name for name, v in zip(xs, operands, strict=True) if not differentiable(v)]:
        ctx.invalid(f"its xs {', '.join(integers)} are no floats", "there is no derivative in them")
    # Importers take what is known of a constant for granted: a derivative in it would be lost.
    barrier = b.insert(hlo.OptimizationBarrierOp.of(*operands))
    apart = list(barrier.results)
    values: list[AnyValue] = [*map(Value.of, apart), *(ctx.any_value(i) for i in range(len(xs), len(ctx.values)))]
    given = dict(zip([_value_named(ctx, name) for name in (*xs, *zs)], values, strict=True))
    result = _number(ctx, ctx.importer.run_again(ctx, given, _value_named(ctx, ctx.string("y"))))
    ops = list(_after(barrier, b.point.insert_before))
    sweep = Reverse(b, reached_values(ops, apart))
    sweep.add(result, b.full_like(result, 1))
    sweep.run(ops)
    found = [sweep.derivative_at(x) for x in apart]
    for x, operand in zip(apart, operands, strict=True):
        found = [operand if v is x else v for v in found]
        x.replace_all_uses_with(operand)
    Rewriter.erase_op(barrier)
    return found


def _number(ctx: NodeContext, y: AnyValue | None) -> SSAValue:
    """The float that is differentiated."""
    if not isinstance(y, Value):
        ctx.invalid("its y is no tensor", "there is no derivative of it")
    if y.shape not in ((), (1,)):
        ctx.unsupported(f"its y has shape {[*map(str, y.shape)]}, and ONNX defines the derivative of one number only")
    if y.element not in ("f32", "f64", "f16", "bf16"):
        ctx.invalid(f"its y is of {y.element}", "there is no derivative of it")
    return y.read(ctx.b)


def _value_named(ctx: NodeContext, name: str) -> onnx_ir.Value:
    """The value of a name in the node's graph, or in one around it."""
    graph, scope = ctx.node.graph, ctx.scope
    own = [] if graph is None else [*graph.inputs, *(output for node in graph for output in node.outputs)]
    while scope is not None:
        own += scope.values
        scope = scope.parent
    if (found := next((v for v in own if v.name == name), None)) is None:
        ctx.invalid(f"it names `{name}`", "no value of the graph is called so")
    return found


def _after(first: Operation, end: Operation | None) -> Iterator[Operation]:
    op = first.next_op
    while op is not None and op is not end:
        yield op
        op = op.next_op


add("Gradient", gradient, 1, DOMAIN)
