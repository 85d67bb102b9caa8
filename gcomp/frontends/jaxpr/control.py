"""Control flow: cond and switch, while, scan."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.frontends.jaxpr.avals import size_of, type_of
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of, tensor, tensor_of


@imports("cond")
def cond(ctx: EqnContext) -> Results:
    """The branch of an index, the last one where it is out of range. Two branches of a converted boolean are an if."""
    b, (index, *operands) = ctx.b, ctx.operands
    branches = ctx.params["branches"]
    if (platforms := ctx.params.get("branches_platforms")) is not None:
        return ctx.inline(branches[_own(ctx, platforms)], operands)
    regions = [b.region([], lambda _, jaxpr=jaxpr: ctx.inline(jaxpr, operands)) for jaxpr in branches]
    types = [type_of(v.aval) for v in ctx.eqn.outvars]
    if not types:
        return []
    pred = _converted_boolean(index)
    if len(regions) == 2 and pred is not None:
        return b.emit_all(hlo.IfOp, pred, types=types, regions=regions[::-1])
    if rank_of(index) == 0 and tensor_of(index) == tensor((), "i1"):
        return b.emit_all(hlo.IfOp, index, types=types, regions=regions[::-1])
    return b.emit_all(hlo.CaseOp, b.convert(index, "i32"), types=types, regions=regions)


def _converted_boolean(index: SSAValue) -> SSAValue | None:
    """The boolean that an index was made of, if it was."""
    op = index.owner
    if isinstance(op, hlo.ConvertOp) and tensor_of(op.operands[0]) == tensor((), "i1"):
        return op.operands[0]
    return None


@imports("platform_index")
def platform_index(ctx: EqnContext) -> Results:
    """Which of the lists of platforms names the CPU, or any platform."""
    return ctx.b.constant(_own(ctx, ctx.params["platforms"]), "i32")


def _own(ctx: EqnContext, platforms: Sequence[Sequence[str] | None]) -> int:
    for index, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return index
    ctx.unsupported("it has no branch for the CPU", "give platform_dependent a default, or a `cpu` branch")


@imports("while")
def while_(ctx: EqnContext) -> Results:
    """A loop over carried values while a condition holds; of a batch, each as long as its own condition holds."""
    b = ctx.b
    conditions, bodies = ctx.params["cond_nconsts"], ctx.params["body_nconsts"]
    seen, used = ctx.operands[:conditions], ctx.operands[conditions : conditions + bodies]
    carried = ctx.operands[conditions + bodies :]
    types = [tensor_of(v) for v in carried]

    def holds(args: Sequence[SSAValue]) -> SSAValue:
        return ctx.inline(ctx.params["cond_jaxpr"], [*seen, *args])[0]

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        found = holds(args)
        return [b.reduce(hlo.OrOp, found, range(rank_of(found))) if rank_of(found) else found]

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        after = ctx.inline(ctx.params["body_jaxpr"], [*used, *args])
        if not ctx.params["cond_jaxpr"].out_avals[0].shape:
            return after
        going = holds(args)
        return [_where(ctx, going, new, old) for new, old in zip(after, args, strict=True)]

    regions = [b.region(types, condition), b.region(types, body)]
    return b.emit_all(hlo.WhileOp, *carried, types=types, regions=regions)


def _where(ctx: EqnContext, going: SSAValue, new: SSAValue, old: SSAValue) -> SSAValue:
    """The new values where the leading dimensions of a batch still go on."""
    b = ctx.b
    return b.select(b.broadcast(going, shape_of(new), range(rank_of(going))), new, old)


@imports("scan")
def scan(ctx: EqnContext) -> Results:
    """A loop over the leading dimension of arrays, with carried values, that stacks what each step gives."""
    b, params = ctx.b, ctx.params
    consts, carries = params["num_consts"], params["num_carry"]
    fixed, carried, stacked = (
        ctx.operands[:consts],
        ctx.operands[consts : consts + carries],
        ctx.operands[consts + carries :],
    )
    outputs = [type_of(v.aval) for v in ctx.eqn.outvars[carries:]]

    def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return ctx.inline(params["jaxpr"], [*fixed, *before, *items])

    return looping.scan(b, size_of(params["length"]), carried, stacked, outputs, step, reverse=params["reverse"])
