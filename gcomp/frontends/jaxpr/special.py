"""Special functions that JAX itself defines by simpler primitives; the others are one op each (`elementwise`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports_table

_special: Any = import_module("jax._src.lax.special")
_widened: Callable[..., Any] = _special._up_and_broadcast
"""Makes a definition for f32 and f64 one for all floats, on operands that broadcast."""

_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "bessel_i0e": _special.bessel_i0e_impl,
    "igamma": _widened(_special.igamma_impl),
    "igamma_grad_a": _widened(_special.igamma_grad_a_impl),
    "igammac": _widened(_special.igammac_impl),
    "regularized_incomplete_beta": _widened(_special.regularized_incomplete_beta_impl),
}
"""Primitive -> the JAX function that it stands for."""


def _by_definition(definition: Callable[..., Any]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return ctx.trace(definition)

    return run


imports_table({name: _by_definition(definition) for name, definition in _DEFINITIONS.items()})
