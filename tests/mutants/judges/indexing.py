"""Judges indexing maps: the laws of `tests/property/test_indexing.py`, on the samples of ops and generated programs.

What programs compute is known before anything is patched; it does not depend on maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from random import Random

from gcomp.ir.program import Program
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import seeded_program
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.property import test_indexing as laws

PROGRAMS, FORMULAS = 120, 1500
Check = Callable[[], object]


@lru_cache(maxsize=8)
def cases(seed: int) -> list[laws.Ran]:
    """Programs that ran: the samples of ops, then generated ones."""
    samples = [Program.parse(text) for text in laws.SAMPLES.values()]
    ran = [next(filter(None, (laws.ran(p, s) for s in range(1, 8))), None) for p in samples]
    first = seed * PROGRAMS
    ran += [laws.ran(seeded_program(number), number) for number in range(first, first + PROGRAMS)]
    return [case for case in ran if case is not None]


def checks(seed: int) -> Iterator[Check]:
    """Every law on every program, the quickest first."""
    known = cases(seed)
    for number, case in enumerate(known):
        yield partial(_elements, case, number, 40 if number < len(laws.SAMPLES) else 6)
        yield partial(laws.check_contractions, case.interpreter, case.program, number)
    simplifies: Callable[[Random], object] = laws.test_simplification_keeps_what_a_map_reads.hypothesis.inner_test  # type: ignore[attr-defined]
    for number in range(seed * FORMULAS, (seed + 1) * FORMULAS):
        yield partial(simplifies, Random(number))
    for case in known:
        yield partial(_chains, case)
    for number in range(seed * PROGRAMS, (seed + 1) * PROGRAMS):
        yield partial(laws.test_a_program_reads_no_more_than_the_maps_of_its_paths_say, number)


def _elements(case: laws.Ran, number: int, elements: int) -> None:
    for op in case.ops():
        laws.check_op(case, op, Seeded(number), elements)


def _chains(case: laws.Ran) -> None:
    for op in case.ops():
        for _, k, m in case.maps(op):
            laws.check_chain(case, m, op.operands[k], 3)


def failures(seed: int) -> list[str]:
    """What is wrong with nothing patched, of the programs' own laws."""
    return [] if cases(seed) else ["no program ran"]


@judge_of("indexing", failures)
def judge_indexing(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first law that does not hold."""
    tried = 0
    for check in checks(seed):
        tried += 1
        try:
            check()
        except Exception as error:
            return Kill(tried, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return Survival(tried)
