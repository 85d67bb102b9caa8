"""Which function imports which primitive.

An importer is a function of an `EqnContext` that builds IR and returns the equation's results in order (one may stand
alone). Importing the family modules fills the table. Primitives that cannot be compiled have a reason in `REFUSED`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import SSAValue

from gcomp.frontends.jaxpr.context import EqnContext

Results: TypeAlias = "SSAValue | Sequence[SSAValue]"
Importer: TypeAlias = Callable[[EqnContext], Results]
F = TypeVar("F", bound="Callable[[EqnContext], Results]")

_IMPORTERS: dict[str, Importer] = {}
REFUSED: dict[str, str] = {}
"""Primitive -> why it has no importer."""

FAMILIES = (
    "calls", "contraction", "control", "conversion", "convolution", "cumulative", "devices", "elementwise", "fft",
    "indexing", "linalg", "movement", "printing", "random", "reduction", "sorting", "sparse", "special", "windows",
)  # fmt: skip


def imports(*primitives: str) -> Callable[[F], F]:
    """Register a function as the importer of primitives."""

    def register(function: F) -> F:
        imports_table(dict.fromkeys(primitives, function))
        return function

    return register


def imports_table(table: Mapping[str, Importer]) -> None:
    """Register a family of alike primitives. ValueError for one that has an importer."""
    for primitive, importer in table.items():
        if primitive in _IMPORTERS:
            raise ValueError(f"{primitive} has two importers")
        _IMPORTERS[primitive] = importer


def imports_definitions(table: Mapping[str, Callable[..., Any]]) -> None:
    """Register primitives that stand for JAX functions of their operands and parameters."""
    imports_table({primitive: partial(_trace, definition) for primitive, definition in table.items()})


def _trace(definition: Callable[..., Any], ctx: EqnContext) -> Results:
    return ctx.trace(definition, **ctx.params)


def refuses(reason: str, *primitives: str) -> None:
    """Say why primitives cannot be compiled."""
    REFUSED.update(dict.fromkeys(primitives, reason))


@lru_cache(1)
def load_families() -> None:
    """Import the family modules, each of which registers its importers."""
    for family in FAMILIES:
        importlib.import_module(f"gcomp.frontends.jaxpr.{family}")


def lookup(primitive: str) -> Importer | None:
    """The importer of a primitive, or None."""
    load_families()
    return _IMPORTERS.get(primitive)


def registered_primitives() -> frozenset[str]:
    """All primitives that have an importer."""
    load_families()
    return frozenset(_IMPORTERS)
