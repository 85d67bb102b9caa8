"""One generator serves seeds, records and Hypothesis, and what fails shrinks to what is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, find, settings

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.testing.generate.choices import Choices, Recorded, Replayed, Seeded, shrink
from gcomp.testing.generate.directed import known_rules, random_matching
from gcomp.testing.generate.program import programs, random_program, strategy

QUICK = settings(max_examples=50, database=None, deadline=None, suppress_health_check=list(HealthCheck),
                 derandomize=True)  # fmt: skip


def has(program: Program, kind: type) -> bool:
    return any(isinstance(op, kind) for op in program.ops())


def test_hypothesis_shrinks_to_a_tiny_program() -> None:
    program = find(programs(3), lambda p: has(p, hlo.AddOp), settings=QUICK)
    assert program.op_count() <= 4
    assert len(program.inputs()) <= 2


def test_hypothesis_shrinks_directed_programs() -> None:
    rule = known_rules()["transpose-of-transpose"]
    programs_matching = strategy(lambda choices: random_matching(rule, choices, 4, verify=True))
    program = find(programs_matching, lambda p: True, settings=QUICK)
    assert program.op_count() <= 3


def test_a_record_gives_the_program_of_its_seed_again() -> None:
    for seed in range(40):
        recorded = Recorded(seed)
        text = random_program(recorded, 15).text()
        assert text == random_program(Seeded(seed), 15).text()
        assert text == random_program(Replayed(recorded.record), 15).text()


@pytest.mark.parametrize("kind", [hlo.ConvolutionOp, hlo.WhileOp, hlo.ScatterOp])
def test_a_record_shrinks_to_what_still_fails(kind: type) -> None:
    seed = next(s for s in range(1000) if has(random_program(Seeded(s), 15), kind))
    recorded = Recorded(seed)
    random_program(recorded, 15)

    def fails(choices: Choices) -> bool:
        return has(random_program(choices, 15), kind)

    program = random_program(Replayed(shrink(recorded.record, fails, tries=400)), 15, verify=True)
    assert has(program, kind)
    assert program.op_count() <= 11


def test_every_record_of_answers_is_a_valid_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        answers = [int(n) for n in rng.integers(0, 12, rng.integers(0, 120))]
        random_program(Replayed(answers), 12).verify()


def test_seeded_answers_stay_in_their_bounds() -> None:
    for make in (Seeded, Recorded):
        choices = make(3)
        assert {choices.integer(-1, 2) for _ in range(200)} == {-1, 0, 1, 2}
        assert {choices.near(4) for _ in range(200)} == {0, 1, 2, 3}
        assert {choices.weighted((1.0, 2.0, 4.0)) for _ in range(200)} == {0, 1, 2}
        assert sorted(choices.permutation(5)) == [0, 1, 2, 3, 4]
        assert choices.fill(np.array([5, 6]), 400).shape == (400,)
