"""Indexing maps say what ops read: an element of an operand changes no element of a result that does not read it.

The programs are generated, and the samples of each op; the reference interpreter is the judge, as in
`gcomp fuzz --what indexing`.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.reference.interpreter import Interpreter
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.indexing import Indexing
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.relations import (
    Ran,
    check_chains,
    check_contraction,
    check_paths,
    check_reads,
    check_simplification,
    ran,
)
from tests.support.samples import samples
from tests.support.thinning import examples, thinned

UNFIT = ("stablehlo.rng", "stablehlo.rng 2", "chlo.bessel_i1e 2")
"""Samples whose results are drawn, or whose element type has no function. Loops of samples need not end."""
SAMPLES = {name: text for name, text in samples().items() if name not in UNFIT and "while" not in name}


def ran_on_made_inputs(program: Program, seed: int) -> Ran | None:
    """Samples may have element types that no input has."""
    try:
        return ran(program, inputs_for(program, seed))
    except (GcompError, KeyError):
        return None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_reads_no_more_than_its_maps_say(name: str) -> None:
    program = Program.parse(SAMPLES[name])
    cases = (ran_on_made_inputs(program, seed) for seed in range(1, 8))
    case = next((case for case in cases if case is not None), None)
    for op in case.ops() if case is not None else ():
        check_reads(case, op, Seeded(5), 12)


@pytest.mark.parametrize("name", [n for n in SAMPLES if any(k in n for k in (".dot", "convolution"))])
def test_a_sample_of_a_contraction_is_the_sum_over_its_maps(name: str) -> None:
    program = Program.parse(SAMPLES[name])
    for op in program.block.ops:
        check_contraction(Interpreter(program), op, Seeded(1))


@pytest.mark.parametrize("seed", thinned(range(80), lambda seed: seed % 3 == 0))
def test_ops_read_no_more_than_their_maps_say(seed: int) -> None:
    """Contractions are sums over their maps, and composed maps products of relations."""
    program = seeded_program(seed)
    case = ran_on_made_inputs(program, seed)
    for op in case.ops() if case is not None else ():
        check_reads(case, op, Seeded(seed), 3)
        check_contraction(case.interpreter, op, Seeded(seed))
        check_chains(case, op)


@pytest.mark.parametrize("seed", thinned(range(60), lambda seed: seed % 3 == 0))
def test_a_program_reads_no_more_than_the_maps_of_its_paths_say(seed: int) -> None:
    """Through calls, composites, tuples, and the values that regions take from around them."""
    program = seeded_program(seed)
    if (case := ran_on_made_inputs(program, seed)) is not None:
        check_paths(case, Seeded(seed))


@settings(max_examples=examples(120), deadline=None)
@given(st.randoms(use_true_random=False))
def test_simplification_keeps_what_a_map_reads(random: Random) -> None:
    check_simplification(Seeded(random.randrange(1 << 30)))


def test_the_door_holds_ops_of_all_kinds_to_their_maps() -> None:
    door, coverage = Indexing(), Coverage()
    assert [found for number in range(200) if (found := door.attempt(number, 15, coverage)) is not None] == []
    assert {"stablehlo.reduce", "stablehlo.pad", "stablehlo.gather", "simplify"} <= coverage.rules.keys()
