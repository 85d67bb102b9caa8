"""The sweep: gradients of many programs, against finite differences and forward mode, and against JAX.

    python -m tests.conformance.gradients.run --programs 1000 --jax 100 --seed 0

It ends with the counts and, where something is wrong, with status 1 and the seeds that show it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

import jax
import numpy as np

from gcomp.errors import UnsupportedError
from tests.conformance.gradients import cases, finite
from tests.conformance.gradients.against_jax import compare
from tests.conformance.gradients.random_jax import function_of


def say(text: str) -> None:
    """Write a line at once, as runs are long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def sweep_finite(seeds: range) -> tuple[Counter[str], Counter[str], list[str]]:
    """Outcomes of generated programs, reasons of refusals, and what is wrong."""
    outcomes, refusals, wrong = Counter[str](), Counter[str](), list[str]()
    for seed in seeds:
        try:
            found = finite.check(finite.program_of(seed), seed)
        except Exception as error:
            found = finite.Found("wrong", f"{type(error).__name__}: {error}")
        outcomes[found.outcome] += 1
        if found.outcome == "refused":
            refusals[found.why] += 1
        if found.outcome == "wrong":
            wrong.append(f"program {seed}: {found.why}")
        if (seed - seeds.start) % 500 == 499:
            say(f"  up to program {seed}: {dict(outcomes.most_common())} {wrong}")
    return outcomes, refusals, wrong


def sweep_jax(seeds: range) -> tuple[Counter[str], list[str]]:
    """Outcomes of random JAX functions, and what is wrong."""
    outcomes, wrong = Counter[str](), list[str]()
    for number, seed in enumerate(seeds):
        if number % 200 == 199:
            jax.clear_caches()
        if number % 25 == 24:
            say(f"  up to function {seed}: {dict(outcomes.most_common())} {wrong}")
        function, args, steps = function_of(seed)
        try:
            compare(function, args, rtol=1e-6, atol=1e-8)
            outcomes["agrees"] += 1
        except UnsupportedError as error:
            outcomes["refused"] += 1
            wrong.append(f"function {seed} {steps}: {error.what}")
        except Exception as error:
            outcomes["wrong"] += 1
            text = " ".join(str(error).split())[:200]
            wrong.append(f"function {seed} {steps}: {type(error).__name__}: {text}")
    return outcomes, wrong


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
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    started, wrong = time.time(), list[str]()
    with np.errstate(all="ignore"):
        outcomes, refusals, found = sweep_finite(range(options.seed, options.seed + options.programs))
        wrong += found
        if options.programs:
            say(f"{options.programs} generated programs: {dict(outcomes.most_common())}")
            for why, count in refusals.most_common(10):
                say(f"  refused {count}: {why}")
        if options.jax:
            outcomes, found = sweep_jax(range(options.seed, options.seed + options.jax))
            wrong += found
            say(f"{options.jax} functions against JAX: {dict(outcomes.most_common())}")
        if options.cases:
            count, found = sweep_cases()
            wrong += found
            say(f"{count} cases against JAX: {len(found)} wrong")
    say(f"{time.time() - started:.0f} s")
    say("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
