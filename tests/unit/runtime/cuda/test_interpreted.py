"""Whole artifacts with their real kernels, run by Triton's interpreter where the runtime launches them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gcomp
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.lowering.tiles.forms import digest_of
from gcomp.lowering.triton.tuning import versions
from gcomp.lowering.tuned import FORMAT, Form, Results, Trial, to_bytes
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.runtime.cuda.plan import from_text
from gcomp.runtime.model import Model
from gcomp.targets.base import target_named
from tests.support.thinning import swept
from tests.unit.runtime.cuda.interpreted import run
from tests.unit.runtime.cuda.models import WEIGHT, plan_of_two, rows, two
from tests.unit.training.models import MLP, X, Y


@pytest.mark.parametrize("count", [3, 8])
def test_an_artifact_computes_what_its_kernels_say(count: int, tmp_path: Path) -> None:
    path = tmp_path / "two.gcomp"
    Model(plan_of_two(), {"w": WEIGHT}).save(path)
    found = run(path, {"x0": rows(count)}, tmp_path, calls=3)
    np.testing.assert_allclose(found["y0"], two(rows(count)), rtol=1e-5)


PROGRAM = """
module attributes {gcomp.ranges = {n = "1..6"}} {
func.func public @main(%x: tensor<?x16xf32, ["n", "16"]> {gcomp.name = "x"})
    -> (tensor<?x16xf32, ["n", "16"]> {gcomp.name = "y"}, tensor<i32> {gcomp.name = "turns"}) {
  %w = gcomp.weight @w : tensor<16x16xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<?x16xf32, ["n", "16"]>):
    %four = stablehlo.constant dense<4> : tensor<i32>
    %more = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<?x16xf32, ["n", "16"]>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<?x16xf32, ["n", "16"]>, tensor<16x16xf32>) -> tensor<?x16xf32, ["n", "16"]>
    %t = stablehlo.tanh %p : tensor<?x16xf32, ["n", "16"]>
    stablehlo.return %next, %t : tensor<i32>, tensor<?x16xf32, ["n", "16"]>
  }) : (tensor<i32>, tensor<?x16xf32, ["n", "16"]>) -> (tensor<i32>, tensor<?x16xf32, ["n", "16"]>)
  func.return %r#1, %r#0 : tensor<?x16xf32, ["n", "16"]>, tensor<i32>
}
}
"""


def test_a_compiled_program_computes_what_it_says(tmp_path: Path) -> None:
    """From a program with a loop and a symbolic size to the results of the artifact that is made of it."""
    program = Program.parse(PROGRAM)
    w = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
    program.weights.add("w", w)
    path = tmp_path / "loop.gcomp"
    gcomp.compile(program, target="triton:sm_90").save(path)
    x = np.random.default_rng(2).standard_normal((5, 16)).astype(np.float32)
    found = run(path, {"x": x}, tmp_path, calls=2)
    for _ in range(4):
        x = np.tanh(x @ w)
    assert found["turns"] == 4
    np.testing.assert_allclose(found["y"], x, atol=1e-4)


def test_a_training_step_keeps_its_state(tmp_path: Path) -> None:
    """Parameters and moments after three steps are what they are on the processor, and so is the loss."""
    options = {"optimizer": "adamw:lr=0.1", "dims": {"n": 6}}
    path, step = tmp_path / "step.gcomp", gcomp.train_step(MLP, **options)
    gcomp.train_step(MLP, target="triton:sm_90", **options).save(path)
    found = run(path, {"x": X, "labels": Y}, tmp_path, calls=3)
    for _ in range(3):
        wanted = step.named(X, Y)
    np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=1e-4)
    assert found.keys() == {"loss", *step.state}
    for name, array in step.state.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "settings", [{"pieces": 3, "boxes": 1}, {"programs": 3}, *swept({"programs": 2, "boxes": 1}, {"pieces": 2})]
)
def test_products_of_all_forms_run_from_artifacts(settings: dict[str, int], tmp_path: Path) -> None:
    """Scratch memory of launches, and what descriptors of boxes need, is there when the kernels run."""
    shapes = [(40, 104), (104, 24)]
    x, y = (
        np.random.default_rng(n).standard_normal(shape).astype(ml_dtypes.bfloat16) for n, shape in enumerate(shapes)
    )
    program = Program.parse("""func.func @main(%x: tensor<40x104xbf16> {gcomp.name = "x"},
    %y: tensor<104x24xbf16> {gcomp.name = "y"}) -> (tensor<40x24xbf16> {gcomp.name = "r"}) {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
      (tensor<40x104xbf16>, tensor<104x24xbf16>) -> tensor<40x24xbf16>
  return %r : tensor<40x24xbf16>
}""")
    planned = program.clone()
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(planned)
    (launch,) = [op for op in planned.ops() if isinstance(op, LaunchOp)]
    small = {"rows": 16, "columns": 16, "terms": 16, "warps": 4, "stages": 2}
    form = Form(digest_of(launch, planned.ranges), "matmul", "", {}, (Trial(small | settings, 0.0, 1.0, (), ()),))
    (tmp_path / "tuned.json").write_bytes(to_bytes(Results(FORMAT, "sm_90", "", versions(), (form,))))
    path = tmp_path / "product.gcomp"
    model = gcomp.compile(program, target="triton:sm_90", tuned=tmp_path / "tuned.json")
    model.save(path)
    (plan,) = from_text(model.plan.texts["plan.json"], "plan.json").values()
    assert len(plan.kernels) == (2 if "pieces" in settings else 1)
    assert (plan.kernels[0].scratch > 0) == ("boxes" in settings)
    found = run(path, {"x": x, "y": y}, tmp_path, calls=3)["r"]
    expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0.01, atol=0.05)
