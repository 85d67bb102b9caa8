"""From a launch to GPU kernels: a schedule for each kind of kernel."""

from __future__ import annotations

from collections.abc import Mapping

from gcomp.dims import Ranges
from gcomp.errors import UnsupportedError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.lowering.triton.schedules.contraction import contraction
from gcomp.lowering.triton.schedules.kernel import Binding, Schedule, Scheduled, Scratch, Settings, Step
from gcomp.lowering.triton.schedules.loop import flat, loop
from gcomp.lowering.triton.schedules.reduction import reduction

SCHEDULES: Mapping[str, Schedule] = {
    "loop": loop,
    "reduction": reduction,
    "window": flat,
    "matmul": contraction,
    "convolution": contraction,
}
"""Kind of kernel -> its schedule."""


def schedule(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings | None = None) -> Scheduled:
    """The GPU kernels of a launch. UnsupportedError where an op of it has no place in one."""
    found = SCHEDULES.get(launch.kind_name)
    if found is None:
        raise UnsupportedError(
            f"{launch.kind_name} kernels do not run on the GPU",
            where=where(launch),
            why=f"there is no schedule for them; there are for: {', '.join(SCHEDULES)}",
        )
    return found(launch, name, ranges, settings or Settings())


__all__ = ["SCHEDULES", "Binding", "Schedule", "Scheduled", "Scratch", "Settings", "Step", "schedule"]
