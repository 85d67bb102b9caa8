"""What is a library's work elsewhere, but has elements that compute alone: random bits. A kernel for each result."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import d
from gcomp.dims import Ranges, product
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.frames import delinearize
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Settings,
    Step,
    blocks_of,
    is_covered,
    power_of_two,
)


def library(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A library kernel's programs. UnsupportedError where its op has no elements that compute alone."""
    return Scheduled(tuple([_one(launch, name, ranges, settings, j) for j in range(len(launch.results))]))


def _one(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, j: int) -> Step:
    """The kernel of one result, in blocks of its elements."""
    writer = KernelWriter(launch, f"{name}_{j}" if j else name, ranges)
    b, frame, shape = writer.b, writer.frame(), shape_of(launch.results[j])
    count, block = product(shape), settings.get("block", 512)
    block = min(block, power_of_two(count)) if isinstance(count, int) else block
    base = b.multiply(b.program_id(0), b.position(block))
    frame.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
    access = frame.access(shape, delinearize(d(0), shape))
    writer.store(j, frame, access, writer.elements(frame)(writer.values[j], access))
    return writer.step((blocks_of(count, block),), max(1, min(4, block // 128)))


__all__ = ["library"]
