"""Composites that are known by name have the derivatives of their decompositions, in fewer ops; others with a name of
those are differentiated as what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import dims
from gcomp.autodiff.calls import NAMED
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret

Array = np.ndarray[Any, Any]
N = dims.symbol("n")
RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(3, 5))
TIED = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
HIDDEN = np.array([[0.5, -np.inf, 1.0], [2.0, 0.0, -np.inf]])
QKV = [RNG.normal(size=(2, 4, 3)) for _ in range(3)]
SEES = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]], bool)
HIDES = {"scale": 0.5, "fill": -np.inf, "safe": 1}

CASES: dict[str, tuple[str, dict[str, Any], list[Array]]] = {
    "softmax": ("gcomp.softmax", {"axis": 1}, [SCORES]),
    "softmax along the first axis": ("gcomp.softmax", {"axis": 0}, [SCORES]),
    "softmax of ties": ("gcomp.softmax", {"axis": 1}, [TIED]),
    "softmax of what is hidden": ("gcomp.softmax", {"axis": 1}, [HIDDEN]),
    "softmax of huge numbers": ("gcomp.softmax", {"axis": 1}, [SCORES * 1e4]),
    "log-softmax": ("gcomp.log_softmax", {"axis": 1}, [SCORES]),
    "log-softmax of ties": ("gcomp.log_softmax", {"axis": 0}, [TIED.T]),
    "log-sum-exp": ("gcomp.logsumexp", {"axis": 1}, [SCORES]),
    "log-sum-exp of huge numbers": ("gcomp.logsumexp", {"axis": 0}, [SCORES * 1e4]),
    "log-sum-exp of what is hidden": ("gcomp.logsumexp", {"axis": 1}, [HIDDEN]),
    "attention": ("gcomp.attention", {"scale": 0.5}, QKV),
    "attention with a mask": ("gcomp.attention", {"scale": 0.5}, [*QKV, RNG.normal(size=(1, 4, 4))]),
    "attention that sees nothing": ("gcomp.attention", HIDES, [*QKV, SEES]),
}


def built(name: str, attributes: dict[str, Any], given: list[Array]) -> Program:
    types = [tensor(x.shape, {"f": "f64", "b": "i1"}[x.dtype.kind]) for x in given]
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])
    program.finish([("y", composite(Builder(program), name, list(program.block.args), attributes)[0])])
    return program


def decomposed(program: Program) -> Program:
    other = program.clone()
    PassManager(parse_pipeline("inline-composites")).run(other)
    return other


def both(case: str) -> tuple[Program, Program, list[Array]]:
    name, attributes, given = CASES[case]
    program = built(name, attributes, given)
    return program, decomposed(program), given


def like(seed: int, arrays: list[Array]) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in arrays]


def test_every_name_is_tried() -> None:
    assert {name for name, _, _ in CASES.values()} == set(NAMED)


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_tangents_are_those_of_the_decomposition(case: str) -> None:
    program, other, given = both(case)
    floats = [x for x in given if x.dtype.kind == "f"]
    args = [*given, *like(1, [np.asarray(interpret(other, given)[0])])]
    for found, expected in zip(interpret(gcomp.grad(program), args), interpret(gcomp.grad(other), args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    args = [*given, *like(2, floats)]
    np.testing.assert_allclose(
        interpret(gcomp.jvp(program), args)[1], interpret(gcomp.jvp(other), args)[1], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("case", ["softmax", "log-softmax", "log-sum-exp", "attention"])
def test_second_derivatives_are_those_of_the_decomposition(case: str) -> None:
    program, other, given = both(case)
    result = np.asarray(interpret(other, given)[0])
    args = [*given, *like(3, [result]), *like(4, given[:1])]
    found, expected = (
        interpret(gcomp.grad(gcomp.grad(p, wrt=["x0"]), wrt=["x0", "ct(y)"]), args) for p in (program, other)
    )
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", ["softmax", "log-softmax", "log-sum-exp", "attention"])
def test_a_maximum_that_is_subtracted_has_no_derivative(case: str) -> None:
    """Its derivative is a comparison with all elements, whose sums are zero in exact arithmetic."""
    program, other, _ = both(case)
    assert not any(isinstance(op, hlo.CompareOp) for op in decomposed(gcomp.grad(program)).ops())
    assert any(isinstance(op, hlo.CompareOp) for op in gcomp.grad(other).ops())


@pytest.mark.parametrize("name", ["gcomp.softmax", "gcomp.log_softmax", "gcomp.logsumexp"])
def test_narrow_floats_are_rounded_once(name: str) -> None:
    """What the composite computes in f32 is not rounded before its derivative is."""
    import ml_dtypes

    x = SCORES.astype(ml_dtypes.bfloat16)
    program = Program.empty([("x", tensor((N, 5), "bf16"))])
    program.finish([("y", composite(Builder(program), name, list(program.block.args), {"axis": 1})[0])])
    program.verify()
    exact = gcomp.grad(built(name, {"axis": 1}, [SCORES]))
    result = interpret(program, [x])[0]
    (cotangent,) = [g.astype(ml_dtypes.bfloat16) for g in like(5, [np.asarray(result, np.float64)])]
    (found,) = interpret(gcomp.grad(program), [x, cotangent])
    (expected,) = interpret(exact, [x.astype(np.float64), cotangent.astype(np.float64)])
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2.0**-8, atol=1e-6)


FOREIGN = """
func.func private @twice(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %y = stablehlo.add %x, %x : tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
func.func @main(%x: tensor<2x3xf64> {gcomp.name = "x"}) -> (tensor<2x3xf64> {gcomp.name = "y"}) {
  %y = stablehlo.composite "gcomp.softmax" %x {composite_attributes = {axis = 1 : i64}, decomposition = @twice} : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %y : tensor<2x3xf64>
}
"""  # noqa: E501


def test_somebody_elses_composite_is_what_it_computes() -> None:
    ones = np.ones((2, 3))
    np.testing.assert_array_equal(interpret(gcomp.grad(Program.parse(FOREIGN)), [TIED, ones])[0], 2 * ones)
