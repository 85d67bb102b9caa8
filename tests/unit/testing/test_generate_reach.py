"""Generated programs reach every class of bugs that the notes on the field collect (docs/generated/reach.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import STEPS, random_program
from tests.support.bug_classes import OUT_OF_SCOPE
from tests.support.reach import Run, classes, reached


def test_every_class_is_reached() -> None:
    hits: Counter[int] = Counter()
    for seed in range(600):
        program = random_program(Seeded(seed), 15)
        hits.update(reached(Run(program, inputs_for(program, seed))))
    assert not [c for c in classes() if not hits[c.number]]


def test_every_class_of_the_collection_is_measured_or_out_of_scope() -> None:
    assert sorted({c.number for c in classes()} | OUT_OF_SCOPE.keys()) == list(range(1, 43))


def test_a_plain_program_reaches_nothing() -> None:
    program = Program.empty([("x", tensor((2, 3), "f32")), ("y", tensor((2, 3), "f32"))])
    b = Builder(program)
    program.finish([("r", b.emit(hlo.TanhOp, b.add(*program.block.args)))])
    assert reached(Run(program, inputs_for(program, 0, "whole"))) == []


def test_the_page_lists_all_classes_and_steps() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "generated" / "reach.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    cells = [row for row in rows if len(row) == 3]
    assert [row[:2] for row in cells if row[0].isdigit()] == [[str(c.number), c.title] for c in classes()]
    assert all(float(row[2]) >= 1e-3 for row in cells if row[0].isdigit())
    assert set(STEPS) <= {row[0] for row in cells}
