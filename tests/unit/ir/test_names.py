"""No text has a name twice, whatever names values ask for."""

from __future__ import annotations

from itertools import permutations

import pytest

from gcomp.ir.program import Program
from gcomp.ir.types import tensor


@pytest.mark.parametrize("hints", [*permutations(("x", "x", "x_1", "x_1", "x_2")), ("x", "x_1_1", "x_1", "x_1")])
def test_values_with_like_names_are_told_apart(hints: tuple[str, ...]) -> None:
    program = Program.empty([(f"input {i}", tensor((i + 1,), "f32")) for i in range(len(hints))])
    for argument, hint in zip(program.block.args, hints, strict=True):
        argument._name = hint  # pyright: ignore[reportPrivateUsage]  # the setter takes numbers away
    program.finish([("out", program.block.args[-1])])
    again = Program.parse(program.text())
    assert [a.type for a in again.block.args] == [a.type for a in program.block.args]
    assert again.returned.operands[0] is again.block.args[-1]
