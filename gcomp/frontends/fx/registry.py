"""Which function imports which operator.

An importer is a function of a `NodeContext` that builds IR and returns the node's results in order (one may stand
alone). It is registered for an operator of ATen, all overloads of it (`add`) or one (`add.Tensor`), or for an operator
of another namespace in full (`prims::iota`). Importing the family modules fills the table. What has no importer is
decomposed by torch's own definition, where there is one (`exported`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from xdsl.ir import SSAValue

from gcomp.frontends.fx.context import NodeContext

Results: TypeAlias = "SSAValue | Sequence[SSAValue]"
Importer: TypeAlias = Callable[[NodeContext], Results]
F = TypeVar("F", bound="Callable[[NodeContext], Results]")

_IMPORTERS: dict[str, Importer] = {}
REFUSED: dict[str, str] = {}
"""Operator -> why it has no importer."""

FAMILIES = (
    "bessel", "complexes", "contraction", "control", "creation", "cumulative", "data_dependent", "definitions",
    "distances", "elementwise", "embeddings", "fft", "gamma", "grids", "histograms", "indexing", "linalg", "movement",
    "normalization", "polynomials", "pooling", "random", "reduction", "reparametrized", "resampling", "sorting",
    "special", "spectra", "strided",
)  # fmt: skip


def imports(*operators: str) -> Callable[[F], F]:
    """Register a function as the importer of operators."""

    def register(function: F) -> F:
        imports_table(dict.fromkeys(operators, function))
        return function

    return register


def imports_table(table: Mapping[str, Importer]) -> None:
    """Register a family of alike operators. ValueError for one that has an importer."""
    for operator, importer in table.items():
        key = operator if "::" in operator else f"aten::{operator}"
        if key in _IMPORTERS:
            raise ValueError(f"{key} has two importers")
        _IMPORTERS[key] = importer


def refuses(reason: str, *operators: str) -> None:
    """Say why operators cannot be compiled."""
    REFUSED.update({o if "::" in o else f"aten::{o}": reason for o in operators})


@lru_cache(1)
def load_families() -> None:
    """Import the family modules, each of which registers its importers."""
    for family in FAMILIES:
        importlib.import_module(f"gcomp.frontends.fx.{family}")


def lookup(operator: str) -> Importer | None:
    """The importer of an operator (`aten::add.Tensor`), its own or that of all its overloads, or None."""
    load_families()
    return _IMPORTERS.get(operator) or _IMPORTERS.get(operator.partition(".")[0])


def is_known(operator: str) -> bool:
    """Whether an operator is imported, or refused: in either case it must not be decomposed."""
    return lookup(operator) is not None or reason(operator) is not None


def reason(operator: str) -> str | None:
    """Why an operator is refused, if it is."""
    load_families()
    return REFUSED.get(operator) or REFUSED.get(operator.partition(".")[0])


def registered_operators() -> frozenset[str]:
    """All operators that have an importer, with or without an overload's name."""
    load_families()
    return frozenset(_IMPORTERS)
