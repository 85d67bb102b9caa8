"""Models as quantizers write them, through the passes that make integers of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import gcomp
from gcomp.frontends.onnx import import_onnx
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, PassManager, VerifyEach
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.targets.base import target_named

OPEN = "infer-shapes,inline-composites"

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 8, 9, 9] x) => (float[n, 5] y) <float sx = {0.02}, uint8 zx = {130}, float sr = {0.03}, uint8 zr = {0}> {
  q = QuantizeLinear(x, sx, zx)
  d = DequantizeLinear(q, sx, zx)
  w = DequantizeLinear<axis = 0>(wq, sw, zw)
  b = DequantizeLinear<axis = 0>(bq, sb)
  c = Conv<pads = [1, 1, 1, 1], group = GROUPS>(d, w, b)
  r = Relu(c)
  rq = QuantizeLinear(r, sr, zr)
  rd = DequantizeLinear(rq, sr, zr)
  p = GlobalAveragePool(rd)
  f = Flatten(p)
  fq = QuantizeLinear(f, sr, zr)
  fd = DequantizeLinear(fq, sr, zr)
  v = DequantizeLinear<axis = 1>(vq, sv, zv)
  y = MatMul(fd, v)
}"""


def quantized_model(groups: int) -> onnx.ModelProto:
    """A convolution and a matrix product, their weights quantized per output channel, between QuantizeLinear nodes."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(TEXT.replace("GROUPS", str(groups)))
    scale = rng.uniform(0.001, 0.02, 8).astype(np.float32)
    arrays: dict[str, Any] = {
        "wq": rng.integers(-127, 128, (8, 8 // groups, 3, 3)).astype(np.int8), "sw": scale, "zw": np.zeros(8, np.int8),
        "bq": rng.integers(-999, 999, 8).astype(np.int32), "sb": scale * np.float32(0.02),
        "vq": rng.integers(0, 256, (8, 5)).astype(np.uint8), "sv": rng.uniform(0.01, 0.02, 5).astype(np.float32),
        "zv": rng.integers(100, 150, 5).astype(np.uint8),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model


def products(program: Program) -> list[tuple[str, str]]:
    """The element types of operands and results of the products."""
    found = [op for op in program.ops() if isinstance(op, hlo.DotGeneralOp | hlo.ConvolutionOp)]
    return [(dtype_text(op.operands[0].type), dtype_text(op.results[0].type)) for op in found]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_what_the_importer_makes_of_quantized_nodes_becomes_integers(groups: int) -> None:
    program = import_onnx(quantized_model(groups))
    assert products(program) == [("f32", "f32")] * 2
    PassManager(parse_pipeline(f"{OPEN},quantized-products"), [VerifyEach(), CheckEach(MeaningCheck())]).run(program)
    assert products(program) == [("i32", "i32")] * 2
    PassManager(parse_pipeline("integer-products"), [VerifyEach(), CheckEach(MeaningCheck())]).run(program)
    assert all(operand != "i32" for operand, _ in products(program))


@pytest.mark.parametrize("groups", [1, 8])
def test_compiled_in_integers_it_gives_what_it_gave(groups: int) -> None:
    model = quantized_model(groups)
    x = np.random.default_rng(1).normal(size=(3, 8, 9, 9)).astype(np.float32)
    default = target_named("xla:cpu").pipeline()
    assert "quantized-products,integer-products,quantized-values-in-f32," in default
    without = default.replace("quantized-products,", "").replace("quantized-values-in-f32,", "")
    plain, integers = (gcomp.compile(model, target="xla:cpu", pipeline=text) for text in (without, default))
    want = np.asarray(interpret(import_onnx(model), [x])[0])
    # A step is 0.03: where a sum lies on the edge of two, either may come out.
    for compiled in (plain, integers):
        np.testing.assert_allclose(np.asarray(compiled(x)[0]), want, atol=0.1 * float(np.abs(want).max()))
        assert np.mean(np.isclose(np.asarray(compiled(x)[0]), want, rtol=1e-5)) > 0.5


def test_large_quantized_weights_stay_quantized() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n, 256] x) => (float[n, 256] y) <float s = {0.02}, int8 z = {0}> {
      w = DequantizeLinear(q, s, z)
      y = MatMul(x, w)
    }"""
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(0).integers(-127, 128, (256, 256)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "q"))
    program = import_onnx(model)
    PassManager(parse_pipeline(target_named("xla:cpu").pipeline())).run(program)
    assert sum(program.weights[name].nbytes for name in program.weights) == weights.nbytes


def test_small_kernels_are_stored_in_f32_and_take_batch_norm_in() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[1, 4, 6, 6] x) => (float[1, 8, 4, 4] y) <float s = {0.02}, int8 z = {0}> {
      w = DequantizeLinear(q, s, z)
      c = Conv(x, w)
      y = BatchNormalization(c, scale, offset, mean, variance)
    }"""
    model, rng = onnx.parser.parse_model(text), np.random.default_rng(0)
    kernel = rng.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8)
    arrays: dict[str, Any] = {"q": kernel} | {
        name: rng.uniform(0.5, 2, 8).astype(np.float32) for name in ("scale", "offset", "mean", "variance")
    }
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    program = import_onnx(model)
    PassManager(parse_pipeline(target_named("xla:cpu").pipeline()), [VerifyEach(), CheckEach(MeaningCheck())]).run(
        program
    )
    assert [program.weights[name].dtype for name in program.weights] == [np.float32]
    names = {op.name for op in program.ops()}
    assert not names & {"stablehlo.batch_norm_inference", "stablehlo.multiply", "stablehlo.convert"}
