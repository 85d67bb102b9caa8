"""Generated programs verify, print and parse back to themselves, run on their inputs, and cover all steps."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import rank_of, shape_of
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import STEPS, grow, random_program, seeded_program

SIZE = 15
COUNT = 500


@pytest.fixture(scope="module")
def growths() -> list[Growth]:
    return [grow(Seeded(seed), SIZE) for seed in range(COUNT)]


def test_every_program_verifies(growths: list[Growth]) -> None:
    for growth in growths:
        growth.program.verify("as generated")


def test_every_program_runs_on_its_inputs(growths: list[Growth]) -> None:
    for seed, growth in enumerate(growths):
        inputs = inputs_for(growth.program, seed)
        outputs = interpret(growth.program, inputs)
        assert len(outputs) == len(growth.program.outputs())


def test_every_program_reads_back_from_its_text(growths: list[Growth]) -> None:
    for growth in growths[:60]:
        for generic in (False, True):
            text = growth.program.text(generic=generic)
            assert Program.parse(text).text(generic=generic) == text


def test_equal_seeds_give_equal_programs_and_inputs(growths: list[Growth]) -> None:
    for seed in range(0, COUNT, 25):
        again = seeded_program(seed, SIZE)
        assert again.text() == growths[seed].program.text()
        assert list(again.weights) == list(growths[seed].program.weights)
        pairs = zip(inputs_for(again, seed), inputs_for(growths[seed].program, seed), strict=True)
        assert all(a.tobytes() == b.tobytes() and a.shape == b.shape for a, b in pairs)


def test_every_step_is_taken_and_every_op_of_it_is_made() -> None:
    taken: Counter[str] = Counter()
    made: set[str] = set()
    for seed in range(4000, 7000):
        growth = grow(Seeded(seed), SIZE)
        taken.update(growth.taken)
        made.update(op.name for op in growth.program.ops())
    assert not STEPS.keys() - taken.keys()
    wanted = {op.name for step in STEPS.values() for op in step.makes}
    assert not wanted - made


def test_programs_have_about_the_size_that_was_asked_for() -> None:
    for size in (5, 15, 40):
        counts = [random_program(Seeded(seed), size).op_count() for seed in range(100)]
        assert size <= np.mean(counts) <= size * 1.5 + 4


def test_programs_vary_in_what_passes_must_be_careful_about(growths: list[Growth]) -> None:
    def share(test: object) -> float:
        return sum(bool(test(g.program)) for g in growths) / len(growths)  # type: ignore[operator]

    def results(program: Program) -> list[object]:
        return [r for op in program.ops() if isinstance(op, GraphOp) for r in op.results]

    assert share(lambda p: p.ranges) > 0.08
    assert share(lambda p: any(0 in shape_of(r) for r in results(p) if hasattr(r.type, "shape"))) > 0.05
    assert share(lambda p: any(rank_of(r) >= 5 for r in results(p) if hasattr(r.type, "shape"))) > 0.03
    assert share(lambda p: any(isinstance(op, hlo.WhileOp | hlo.IfOp | hlo.CaseOp) for op in p.ops())) > 0.05
    assert share(lambda p: any(v in p.block.args for v in p.returned.operands)) > 0.03
    assert share(lambda p: len(set(p.returned.operands)) < len(p.returned.operands)) > 0.03
    assert share(lambda p: any(r.first_use is None for op in p.block.ops for r in op.results)) > 0.1


def test_most_ops_matter_for_an_output(growths: list[Growth]) -> None:
    live = total = 0
    for growth in growths:
        needed = set(growth.program.returned.operands)
        for op in reversed(list(growth.program.block.ops)):
            if op is growth.program.returned:
                continue
            total += 1
            if any(r in needed for r in op.results):
                live += 1
                needed.update(v for inner in op.walk() for v in inner.operands)
    assert live / total > 0.8


def test_a_number_makes_the_same_program_whichever_family_is_imported_first() -> None:
    code = """
import gcomp.testing.generate.passes
from gcomp.testing.generate.program import seeded_program
print("".join(seeded_program(number).text() for number in range(5)), end="")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "".join(seeded_program(number).text() for number in range(5))
