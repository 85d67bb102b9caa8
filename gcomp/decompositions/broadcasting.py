"""CHLO's ops that broadcast, as the plain op on operands that are broadcast before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.ir.builder import Builder
from gcomp.ir.families import PLAIN
from gcomp.ir.types import rank_of, shape_of


def broadcasting(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The plain op on operands of the result's shape; a smaller one stands at `broadcast_dimensions`, or at the end."""
    target = shape_of(op.result)
    # As plain values: the two dialects have an attribute each for the direction of a comparison.
    properties: dict[str, Any] = op.attributes_dict()
    dimensions: Sequence[int] | None = properties.pop("broadcast_dimensions", None)
    wide: list[SSAValue] = []
    for x in op.operands:
        last = range(len(target) - rank_of(x), len(target))
        wide.append(b.broadcast(x, target, last if dimensions is None or rank_of(x) == len(target) else dimensions))
    return b.emit_all(PLAIN[type(op)], *wide, types=op.result_types, **properties)
