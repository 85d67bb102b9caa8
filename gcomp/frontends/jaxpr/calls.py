"""Jaxprs inside of jaxprs: calls, custom derivatives, checkpoints: imported in place. And what only JAX sees."""

from __future__ import annotations

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports, refuses
from gcomp.ir import stablehlo as hlo

_DEBUGGING = "it calls Python back from the running program"
_DEVICES = "gcomp compiles for one device"


@imports("jit", "pjit", "closed_call", "core_call", "call", "remat2", "checkpoint", "custom_vmap_call")
def call(ctx: EqnContext) -> Results:
    """A call: the jaxpr in its place. Gradients have happened, so a checkpoint is a call like others."""
    jaxpr = ctx.params["jaxpr"] if "jaxpr" in ctx.params else ctx.params["call_jaxpr"]
    return ctx.inline(jaxpr, ctx.operands)


@imports("custom_jvp_call", "custom_vjp_call")
def custom_derivative(ctx: EqnContext) -> Results:
    """A function with a derivative of its own, which was used where it was asked for."""
    return ctx.inline(ctx.params["call_jaxpr"], ctx.operands)


@imports(
    "copy",
    "copy_p",
    "stop_gradient",
    "name",
    "sharding_constraint",
    "layout_constraint",
    "device_put",
    "reshard",
    "pvary",
    "create_linear",
)
def same(ctx: EqnContext) -> Results:
    """What changes no value: gradients, names, layouts, placements on the one device."""
    return ctx.operands


@imports("optimization_barrier")
def optimization_barrier(ctx: EqnContext) -> Results:
    """Values that no compiler looks through."""
    return ctx.b.emit_all(hlo.OptimizationBarrierOp, *ctx.operands) if ctx.operands else []


refuses(_DEBUGGING, "debug_callback", "debug_print", "pure_callback", "io_callback")
refuses(
    _DEVICES,
    "all_gather", "all_to_all", "axis_index", "pmax", "pmin", "ppermute", "psum", "psum_invariant", "reduce_scatter",
    "ragged_all_to_all", "shard_map",
)  # fmt: skip
