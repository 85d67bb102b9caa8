"""The sweep: gradients of many programs, against finite differences and forward mode, and against JAX.

    python -m tests.conformance.gradients.run --programs 1000 --jax 100 --seed 0

It ends with the counts and, where something is wrong, with status 1 and the seeds that show it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import jax
import numpy as np
from rich.console import Console

from gcomp.errors import UnsupportedError
from gcomp.testing import derivatives
from gcomp.testing.foreign import jax_families as cases
from gcomp.testing.foreign.jax_random import function_of
from gcomp.testing.fuzz.autodiff import random_f64
from gcomp.testing.workers import Died, Hung, Limits, run_tasks
from tests.conformance.gradients.against_jax import by_reference, by_xla, compare
from tests.progress import worker_progress

BLOCK, PER_WORKER = 50, 20
"""Seeds of a task, and tasks of a process."""
SECONDS, MEMORY = 900.0, 8 << 30
"""Limits of a task."""
VERIFIED = 4
"""Of so many generated programs, the derivatives of one are verified."""
BY_XLA = 20
"""Of so many functions against JAX, one is computed by XLA; the others by the reference, as JAX traced them."""


def say(text: str) -> None:
    """Write a line at once, as runs are long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


Counts = tuple[Counter[str], Counter[str], list[str]]
"""Outcomes, reasons of refusals, and what is wrong."""


def finite_block(seeds: range) -> Counts:
    """Generated programs, against finite differences and forward mode."""
    outcomes, refusals, wrong = Counter[str](), Counter[str](), list[str]()
    for seed in seeds:
        try:
            found = derivatives.check(random_f64(seed), seed, verify=seed % VERIFIED == 0)
        except Exception as error:
            found = derivatives.Found("wrong", f"{type(error).__name__}: {error}")
        outcomes[found.outcome] += 1
        if found.outcome == "refused":
            refusals[found.why] += 1
        if found.outcome == "wrong":
            wrong.append(f"program {seed}: {found.why}")
    return outcomes, refusals, wrong


def jax_block(seeds: range) -> Counts:
    """Random JAX functions, against JAX's gradients: traced by JAX, and every so often computed by XLA too."""
    outcomes, refusals, wrong = Counter[str](), Counter[str](), list[str]()
    for seed in seeds:
        function, args, steps = function_of(seed)
        try:
            compare(function, args, rtol=1e-6, atol=1e-8, run=by_xla if seed % BY_XLA == 0 else by_reference)
            outcomes["agrees"] += 1
        except UnsupportedError as error:
            outcomes["refused"] += 1
            refusals[error.what] += 1
            wrong.append(f"function {seed} {steps}: {error.what}")
        except Exception as error:
            outcomes["wrong"] += 1
            text = " ".join(str(error).split())[:200]
            wrong.append(f"function {seed} {steps}: {type(error).__name__}: {text}")
    jax.clear_caches()
    return outcomes, refusals, wrong


def sweep(title: str, block: Callable[[range], Counts], seeds: range, jobs: int) -> list[str]:
    """Run blocks of seeds, say what came of them, and give what is wrong."""
    outcomes, refusals, wrong = Counter[str](), Counter[str](), list[str]()
    blocks = [seeds[i : i + BLOCK] for i in range(0, len(seeds), BLOCK)]
    with worker_progress(Console(stderr=True)) as progress:
        bar = progress.add_task(title, total=len(seeds))
        for done, result in run_tasks(block, blocks, jobs, Limits(SECONDS, MEMORY), per_worker=PER_WORKER):
            if isinstance(result, Died | Hung):
                wrong.append(f"the process of {title} {done.start} to {done.stop - 1} ended: {result}")
            else:
                outcomes.update(result[0])
                refusals.update(result[1])
                wrong += result[2]
            progress.update(bar, advance=len(done), refresh=True)
    say(f"{len(seeds)} {title}: {dict(outcomes.most_common())}")
    for why, count in refusals.most_common(10):
        say(f"  refused {count}: {why}")
    return wrong


def sweep_cases() -> tuple[int, list[str]]:
    """How many cases of the table there are, and what is wrong."""
    wrong: list[str] = []
    count = 0
    for family, known in cases.FAMILIES.items():
        for name, (function, given) in known.items():
            count += 1
            try:
                compare(function, cases.arrays(given))
            except Exception as error:
                wrong.append(f"{family}, {name}: {type(error).__name__}: {error}")
    return count, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="generated programs, against finite differences")
    parser.add_argument("--jax", type=int, default=100, help="random functions, against JAX")
    parser.add_argument("--cases", action="store_true", help="the table of cases, against JAX")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many processes")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    started, wrong = time.time(), list[str]()
    with np.errstate(all="ignore"):
        for title, block, count in (
            ("generated programs", finite_block, options.programs),
            ("functions against JAX", jax_block, options.jax),
        ):
            if count:
                wrong += sweep(title, block, range(options.seed, options.seed + count), options.jobs)
        if options.cases:
            count, found = sweep_cases()
            wrong += found
            say(f"{count} cases against JAX: {len(found)} wrong")
    say(f"{time.time() - started:.0f} s")
    say("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
