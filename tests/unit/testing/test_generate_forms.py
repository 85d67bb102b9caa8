"""Forms that models have: each is valid, mostly runs, and has what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest

from gcomp.errors import GcompError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate import forms
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import finish, start_growth

HAS: dict[Callable[[Growth], None], Callable[[Program], bool]] = {
    forms.large_weight_seen_otherwise: lambda p: any(array.nbytes > 1024 for _, array in p.weights.items()),
    forms.convolution_padded_when_it_runs: lambda p: any(
        max(op.value("rhs_dilation")) > 1 < max(op.value("window_strides"))
        for op in p.ops() if isinstance(op, hlo.DynamicConvOp)
    ),
    forms.clamped_by_bounds_of_each: lambda p: any(
        isinstance(op, hlo.ConstantOp) and len(op.elements_attr.shape) == 4 and prod(op.elements_attr.shape) > 1
        for op in p.ops()
    ),
    forms.stack_in_nested_loops: lambda p: any(
        isinstance(inner, hlo.WhileOp)
        for op in p.ops() if isinstance(op, hlo.WhileOp)
        for inner in op.body.block.ops
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", HAS, ids=lambda form: form.__name__)
def test_forms_are_made(form: Callable[[Growth], None]) -> None:
    programs, ran = list[Program](), 0
    for seed in range(30):
        growth = start_growth(Seeded(seed), 4)
        form(growth)
        finish(growth)
        growth.program.verify()
        programs.append(growth.program)
        try:
            interpret(growth.program, inputs_for(growth.program, seed))
            ran += 1
        except GcompError:
            pass
    assert ran >= 20
    assert sum(map(HAS[form], programs)) >= 5
