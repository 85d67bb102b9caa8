"""What names stand for: ONNX values in scopes of graphs and functions, and symbols for sizes that data determine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir
from xdsl.dialects.builtin import LocationAttr

from gcomp import dims
from gcomp.dims import Dim, Range
from gcomp.frontends.onnx.model.containers import AnyValue


@dataclass
class Scope:
    """The values that a graph or function body sees: its own, and those of the graphs around it."""

    opsets: Mapping[str, int]
    parent: Scope | None = None
    values: dict[onnx_ir.Value, AnyValue] = field(default_factory=dict[onnx_ir.Value, AnyValue])
    attributes: Mapping[str, onnx_ir.Attr] = field(default_factory=dict[str, onnx_ir.Attr])
    caller: LocationAttr | None = None

    def find(self, value: onnx_ir.Value) -> AnyValue | None:
        """Look up an ONNX value in this scope and the scopes around it."""
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.values.get(value)) is not None:
                return found
            scope = scope.parent
        return None


class DataDependentSymbols:
    """The symbols that host steps bind, and their ranges."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = set(taken)
        self.ranges: dict[str, Range] = {}

    def fresh(self, name: str, most: int | None) -> Dim:
        """A new symbol, named like `name`, of 0 to `most`."""
        base = re.sub(r"[^a-z0-9]", "", name.lower()) or "n"
        count = 0
        while f"{base}{count}" in self._taken:
            count += 1
        symbol = f"{base}{count}"
        self._taken.add(symbol)
        self.ranges[symbol] = Range(0, most)
        return dims.symbol(symbol)
