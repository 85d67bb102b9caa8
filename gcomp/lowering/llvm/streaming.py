"""Results that are written past the caches: such a store does not read the line first that it overwrites, which is a
third of what a kernel moves that reads and writes as much. The next kernel would have to fetch them from memory."""

from __future__ import annotations

from xdsl.dialects.func import ReturnOp

from gcomp.dims import Ranges, product
from gcomp.dtypes import bit_width
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.schedules.kernel import Step

LEAST = 8 << 20
"""Bytes of a result from which on caches would not keep it for whoever called the program."""


def streamed_results(launch: LaunchOp, ranges: Ranges) -> frozenset[int]:
    """The numbers of a launch's results that no kernel reads, and that are larger than what caches keep."""
    return frozenset([
        n for n, result in enumerate(launch.results)
        if all(isinstance(use.operation, ReturnOp) for use in result.uses)
        and (ranges.bounds(product([*shape_of(result), bit_width(dtype_text(result.type))]))[0] or 0) >= 8 * LEAST
    ])  # fmt: skip


def streamed_arguments(step: Step, results: frozenset[int]) -> frozenset[int]:
    """The numbers of a kernel's arguments that are these results of its launch."""
    return frozenset([n for n, b in enumerate(step.bindings) if b.kind == "output" and b.index in results])


__all__ = ["streamed_arguments", "streamed_results"]
