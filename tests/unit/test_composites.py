"""A composite may be trusted only when its decomposition is the canonical one for its attributes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from gcomp import dims
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, is_canonical
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.testing.check import check_pass

N = dims.symbol("n")
F32, V = "f32", [tensor((4,), "f32")]
CASES = {
    "gcomp.softmax": ([tensor((N, 4), "f32")], {"axis": 1}, {"axis": 0}),
    "gcomp.log_softmax": ([tensor((2, 4), "f32")], {"axis": 1}, {"axis": 0}),
    "gcomp.layer_norm": ([tensor((2, 4), F32), *V, *V], {"axis": 1, "epsilon": 1e-5}, {"axis": 1, "epsilon": 1e-3}),
    "gcomp.rms_norm": ([tensor((2, 4), F32), *V], {"axis": 1, "epsilon": 1e-5}, {"axis": 1, "epsilon": 1e-3}),
    "gcomp.gelu": ([tensor((2, 4), "f32")], {"approximate": "none"}, {"approximate": "tanh"}),
    "gcomp.attention": ([tensor((2, 3, 4), "f32")] * 3, {"scale": 0.5}, {"scale": 0.25}),
}  # fmt: skip


def build(name: str) -> tuple[Program, hlo.CompositeOp]:
    types, attributes, _ = CASES[name]
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])
    results = composite(Builder(program), name, list(program.block.args), attributes)
    program.finish([("y", results[0])])
    program.verify()
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    return program, op


@pytest.mark.parametrize("name", CASES)
def test_what_the_builder_makes_is_canonical(name: str) -> None:
    program, op = build(name)
    assert is_canonical(program, op)
    text = program.text()
    again = Program.parse(text)
    (op,) = [op for op in again.ops() if isinstance(op, hlo.CompositeOp)]
    assert is_canonical(again, op) and again.text() == text


@pytest.mark.parametrize("name", CASES)
def test_other_attributes_are_not_canonical(name: str) -> None:
    program, op = build(name)
    builder = Builder(program)
    other = composite(builder, name, list(op.operands), CASES[name][2])[0].owner
    assert isinstance(other, hlo.CompositeOp)
    op.properties["decomposition"] = other.properties["decomposition"]
    assert not is_canonical(program, op)


def test_an_unknown_name_is_not_canonical() -> None:
    program, op = build("gcomp.gelu")
    op.properties["name"] = StringAttr("my.gelu")
    assert not is_canonical(program, op)


def test_a_changed_decomposition_is_not_canonical() -> None:
    program, op = build("gcomp.gelu")
    function = program.function(op.decomposition_name)
    assert function is not None
    (half,) = [o for o in function.walk() if isinstance(o, hlo.ConstantOp)][:1]
    half.properties["value"] = hlo.ConstantOp.dense(np.float32(0.25)).elements_attr
    assert not is_canonical(program, op)


def test_what_a_known_name_cannot_stand_for_is_not_canonical() -> None:
    """A softmax of a scalar has no decomposition: that was the end of raise-softmax."""
    source = """
func.func @main(%x: tensor<f32>) -> tensor<bf16> {
  %0 = stablehlo.composite "gcomp.softmax" %x {composite_attributes = {axis = 0 : i64}, decomposition = @f} :
    (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.convert %0 : (tensor<f32>) -> tensor<bf16>
  return %1 : tensor<bf16>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}"""
    assert check_pass("raise-softmax", Program.parse(source)) is None


def test_softmax_means_softmax() -> None:
    program, _ = build("gcomp.softmax")
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    (y,) = interpret(program, [x])
    expected = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(1, keepdims=True)
    # Three roundings of an exponential, a sum and a quotient: a few units in the last place.
    assert np.max(np.abs(y - expected) / expected) < 8 * np.finfo(np.float32).eps


def test_a_composite_can_be_made_again_after_its_function_was_erased() -> None:
    """A pass that found the pattern again used to name the decomposition that dce had erased."""
    program, _ = build("gcomp.softmax")
    PassManager(parse_pipeline("inline-composites,dce,raise-softmax")).run(program)
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    assert program.function(op.decomposition_name) is not None
    assert is_canonical(program, op)


def test_merging_equal_ops_leaves_a_name_its_meaning() -> None:
    """The fill of a mask and the start of the maximum are one constant then, before regions that have arguments."""
    types = [*[tensor((2, 3, 4), "f32")] * 3, tensor((2, 3, 3), "i1")]
    program = Program.empty([(f"x{i}", type) for i, type in enumerate(types)])
    attributes = {"scale": 0.5, "fill": float("-inf")}
    results = composite(Builder(program), "gcomp.attention", list(program.block.args), attributes)
    program.finish([("y", results[0])])
    before = program.text()
    PassManager(parse_pipeline("cse")).run(program)
    assert program.text() != before
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    assert is_canonical(program, op)


def test_a_scale_above_one_makes_no_query_overflow() -> None:
    program = Program.empty([(f"x{i}", tensor((1, 2, 2), "f32")) for i in range(3)])
    results = composite(Builder(program), "gcomp.attention", list(program.block.args), {"scale": 2.0})
    program.finish([("y", results[0])])
    query, key = np.array([[[3.4e38, 0], [0, 1]]], np.float32), np.array([[[0, 1], [0, 2]]], np.float32)
    assert np.isfinite(interpret(program, [query, key, query])).all()
