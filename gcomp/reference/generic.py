"""The ops that are one array function: their rows, found by name in `gcomp.reference.numpy`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from xdsl.ir import Operation

from gcomp.ir import stablehlo as hlo
from gcomp.ir.chlo import CHLO
from gcomp.ir.families import PLAIN
from gcomp.ir.native import GCOMP
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.reference.chlo import broadcasting
from gcomp.reference.numpy import (
    chlo,
    contraction,
    conversion,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    sorting,
)
from gcomp.reference.table import MEANINGS, Meaning, generic

_STABLEHLO = (elementwise, conversion, movement, indexing, contraction, linalg, normalization)
_CHLO = (chlo, elementwise, sorting, contraction)
_GCOMP = (chlo,)
_RESERVED = {"and": "and_", "or": "or_", "not": "not_"}
_ELEMENTWISE: tuple[ModuleType, ...] = (elementwise, conversion, chlo)
_NOT_ELEMENTWISE = frozenset({"top_k"})


def _find(name: str, modules: tuple[ModuleType, ...]) -> tuple[Callable[..., Any], bool] | None:
    """The public function of an op's name, and whether it is elementwise."""
    for module in modules:
        function = getattr(module, _RESERVED.get(name, name), None)
        if callable(function):
            return function, module in _ELEMENTWISE and name not in _NOT_ELEMENTWISE
    return None


def _rows() -> Iterator[tuple[type[Operation], Meaning]]:
    plain: Mapping[type[Operation], type[Operation]] = {**PLAIN}
    for dialect, modules in ((STABLEHLO, _STABLEHLO), (CHLO, _CHLO), (GCOMP, _GCOMP)):
        for op in dialect.operations:
            found = _find(plain.get(op, op).name.partition(".")[2], modules)
            if found is not None and op not in MEANINGS and op is not hlo.ReturnOp:
                function, elementwise_ = found
                row = broadcasting(function) if op in plain else generic(function)
                yield op, Meaning(row, elementwise=elementwise_)


MEANINGS.update(dict(_rows()))
"""Filled after the rows that are written by hand, which it must not replace."""
