"""A fold keeps its order when a transpose moves below it, and else the transpose stays."""

from __future__ import annotations

from itertools import combinations

import pytest

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.passes.base import PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.convert.sink_transposes import SinkTransposes

AXES = [axes for count in (1, 2, 3, 4) for axes in combinations(range(4), count)]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_sums_over_a_view_keep_every_bit(axes: tuple[int, ...]) -> None:
    program = Program.empty([("x", tensor((3, 7, 5, 11), "f32"))])
    b = Builder(program)
    program.finish([("y", b.reduce(hlo.AddOp, b.transpose(program.block.args[0], (0, 3, 1, 2)), axes))])
    original = program.clone()
    sunk = SinkTransposes().run(program, PassContext())
    assert sunk == (1 not in axes or not {2, 3} & set(axes))
    program.verify()
    MeaningCheck(samples=3)(SinkTransposes(), original, program)
