"""The launches of a model, as `gcomp inspect` shows them: for GPUs, and for processors."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from gcomp.analysis.machines import MACHINES
from gcomp.cli.tables import FittedTable
from gcomp.report.costs import Kernel, LaunchPlan, costs_of, plans_of
from gcomp.runtime.cuda.plan import CudaPlan
from gcomp.runtime.cuda.plan import Kernel as CudaKernel
from gcomp.runtime.model import Model


def _resources(kernel: Kernel) -> tuple[str, ...]:
    """What a GPU's kernel takes of a multiprocessor."""
    if not isinstance(kernel, CudaKernel):
        return ()
    return str(kernel.warps), str(kernel.registers), str(kernel.stack or ""), f"{kernel.shared:,}"


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
