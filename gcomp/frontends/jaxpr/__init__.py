"""The JAX frontend: functions, traced to jaxprs, to graph-level programs."""

from __future__ import annotations

from gcomp.frontends.jaxpr.importer import import_jaxpr
from gcomp.frontends.jaxpr.tracing import Traced, Tracing, import_jax, trace

__all__ = ["Traced", "Tracing", "import_jax", "import_jaxpr", "trace"]
