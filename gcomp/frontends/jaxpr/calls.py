"""Primitives that hold a jaxpr (calls, custom derivatives, checkpoints), inlined; and markers of JAX alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports, imports_table, refuses
from gcomp.frontends.jaxpr.shardings import named_sharding, place
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stopping import stop_derivative

_JAXPRS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "remat_opt": "fwd_jaxpr",
    "composite": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "custom_partitioning": "call",
    "linear_call": "callee",
}
"""Primitives that call a jaxpr, and the parameter that it is. Gradients, batches and partitions have happened: what an
author says of those was used where it was asked for."""
_PLACING = ("jit", "pjit")


def _call(parameter: str) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return ctx.inline(ctx.params[parameter], ctx.operands)

    return run


imports_table({name: _call(parameter) for name, parameter in _JAXPRS.items() if name not in _PLACING})


@imports(*_PLACING)
def jit(ctx: EqnContext) -> Results:
    """A call whose operands and results may be placed."""
    operands, jaxpr = ctx.operands, ctx.params["jaxpr"]
    given = _placed(ctx, operands, ctx.params.get("in_shardings"), jaxpr.in_avals)
    return _placed(ctx, ctx.inline(jaxpr, given), ctx.params.get("out_shardings"), jaxpr.out_avals)


def _placed(
    ctx: EqnContext, values: Sequence[SSAValue], shardings: Sequence[Any] | None, avals: Sequence[Any]
) -> list[SSAValue]:
    found: list[SSAValue] = []
    for value, said, aval in zip(values, shardings or [None] * len(values), avals, strict=True):
        sharding = named_sharding(said)
        found.append(value if sharding is None else place(ctx.b, value, sharding, aval))
    return found


@imports(
    "copy",
    "copy_p",
    "name",
    "layout_constraint",
    "pvary",
    "stage",
)
def same(ctx: EqnContext) -> Results:
    """What changes no value: names and layouts."""
    return ctx.operands


@imports("stop_gradient")
def stop_gradient(ctx: EqnContext) -> Results:
    """The same value, which is a constant for gradients that are still to be taken."""
    return stop_derivative(ctx.b, ctx[0])


@imports("tie")
def tie(ctx: EqnContext) -> Results:
    """The second operand; no compiler may do without the first."""
    return ctx[1]


@imports("dce_sink")
def dce_sink(ctx: EqnContext) -> Results:
    """`dce_sink` keeps a value alive in JAX; it has no results, and pure ops that feed it may be removed."""
    return []


@imports("optimization_barrier")
def optimization_barrier(ctx: EqnContext) -> Results:
    """Values that no compiler looks through."""
    return ctx.b.emit_all(hlo.OptimizationBarrierOp, *ctx.operands) if ctx.operands else []


# ---- what a compiled program cannot do ------------------------------------------------------------------------------

refuses(
    "it calls Python back from the running program",
    "debug_callback", "pure_callback", "io_callback", "inspect_sharding",
)  # fmt: skip
refuses("it raises an error in the running program: functionalize it with jax.experimental.checkify.checkify", "check")
refuses("it calls machine code from outside of the program", "ffi_call")
refuses("it calls StableHLO, which has no jaxpr: compile the exported function itself", "call_exported")
refuses("tokens order effects, and compiled programs have none", "after_all", "create_token")
refuses(
    "references are changed in place: return what changes, and pass it in",
    "addupdate", "create_linear", "get", "pin", "run_state", "swap", "unpin",
)  # fmt: skip
refuses(
    "Pallas kernels are for accelerators",
    "core_map", "mpmd_map", "multiple_of", "pallas_call", "reciprocal", "run_scoped", "with_memory_space_constraint",
)  # fmt: skip
refuses(
    "it is cuDNN's, and gcomp compiles for CPUs: use implementation='xla'",
    "dot_product_attention_bwd_wrapper", "dot_product_attention_fp8_bwd_wrapper",
    "dot_product_attention_fp8_fwd_wrapper", "dot_product_attention_fwd_wrapper", "scaled_matmul_wrapper",
)  # fmt: skip
