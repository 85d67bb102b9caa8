"""Gradients of generated programs agree with forward mode and with finite differences; what is asked for is found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.rewriter import InsertPoint

import gcomp
from gcomp.autodiff.rows import audit
from gcomp.autodiff.sweeps import ROWS
from gcomp.autodiff.table import Nothing, Refused
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.testing import derivatives
from gcomp.testing.fuzz.autodiff import random_f64


def test_every_op_has_a_rule_or_a_reason() -> None:
    assert audit() == []
    reasons = [row.reason for row in ROWS.values() if isinstance(row, Nothing | Refused)]
    assert all(reasons)


@pytest.mark.parametrize("op", ["stablehlo.remainder %x, %y", "chlo.bessel_i1e %x"])
def test_what_complex_numbers_have_no_meaning_for_is_refused(op: str) -> None:
    kind = "tensor<2xcomplex<f64>>"
    given = program(f"""
func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
  %0 = {op} : {kind + " -> " + kind if "chlo" in op else kind}
  return %0 : {kind}
}}""")
    with pytest.raises(UnsupportedError, match=rf"{op.split()[0]} cannot be differentiated"):
        gcomp.grad(given, wrt=["input0"], of=0)
    with pytest.raises(UnsupportedError, match="of complex numbers has no reference meaning"):
        interpret(given, [np.ones(2, complex)] * 2)


def test_teeth_finer_than_the_step_are_not_held_to_it() -> None:
    made = program("""
func.func @main(%x: tensor<2xf64> {gcomp.name = "x"}, %y: tensor<1xf64> {gcomp.name = "y"}) -> tensor<2xf64> {
  %c = stablehlo.constant dense<8388607.5> : tensor<2xf64>
  %0 = stablehlo.multiply %x, %c : tensor<2xf64>
  %1 = chlo.broadcast_remainder %0, %y : (tensor<2xf64>, tensor<1xf64>) -> tensor<2xf64>
  return %1 : tensor<2xf64>
}""")
    assert derivatives.check(made, 0).outcome == "agrees"


def test_generated_programs_agree_with_finite_differences() -> None:
    outcomes = Counter(derivatives.check(random_f64(seed), seed).outcome for seed in range(100))
    assert outcomes["wrong"] == 0
    assert outcomes["agrees"] > 40


def program(text: str) -> Program:
    return Program.parse(text)


def test_a_bound_that_is_no_number_gives_way_to_the_other() -> None:
    made = program("""
func.func @main(%x: tensor<3xcomplex<f64>> {gcomp.name = "x"}, %h: tensor<complex<f64>> {gcomp.name = "h"}) -> (tensor<3xcomplex<f64>> {gcomp.name = "y"}) {
  %l = stablehlo.constant dense<[(0x7FF8000000000000,1.0), (-9.0,0x7FF8000000000000), (9.0,0.0)]> : tensor<3xcomplex<f64>>
  %y = stablehlo.clamp %l, %x, %h : (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  return %y : tensor<3xcomplex<f64>>
}
""")  # noqa: E501
    assert {derivatives.check(made, seed).outcome for seed in range(20)} == {"agrees"}


def test_a_fold_of_complex_numbers_with_a_nan_is_not_held_to_one_order() -> None:
    made = program("""
func.func @main(%x: tensor<1xcomplex<f64>> {gcomp.name = "x"}) -> (tensor<complex<f64>> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<(0.0,0.0)> : tensor<complex<f64>>
  %nan = stablehlo.atan2 %zero, %zero : tensor<complex<f64>>
  %y = stablehlo.reduce(%x init: %nan) applies stablehlo.minimum across dimensions = [0] : (tensor<1xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
  return %y : tensor<complex<f64>>
}
""")  # noqa: E501
    assert derivatives.check(made, 0).outcome == "agrees"


CANCELS = """
func.func @main(%q: tensor<4x1xf64> {gcomp.name = "q"}, %m: tensor<4x3xf64> {gcomp.name = "m"})
    -> (tensor<4x1xf64> {gcomp.name = "y"}) {
  %k = stablehlo.constant dense<-100000.0> : tensor<3x1xf64>
  %0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x1xf64>, tensor<3x1xf64>) -> tensor<4x3xf64>
  %1 = stablehlo.add %0, %m : tensor<4x3xf64>
  %low = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x3xf64>, tensor<f64>) -> tensor<4xf64>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf64>) -> tensor<4x3xf64>
  %4 = stablehlo.subtract %1, %3 : tensor<4x3xf64>
  %5 = stablehlo.exponential %4 : tensor<4x3xf64>
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf64>, tensor<f64>) -> tensor<4xf64>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<4xf64>) -> tensor<4x3xf64>
  %8 = stablehlo.divide %5, %7 : tensor<4x3xf64>
  %y = stablehlo.dot_general %8, %k, contracting_dims = [1] x [0] : (tensor<4x3xf64>, tensor<3x1xf64>) -> tensor<4x1xf64>
  return %y : tensor<4x1xf64>
}
"""  # noqa: E501
"""The mean of equal numbers: it does not vary, but its derivatives are differences of great ones."""


def raised(text: str) -> Program:
    made = program(text)
    PassManager(parse_pipeline("raise-softmax")).run(made)
    return made


def test_what_rounding_alone_explains_is_not_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    made = raised(CANCELS)
    assert derivatives.check(made, 0).outcome == "rounded"

    def doubled(loss: Program, *args: Any, **more: Any) -> None:
        back(loss, *args, **more)
        b = Builder(loss, InsertPoint.before(loss.returned))
        loss.returned.operands = [b.add(v, v) for v in loss.returned.operands]

    back = derivatives.differentiate_back
    monkeypatch.setattr(derivatives, "differentiate_back", doubled)
    varied = raised(CANCELS.replace("dense<-100000.0>", "dense<[[-1.0], [0.5], [2.0]]>"))
    assert derivatives.check(varied, 0).outcome == "wrong"


LOSS = """
func.func @main(%x: tensor<3xf64> {gcomp.name = "x"}, %n: tensor<i32> {gcomp.name = "n"})
    -> (tensor<f64> {gcomp.name = "loss"}, tensor<3xf64> {gcomp.name = "y"}, tensor<i32> {gcomp.name = "count"}) {
  %w = gcomp.weight @w : tensor<3xf64>
  %y = stablehlo.multiply %x, %w : tensor<3xf64>
  %z = stablehlo.multiply %y, %w : tensor<3xf64>
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %loss = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
  return %loss, %y, %n : tensor<f64>, tensor<3xf64>, tensor<i32>
}
"""  # noqa: E501


def with_weight() -> Program:
    made = program(LOSS)
    made.weights.add("w", np.array([2.0, 3.0, 5.0]))
    return made


X, N = np.array([1.0, -1.0, 0.5]), np.array(4, np.int32)


def test_gradients_for_an_input_and_for_a_weight_that_is_used_twice() -> None:
    made = gcomp.grad(with_weight(), wrt=["x", "w"], of="loss", value=True)
    assert [port.name for port in made.outputs()] == ["loss", "y", "count", "grad(loss, x)", "grad(loss, w)"]
    loss, y, count, by_x, by_w = interpret(made, [X, N])
    w = np.array([2.0, 3.0, 5.0])
    np.testing.assert_array_equal(y, X * w)
    np.testing.assert_allclose([loss, count], [(X * w * w).sum(), 4])
    np.testing.assert_allclose(by_x, w * w)
    np.testing.assert_allclose(by_w, 2 * X * w)


def test_an_output_that_is_no_scalar_asks_for_its_cotangent() -> None:
    made = gcomp.grad(with_weight(), wrt="w", of=1)
    assert [port.name for port in made.inputs()] == ["x", "n", "ct(y)"]
    ct = np.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(interpret(made, [X, N, ct])[0], ct * X)


def test_gradients_of_gradients_and_tangents() -> None:
    second = gcomp.grad(gcomp.grad(with_weight(), wrt="w", of="loss"), wrt=["w"])
    np.testing.assert_allclose(interpret(second, [X, N, np.ones(3)])[0], 2 * X)
    forward = gcomp.jvp(with_weight(), wrt="x")
    assert [port.name for port in forward.inputs()] == ["x", "n", "t(x)"]
    assert [port.name for port in forward.outputs()] == ["loss", "y", "count", "jvp(loss)", "jvp(y)"]


def test_two_outputs_of_one_name_are_refused() -> None:
    first = gcomp.grad(with_weight(), wrt="x", of="loss", value=True)
    with pytest.raises(UsageError, match="two outputs would be called"):
        gcomp.grad(first, wrt="x", of="loss", value=True)


def test_the_source_stays_as_it_is() -> None:
    made = with_weight()
    before = made.text()
    gcomp.grad(made, of="loss")
    assert made.text() == before


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"of": "lost"}, "no output 'lost'"),
        ({"of": 7}, "no output 7"),
        ({}, "which output"),
        ({"of": "count"}, "'count' cannot be differentiated"),
        ({"of": "loss", "wrt": ["n"]}, "no gradient for 'n'"),
        ({"of": "loss", "wrt": ["v"]}, "no input or weight 'v'"),
        ({"of": "loss", "wrt": ["x", "x"]}, "named twice"),
    ],
)
def test_what_is_not_there_is_refused(wanted: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gcomp.grad(with_weight(), **wanted)  # type: ignore[arg-type]


LOOP = """
func.func @main(%x: tensor<f64> {gcomp.name = "x"}, %limit: tensor<f64> {gcomp.name = "limit"}) -> (tensor<f64> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %i, %y = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f64>
  cond {
    %small = stablehlo.compare LT, %v, %limit : (tensor<f64>, tensor<f64>) -> tensor<i1>
    BOUND
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.multiply %v, %v : tensor<f64>
    stablehlo.return %j, %w : tensor<i32>, tensor<f64>
  }
  return %y : tensor<f64>
}
"""  # noqa: E501
BOUNDED = """
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %few = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %go = stablehlo.and %small, %few : tensor<i1>
    stablehlo.return %go : tensor<i1>
"""


def test_a_loop_that_ends_early_goes_back_through_the_turns_that_it_made() -> None:
    made = gcomp.grad(program(LOOP.replace("BOUND", BOUNDED)), wrt=["x"], value=True)
    # 2, 4, 16, 256: y = x ** 8, and no iteration at all where x is beyond the limit.
    np.testing.assert_allclose(interpret(made, [np.array(2.0), np.array(100.0)]), [256, 8 * 2.0**7])
    np.testing.assert_allclose(interpret(made, [np.array(200.0), np.array(100.0)]), [200, 1])
    second = gcomp.grad(gcomp.grad(program(LOOP.replace("BOUND", BOUNDED)), wrt=["x"]), wrt=["x"])
    np.testing.assert_allclose(interpret(second, [np.array(2.0), np.array(100.0)]), [56 * 2.0**6])


def test_a_loop_that_nothing_bounds_has_tangents_but_no_gradient() -> None:
    endless = program(LOOP.replace("BOUND", "stablehlo.return %small : tensor<i1>"))
    forward = gcomp.jvp(endless, wrt=["x"])
    np.testing.assert_allclose(interpret(forward, [np.array(2.0), np.array(100.0), np.array(1.0)]), [256, 8 * 2.0**7])
    with pytest.raises(UnsupportedError, match="nothing bounds") as caught:
        gcomp.grad(endless, wrt=["x"])
    assert "stablehlo.while" in str(caught.value.where)
    assert caught.value.fix is not None


def test_a_pipeline_may_differentiate_and_go_on() -> None:
    made = with_weight()
    PassManager(parse_pipeline("vjp{of=loss wrt=x},vjp{wrt=w},cse,dce")).run(made)
    assert [port.name for port in made.outputs()] == ["grad(grad(loss, x), w)"]
    np.testing.assert_allclose(interpret(made, [X, N, np.ones(3)])[0], 2 * np.array([2.0, 3.0, 5.0]))


def test_a_gradient_compiles_and_runs(tmp_path: Path) -> None:
    model = gcomp.compile(gcomp.grad(with_weight(), wrt=["x", "w"], of="loss"), verify="each")
    model.save(tmp_path / "grad.gcomp")
    for found, expected in zip(
        model(X, N), interpret(gcomp.grad(with_weight(), wrt=["x", "w"], of="loss"), [X, N]), strict=True
    ):
        np.testing.assert_allclose(found, expected)


WITH_COMPOSITE = """
func.func @main(%x: tensor<f64> {gcomp.name = "x"}) -> (tensor<f64> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %i, %y = stablehlo.while(%i = %zero, %v = %x) : tensor<i64>, tensor<f64>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i64>
    %go = stablehlo.compare LT, %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i64>
    %j = stablehlo.add %i, %one : tensor<i64>
    %c = stablehlo.composite "my.half" %v {decomposition = @half} : (tensor<f64>) -> tensor<f64>
    %w = stablehlo.multiply %v, %c : tensor<f64>
    stablehlo.return %j, %w : tensor<i64>, tensor<f64>
  }
  return %y : tensor<f64>
}
func.func private @half(%x: tensor<f64>) -> tensor<f64> {
  %h = stablehlo.constant dense<0.5> : tensor<f64>
  return %h : tensor<f64>
}
"""


def test_a_composite_in_a_loop_is_not_kept_where_its_result_was_saved() -> None:
    np.testing.assert_allclose(interpret(gcomp.grad(program(WITH_COMPOSITE)), [np.array(2.0)]), [0.125])
