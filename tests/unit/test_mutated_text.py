"""Hostile IR text: reading it ends in a program that verifies and round trips, or in one GcompError."""

from __future__ import annotations

import sys
from pathlib import Path

from gcomp.ir.program import Program
from gcomp.testing.mutate import run, texts
from tests.support.samples import samples as op_samples
from tests.support.thinning import examples

FILETESTS = Path(__file__).parents[1] / "filetests"
COUNT = examples(2400)


def samples() -> list[str]:
    """One sample for each form of each op, and the programs of the filetests."""
    programs = [path.read_text("utf-8") for path in sorted(FILETESTS.glob("*/*.mlir"))]
    return [*op_samples().values(), *programs]


def read(text: str) -> str:
    """Parse, and use all that a program says of itself; what is printed must read back to the same text."""
    program = Program.parse(text)
    _ = program.inputs(), program.outputs(), program.ranges, program.constraints, program.op_count()
    printed = program.text()
    assert Program.parse(printed).text() == printed
    return "read"


def test_mutated_texts_are_read_or_refused() -> None:
    tally = run(texts.cases(samples(), COUNT), read)
    sys.stdout.write(f"{tally.table()}\n")
    assert not tally.failures, str(tally)
    assert tally.cases == COUNT
    # The mutations are worth something: some are harmless, and every reason to refuse a text is met.
    outcomes = {"read", "ParseError", "VerificationError", "InvalidModelError", "UnsupportedError"}
    assert tally.by_outcome().keys() == outcomes
