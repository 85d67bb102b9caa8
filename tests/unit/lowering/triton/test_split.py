"""Reductions of few long rows, cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import compiled, interpreted, launched, numbers, program_of

OPS = {"add": hlo.AddOp, "maximum": hlo.MaximumOp, "minimum": hlo.MinimumOp}


def reduced(op: str, shape: tuple[int, ...], dtype: str, axes: Sequence[int]) -> Program:
    """A reduction."""
    return program_of([tensor(shape, dtype)], lambda b, v: [b.reduce(OPS[op], v[0], axes)])


def softmax(shape: tuple[int, ...], axis: int) -> Program:
    """Two reductions of which the second waits for the first, and the elements after both."""

    def build(b: Builder, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        (x,) = values
        shifted = b.emit(hlo.ExponentialOp, b.subtract(x, b.reduce(hlo.MaximumOp, x, (axis,), keepdims=True)))
        total = b.reduce(hlo.AddOp, shifted, (axis,), keepdims=True)
        return [b.divide(shifted, total)]

    return program_of([tensor(shape, "f32")], build)


CUT = [{"pieces": 3, "columns": 8, "rows": 1}, {"pieces": 4, "columns": 4, "rows": 2}]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_pieces_make_the_whole(op: str, dtype: str, axes: Sequence[int]) -> None:
    for settings in CUT:
        values = [numbers(0, (3, 61), dtype, 9)]
        assert check_kernel(reduced(op, (3, 61), dtype, axes), "reduction", values, Settings(settings)) == []


@pytest.mark.parametrize("axis", [0, 1])
def test_what_waits_for_a_row_waits_for_all_of_its_pieces(axis: int) -> None:
    x = numbers(0, (5, 37), "f32")
    x[2, 3] = np.inf
    for settings in CUT:
        assert check_kernel(softmax((5, 37), axis), "reduction", [x], Settings(settings)) == []
        assert len(launched(softmax((5, 37), axis), "reduction", **settings)[1].steps) == 3


def test_only_few_long_rows_are_cut() -> None:
    for shape, steps in (((1 << 22,), 2), ((4096, 4096), 1), ((100,), 1)):
        _, scheduled = launched(reduced("add", shape, "f32", (len(shape) - 1,)), "reduction")
        assert len(scheduled.steps) == steps


def test_a_long_sum_is_as_the_reference_adds_it() -> None:
    assert check_kernel(reduced("add", (200_000,), "f32", (0,)), "reduction", [numbers(0, (200_000,), "f32")]) == []


def test_the_source_computes_in_tritons_interpreter() -> None:
    x = numbers(0, (3, 40), "f32")
    program = reduced("add", (3, 40), "f32", (1,))
    (found,) = interpreted(program, "reduction", [x], **CUT[0])
    np.testing.assert_allclose(found, interpret(program, [x])[0], rtol=1e-5)


def test_kernels_fit_the_registers() -> None:
    kernels = compiled(reduced("add", (1 << 22,), "bf16", (0,)), "reduction")
    assert [kernel.stack for kernel in kernels] == [0] * len(kernels)
