"""The launches of a model, as `gcomp inspect` shows them: for GPUs, and for processors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.table import Table

from gcomp.analysis.machines import MACHINES, Machine
from gcomp.cli.tables import FittedTable
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


def _resources(kernel: Kernel) -> tuple[str, ...]:
    """What a GPU's kernel takes of a multiprocessor."""
    if not isinstance(kernel, CudaKernel):
        return ()
    return str(kernel.warps), str(kernel.registers), str(kernel.stack or ""), f"{kernel.shared:,}"


def _value(size: str, sizes: Mapping[str, int]) -> int:
    return evaluate(parse(size), sizes)


def launch_tables(model: Model, sizes: Mapping[str, int]) -> list[Table]:
    """A table for each architecture and device segment: a row for each launch, in order."""
    return [_table(plan, sizes) for plan in plans_of(model)]


def _table(plan: LaunchPlan, sizes: Mapping[str, int]) -> Table:
    own = ("warps", "registers", "stack", "shared") if isinstance(plan, CudaPlan) else ()
    columns = ("kernel", "grid", *own, "flops", "bytes", "us", "from")
    costs = costs_of(plan, sizes)
    title = f"{len(costs)} launches on {plan.architecture}"
    table = FittedTable(*columns, names=("kernel",), places=("from",), numbers=columns[1:-1], title=title)
    for cost in costs:
        table.add(
            cost.label, " x ".join(map(str, cost.grid)), *_resources(cost.kernel), f"{cost.flops:,}",
            f"{cost.bytes:,}", "" if cost.seconds is None else f"{cost.seconds * 1e6:.1f}", cost.place,
        )  # fmt: skip
    said: list[str] = []
    if plan.architecture in MACHINES:
        total = 1e6 * sum(cost.seconds or 0.0 for cost in costs)
        said.append(f"us: a roofline of {plan.architecture}, those in loops once; together {total:.0f}")
    if any(isinstance(cost.kernel, CudaKernel) and cost.kernel.stack for cost in costs):
        said.append("stack: bytes of a thread; registers spilled where it has as many as it can (255, or fewer in "
                    "more than 8 warps), elsewhere it holds tables, as of pi for large angles")  # fmt: skip
    table.caption = "\n".join(said) or None
    return table
