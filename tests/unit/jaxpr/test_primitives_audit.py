"""Every primitive that JAX lowers on CPUs has an importer, a reason why it has none, or a note why none is needed."""

from __future__ import annotations

from importlib import import_module

from jax._src.interpreters import mlir
from jax.extend.core import primitives

from gcomp.frontends.jaxpr import registry

INTERNAL = {
    "custom_lin": "autodiff's own: it never stays in a jaxpr",
    "shape_assertion": "jax.export's own: it adds them when it lowers",
    "unreachable": "what it stands for cannot be traced",
}


OPTIONAL = ("checkify", "multihost_utils", "pallas", "sparse")
"""Modules that register primitives when they are imported, as other tests may."""


def jax_primitives() -> set[str]:
    """All that have a lowering for CPUs, and all that JAX names for others to handle."""
    for module in OPTIONAL:
        import_module(f"jax.experimental.{module}")
    lowered = {p.name for p in [*mlir._lowerings, *mlir._platform_specific_lowerings["cpu"]]}
    return lowered | {getattr(primitives, name).name for name in dir(primitives) if name.endswith("_p")}


PRIMITIVES = jax_primitives()
"""Asked for before any test runs: some import libraries that register primitives of their own."""


def test_every_primitive_is_accounted_for() -> None:
    registry.load_families()
    known = registry.registered_primitives() | registry.REFUSED.keys() | INTERNAL.keys()
    assert sorted(PRIMITIVES - known) == []


def test_none_is_accounted_for_twice() -> None:
    registry.load_families()
    groups = [set(registry.registered_primitives()), set(registry.REFUSED), set(INTERNAL)]
    assert not groups[0] & groups[1] and not groups[2] & (groups[0] | groups[1])
