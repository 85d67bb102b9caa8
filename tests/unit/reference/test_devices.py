"""Programs for several devices: the reference, and gcomp's derivatives, beside JAX on eight virtual devices."""

from __future__ import annotations

from ast import literal_eval
from functools import cache
from typing import Any

import numpy as np
import pytest

from gcomp.autodiff.programs import differentiate, differentiate_back
from gcomp.errors import InputError, InvalidModelError, UnsupportedError, UsageError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret, interpret_on_devices
from gcomp.reference.noise import NoisyInterpreter
from tests.support.devices import on_devices
from tests.support.sharded import CASES, evaluated, operands

each_case = pytest.mark.parametrize("name", CASES)
each_smooth_case = pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.differentiable])
EPSILON = float(np.finfo(np.float32).eps)


@cache
def jaxs(name: str) -> dict[str, Any]:
    return on_devices(evaluated, name)


def inlined(name: str) -> Program:
    program = Program.parse(jaxs(name)["text"])
    PassManager(parse_pipeline("inline")).run(program)
    return program


def close(ours: Any, theirs: Any) -> None:
    """Sums of at most a few hundred terms, in another order."""
    scale = max(1.0, float(np.abs(theirs).max()))
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert float(np.abs(np.float64(ours) - np.float64(theirs)).max()) <= 64 * EPSILON * scale


@each_case
def test_the_reference_computes_what_jax_does(name: str) -> None:
    program = Program.parse(jaxs(name)["text"])
    (result,) = interpret(program, operands()[:2])
    close(result, jaxs(name)["result"])


@each_smooth_case
def test_cotangents_are_jaxs(name: str) -> None:
    program = inlined(name)
    differentiate_back(program)
    program.verify()
    for ours, theirs in zip(
        interpret(program, [*operands()[:2], jaxs(name)["cotangent"]]), jaxs(name)["back"], strict=True
    ):
        close(ours, theirs)


@each_smooth_case
def test_tangents_are_jaxs(name: str) -> None:
    program = inlined(name)
    differentiate(program)
    program.verify()
    close(interpret(program, operands())[1], jaxs(name)["forward"])


# ---- programs that are written for one device: the specification's examples -----------------------------------------

ADD = """({ ^bb0(%a: tensor<i64>, %b: tensor<i64>):
  %s = stablehlo.add %a, %b : tensor<i64> stablehlo.return %s : tensor<i64>
})"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"


def one(op: str, properties: str, types: str, region: str = "") -> Program:
    operand, result = types.split(" -> ")
    return Program.parse(f"""func.func @main(%x: {operand}) -> {result} {{
      %0 = "stablehlo.{op}"(%x) <{{{properties}}}> {region} : ({operand}) -> {result}
      return %0 : {result}
    }}""")


def run(program: Program, inputs: list[Any], replicas: int) -> list[Any]:
    arrays = [[np.array(x, np.int64)] for x in inputs]
    return [outputs[0].tolist() for outputs in interpret_on_devices(program, arrays, replicas=replicas)]


TWO = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
WIDE = [[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]
GROUP = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"


def test_examples_of_the_specification() -> None:
    program = one("all_gather", f"all_gather_dim = 1 : i64, {GROUP}", "tensor<2x2xi64> -> tensor<2x4xi64>")
    assert run(program, TWO, 2) == [[[1, 2, 5, 6], [3, 4, 7, 8]]] * 2
    program = one("all_reduce", GROUP, "tensor<4xi64> -> tensor<4xi64>", ADD)
    assert run(program, [[1, 2, 3, 4], [5, 6, 7, 8]], 2) == [[6, 8, 10, 12]] * 2
    program = one(
        "all_to_all", f"split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {GROUP}",
        "tensor<2x4xi64> -> tensor<4x2xi64>",
    )  # fmt: skip
    assert run(program, WIDE, 2) == [[[1, 2], [5, 6], [9, 10], [13, 14]], [[3, 4], [7, 8], [11, 12], [15, 16]]]
    program = one(
        "collective_broadcast",
        "replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>",
        "tensor<1x2xi64> -> tensor<1x2xi64>",
    )
    assert run(program, [[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]], 4) == [[[0, 0]], [[5, 6]], [[5, 6]], [[0, 0]]]
    program = one(
        "collective_permute", "source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>",
        "tensor<2x2xi64> -> tensor<2x2xi64>",
    )  # fmt: skip
    assert run(program, [*TWO, [[9, 10], [11, 12]]], 3) == [[[0, 0], [0, 0]], *TWO]
    program = one("reduce_scatter", f"scatter_dimension = 1 : i64, {GROUP}", "tensor<2x4xi64> -> tensor<2x2xi64>", ADD)
    assert run(program, WIDE, 2) == [[[10, 12], [18, 20]], [[14, 16], [22, 24]]]


@pytest.mark.parametrize(
    ("groups", "channel", "expected"),
    [
        # Six processes: three replicas of two partitions, holding 1, 10, 100, ...
        ("[[0, 2], [1, -1]]", "", None),
        ("[[0, 1, 2]]", "", [10101, 101010, 10101, 101010, 10101, 101010]),
        ("[[0], [1], [2]]", f", {CHANNEL}", [11, 11, 1100, 1100, 110000, 110000]),
        ("[[0, 1, 2]]", f", {CHANNEL}", [111111] * 6),
        ("[[0, 5], [1, 4], [2, 3]]", f", {CHANNEL}, use_global_device_ids", [100001, 10010, 1100, 1100, 10010, 100001]),
    ],
)
def test_groups_of_processes(groups: str, channel: str, expected: list[int] | None) -> None:
    shape = "x".join(map(str, np.array(literal_eval(groups)).shape))
    properties = f"replica_groups = dense<{groups}> : tensor<{shape}xi64>{channel}"
    program = one("all_reduce", properties, "tensor<i64> -> tensor<i64>", ADD)
    inputs = [10**i for i in range(6)]
    if expected is None:
        with pytest.raises(InvalidModelError, match="names a device that there is not"):
            run(program, inputs, 3)
    else:
        assert run(program, inputs, 3) == expected


def test_devices_know_their_numbers() -> None:
    program = Program.parse("""func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      %0 = stablehlo.partition_id : tensor<ui32>
      %1 = stablehlo.replica_id : tensor<ui32>
      return %0, %1 : tensor<ui32>, tensor<ui32>
    }""")
    told = interpret_on_devices(program, [[]] * 6, replicas=3)
    assert [(int(p), int(r)) for p, r in told] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    with pytest.raises(UsageError, match="6 devices do not make 4 replicas"):
        interpret_on_devices(program, [[]] * 6, replicas=4)
    with pytest.raises(UnsupportedError, match="partition_id is another on each device"):
        interpret(program, [])


def test_one_device_alone_waits_for_nobody() -> None:
    program = one("all_reduce", GROUP, "tensor<4xi64> -> tensor<4xi64>", ADD)
    with pytest.raises(UnsupportedError, match="run by several devices together, and this is one"):
        interpret(program, [np.zeros(4, np.int64)])


def test_sizes_are_those_of_all_devices() -> None:
    program = one("all_reduce", GROUP, 'tensor<?xi64, ["n"]> -> tensor<?xi64, ["n"]>', ADD)
    assert run(program, [[1, 2], [3, 4]], 2) == [[4, 6]] * 2
    with pytest.raises(InputError, match="inputs of different sizes"):
        run(program, [[1, 2], [3]], 2)


# ---- what would wait forever ----------------------------------------------------------------------------------------

BRANCH = """func.func @main(%x: tensor<i64>) -> tensor<i64> {{
  %c = stablehlo.constant dense<0> : tensor<i64>
  %p = stablehlo.compare GT, %x, %c : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %0 = "stablehlo.if"(%p) ({{
    {first}
    stablehlo.return %s : tensor<i64>
  }}, {{
    {second}
    stablehlo.return %s : tensor<i64>
  }}) : (tensor<i1>) -> tensor<i64>
  return %0 : tensor<i64>
}}"""
SUM = f'%s = "stablehlo.all_reduce"(%x) <{{{GROUP}}}> {ADD} : (tensor<i64>) -> tensor<i64>'
NONE = "%s = stablehlo.add %x, %x : tensor<i64>"


@pytest.mark.parametrize(("first", "second"), [(SUM, NONE), (NONE, SUM), (SUM, SUM)])
def test_devices_that_disagree_are_refused(first: str, second: str) -> None:
    program = Program.parse(BRANCH.format(first=first, second=second))
    with pytest.raises(InvalidModelError, match="disagree about the order of collectives") as refused:
        run(program, [1, -1], 2)
    assert "device 0 is at" in str(refused.value) and "device 1 is at" in str(refused.value)
    if SUM in (first, second) and NONE in (first, second):
        assert "the end" in str(refused.value)
        assert run(program, [1, 2], 2) == ([3, 3] if first == SUM else [2, 4]), "all go the same way"


def test_loops_of_different_lengths_are_refused() -> None:
    program = Program.parse(f"""func.func @main(%x: tensor<i64>) -> tensor<i64> {{
      %one = stablehlo.constant dense<1> : tensor<i64>
      %i, %r = stablehlo.while(%k = %one, %y = %x) : tensor<i64>, tensor<i64>
      cond {{
        %p = stablehlo.compare LT, %k, %x : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %n = stablehlo.add %k, %one : tensor<i64>
        {SUM.replace("%x", "%y")}
        stablehlo.return %n, %s : tensor<i64>, tensor<i64>
      }}
      return %r : tensor<i64>
    }}""")
    assert run(program, [3, 3], 2) == [12, 12]
    with pytest.raises(InvalidModelError, match=r"device 0 is at stablehlo\.all_reduce .*, and device 1 is at the end"):
        run(program, [4, 3], 2)


def test_results_that_several_devices_hold_are_the_same() -> None:
    program = Program.parse("""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"a"} (%y: tensor<2xf32>) {
        sdy.return %y : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")  # noqa: E501
    assert interpret(program, [np.float32([1, 2, 1, 2])])[0].tolist() == [1, 2]
    with pytest.raises(InvalidModelError, match="disagree about result 0 of a manual computation"):
        interpret(program, [np.float32([1, 2, 1, 3])])


def test_the_mesh_says_who_lies_where() -> None:
    """Partitions are numbered by their ids, and pieces go by their order on the mesh."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=4], device_ids=[2, 0, 3, 1]>
    func.func @main() -> tensor<4xui32> {
      %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} () {
        %1 = stablehlo.partition_id : tensor<ui32>
        %2 = stablehlo.reshape %1 : (tensor<ui32>) -> tensor<1xui32>
        sdy.return %2 : tensor<1xui32>
      } : () -> tensor<4xui32>
      return %0 : tensor<4xui32>
    }""")
    assert interpret(program, [])[0].tolist() == [2, 0, 3, 1]


def test_folds_that_are_no_sums_have_no_derivative() -> None:
    program = Program.parse(jaxs("largest")["text"])
    with pytest.raises(UnsupportedError, match="something else than a sum"):
        differentiate_back(program)


def test_devices_that_compute_the_same_round_alike() -> None:
    """Noise of their own would have them disagree about results that lie whole on each."""
    program = Program.parse("""sdy.mesh @mesh = <["a"=4]>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{}]>]
          manual_axes={"a"} (%p: tensor<1xf32>) {
        %t = stablehlo.tanh %p : tensor<1xf32>
        %1 = "stablehlo.all_gather"(%t) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]>
            : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}>
            : (tensor<1xf32>) -> tensor<4xf32>
        %2 = stablehlo.exponential %1 : tensor<4xf32>
        sdy.return %2 : tensor<4xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }""")
    x = np.array([0.5, 1, 2, 3], np.float32)
    exact = interpret(program, [x])[0]
    found = [NoisyInterpreter(program, seed).run([x])[0] for seed in range(4)]
    assert any((one != exact).any() for one in found)
    assert max(np.abs(one / exact - 1).max() for one in found) < 64 * EPSILON
