"""Loops that write a place of a stack in each iteration: cotangents of what they overwrite are zero where anybody
asks."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from tests.conformance.gradients.stacks import INDICES, program


def zeroed(found: Program) -> bool:
    """Whether the loop that goes back writes zeros into a stack."""
    back = [op for op in found.ops() if isinstance(op, hlo.WhileOp)][-1]
    return any(isinstance(op, hlo.DynamicUpdateSliceOp) for op in back.body.block.ops)


@pytest.mark.parametrize("start", ["%empty", "%begun"])
@pytest.mark.parametrize("index", INDICES)
def test_gradients_go_with_tangents_wherever_a_loop_writes(index: str, start: str) -> None:
    made, rng = program(index, start), np.random.default_rng(0)
    args, direction = [rng.normal(size=4), rng.normal(size=4)], [rng.normal(size=4), rng.normal(size=4)]
    gradients = interpret(gcomp.grad(made), args)
    tangent = interpret(gcomp.jvp(made), [*args, *direction])[1]
    np.testing.assert_allclose(sum((g * t).sum() for g, t in zip(gradients, direction, strict=True)), tangent)


def test_nothing_is_zeroed_where_each_place_is_written_once() -> None:
    """A copy of the whole stack in each iteration, on some targets."""
    assert [index for index in INDICES if not zeroed(gcomp.grad(program(index, "%empty")))] == [
        "in order",
        "in reverse",
    ]
    assert all(zeroed(gcomp.grad(program(index, "%begun"))) for index in INDICES)
