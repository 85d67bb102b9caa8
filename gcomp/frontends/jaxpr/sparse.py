"""Sparse arrays (jax.experimental.sparse): their parts are arrays, and JAX defines what is done with them on those."""

from __future__ import annotations

from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.jax_api import sparse_definition
from gcomp.frontends.jaxpr.registry import Results, imports, refuses


@imports(
    "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_extract", "bcoo_fromdense", "bcoo_sort_indices",
    "bcoo_spdot_general", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose",
    "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense", "bcsr_todense",
    "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
    "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
)  # fmt: skip
def by_definition(ctx: EqnContext) -> Results:
    """What JAX lowers it to where there is no library for it."""
    return ctx.trace(sparse_definition(ctx.primitive), **ctx.params)


refuses(
    "it has no definition by other primitives: use dense arrays (todense)",
    "csr_spmm", "csr_spmv", "spsolve", "todense",
)  # fmt: skip
