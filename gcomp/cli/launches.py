"""The launches of a model for GPUs, as `gcomp inspect` shows them; their sources, as `gcomp compile --emit` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from gcomp.analysis.machines import MACHINES, Machine
from gcomp.dims import evaluate, parse
from gcomp.errors import UsageError
from gcomp.runtime.cuda.plan import CudaPlan, Kernel, Launch, from_text
from gcomp.runtime.model import Model

EMITTED = ("triton-source",)
_NARROW = ("*bf16", "*fp16", "*fp8")


def launch_tables(model: Model, sizes: Mapping[str, int]) -> list[Table]:
    """A table for each architecture and device segment: a row for each launch, in order."""
    plans = [from_text(model.plan.texts[s.text], s.text) for s in model.plan.segments]
    return [_table(plan, sizes) for found in plans for plan in found.values()]


def _table(plan: CudaPlan, sizes: Mapping[str, int]) -> Table:
    machine = MACHINES.get(plan.architecture)
    columns = ("kernel", "grid", "warps", "registers", "spilled", "shared", "flops", "bytes", "us", "from")
    table = Table(*columns, title=f"{sum(1 for _ in plan.launches())} launches on {plan.architecture}")
    for column in table.columns[1:-1]:
        column.justify = "right"
    total = 0.0
    for launch in plan.launches():
        kernel = plan.kernels[launch.kernel]
        grid = [evaluate(parse(size), sizes) for size in launch.grid]
        seconds = _seconds(launch, kernel, machine, sizes)
        total += seconds or 0.0
        label, _, place = launch.label.partition(" (")
        table.add_row(
            escape(label or kernel.name), " x ".join(map(str, grid)), str(kernel.warps), str(kernel.registers),
            str(kernel.stack or ""), f"{kernel.shared:,}", f"{_value(launch.flops, sizes):,}",
            f"{_value(launch.bytes, sizes):,}", "" if seconds is None else f"{seconds * 1e6:.1f}",
            escape(place.removesuffix(")")[:60]),
        )  # fmt: skip
    if machine is not None:
        table.caption = f"us: a roofline of {plan.architecture}, those in loops once; together {total * 1e6:.0f}"
    return table


def _value(size: str, sizes: Mapping[str, int]) -> int:
    return evaluate(parse(size), sizes)


def _seconds(launch: Launch, kernel: Kernel, machine: Machine | None, sizes: Mapping[str, int]) -> float | None:
    """How long a launch takes by the roofline of a machine."""
    if machine is None:
        return None
    narrow = any(p.type.startswith(_NARROW) for p in kernel.parameters)
    rate = machine.contraction if narrow else machine.wide_contraction
    return machine.launch + max(_value(launch.bytes, sizes) / machine.bandwidth, _value(launch.flops, sizes) / rate)


def emit(what: str, model: Model, folder: Path) -> int:
    """Write the sources of a model's kernels into a folder; how many there are."""
    if what not in EMITTED:
        raise UsageError(f"there is nothing called {what!r} to emit", fix=f"what there is: {', '.join(EMITTED)}")
    sources = {name: text for name, text in model.plan.texts.items() if name.endswith(".py")}
    if not sources:
        raise UsageError(
            f"a model for {model.target} has no Triton kernels", fix="compile for triton:sm_90 or the like"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in sources.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}", why=error.strerror or str(error)) from None
    return len(sources)
