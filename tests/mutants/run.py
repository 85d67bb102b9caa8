"""Kills mutants: named miscompilations that the property suites must catch, and correct changes that they must not.

    python -m tests.mutants.run              all mutants and controls; --seeds 5 on five seeds
    python -m tests.mutants.run cse          those whose names or targets contain a text
    python -m tests.mutants.run --reduce     what is caught is reduced too
    python -m tests.mutants.run --write      renews docs/generated/mutants.md (needs all mutants); reduces on the first
    seed python -m tests.mutants.run --keep DIR   goes on where a run that was ended left off

Each mutant is applied in a process of its own, forked from one that has made the programs and reference results that
the mutants of a target share. The exit code is 1 if a mutant survives or a control is killed.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from gcomp.passes.registry import all_passes
from gcomp.testing.workers import Died, Hung, Limits, run_tasks
from tests.mutants import page
from tests.mutants.judges import JUDGES, PREPARE, Kill, Survival, load_judges, passes
from tests.mutants.keeping import Kept
from tests.mutants.mutant import Mutant, all_mutants
from tests.progress import worker_progress

GIB = 1 << 30
_SECONDS, _LONGEST = 240.0, 3600.0
"""At most for a mutant, and for all of a target."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant on a seed. `kill` is None for one that survived, `broken` says why it did not run."""

    tried: int
    seconds: float
    kill: Kill | None = None
    broken: str = ""

    def right(self, mutant: Mutant) -> bool:
        """Whether it is as it must be."""
        return not self.broken and (self.kill is None) == mutant.right


@dataclass(frozen=True)
class Outcome:
    """Of the mutants of a target on a seed: what is wrong with nothing patched, verdicts, and seconds.

    `seconds` are those to prepare, `whole` those for all.
    """

    already: list[str]
    verdicts: list[Verdict]
    seconds: float
    whole: float


Results = dict[tuple[str, int], Verdict]
"""By name and seed."""


def main() -> int:
    """Judge mutants and print what became of them."""
    options = _options()
    console = Console(stderr=True)
    chosen = [m for m in all_mutants().values() if options.pattern in m.name or options.pattern == m.target]
    started = time.monotonic()
    results: Results = {}
    seconds: list[float] = []
    for seed in range(options.seed, options.seed + options.seeds):
        passes.reducing = options.reduce or (options.write and seed == options.seed)
        kept = Kept(options.keep, reducing=passes.reducing)
        found, taken = run_seed(seed, chosen, options.jobs, console, kept)
        results |= found
        seconds.append(taken)
    out = Console(width=max(120, console.width))
    out.print(_table(chosen, results))
    for (name, seed), verdict in results.items():
        if not verdict.right(all_mutants()[name]):
            out.print(f"[red]{name}, seed {seed}: {_what(all_mutants()[name], verdict)}", highlight=False)
    summary = page.summary(chosen, results, seconds)
    out.print(summary, highlight=False)
    if options.write:
        page.write(chosen, results, seconds)
    out.print(f"{time.monotonic() - started:.0f} s")
    return 0 if all(v.right(all_mutants()[name]) for (name, _), v in results.items()) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "pattern", nargs="?", default="", help="only mutants whose names contain this, or of this target"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many processes")
    parser.add_argument("--write", action="store_true", help="renew mutants.md; reduces on the first seed")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep outcomes there, and go on from those that are")
    parser.add_argument("--reduce", action="store_true", help="reduce the programs that kill mutants of passes")
    options = parser.parse_args()
    if options.write and options.pattern:
        parser.error("--write needs all mutants")
    return options


def run_seed(seed: int, chosen: Sequence[Mutant], jobs: int, console: Console, kept: Kept) -> tuple[Results, float]:
    """The verdict on each mutant, with a progress bar, and the seconds: of several runs, what each did of it."""
    load_judges()
    started, earlier = time.monotonic(), 0.0
    of_target: dict[str, list[str]] = {}
    for one in chosen:
        of_target.setdefault(one.target, []).append(one.name)
    # The longest first.
    tasks = [(seed, target, tuple(of_target[target])) for target in sorted(of_target, key=_cost, reverse=True)]
    results: Results = {}
    for _, target, names in tasks:
        if (known := kept.find(seed, target, names)) is not None:
            results |= {(name, seed): verdict for name, verdict in zip(names, known.verdicts, strict=True)}
            earlier += known.whole / jobs
    tasks = [task for task in tasks if (task[2][0], seed) not in results]
    with worker_progress(console) as progress:
        bar = progress.add_task(f"seed {seed}", total=len(chosen), completed=len(results))
        for (_, target, names), found in run_tasks(_of_target, tasks, jobs, Limits(_LONGEST, 8 * GIB), per_worker=1):
            if isinstance(found, (Died, Hung)):
                why = f"the process of {target} ended: {found.detail if isinstance(found, Died) else 'too slow'}"
                found = Outcome([], [Verdict(0, 0.0, broken=why)] * len(names), 0.0, 0.0)
            else:
                kept.keep(seed, target, names, found)
            for text in found.already:
                console.print(f"[yellow]seed {seed}: nothing patched, and {text}", highlight=False)
            console.print(f"[dim]seed {seed}: {target} prepared in {found.seconds:.1f} s", highlight=False)
            results |= {(name, seed): verdict for name, verdict in zip(names, found.verdicts, strict=True)}
            progress.update(bar, advance=len(names), refresh=True)
    return {(m.name, seed): results[m.name, seed] for m in chosen}, earlier + time.monotonic() - started


def _cost(target: str) -> tuple[bool, int]:
    return target not in all_passes(), sum(m.target == target for m in all_mutants().values())


def _of_target(task: tuple[int, str, tuple[str, ...]]) -> Outcome:
    """Prepare what the mutants of a target share, and judge each in a process of its own."""
    seed, target, names = task
    started = time.monotonic()
    already = PREPARE[target](seed) if target in PREPARE else None
    texts = [t for t in already if isinstance(t, str)] if isinstance(already, list) else []
    # What is there now is not looked at by the processes' collectors, which would copy it.
    gc.collect()
    gc.freeze()
    seconds = time.monotonic() - started
    verdicts = [_forked(name, seed) for name in names]
    return Outcome([*dict.fromkeys(texts)], verdicts, seconds, time.monotonic() - started)


def _forked(name: str, seed: int) -> Verdict:
    """Apply a mutant to a process that is thrown away, and judge it there."""
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            writer.send(_work(name, seed))
        finally:
            os._exit(0)
    writer.close()
    try:
        verdict = reader.recv() if reader.poll(_SECONDS) else Verdict(0, _SECONDS, broken=f"more than {_SECONDS:g} s")
    except EOFError:
        verdict = Verdict(0, 0.0, broken="the process ended")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return verdict


def _work(name: str, seed: int) -> Verdict:
    """Apply a mutant to this process, and judge it."""
    mutant, started = all_mutants()[name], time.monotonic()
    try:
        mutant.apply()
    except Exception as error:
        return Verdict(0, 0.0, broken=f"it cannot be applied: {type(error).__name__}: {error}")
    try:
        found = JUDGES[mutant.target](seed, mutant)
    except Exception as error:  # the judge's own fault: it says which
        return Verdict(0, 0.0, broken=f"its judge failed: {type(error).__name__}: {error}")
    seconds = time.monotonic() - started
    if isinstance(found, Kill):
        return Verdict(found.tried, seconds - (found.reduced.seconds if found.reduced else 0.0), found)
    return Verdict(found.tried if isinstance(found, Survival) else 0, seconds)


def _what(mutant: Mutant, verdict: Verdict) -> str:
    if verdict.broken:
        return verdict.broken
    return f"killed, though it is right: {verdict.kill.message}" if verdict.kill else f"survived: {mutant.about}"


def _table(chosen: Sequence[Mutant], results: Results) -> Table:
    table = Table(box=SIMPLE)
    for column in ("mutant", "target", "killed", "programs", "seconds", "ops", "blamed"):
        table.add_column(column, justify="right" if column in ("killed", "programs", "seconds", "ops") else "left")
    for mutant in chosen:
        table.add_row(*page.cells(mutant, results), style="" if page.fine(mutant, results) else "bold red")
    return table


if __name__ == "__main__":
    sys.exit(main())
