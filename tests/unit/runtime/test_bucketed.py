"""Models that pad their inputs to buckets: callers do not notice, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import gcomp
from gcomp.errors import ArtifactError, InputError, UnsupportedError, UsageError
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.runtime.bucketed import BucketedModel
from gcomp.runtime.plan import Bucketing
from gcomp.runtime.stateful import model_of
from gcomp.runtime.xla import padded

Array = np.ndarray[Any, Any]
BUCKETS = {"n": [4, 8, 20]}
TEXT = """
module attributes {gcomp.ranges = {n = "1..20", b = "1..3"}} {
func.func public @main(%x: tensor<?x?x2xf32, ["b", "n", "2"]> {gcomp.name = "x"},
                       %k: tensor<i32> {gcomp.name = "k", gcomp.default = 1 : i32})
    -> (tensor<?x?x2xf32, ["b", "n", "2"]> {gcomp.name = "turned"}, tensor<?x2xf32, ["b", "2"]> {gcomp.name = "mean"},
        tensor<?xf32, ["2*n"]> {gcomp.name = "twice"}, tensor<i32> {gcomp.name = "k2"}) {
  %r = stablehlo.reverse %x, dims = [1] : tensor<?x?x2xf32, ["b", "n", "2"]>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<?x?x2xf32, ["b", "n", "2"]>, tensor<f32>) -> tensor<?x2xf32, ["b", "2"]>
  %d = gcomp.dim "n" : tensor<i64>
  %f = stablehlo.convert %d : (tensor<i64>) -> tensor<f32>
  %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<?x2xf32, ["b", "2"]>
  %m = stablehlo.divide %s, %w : tensor<?x2xf32, ["b", "2"]>
  %a = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<?x?x2xf32, ["b", "n", "2"]>, tensor<f32>) -> tensor<?x2xf32, ["n", "2"]>
  %t = stablehlo.reshape %a : (tensor<?x2xf32, ["n", "2"]>) -> tensor<?xf32, ["2*n"]>
  %k2 = stablehlo.add %k, %k : tensor<i32>
  func.return %r, %m, %t, %k2 : tensor<?x?x2xf32, ["b", "n", "2"]>, tensor<?x2xf32, ["b", "2"]>, tensor<?xf32, ["2*n"]>,
    tensor<i32>
}
}
"""


@pytest.fixture(autouse=True)
def garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding is NaN in these tests."""
    monkeypatch.setattr(padded, "blank", lambda shape, dtype: np.full(shape, np.nan).astype(dtype))


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.parse(TEXT)


def compiled(program: Program, buckets: Mapping[str, list[int]] = BUCKETS, **options: Any) -> BucketedModel:
    model = gcomp.compile(program.clone(), target="xla:cpu", buckets=buckets, **options)
    assert isinstance(model, BucketedModel)
    return model


def inputs(n: int, b: int = 2) -> Array:
    return np.random.default_rng(n).normal(size=(b, n, 2)).astype(np.float32)


def check(model: gcomp.Model, program: Program, x: Array) -> None:
    expected = interpret(program, [x, np.asarray(1, np.int32)])
    for want, got in zip(expected, model(x), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_callers_do_not_notice(program: Program, tmp_path: Path) -> None:
    model = compiled(program)
    assert [spec.name for spec in model.inputs] == ["x", "k"]
    for n in (*range(1, 21), 3, 7):
        check(model, program, inputs(n))
    assert model.buckets.compilations == 3
    uses = model.buckets.uses
    assert [(use.sizes["n"], use.calls) for use in uses] == [(4, 5), (8, 5), (20, 12)]
    assert uses[0].lengths == {"n": 13}
    assert uses[0].waste("n") == pytest.approx(1 - 13 / 20)
    assert "22 calls, 3 compilations" in repr(model.buckets)
    model.save(tmp_path / "m.gcomp")
    loaded = gcomp.load(tmp_path / "m.gcomp")
    assert isinstance(loaded, BucketedModel)
    assert dict(loaded.buckets) == {"n": (4, 8, 20)}
    check(loaded, program, inputs(5))
    assert set(loaded.named(inputs(5), k=3)) == {"turned", "mean", "twice", "k2"}
    check(loaded.instance(), program, inputs(6))


def test_two_dimensions_at_once(program: Program) -> None:
    model = compiled(program, {"n": [3, 20], "b": [2, 3]})
    for n, b in ((1, 1), (3, 3), (4, 2), (20, 3), (19, 1)):
        check(model, program, inputs(n, b))
    assert model.buckets.compilations <= 4
    assert {tuple(use.sizes.items()) for use in model.buckets.uses} <= {
        (("n", n), ("b", b)) for n in (3, 20) for b in (2, 3)
    }


def test_arrays_are_of_the_callers_kind(program: Program) -> None:
    model = compiled(program)
    for n in (3, 4):
        x = inputs(n)
        want = model(x)
        for kind, given in ((torch.Tensor, torch.from_numpy(x)), (type(jnp.ones(1)), jnp.asarray(x))):
            found = model(given)
            assert all(isinstance(value, kind) for value in found)
            assert all(np.array_equal(a, np.asarray(b)) for a, b in zip(want, found, strict=True))
    grad = torch.ones((1, 3, 2), requires_grad=True)
    assert model(grad)[0].shape == (1, 3, 2)


def test_lengths_out_of_range_are_named(program: Program) -> None:
    model = compiled(program, {"n": [4, 8]})
    with pytest.raises(InputError, match="n = 9 is beyond the greatest bucket, 8") as caught:
        model(inputs(9))
    assert "at least 9" in str(caught.value)
    with pytest.raises(InputError, match=r"outside its range 1\.\.20"):
        model(inputs(21))
    with pytest.raises(InputError, match=r"outside its range 1\.\.20"):
        model(inputs(0))
    with pytest.raises(InputError, match="beyond the greatest bucket"):
        model.flops(n=9, b=1)


def test_questions_are_about_the_bucket(program: Program) -> None:
    model = compiled(program)
    assert model.flops(n=5, b=1) == model.flops(n=8, b=1) > model.flops(n=4, b=1)
    assert model.memory(n=5, b=1) == model.memory(n=8, b=1)
    assert "tensor<1x8x2xf32>" in model.text(n=5, b=1)
    assert model.prepare(n=1, b=1) is model
    assert model.executable is None


@pytest.mark.parametrize(
    ("buckets", "message"),
    [
        ({"q": [4]}, "no symbolic dimension 'q' to pad"), ({"n": []}, "no buckets for 'n'"),
        ({"n": ["4"]}, "buckets of 'n' are no sizes"), ({"n": 4}, "buckets of 'n' are no sizes"),
        ({"n": [4, 21]}, "bucket 21 of 'n' is outside of its range, 1..20"),
        ({"n": list(range(1, 21)), "b": [1, 2, 3]}, None),
    ],
)  # fmt: skip
def test_buckets_that_do_not_fit_are_refused(program: Program, buckets: Mapping[str, list[int]], message: str) -> None:
    if message is None:
        assert len(compiled(program, buckets).buckets) == 2
        return
    with pytest.raises(UsageError, match=message):
        compiled(program, buckets)


def test_too_many_buckets_and_other_targets(program: Program) -> None:
    wide = gcomp.import_model(program.clone(), dims={"n": "1..2000"})
    with pytest.raises(UsageError, match="300 combinations of buckets"):
        gcomp.compile(wide, target="xla:cpu", buckets={"n": list(range(1, 301))})
    with pytest.raises(UnsupportedError, match="no buckets on the target triton:sm_90"):
        gcomp.compile(program.clone(), target="triton:sm_90", buckets=BUCKETS)
    with pytest.raises(UsageError, match="padded model"):
        gcomp.compile(program.clone(), target="xla:cpu", buckets=BUCKETS, fetch=["%0"])


def test_sizes_that_depend_on_data_have_no_buckets() -> None:
    text = """module attributes {gcomp.ranges = {n = "0..", b = "1..9"}} {
func.func @main(%x: tensor<?xf32, ["b"]>) -> tensor<?xi64, ["n"]> {
  %v, %p, %q, %c = "gcomp.host"(%x) <{function = "unique", config = {sorted = false}}> : (tensor<?xf32, ["b"]>)
    -> (tensor<?xf32, ["n"]>, tensor<?xi64, ["n"]>, tensor<?xi64, ["b"]>, tensor<?xi64, ["n"]>)
  func.return %p : tensor<?xi64, ["n"]>
}
}"""
    with pytest.raises(UnsupportedError, match="depend on data has no buckets") as caught:
        gcomp.compile(text, target="xla:cpu", buckets={"b": [4, 9]})
    assert "gcomp.host" in str(caught.value)


def test_buckets_beyond_memory_are_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded, "blank", lambda shape, dtype: np.zeros((1 << 62, *shape), dtype))
    with pytest.raises(InputError, match="no memory to pad an input to"):
        compiled(program)(inputs(3))


def test_everything_is_verified(program: Program) -> None:
    compiled(program, verify="full")


def test_sizes_that_constraints_forbid_are_refused(program: Program) -> None:
    text = r"{'kind': 'divides', 'lhs': 4, 'rhs': 'n', 'where': 'node halve'}".replace("'", r"\22")
    constrained = Program.parse(TEXT.replace("{gcomp.ranges", f'{{gcomp.constraints = ["{text}"], gcomp.ranges'))
    with pytest.raises(UsageError, match="bucket 6 of 'n' is not a size that the model takes"):
        compiled(constrained, {"n": [4, 6]})
    assert compiled(constrained, {"n": [4, 8]})(inputs(8))[0].shape == (2, 8, 2)


def test_sizes_that_do_not_fit_together_when_padded_are_said(program: Program) -> None:
    text = r"{'kind': 'le', 'lhs': 'n', 'rhs': '6*b', 'where': 'node fit'}".replace("'", r"\22")
    constrained = Program.parse(TEXT.replace("{gcomp.ranges", f'{{gcomp.constraints = ["{text}"], gcomp.ranges'))
    model = compiled(constrained, {"n": [4, 8]})
    assert model(inputs(5, 2))[0].shape == (2, 5, 2)
    with pytest.raises(InputError, match="do not when padded to n = 8") as caught:
        model(inputs(5, 1))
    assert "must be at most" in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": Bucketing((), "length(n)")}, {"n": Bucketing((8, 4), "length(n)")}, {"n": Bucketing((4, 4), "length(n)")},
        {"n": Bucketing((4, 99), "length(n)")}, {"n": Bucketing((4,), "x")}, {"n": Bucketing((4,), "k")},
        {"n": Bucketing((4,), "other")}, {"q": Bucketing((4,), "length(n)")}, {"n": Bucketing((0, 4), "length(n)")},
        {"n": Bucketing((4,), "length(n)"), "b": Bucketing((2,), "length(n)")},
    ],
)  # fmt: skip
def test_hostile_plans_are_refused(program: Program, wrong: Mapping[str, Bucketing]) -> None:
    model = compiled(program)
    with pytest.raises(ArtifactError, match="plan is not valid"):
        model_of(replace(model.plan, buckets=wrong), model.weights)
