"""Tries mutants of the ONNX suite's models in worker processes, against ONNX Runtime, and prints what came of them.

    python tools/fuzz_onnx.py --count 10000 --seed 1            2 workers, one mutant in 25 through XLA too
    python tools/fuzz_onnx.py --count 10000 --hypothesis        Hypothesis chooses, and makes what fails smaller
    python tools/fuzz_onnx.py --seed 1 --only 4711              one mutant again, with its model and what happens

A mutant that takes too long, or more memory than it may, ends its worker and is counted as failed; a peer that dies
is not. Exits with 1 if any mutant failed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hypothesis
import onnx
from hypothesis import HealthCheck, Phase, strategies
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools import onnx_judge, onnx_mutants
from tools.mutant_workers import Limits, worker
from tools.onnx_judge import FAILED, Verdict
from tools.onnx_mutants import Mutant


class Campaign:
    """The tally of what is found."""

    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options = options
        self.console = console
        self.limits = Limits(options.seconds, options.mebibytes)
        self.outcomes: Counter[str] = Counter()
        self.lines: list[str] = []
        self.failures: list[str] = []
        self._lock = threading.Lock()

    def count(self, label: str, case: Mutant, verdict: Verdict) -> None:
        """Take a verdict down."""
        line = f"{label}\t{verdict.outcome}\t{case.name}\t{case.mutators}\t{verdict.problem or verdict.note}"
        with self._lock:
            self.outcomes[verdict.outcome] += 1
            self.lines.append(line)
            if verdict.outcome == FAILED:
                self.failures.append(line)
            if len(self.lines) % 1000 == 0:
                self.console.print(f"{len(self.lines)} tried, {len(self.failures)} failed", highlight=False)

    def seeded(self) -> None:
        """Judge the mutants of a seed, by their numbers."""
        numbers = iter(range(self.options.start, self.options.start + self.options.count))
        threads = [threading.Thread(target=self._judge_all, args=(numbers,)) for _ in range(self.options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _judge_all(self, numbers: Iterator[int]) -> None:
        with worker(self.limits) as judge:
            while True:
                with self._lock:
                    number = next(numbers, None)
                    if number is None:
                        return
                    case = onnx_mutants.mutant(self.options.seed, number)
                with_target = bool(self.options.every) and number % self.options.every == 0
                self.count(str(number), case, judge.judge(case, with_target))

    def driven(self) -> None:
        """Judge the mutants that Hypothesis makes; the first that fails is made smaller, and shown."""
        smallest: list[Mutant] = []
        with worker(self.limits) as judge:

            def tried(chance: Random) -> None:
                case = onnx_mutants.made(chance)
                # Chosen by Hypothesis too: what fails must fail again.
                with_target = bool(self.options.every) and chance.randrange(self.options.every) == 1
                verdict = judge.judge(case, with_target)
                self.count("-", case, verdict)
                if verdict.outcome == FAILED:
                    smallest[:] = [case]
                    raise AssertionError(verdict.problem.partition(" at ")[0][:80])

            run = hypothesis.given(strategies.randoms(use_true_random=False))(tried)
            run = hypothesis.settings(
                max_examples=self.options.count,
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            )(run)
            try:
                hypothesis.seed(self.options.seed)(run)()
            except (AssertionError, hypothesis.errors.Flaky):
                show(smallest[0], self.console)


def summary(campaign: Campaign, seconds: float) -> Table:
    """How many mutants ended how."""
    options, total = campaign.options, len(campaign.lines)
    how = "Hypothesis" if options.hypothesis else "seeded"
    table = Table(title=f"{total} mutants, {how}, seed {options.seed}, {seconds:.0f} s", title_justify="left")
    table.add_column("outcome")
    table.add_column("mutants", justify="right")
    table.add_column("%", justify="right")
    for outcome, count in campaign.outcomes.most_common():
        table.add_row(escape(outcome), str(count), f"{100 * count / total:.2f}")
    if not campaign.failures:
        table.add_row(FAILED, "0", "0.00")
    return table


def show(case: Mutant, console: Console) -> None:
    """One mutant, and what comes of it."""
    console.print(escape(f"{case.name}: {case.mutators}\n{onnx.printer.to_text(case.model)}"), highlight=False)
    for name, array in (case.inputs or {}).items():
        console.print(escape(f"{name}: {str(array)[:400]}"), highlight=False)
    if case.inputs is not None:
        for peer in ("runtime", "evaluator"):
            result = getattr(onnx_judge, peer)(case)
            console.print(escape(f"{peer}: {str(result)[:1500]}"), highlight=False)
    console.print(escape(str(onnx_judge.judge(case, True, lambda step: None))), highlight=False)


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hypothesis", action="store_true", help="Hypothesis makes the mutants, with one worker")
    parser.add_argument("--start", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=25, help="one in so many through XLA too; 0 for none")
    parser.add_argument("--seconds", type=float, default=60, help="the longest that a mutant may take")
    parser.add_argument("--mebibytes", type=int, default=4096, help="the most memory that a worker may add")
    parser.add_argument("--log", type=Path, help="write a line for each mutant")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one mutant, with its model")
    options = parser.parse_args()
    console = Console()
    if options.only is not None:
        show(onnx_mutants.mutant(options.seed, options.only), console)
        return
    onnx_mutants.samples()
    campaign, started = Campaign(options, console), time.monotonic()
    campaign.driven() if options.hypothesis else campaign.seeded()
    console.print(summary(campaign, time.monotonic() - started))
    for line in campaign.failures[:50]:
        console.print(escape(line.replace("\t", "  ")), highlight=False)
    if options.log:
        options.log.write_text("\n".join(campaign.lines) + "\n", encoding="utf-8")
    sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
