"""`gcomp compile`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import gcomp
from gcomp.cli.lengths import LengthOptions, buckets_of
from gcomp.cli.options import Source, check_writable, read_arrays
from gcomp.errors import UsageError
from gcomp.passes.manager import Instrument, PrintAfterChange, Timing
from gcomp.runtime.strict_json import Json

_STEPS = {"import": "reading the model", "passes": "running passes", "emission": "lowering"}


def compile_command(model: Path, output: Path, target: str, source: Source, pipeline: str | None, verify: str,
                    donate: Sequence[str], timing: bool, print_after_change: bool,
                    verify_inputs: Path | None = None,
                    emitted: tuple[str, Path] | None = None, fetch: Sequence[str] = (),
                    checks: Sequence[str] = (), lengths: LengthOptions | None = None,
                    tuned: Path | None = None, memory_budget: str | None = None) -> None:  # fmt: skip
    """Compile `model` and write the artifact."""
    if verify not in ("off", "each", "full"):
        raise UsageError(f"--verify is off, each or full, not {verify!r}")
    check_writable(output)
    console, table = Console(stderr=True), Timing()
    watching: list[Instrument] = [table] if timing else []
    if print_after_change:
        watching.append(PrintAfterChange(Console(soft_wrap=True, highlight=False, markup=False).print))
    buckets, tables = buckets_of(lengths or LengthOptions(), model, target, source)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        compiled = gcomp.compile(
            model, target=target, **source.keywords(), pipeline=pipeline, verify=verify, donate=donate,
            fetch=fetch or None, checks=checks, buckets=buckets or None,
            verify_inputs=None if verify_inputs is None else read_arrays(verify_inputs),
            instruments=watching, progress=lambda step: progress.update(task, description=_STEPS.get(step, step)),
            reproducer=output.with_suffix(".crash.mlir"), tuned=tuned, memory_budget=memory_budget, prepare=False,
        )  # fmt: skip
        progress.update(task, description=f"writing {output}")
        compiled.save(output)
    if emitted is not None:
        from gcomp.cli.launches import emit

        count = emit(emitted[0], compiled, emitted[1])
        console.print(f"wrote {count} sources to {emitted[1]}", highlight=False, soft_wrap=True)
    for chosen in tables:
        console.print(chosen)
    if timing:
        console.print(timing_table(table, compiled.timings["passes"]))
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in compiled.timings.items())
    size = output.stat().st_size
    console.print(f"wrote {output} ({size / 1e6:.2f} MB) for {target}: {seconds}", highlight=False, soft_wrap=True)
    if compiled.verified is not None:
        console.print(verified_text(compiled.verified), highlight=False, markup=False, soft_wrap=True)


def verified_text(verified: Json) -> str:
    """What a verified compilation compared, in words: a line for the passes, and one for the target if it was held."""
    parts = cast("dict[str, dict[str, str]]", verified)
    return "\n".join(f"verified {name}: {part['told']}" for name, part in parts.items())


def timing_table(timing: Timing, total: float | None = None) -> Table:
    """The time that each pass took; with a `total` also what it has more: instruments, and reading weights."""
    table = Table("pass", "ms", "ops after", "changed", title="passes")
    for name, seconds, ops, changed in timing.rows:
        table.add_row(name, f"{seconds * 1e3:.1f}", str(ops), "yes" if changed else "")
    passes = sum(row[1] for row in timing.rows)
    if total is not None:
        table.add_row("between passes: checks, weights", f"{(total - passes) * 1e3:.1f}", "", "")
    table.add_row("all", f"{(passes if total is None else total) * 1e3:.1f}", "", "")
    return table
