"""What the launches of a model cost, by its plan and the roofline of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gcomp.analysis.machines import MACHINES, Machine
from gcomp.dims import evaluate, parse
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.cpu.plan import Kernel as CpuKernel
from gcomp.runtime.cuda.plan import CudaPlan
from gcomp.runtime.cuda.plan import Kernel as CudaKernel
from gcomp.runtime.model import Model
from gcomp.runtime.steps import Launch

LaunchPlan = CudaPlan | CpuPlan
Kernel = CudaKernel | CpuKernel


@dataclass(frozen=True)
class Cost:
    """What one launch costs: its flops and bytes, the rate of its arithmetic, and the seconds that a roofline says."""

    label: str
    place: str = field(compare=False)
    kernel: Kernel
    grid: tuple[int, ...]
    flops: int
    bytes: int
    rate: float
    seconds: float | None


def plans_of(model: Model) -> list[LaunchPlan]:
    """The plans of a model: for each device segment those of all architectures."""
    found = [model.on.launch_plans(model.plan.texts[s.text], s.text) for s in model.plan.segments]
    return [plan for plans in found for plan in plans.values()]


def costs_of(plan: LaunchPlan, sizes: Mapping[str, int]) -> list[Cost]:
    """The costs of a plan's launches, in order; those in loops and cases once."""
    machine = MACHINES.get(plan.architecture)
    return [_cost(launch, plan.kernels[launch.kernel], machine, sizes) for launch in plan.launches()]


def _cost(launch: Launch, kernel: Kernel, machine: Machine | None, sizes: Mapping[str, int]) -> Cost:
    flops, moved = _value(launch.flops, sizes), _value(launch.bytes, sizes)
    narrow = isinstance(kernel, CudaKernel) and kernel.is_narrow
    rate = 1.0 if machine is None else machine.rate(narrow=narrow)
    seconds = None if machine is None else machine.seconds(flops, moved, narrow=narrow)
    grid = tuple([_value(size, sizes) for size in launch.grid])
    return Cost(launch.title or kernel.name, launch.place, kernel, grid, flops, moved, rate, seconds)


def _value(size: str, sizes: Mapping[str, int]) -> int:
    return evaluate(parse(size), sizes)


__all__ = ["Cost", "Kernel", "LaunchPlan", "costs_of", "plans_of"]
