"""Which function imports which operator: the newest registered at or below the model's opset.

An importer is a function of a `NodeContext` that builds IR and returns the node's results in order: SSA values, known
`Value`s, sequences, optionals, or None for an optional result that nobody reads. Importing the family modules fills the
table.
"""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TypeAlias, TypeVar

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.model.containers import AnyValue

Results: TypeAlias = "Sequence[SSAValue | AnyValue | None]"
Importer: TypeAlias = Callable[[NodeContext], Results]
F = TypeVar("F", bound=Callable[[NodeContext], Results])

_IMPORTERS: dict[tuple[str, str], list[tuple[int, Importer]]] = {}
"""(domain, operator) -> (first opset version, importer), ascending."""

FAMILIES: Mapping[str, Sequence[str]] = {
    "": (
        "activation", "affine_grid", "attention", "branches", "contraction", "convolution", "data_dependent",
        "elementwise", "gradient", "indexing", "legacy", "linalg", "logical", "loop", "movement", "normalization",
        "optional", "padding", "pooling", "quantization", "quantized_products", "random", "recurrent", "reduction",
        "regions", "resize", "scan", "sequence", "shape", "signal", "slicing", "sorting", "text", "training", "vision",
    ),
    "com.microsoft": (
        "microsoft.attention", "microsoft.channels_last", "microsoft.crops", "microsoft.fused", "microsoft.gated",
        "microsoft.grouped_attention", "microsoft.inverse", "microsoft.normalization", "microsoft.packed",
        "microsoft.position_bias", "microsoft.rotary", "microsoft.quantized", "microsoft.quantized_layers",
        "microsoft.quantized_products", "microsoft.quantized_recurrent", "microsoft.standard",
    ),
    "ai.onnx.ml": ("ml.features", "ml.labels", "ml.linear", "ml.svm", "ml.trees"),
}  # fmt: skip
"""Domain -> the modules with importers of its operators. Some have operators of other domains besides."""


def imports(*operators: str, since: int = 1, domain: str = "") -> Callable[[F], F]:
    """Register a function as the importer of operators from the opset version `since` on."""

    def register(function: F) -> F:
        for operator in operators:
            add(operator, function, since, domain)
        return function

    return register


def imports_table(table: Mapping[str, Importer], since: int = 1, domain: str = "") -> None:
    """Register a family of alike operators."""
    for operator, importer in table.items():
        add(operator, importer, since, domain)


def add(operator: str, importer: Importer, since: int = 1, domain: str = "") -> None:
    """Register one importer. ValueError when the version has one already."""
    versions = _IMPORTERS.setdefault((domain, operator), [])
    if any(version == since for version, _ in versions):
        raise ValueError(f"{operator} has two importers for opset {since}")
    versions.append((since, importer))
    versions.sort(key=lambda entry: entry[0])


@cache
def load_families(domain: str | None = None) -> None:
    """Import the family modules of a domain, or of all, each of which registers its importers."""
    for family in chain(*FAMILIES.values()) if domain is None else FAMILIES.get(domain, ()):
        importlib.import_module(f"gcomp.frontends.onnx.operators.{family}")


def lookup(domain: str, operator: str, opset: int) -> Importer | None:
    """The importer of an operator at an opset version, or None."""
    load_families(domain)
    if (domain, operator) not in _IMPORTERS:
        load_families()
    versions = _IMPORTERS.get((domain, operator), [])
    position = bisect_right(versions, opset, key=lambda entry: entry[0])
    return versions[position - 1][1] if position else None


def registered_versions() -> dict[tuple[str, str], list[int]]:
    """(domain, operator) -> the opset versions at which an importer starts."""
    load_families()
    return {key: [version for version, _ in versions] for key, versions in _IMPORTERS.items()}
