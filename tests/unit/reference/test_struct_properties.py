"""Properties that are records: dimension numbers are spelled out for the reference, others change no meaning."""

from __future__ import annotations

import pytest

from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.inputs import inputs_for
from tests.support.samples import samples


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("stablehlo.dot_general 3", "algorithm"),
        ("stablehlo.exponential 3", "result_accuracy"),
        ("stablehlo.tanh 3", "result_accuracy"),
    ],
)
def test_a_record_that_is_a_hint_changes_nothing(name: str, plain: str) -> None:
    program = Program.parse(samples()[name])
    inputs = inputs_for(program, 3, "whole")
    (given,) = interpret(program, inputs)
    op = next(iter(program.block.ops))
    assert op.properties.pop(plain)
    (without,) = interpret(program, inputs)
    assert given.tobytes() == without.tobytes()
