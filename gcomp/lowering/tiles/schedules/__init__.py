"""From a launch to kernels: a schedule for each kind of kernel."""

from __future__ import annotations

from collections.abc import Mapping

from gcomp.dims import Ranges
from gcomp.errors import UnsupportedError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.schedules.attention import attention
from gcomp.lowering.tiles.schedules.contraction import contraction
from gcomp.lowering.tiles.schedules.kernel import Binding, Schedule, Scheduled, Scratch, Settings, Step
from gcomp.lowering.tiles.schedules.library import library
from gcomp.lowering.tiles.schedules.loop import loop
from gcomp.lowering.tiles.schedules.scan import scan, window
from gcomp.lowering.tiles.schedules.scatter import scatter
from gcomp.lowering.tiles.schedules.sort import sort
from gcomp.lowering.tiles.schedules.split import rows
from gcomp.lowering.tiles.schedules.winograd import winograd

SCHEDULES: Mapping[str, Schedule] = {
    "loop": loop,
    "reduction": rows,
    "window": window,
    "matmul": contraction,
    "convolution": contraction,
    "attention": attention,
    "winograd": winograd,
    "scan": scan,
    "scatter": scatter,
    "sort": sort,
    "library": library,
}
"""Kind of kernel -> its schedule."""


def schedule(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings | None = None) -> Scheduled:
    """The kernels of a launch. UnsupportedError where an op of it has no place in one."""
    found = SCHEDULES.get(launch.kind_name)
    if found is None:
        raise UnsupportedError(
            f"{launch.kind_name} kernels cannot be scheduled",
            where=where(launch),
            why=f"there is no schedule for them; there are for: {', '.join(SCHEDULES)}",
        )
    if all(0 in shape_of(result) for result in launch.results):
        return Scheduled(())
    return found(launch, name, ranges, settings or Settings())


__all__ = ["SCHEDULES", "Binding", "Schedule", "Scheduled", "Scratch", "Settings", "Step", "schedule"]
