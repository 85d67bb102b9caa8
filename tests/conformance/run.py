"""ONNX's own test suite, run by gcomp and by ONNX Runtime, with the same cases and the same comparison.

    python -m tests.conformance.run                     the whole suite; --write renews onnx_coverage.md and the lists
    python -m tests.conformance.run lstm                the cases whose names contain a text
    python -m tests.conformance.run --engine reference  gcomp's interpreter in place of XLA
    python -m tests.conformance.run --engine cpu        gcomp's own machine code; --write renews cpu_conformance.md

Each case runs in a worker process, under limits of time and memory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from gcomp.testing.workers import Died, Limits, run_tasks
from tests.conformance import coverage, lists, target_page
from tests.conformance.engines import ENGINES
from tests.conformance.outcomes import CLASSES, Outcome, run_case
from tests.conformance.suite import Case, cases
from tests.conformance.summary import SCOPES, Results, Summary
from tests.progress import worker_progress

GIB = 1 << 30


def main() -> int:
    """The exit code is 1 if gcomp gave a wrong result, an error that is no refusal, a crash or a timeout."""
    options = _options()
    console = Console(stderr=True)
    os.environ.setdefault("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")  # ONNX Runtime refuses newer opsets otherwise
    chosen = [case for name, case in sorted(cases().items()) if options.pattern in name]
    limits = Limits(options.seconds, int(options.memory * GIB))
    results = run_engines(chosen, options.engine, options.workers, limits, console)
    for engine in options.engine:
        _list_failures(engine, results[engine], chosen, options.verbose)
    out = Console(width=max(120, console.width))  # a pipe has no width, and the tables need some
    summaries = [Summary.of(engine, results[engine], chosen) for engine in options.engine]
    for scope in SCOPES:
        out.print(_table(summaries, scope))
    if missing := max(summary.missing for summary in summaries):
        out.print(f"[bold red]NOT RUN: {missing} cases have no data on this disk, and nothing is downloaded.")
    if options.write and options.engine == ["cpu"]:
        target_page.renew("ONNX's suite", "python -m tests.conformance.run --engine cpu --write", results["cpu"])
    elif options.write:
        lists.write(results["gcomp"])
        coverage.write(results, chosen)
    fine = ("passed", "rounding", "unsupported", "no data")
    bad = [o for o in results[options.engine[0]].values() if o.kind not in fine]
    return 1 if bad and options.engine[0] != "onnxruntime" else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="only cases whose names contain this")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="what to run (gcomp and onnxruntime)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a case")
    parser.add_argument("--memory", type=float, default=8.0, help="memory limit of a worker in GiB")
    parser.add_argument("--write", action="store_true", help="renew the generated page and lists")
    parser.add_argument("--verbose", action="store_true", help="also list refused cases, and ONNX Runtime's failures")
    options = parser.parse_args()
    options.engine = options.engine or ["gcomp", "onnxruntime"]
    if options.write and (options.pattern or options.engine not in (["gcomp", "onnxruntime"], ["cpu"])):
        parser.error("--write needs the whole suite, through gcomp and ONNX Runtime, or through cpu alone")
    return options


def run_engines(
    chosen: Sequence[Case], engines: Sequence[str], workers: int, limits: Limits, console: Console
) -> dict[str, Results]:
    """The outcome of each case on each engine, with a progress bar."""
    tasks = [(engine, case.name) for engine in engines for case in chosen]
    results: dict[str, Results] = {engine: {} for engine in engines}
    with worker_progress(console) as progress:
        bars = {engine: progress.add_task(engine, total=len(chosen)) for engine in engines}
        for (engine, name), result in run_tasks(_work, tasks, workers, limits):
            match result:
                case Outcome():
                    results[engine][name] = result
                case Died(detail):
                    results[engine][name] = Outcome("crash", detail)
                case _:
                    results[engine][name] = Outcome("timeout", f"more than {limits.seconds:g} s")
            progress.update(bars[engine], advance=1, refresh=True)
    return results


def _work(task: tuple[str, str]) -> Outcome:
    engine, name = task
    return run_case(cases()[name], engine)


def _list_failures(engine: str, results: Results, chosen: Sequence[Case], verbose: bool) -> None:
    by_name: Mapping[str, Case] = {case.name: case for case in chosen}
    for name, outcome in sorted(results.items()):
        mine = engine != "onnxruntime" and outcome.kind not in ("passed", "unsupported")
        if outcome.kind == "no data" or mine or (verbose and outcome.kind != "passed"):
            sys.stdout.write(f"{engine}: {name} ({by_name[name].category}): {outcome.kind}: {outcome.detail}\n")


def _table(summaries: Sequence[Summary], scope: str) -> Table:
    table = Table(title=f"ONNX's suite, cases {SCOPES[scope]}", box=SIMPLE)
    for column in ("", "cases", *CLASSES[:-1], "host steps", "fixed"):
        table.add_column(column, justify="left" if not column else "right")
    for summary in summaries:
        table.add_row(*summary.cells(scope))
    return table


if __name__ == "__main__":
    sys.exit(main())
