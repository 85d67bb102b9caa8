"""torch's own database of operators through the Dynamo backend, compared with eager torch.

    python -m tests.conformance.torch_opinfo.run              all of them; --write renews docs/generated/torch_opinfo.md
    python -m tests.conformance.torch_opinfo.run fft linalg   those whose names start with one of some texts
    python -m tests.conformance.torch_opinfo.run --gradients  gradients too, and modules of torch.nn in training
    python -m tests.conformance.torch_opinfo.run --peer       TorchInductor instead: renews inductor.txt, which is kept

Each operator and element type runs in a worker process, under limits of time and memory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rich.console import Console

from gcomp.testing.workers import Died, Limits, run_tasks
from tests.conformance import target_page
from tests.conformance.torch_opinfo import harness, peer
from tests.conformance.torch_opinfo.harness import DTYPES, Case
from tests.conformance.torch_opinfo.outcomes import CLASSES, NOBODYS, Outcome, run_case
from tests.progress import worker_progress

GIB = 1 << 30
GOOD = ("passed", "unsupported", *NOBODYS)
TASKS_PER_WORKER = 60


def main() -> int:
    """The exit code is 1 if gcomp gave a wrong result, an error that is no refusal, a crash or a timeout."""
    options = _options()
    console = Console(stderr=True)
    limits = Limits(options.seconds, int(options.memory * GIB))
    named = tuple(options.patterns or [""])
    known = all_cases(limits, options.gradients)
    chosen = [case for case in known if case.operator.startswith(named) and case.dtype in options.dtypes]
    if options.peer:
        return _peer(chosen, limits, console)
    results: dict[Case, Outcome] = {}
    work = partial(run_case, backend=f"gcomp {options.target}")
    for case, outcome in run_all(chosen[:: options.every], work, options.jobs, limits, console):
        results[case] = outcome
        if outcome.kind not in GOOD or (options.verbose and outcome.kind != "passed"):
            sys.stdout.write(f"{case}: {outcome.kind}: {outcome.detail}\n")
            sys.stdout.flush()
    sys.stdout.write(counted(results))
    if options.write and options.target == "cpu":
        command = "python -m tests.conformance.torch_opinfo.run --target cpu --write"
        target_page.renew("torch's operators", command, {str(case): o for case, o in results.items()}, NOBODYS)
    elif options.write:
        from tests.conformance.torch_opinfo import page

        page.write(results, peer.load())
    return 1 if any(outcome.kind not in GOOD for outcome in results.values()) else 0


def _peer(chosen: Sequence[Case], limits: Limits, console: Console) -> int:
    known = peer.load()
    missing = [case for case in chosen if case not in known]
    work = partial(run_case, backend="inductor", count=harness.PEER_SAMPLES)
    for case, outcome in run_all(missing, work, 1, limits, console):
        known[case] = outcome
        peer.save(known)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", help="only operators whose names start with one of these")
    parser.add_argument("--dtypes", nargs="*", default=DTYPES, choices=DTYPES)
    parser.add_argument("--target", default=target_page.OWN_PAGES, help="what gcomp compiles for")
    parser.add_argument("--every", type=int, default=1, help="only each n-th")
    parser.add_argument("--gradients", action="store_true", help="gradients too; modules of torch.nn as well")
    parser.add_argument("--peer", action="store_true", help="run what inductor.txt lacks through TorchInductor")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=180.0, help="time limit of each")
    parser.add_argument("--memory", type=float, default=8.0, help="memory limit of a worker in GiB")
    parser.add_argument("--write", action="store_true", help="renew the generated page")
    parser.add_argument("--verbose", action="store_true", help="list all that do not pass")
    options = parser.parse_args()
    if options.gradients and (options.write or options.peer):
        parser.error("there is no page of gradients, and none of them through TorchInductor")
    some = options.patterns or options.peer or tuple(options.dtypes) != DTYPES or options.every > 1
    if options.write and some:
        parser.error("--write needs all of them")
    if options.write and options.target not in (target_page.OWN_PAGES, "cpu"):
        parser.error(f"there is a page of {target_page.OWN_PAGES}, and one of cpu")
    return options


def all_cases(limits: Limits, gradients: bool = False) -> list[Case]:
    """All cases. A worker finds them out: what has loaded torch should not be forked."""
    find = harness.gradient_cases if gradients else harness.cases
    for _, result in run_tasks(lambda _: find(), ["cases"], 1, limits):
        if isinstance(result, list):
            return result
        raise RuntimeError(f"torch's database of operators does not load: {result}")
    raise AssertionError


def run_all(
    chosen: Sequence[Case], work: Callable[[Case], Outcome], jobs: int, limits: Limits, console: Console
) -> Iterator[tuple[Case, Outcome]]:
    """The outcome of each case as they end, with a progress bar."""
    with worker_progress(console) as progress:
        bar = progress.add_task("operators", total=len(chosen))
        for case, result in run_tasks(work, chosen, jobs, limits, per_worker=TASKS_PER_WORKER):
            match result:
                case Outcome():
                    yield case, result
                case Died(detail):
                    yield case, Outcome("crash", detail)
                case _:
                    yield case, Outcome("timeout", f"more than {limits.seconds:g} s")
            progress.update(bar, advance=1, refresh=True)


def counted(results: Mapping[Case, Outcome]) -> str:
    """Counts of outcomes, by element type."""
    lines = []
    for dtype in DTYPES:
        counts = Counter(outcome.kind for case, outcome in results.items() if case.dtype == dtype)
        lines.append(f"{dtype}: " + ", ".join(f"{counts[kind]} {kind}" for kind in CLASSES if counts[kind]) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
