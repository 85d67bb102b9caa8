"""Lowering to XLA: export text, legality, options, donation."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.lowering.xla.attributes import string_text
from gcomp.lowering.xla.legality import REFUSED, problem_of
from gcomp.runtime.model import Model
from gcomp.runtime.template import Template
from gcomp.runtime.xla.client import client
from gcomp.runtime.xla.mesh_client import mesh_client
from gcomp.runtime.xla.options import choose
from gcomp.targets.base import target_named
from tests.support.devices import on_devices
from tests.support.samples import samples
from tests.unit.runtime.models import CONV_NET, TWO_SYMBOLS, UPDATE

SAMPLES = samples()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_op_is_compiled_or_refused_with_a_reason(name: str) -> None:
    program = Program.parse(SAMPLES[name])
    try:
        plan = lower(program, options={})
    except UnsupportedError as error:
        refused = [op for op in program.ops() if problem_of(op) is not None]
        assert refused or "must be tensors" in str(error) or "nothing is known" in str(error)
        return
    if plan.mesh:
        on_devices(compile_for_mesh, plan.texts["main.mlir"], len(plan.signature.inputs), len(plan.signature.outputs))
    else:
        client("cpu").compile(plan.texts["main.mlir"], {})


def compile_for_mesh(text: str, inputs: int, outputs: int) -> None:
    mesh_client("cpu", 8).compile(text, {}, inputs, outputs)


def test_all_refused_ops_are_listed_with_their_places() -> None:
    text = """
#a = loc("train.py":3:1)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
    : (tensor<4xf32>) -> tensor<4xf32> loc(#a)
  %1 = "stablehlo.custom_call"(%0) <{call_target_name = "evil"}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""
    with pytest.raises(UnsupportedError) as error:
        lower(Program.parse(text))
    for said in ("2 ops", "stablehlo.all_gather at train.py:3:1", "outside of a manual computation", "'evil'"):
        assert said in str(error.value)


def test_quantized_ops_and_numbers_of_replicas_are_refused() -> None:
    assert {"stablehlo.uniform_quantize", "stablehlo.replica_id"} <= REFUSED.keys()


def test_a_size_that_no_input_has_is_refused() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<i64> {
      %0 = gcomp.dim "n" : tensor<i64>
      func.return %0 : tensor<i64>
    }"""
    with pytest.raises(UnsupportedError, match="n is not a dimension"):
        lower(Program.parse(text))


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UsageError, match="xla:cpu"):
        target_named("xla:tpu")


def test_lowering_leaves_the_program_alone_and_is_deterministic() -> None:
    program = Program.parse(CONV_NET)
    before = program.text(locations=True)
    assert lower(program) == lower(program)
    assert program.text(locations=True) == before


def test_weights_become_arguments_of_every_function_that_needs_them() -> None:
    plan = lower(Program.parse(CONV_NET))
    assert list(plan.weights) == ["conv.w", "conv.b", "dense.w"]
    text = plan.texts["main.mlir"]
    assert text.count('{gcomp.weight = "conv.b"}') == 2 and text.count('{gcomp.weight = "dense.w"}') == 1
    assert "gcomp.dim" not in text and "dense<{{64*batch}}>" in text


def test_weights_inside_regions_and_composites() -> None:
    text = """
func.func @main(%x: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    %a = gcomp.weight @a : tensor<2xf32>
    %s = stablehlo.add %x, %a : tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }, {
    %c = stablehlo.composite "my.scale" %x {decomposition = @scale} : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %c : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @scale(%x: tensor<2xf32>) -> tensor<2xf32> {
  %b = gcomp.weight @b : tensor<2xf32>
  %0 = stablehlo.multiply %x, %b : tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @unused(%x: tensor<2xf32>) -> tensor<2xf32> {
  %b = gcomp.weight @never : tensor<2xf32>
  func.return %b : tensor<2xf32>
}
"""
    plan = lower(Program.parse(text))
    assert set(plan.weights) == {"a", "b"} and "@unused" not in plan.texts["main.mlir"]
    model = Model(plan, {"a": np.array([1, 2], np.float32), "b": np.array([10, 20], np.float32)})
    x = np.array([3, 4], np.float32)
    assert model(x, np.True_)[0].tolist() == [4, 6]
    assert model(x, np.False_)[0].tolist() == [30, 80]


def test_names_are_escaped() -> None:
    for name in ("{{batch}}", 'a"b\\c', "é\n"):
        text = string_text(name)
        assert Template(text).fill({}) == text and text.isascii() and "\n" not in text
    assert string_text("{{batch}}") == '"\\7B\\7Bbatch}}"'


def test_a_function_with_another_name_becomes_main() -> None:
    text = "func.func public @forward(%x: tensor<2xf32>) -> tensor<2xf32> { func.return %x : tensor<2xf32> }"
    assert Model(lower(Program.parse(text)), {})(np.ones(2, np.float32))[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("work", "one", "many"),
    [
        (lambda x, w: x @ x, "", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"),
        (
            lambda x, w: jax.lax.dot_general(x, x, (((1,), (1,)), ((), ()))),
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        ),
        (
            lambda x, w: jax.lax.conv_general_dilated(x[None, None], w, (1, 1), "SAME"),
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        ),
        (
            lambda x, w: jax.lax.conv_general_dilated(
                x[None, None].repeat(2, 1), w.repeat(2, 0), (1, 1), "SAME", feature_group_count=2
            ),
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
        ),
        (
            lambda x, w: (x / x.max()) @ x,
            "LIBRARY_FUSION_TYPE_REDUCE",
            "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE",
        ),
        (lambda x, w: (x / x.max(0)) @ x, "", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"),
    ],
)
def test_the_library_follows_the_work_and_the_threads(work, one: str, many: str) -> None:
    x, w = np.ones((4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32)
    plan = lower(Program.parse(jax.jit(work).lower(x, w).as_text()))
    (segment,) = plan.segments
    assert choose(segment.options, 1)["xla_cpu_experimental_ynn_fusion_type"] == one
    assert choose(segment.options, 2)["xla_cpu_experimental_ynn_fusion_type"] == many


def test_elementwise_work_gets_wide_vectors() -> None:
    (segment,) = lower(Program.parse(UPDATE)).segments
    assert choose(segment.options, 2)["xla_cpu_prefer_vector_width"] == 512


@pytest.mark.parametrize(("element", "library"), [("ui8", ""), ("ui32", None)])
def test_sums_of_unpacked_bytes_are_left_to_xla(element: str, library: str | None) -> None:
    text = """func.func @main(%x: tensor<8xELEMENT>, %y: tensor<8xELEMENT>) -> tensor<8xELEMENT> {
      %0 = stablehlo.shift_right_logical %x, %y : tensor<8xELEMENT>
      func.return %0 : tensor<8xELEMENT>
    }""".replace("ELEMENT", element)
    (segment,) = lower(Program.parse(text)).segments
    assert choose(segment.options, 2).get("xla_cpu_experimental_ynn_fusion_type") == library


def test_donations_go_to_outputs_of_equal_type_in_order() -> None:
    text = """func.func @main(%a: tensor<2xf32> {gcomp.donated}, %b: tensor<3xf32> {gcomp.donated},
        %c: tensor<2xf32> {gcomp.donated}, %d: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) {
      func.return %d, %c, %a : tensor<2xi32>, tensor<2xf32>, tensor<2xf32>
    }"""
    plan = lower(Program.parse(text))
    assert plan.segments[0].aliases == ((0, 1), (2, 2))
    assert [output.alias for output in plan.signature.outputs] == [None, 0, 2]


SYMBOLIC = """
func.func @main(%x: tensor<?x?xf32, ["a", "b"]>, %i: tensor<i32>)
    -> (tensor<?x?xf32, ["3*a + 1", "b"]>, tensor<?xi32, ["a*b"]>, tensor<?x2xf32, ["a", "2"]>,
        tensor<?x?xf32, ["a", "b"]>, tensor<2x?xf32, ["2", "b"]>, tensor<?xf32, ["max(a, b)"]>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %z, low = ["a", 0], high = ["a + 1", 0], interior = [0, 0]
    : (tensor<?x?xf32, ["a", "b"]>, tensor<f32>) -> tensor<?x?xf32, ["3*a + 1", "b"]>
  %1 = stablehlo.iota dim = 0 : tensor<?xi32, ["a*b"]>
  %2 = stablehlo.dynamic_slice %x, %i, %i, sizes = ["a", 2]
    : (tensor<?x?xf32, ["a", "b"]>, tensor<i32>, tensor<i32>) -> tensor<?x2xf32, ["a", "2"]>
  %3 = stablehlo.reverse %x, dims = [1] : tensor<?x?xf32, ["a", "b"]>
  %4 = stablehlo.concatenate %x, %3, dim = 0
    : (tensor<?x?xf32, ["a", "b"]>, tensor<?x?xf32, ["a", "b"]>) -> tensor<?x?xf32, ["2*a", "b"]>
  %s = stablehlo.slice %4 ["a":"2*a", 0:"b"]
    : (tensor<?x?xf32, ["2*a", "b"]>) -> tensor<?x?xf32, ["a", "b"]>
  %idx = stablehlo.constant dense<[[0], [1]]> : tensor<2x1xi32>
  %5 = "stablehlo.gather"(%x, %idx) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = ["1", "b"]}>
    : (tensor<?x?xf32, ["a", "b"]>, tensor<2x1xi32>) -> tensor<2x?xf32, ["2", "b"]>
  %6 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<?xf32, ["max(a, b)"]>
  func.return %0, %1, %2, %s, %5, %6 : tensor<?x?xf32, ["3*a + 1", "b"]>, tensor<?xi32, ["a*b"]>,
    tensor<?x2xf32, ["a", "2"]>, tensor<?x?xf32, ["a", "b"]>, tensor<2x?xf32, ["2", "b"]>, tensor<?xf32, ["max(a, b)"]>
}
"""


@pytest.mark.parametrize(
    ("text", "env"),
    [
        (CONV_NET, {"batch": 3}),
        (TWO_SYMBOLS, {"batch": 2, "seq": 6}),
        (UPDATE, {"n": 9}),
        (SYMBOLIC, {"a": 3, "b": 4}),
        (SYMBOLIC, {"a": 5, "b": 2}),
    ],
)
def test_filling_a_template_is_lowering_the_bound_program(text: str, env: dict[str, int]) -> None:
    program = Program.parse(text)
    (template,) = lower(program).templates.values()
    bound = lower(program.bind(env)).texts["main.mlir"]
    assert template.fill(env) == bound
    client("cpu").compile(bound, {})


def test_symbolic_sizes_in_attributes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    padded, iota, window, reversed_, rows, zeros = Model(lower(Program.parse(SYMBOLIC)), {})(x, np.int32(1))
    assert np.array_equal(padded, np.pad(x, ((3, 4), (0, 0))))
    assert np.array_equal(iota, np.arange(12)) and np.array_equal(window, x[:, 1:3])
    assert np.array_equal(reversed_, x[:, ::-1]) and np.array_equal(rows, x[:2]) and np.array_equal(zeros, np.zeros(4))
