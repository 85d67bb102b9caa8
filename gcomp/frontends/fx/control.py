"""Higher-order operators: branches, loops, scans, maps, and graphs that are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.ir import Region, SSAValue

from gcomp.dims import Dim
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.elementwise import COMPARISONS
from gcomp.frontends.fx.registry import Results, imports, imports_table, refuses
from gcomp.frontends.fx.values import type_of
from gcomp.ir import looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import Tensor, shape_of, tensor, tensor_of


@imports("higher_order::cond")
def cond(ctx: NodeContext) -> Results:
    """One of two graphs, by a boolean."""
    pred, taken, other, operands = ctx.arg("0"), ctx.arg("1"), ctx.arg("2"), ctx.arg("3", ())
    if isinstance(pred, bool):
        return ctx.inline(taken if pred else other, operands)
    chosen = ctx.b.reshape(ctx["0"], ())
    types = _types(ctx)
    regions = [_branch(ctx, graph, operands, types) for graph in (taken, other)]
    return ctx.b.emit_all(hlo.IfOp, chosen, types=types, regions=regions) if types else []


def _branch(ctx: NodeContext, graph: Any, operands: Sequence[Any], types: Sequence[Tensor]) -> Region:
    return ctx.b.region([], lambda _: _check_results(ctx, ctx.inline(graph, operands), types))


def _types(ctx: NodeContext) -> list[Tensor]:
    """The types of the results, all of which must be tensors."""
    values = cast("Sequence[Any]", ctx.node.meta["val"])
    if odd := [value for value in values if not hasattr(value, "dtype")]:
        ctx.unsupported(f"a result is {odd[0]!r}, not a tensor", "return tensors: torch.tensor(number)")
    return [type_of(value) for value in values]


def _check_results(ctx: NodeContext, results: Sequence[Any], types: Sequence[Tensor]) -> Sequence[SSAValue]:
    """A graph's results, which must be tensors of these types."""
    for result, wanted in zip(results, types, strict=True):
        if not isinstance(result, SSAValue):
            ctx.unsupported(f"a result is {result!r}, not a tensor", "return tensors: torch.tensor(number)")
        if tensor_of(cast(SSAValue, result)) != wanted:
            ctx.unsupported(
                f"one graph gives {tensor_of(cast(SSAValue, result))} where {wanted} is expected",
                "return tensors of the same sizes and element types from each graph",
            )
    return results


@imports("higher_order::while_loop")
def while_loop(ctx: NodeContext) -> Results:
    """A loop over carried tensors as long as a condition holds."""
    b = ctx.b
    condition, body, carried, seen = ctx.arg("0"), ctx.arg("1"), _tensors(ctx, "2"), list(ctx.arg("3", ()))
    types = [tensor_of(v) for v in carried]

    def holds(args: Sequence[SSAValue]) -> list[SSAValue]:
        (found,) = _check_results(ctx, _as_list(ctx.inline(condition, [*args, *seen])), [tensor((), "i1")])
        return [found]

    def step(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return _check_results(ctx, ctx.inline(body, [*args, *seen]), types)

    return b.emit_all(hlo.WhileOp, *carried, types=types, regions=[b.region(types, holds), b.region(types, step)])


def _as_list(results: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", results) if isinstance(results, tuple | list) else [results]


def _tensors(ctx: NodeContext, name: str) -> list[SSAValue]:
    """A list of tensors among the arguments."""
    values: list[Any] = list(ctx.arg(name))
    if odd := [v for v in values if not isinstance(v, SSAValue)]:
        ctx.unsupported(f"it carries the number {odd[0]}", "carry tensors: torch.tensor(number)")
    return values


@imports("higher_order::scan")
def scan(ctx: NodeContext) -> Results:
    """A loop over the leading dimension of tensors, with carried values, that stacks what each step gives."""
    graph, carried, stacked, seen = ctx.arg("0"), _tensors(ctx, "1"), _tensors(ctx, "2"), list(ctx.arg("3", ()))
    types = [tensor_of(v) for v in carried]
    outputs = _types(ctx)[len(carried) :]

    def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
        results = ctx.inline(graph, [*before, *items, *seen])
        return [*_check_results(ctx, results[: len(types)], types), *results[len(types) :]]

    return looping.scan(ctx.b, shape_of(stacked[0])[0], carried, stacked, outputs, step)


@imports("higher_order::map_impl")
def map_(ctx: NodeContext) -> Results:
    """A graph for each element along the leading dimension of tensors, with its results stacked."""
    graph, stacked, seen = ctx.arg("0"), _tensors(ctx, "1"), list(ctx.arg("2", ()))

    def step(_: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return ctx.inline(graph, [*items, *seen])

    return looping.scan(ctx.b, shape_of(stacked[0])[0], [], stacked, _types(ctx), step)


# ---- graphs that are called ------------------------------------------------------------------------------------------


def _call(graph: int, first: int) -> Callable[[NodeContext], Results]:
    """The graph at one place among the arguments, of those from another place on."""

    def run(ctx: NodeContext) -> Results:
        count = len(ctx.node.args)
        return ctx.inline(ctx.arg(str(graph)), [ctx.arg(str(i)) for i in range(first, count)])

    return run


imports_table(
    {
        "higher_order::invoke_subgraph": _call(0, 2),
        "higher_order::strict_mode": lambda ctx: ctx.inline(ctx.arg("0"), list(ctx.arg("1"))),
        "higher_order::tag_activation_checkpoint": _call(0, 1),
        "higher_order::wrap": _call(0, 1),
        "higher_order::wrap_activation_checkpoint": _call(0, 1),
        "higher_order::wrap_with_set_grad_enabled": _call(1, 2),
    }
)
refuses(
    "it changes the element types of a graph, and torch has not written them into it: use run_decompositions()",
    "higher_order::wrap_with_autocast",
)
refuses(
    "it calls Python or prints from the running program: call it outside of the model",
    "higher_order::print", "higher_order::call_torchbind", "higher_order::autograd_function_apply",
)  # fmt: skip
refuses(
    "it calls kernels that are written for one device",
    "higher_order::triton_kernel_wrapper_functional", "higher_order::triton_kernel_wrapper_mutation",
)  # fmt: skip
refuses(
    "it changes its arguments in place", "higher_order::auto_functionalized", "higher_order::auto_functionalized_v2"
)
refuses(
    "it is for the gradient of a loop, and keeps as many values as the loop has steps, which depends on data: use scan",
    "higher_order::while_loop_stack_output",
)
refuses("torch's pointwise mode is for CUDA: use combine_mode='generic'", "higher_order::associative_scan")


# ---- Python's numbers: comparisons of sizes, which predicates are made of, and fractions of them ---------------------

_ARITHMETIC = {"add": hlo.AddOp, "mul": hlo.MultiplyOp, "sub": hlo.SubtractOp, "truediv": hlo.DivideOp}


def _numbers(ctx: NodeContext) -> list[SSAValue]:
    """Two numbers: sizes as they are, or both as Python's floats."""
    values = [ctx.arg("0"), ctx.arg("1")]
    whole = all(isinstance(value, int | Dim) for value in values)
    return [ctx.scalar(value, "i64" if whole else "f64") for value in values]


def _comparison(direction: str) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        left, right = _numbers(ctx)
        return ctx.b.compare(left, right, direction)

    return run


def _arithmetic(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    """Of floats: whole numbers of sizes are sizes, and have no importer."""
    return lambda ctx: ctx.b.emit(op, *(ctx.b.convert(value, "f64") for value in _numbers(ctx)))


imports_table({f"python::{name}": _comparison(direction) for name, direction in COMPARISONS.items()})
imports_table({f"python::{name}": _arithmetic(op) for name, op in _ARITHMETIC.items()})


def _logical(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    """Of truths that data or sizes decide."""
    return lambda ctx: ctx.b.emit(op, *(ctx.scalar(ctx.arg(str(i)), "i1") for i in range(len(ctx.node.args))))


imports_table(
    {
        **{f"python::{name}": _logical(hlo.AndOp) for name in ("and_", "sym_and")},
        **{f"python::{name}": _logical(hlo.OrOp) for name in ("or_", "sym_or")},
        **{f"python::{name}": _logical(hlo.NotOp) for name in ("not_", "sym_not")},
    }
)


@imports("python::sym_float")
def sym_float(ctx: NodeContext) -> Results:
    """A size as Python's float."""
    return ctx.scalar(ctx.arg("0"), "f64")
