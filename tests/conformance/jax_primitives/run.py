"""JAX's own harnesses of its primitives through gcomp, compared with jax.jit.

    python -m tests.conformance.jax_primitives.run                 all; --write renews docs/generated/jax_primitives.md
    python -m tests.conformance.jax_primitives.run gather fft      those whose names start with one of some texts
    python -m tests.conformance.jax_primitives.run --every 20      a sample
    python -m tests.conformance.jax_primitives.run --target cpu    through another target

Each runs in a worker process, under limits of time and memory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from gcomp.testing.workers import Died, Limits, run_tasks
from tests.conformance import target_page
from tests.conformance.jax_primitives import harness
from tests.conformance.jax_primitives.outcomes import CLASSES, Outcome, run_case
from tests.progress import worker_progress

GIB = 1 << 30
GOOD = ("passed", "rounding", "unsupported", "jax cannot")


def main() -> int:
    """The exit code is 1 if gcomp gave a wrong result, an error that is no refusal, a crash or a timeout."""
    options = _options()
    console = Console(stderr=True)
    limits = Limits(options.seconds, int(options.memory * GIB))
    groups = names_and_groups(limits)
    named = [name for name in sorted(groups) if name.startswith(tuple(options.patterns or [""]))]
    chosen = named[options.first :: options.every]
    results = run_all(chosen, partial(run_case, target=options.target), options.jobs, limits, console)
    for name, outcome in sorted(results.items()):
        if outcome.kind not in GOOD or (options.verbose and outcome.kind != "passed"):
            sys.stdout.write(f"{name}: {outcome.kind}: {outcome.detail}\n")
    Console(width=max(120, console.width)).print(table(results, groups))
    if options.write and options.target == "cpu":
        command = "python -m tests.conformance.jax_primitives.run --target cpu --write"
        target_page.renew("JAX's cases of its primitives", command, results, ("jax cannot",))
    elif options.write:
        from tests.conformance.jax_primitives import page

        page.write(results, groups)
    return 1 if any(outcome.kind not in GOOD for outcome in results.values()) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", help="only those whose names start with one of these")
    parser.add_argument("--every", type=int, default=1, help="only each n-th")
    parser.add_argument("--first", type=int, default=0, help="from the n-th on")
    parser.add_argument("--target", default=target_page.OWN_PAGES, help="what gcomp compiles for")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each")
    parser.add_argument("--memory", type=float, default=8.0, help="memory limit of a worker in GiB")
    parser.add_argument("--write", action="store_true", help="renew the generated page")
    parser.add_argument("--verbose", action="store_true", help="also list roundings, refusals and what JAX cannot")
    options = parser.parse_args()
    if options.write and (options.patterns or options.first or options.every > 1):
        parser.error("--write needs all of them")
    if options.write and options.target not in (target_page.OWN_PAGES, "cpu"):
        parser.error(f"there is a page of {target_page.OWN_PAGES}, and one of cpu")
    return options


def names_and_groups(limits: Limits) -> dict[str, str]:
    """Name -> group. A worker finds them out: loading them starts JAX, and what has started must not be forked."""
    for _, result in run_tasks(lambda _: harness.groups(), ["groups"], 1, limits):
        if isinstance(result, dict):
            return result
        raise RuntimeError(f"JAX's harnesses do not load: {result}")
    raise AssertionError


def run_all(
    chosen: Sequence[str], work: Callable[[str], Outcome], jobs: int, limits: Limits, console: Console
) -> dict[str, Outcome]:
    """The outcome of each harness, with a progress bar."""
    results: dict[str, Outcome] = {}
    with worker_progress(console) as progress:
        bar = progress.add_task("harnesses", total=len(chosen))
        for name, result in run_tasks(work, chosen, jobs, limits):
            match result:
                case Outcome():
                    results[name] = result
                case Died(detail):
                    results[name] = Outcome("crash", detail)
                case _:
                    results[name] = Outcome("timeout", f"more than {limits.seconds:g} s")
            progress.update(bar, advance=1, refresh=True)
    return results


def table(results: Mapping[str, Outcome], groups: Mapping[str, str]) -> Table:
    """Counts of outcomes by group."""
    counts: dict[str, Counter[str]] = {}
    for name, outcome in results.items():
        counts.setdefault(groups[name], Counter())[outcome.kind] += 1
    found = Table(title="JAX's harnesses of its primitives", box=SIMPLE)
    for column in ("group", "cases", *CLASSES):
        found.add_column(column, justify="left" if column == "group" else "right")
    rows = [*sorted(counts.items()), ("all", sum(counts.values(), Counter[str]()))]
    for group, row in rows:
        found.add_row(group, str(row.total()), *(str(row[kind] or "") for kind in CLASSES))
    return found


if __name__ == "__main__":
    sys.exit(main())
