"""Batch normalization is folded only where numbers stay numbers: of the program, and of its element type."""

from __future__ import annotations

import pytest

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.passes.base import PassContext
from gcomp.passes.graph.fold_batch_norm import FoldBatchNormPass
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline
from gcomp.targets.base import target_named

PROGRAM = """func.func @main(%x: tensor<1x1x4xELEMENT>) -> tensor<1x1x3xELEMENT> {{
  %k = stablehlo.constant dense<{kernel}> : tensor<1x1x2xELEMENT>
  %y = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {{stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<1x1x4xELEMENT>, tensor<1x1x2xELEMENT>) -> tensor<1x1x3xELEMENT>
  %s = stablehlo.constant dense<{scale}> : tensor<1xELEMENT>
  %o = stablehlo.constant dense<1.0> : tensor<1xELEMENT>
  %m = stablehlo.constant dense<{mean}> : tensor<1xELEMENT>
  %v = stablehlo.constant dense<1.0> : tensor<1xELEMENT>
  %z = "stablehlo.batch_norm_inference"(%y, %s, %o, %m, %v) <{{epsilon = 0.0 : f32, feature_index = 1 : i64}}>
    : (tensor<1x1x3xELEMENT>, tensor<1xELEMENT>, tensor<1xELEMENT>, tensor<1xELEMENT>, tensor<1xELEMENT>)
    -> tensor<1x1x3xELEMENT>
  return %z : tensor<1x1x3xELEMENT>
}}"""


@pytest.mark.parametrize(
    "element, changed, numbers",
    [
        ("f32", True, {}),
        ("f16", True, {}),
        ("f32", True, {"mean": "1000.0"}),
        ("f16", False, {"mean": "1000.0", "scale": "100.0"}),
        ("f32", False, {"kernel": "0x7F800000"}),
        ("f32", False, {"scale": "1.0e30"}),
        ("f64", True, {"scale": "1.0e30"}),
    ],
)
def test_what_would_overflow_is_left(element: str, changed: bool, numbers: dict[str, str]) -> None:
    text = PROGRAM.format(**{"kernel": "0.5", "scale": "2.0", "mean": "3.0", **numbers})
    program = Program.parse(text.replace("ELEMENT", element))
    assert FoldBatchNormPass().run(program, PassContext()) is changed


def test_gpu_targets_fold_batch_normalizations_before_they_are_decomposed() -> None:
    text = """func.func @main(%x: tensor<1x8x8x2xf32>) -> tensor<1x8x8x3xf32> {
  %w = stablehlo.constant dense<[[[[1.0, 2.0, 3.0], [0.5, 1.5, 2.5]]]]> : tensor<1x1x2x3xf32>
  %s = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x8x8x2xf32>, tensor<1x1x2x3xf32>) -> tensor<1x8x8x3xf32>
  %r = "stablehlo.batch_norm_inference"(%c, %s, %s, %s, %s) {epsilon = 1.0e-5 : f32, feature_index = 3 : i64}
    : (tensor<1x8x8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x8x8x3xf32>
  return %r : tensor<1x8x8x3xf32>
}"""
    found = {}
    for target in ("xla:cpu", "triton:sm_90"):
        program = Program.parse(text)
        steps = parse_pipeline(TO_FUSION if target.startswith("triton") else target_named(target).pipeline())
        PassManager(steps).run(program)
        kinds = hlo.ConvolutionOp | hlo.DotGeneralOp | BinaryOp | UnaryOp
        found[target] = [op.name for op in program.ops() if isinstance(op, kinds)]
    assert found["triton:sm_90"] == ["stablehlo.convolution", "stablehlo.add"]
    assert found["xla:cpu"][-1] == "stablehlo.add" and len(found["xla:cpu"]) == 2
