"""Checks inside of a compiled model: the first op that makes a NaN or indexes out of range, in the order of the run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import ArtifactError, CheckError, GcompError, UnsupportedError, UsageError
from gcomp.ir import locations
from gcomp.ir.checks import OUTPUTS, table_of
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.transform.insert_checks import InsertChecks
from gcomp.reference.interpreter import interpret
from gcomp.runtime.stateful import StatefulModel
from gcomp.testing.bisect import find_nonfinite
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import random_program

LOOP = """func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}, %last: tensor<i32> {gcomp.name = "last"})
    -> (tensor<4xf32> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %i, %y = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    %less = stablehlo.subtract %v, %two : tensor<4xf32>
    %odd = stablehlo.and %at, %one : tensor<i32>
    %is = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %new = "stablehlo.if"(%is) ({
      %root = stablehlo.sqrt %less : tensor<4xf32>
      stablehlo.return %root : tensor<4xf32>
    }, {
      stablehlo.return %less : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
  }
  return %y : tensor<4xf32>
}"""


def checked(text: str, *inputs: Any, kinds: tuple[str, ...]) -> tuple[list[Any], dict[str, str] | None, int]:
    """The reference's outputs of a checked program, the check that failed, and the iteration."""
    program = Program.parse(text)
    InsertChecks(kinds).run(program, PassContext())
    program.verify("with checks")
    *outputs, number, iteration = interpret(program, [np.asarray(x) for x in inputs])
    return outputs, dict(table_of(program)[int(number)]) if number >= 0 else None, int(iteration)


def test_the_first_one_wins_and_its_turn_is_known() -> None:
    x = np.float32([1, 2, 3, 4])
    assert checked(LOOP, x, np.int32(1), kinds=("nan",))[1:] == (None, -1)
    _, row, iteration = checked(LOOP, x, np.int32(6), kinds=("nan",))
    assert row is not None and row["op"] == "stablehlo.sqrt" and iteration == 1
    model = gcomp.compile(LOOP, checks=["nan"])
    assert model(x + 90, np.int32(2))[0].shape == (4,)
    with pytest.raises(CheckError, match=r"stablehlo.sqrt makes a NaN") as error:
        model(x, np.int32(6))
    assert "iteration 1 (from 0)" in str(error.value)


def test_sources_are_named() -> None:
    with pytest.raises(CheckError, match="the input 'x' holds a NaN"):
        gcomp.compile(LOOP, checks=["nan"])(np.float32([1, np.nan, 0, 0]), np.int32(0))
    program = Program.parse("""func.func @main(%x: tensor<300xf32>) -> tensor<300xf32> {
      %w = gcomp.weight @table : tensor<300xf32>
      %y = stablehlo.add %x, %w : tensor<300xf32>
      return %y : tensor<300xf32>
    }""")
    table = np.arange(300, dtype=np.float32)
    table[7] = np.nan
    program.weights.add("table", table)
    with pytest.raises(CheckError, match="the weight 'table' holds a NaN"):
        gcomp.compile(program, checks="nan")(np.zeros(300, np.float32))


def test_infinities_are_asked_for() -> None:
    text = """func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
      %y = stablehlo.multiply %x, %x : tensor<2xcomplex<f32>>
      return %y : tensor<2xcomplex<f32>>
    }"""
    big = np.complex64([1, 1e30])
    assert checked(text, big, kinds=("nan",))[1] is None
    _, row, _ = checked(text, big, kinds=("nan", "inf"))
    assert row is not None and row["kind"] == "inf"


INDEXING = {
    "dynamic_slice": """func.func @main(%x: tensor<5xf32>, %i: tensor<TYPE>) -> tensor<2xf32> {
      %y = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<5xf32>, tensor<TYPE>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }""",
    "dynamic_update_slice": """func.func @main(%x: tensor<5xf32>, %i: tensor<TYPE>) -> tensor<5xf32> {
      %u = stablehlo.constant dense<0.0> : tensor<2xf32>
      %y = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<5xf32>, tensor<2xf32>, tensor<TYPE>) -> tensor<5xf32>
      return %y : tensor<5xf32>
    }""",
    "gather": """func.func @main(%x: tensor<5xf32>, %i: tensor<TYPE>) -> tensor<2xf32> {
      %y = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>,
        slice_sizes = array<i64: 2>}> : (tensor<5xf32>, tensor<TYPE>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }""",
    "scatter": """func.func @main(%x: tensor<5xf32>, %i: tensor<TYPE>) -> tensor<5xf32> {
      %u = stablehlo.constant dense<0.0> : tensor<2xf32>
      %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
        scatter_dims_to_operand_dims = [0]>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          stablehlo.return %b : tensor<f32>
      }) : (tensor<5xf32>, tensor<TYPE>, tensor<2xf32>) -> tensor<5xf32>
      return %y : tensor<5xf32>
    }""",
}


@pytest.mark.parametrize("op", INDEXING)
@pytest.mark.parametrize(("type", "dtype"), [("i32", np.int32), ("ui8", np.uint8), ("ui64", np.uint64)])
def test_indices_out_of_range_are_found(op: str, type: str, dtype: type) -> None:
    x, text = np.zeros(5, np.float32), INDEXING[op].replace("TYPE", type)
    for index in (-1, 0, 3, 4, 200, 2**63):
        if not np.iinfo(dtype).min <= index <= np.iinfo(dtype).max:
            continue
        _, row, _ = checked(text, x, np.asarray(index, dtype), kinds=("index",))
        assert (row is None) == (0 <= index <= 3), index
        assert row is None or row["op"] == f"stablehlo.{op}"


def test_each_coordinate_has_its_own_limit() -> None:
    text = """func.func @main(%x: tensor<2x9xf32>, %i: tensor<2x3xi32>) -> tensor<3xf32> {
      %y = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
        start_index_map = [1, 0], index_vector_dim = 0>, slice_sizes = array<i64: 1, 1>}>
        : (tensor<2x9xf32>, tensor<2x3xi32>) -> tensor<3xf32>
      return %y : tensor<3xf32>
    }"""
    x = np.zeros((2, 9), np.float32)
    assert checked(text, x, np.int32([[0, 8, 1], [1, 0, 1]]), kinds=("index",))[1] is None
    assert checked(text, x, np.int32([[0, 8, 1], [1, 2, 1]]), kinds=("index",))[1] is not None


def test_frontends_are_named() -> None:
    import jax.numpy as jnp

    def of_jax(x, i):
        return jnp.log(x)[i]

    line = of_jax.__code__.co_firstlineno + 1
    x = np.ones(4, np.float32)
    model = gcomp.compile(of_jax, x, np.int32(0), checks=("nan", "index"))
    assert model(x, np.int32(3)) == 0
    with pytest.raises(CheckError, match="log makes a NaN") as error:
        model(-x, np.int32(3))
    assert f"test_checks.py:{line}" in str(error.value) and "'log'" in str(error.value)
    with pytest.raises(CheckError, match="index out of range"):
        model(x, np.int32(4))


def test_checks_survive_saving_and_bad_tables_do_not(tmp_path: Path) -> None:
    model, path = gcomp.compile(LOOP, checks=["nan"], fetch=["%i"]), tmp_path / "m.gcomp"
    model.save(path)
    loaded, x = gcomp.load(path), np.float32([1, 2, 3, 4])
    assert loaded.plan.checks == model.plan.checks and [o.name for o in loaded.outputs] == ["y", "%i"]
    assert loaded.fetch("%i", x, np.int32(1))["%i"] == 1
    with pytest.raises(CheckError):
        loaded(x, np.int32(6))
    bad = dataclasses.replace(model.plan.checks[0], kind="zero")
    for plan in (
        dataclasses.replace(model.plan, checks=(bad,)),
        dataclasses.replace(model.plan, checks=()),
        dataclasses.replace(model.plan, results=(*model.plan.results[:-1], model.plan.results[0])),
    ):
        model.plan = plan
        model.save(path)
        with pytest.raises(ArtifactError, match="not valid"):
            gcomp.load(path)


def test_a_program_with_nothing_to_check_is_as_it_was() -> None:
    text = LOOP.replace("f32", "i32").replace("dense<2.0>", "dense<2>").replace("sqrt", "negate")
    model = gcomp.compile(text, checks=["nan", "inf", "index"])
    assert not model.plan.checks and len(model(np.int32([1, 2, 3, 4]), np.int32(1))) == 1


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UsageError, match="no check 'zero'"):
        gcomp.compile(LOOP, checks=["nan", "zero"])
    with pytest.raises(UnsupportedError, match="triton:sm_90"):
        gcomp.compile(LOOP, checks=["nan"], target="triton:sm_90")


ENTERS = ("stablehlo.composite", "func.call", "chlo.scan", "stablehlo.rng", "gcomp.host")


@pytest.mark.parametrize("block", range(2))
def test_checks_change_nothing_and_find_what_the_reference_finds(block: int) -> None:
    """On generated programs with NaN and infinities in their inputs: the outputs, bit by bit, and the op at fault."""
    found = 0
    for seed in range(block * 50, block * 50 + 50):
        program = random_program(Seeded(seed))
        # The other finder looks into functions, and takes a complex number with an infinite part for infinite.
        if any(op.name in ENTERS for op in program.ops()) or "complex" in program.text():
            continue
        for i, op in enumerate(program.ops()):
            op.location = locations.named_location(f"op {i}")
        inputs = inputs_for(program, seed)
        try:
            before = interpret(program, inputs, max_steps=20_000)
        except GcompError:
            continue
        origins = {origin.what: origin for origin in find_nonfinite(program, inputs)}
        InsertChecks(("nan",)).run(program, PassContext())
        program.verify("with checks")
        names, results = [port.name for port in program.outputs()], interpret(program, inputs)
        assert names[len(before) :] == (list(OUTPUTS) if table_of(program) else [])
        after, number = results[: len(before)], results[-2] if table_of(program) else -1
        assert [a.tobytes() for a in after] == [b.tobytes() for b in before], seed
        origin = origins.get("NaN")
        if origin is None:
            assert number == -1, seed
        elif origin.op is not None:
            row = table_of(program)[int(number)]
            assert f"{row['op']} at {row['node']}" == origin.where, seed
            found += 1
    assert found


@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_a_check_of_a_training_step_that_fails_leaves_the_state_as_it_was(target: str, tmp_path: Path) -> None:
    """The error names the op of the model; the state moves on with the next good batch, as without checks."""
    from tests.unit.training.models import MLP, X, Y

    given = {"optimizer": "sgd:lr=0.1", "dims": {"n": len(X)}, "target": target}
    plain = gcomp.train_step(MLP, **given)  # type: ignore[arg-type]
    gcomp.train_step(MLP, checks=("nan",), **given).save(tmp_path / "step.gcomp")  # type: ignore[arg-type]
    checked = gcomp.load(tmp_path / "step.gcomp")
    assert isinstance(checked, StatefulModel)
    spoilt = X.copy()
    spoilt[1, 0] = np.nan
    for batch in (X, spoilt, X[::-1].copy()):
        before = {name: array.tobytes() for name, array in checked.state.items()}
        if batch is spoilt:
            with pytest.raises(CheckError, match="the input 'x' holds a NaN"):
                checked(batch, Y)
            assert {name: array.tobytes() for name, array in checked.state.items()} == before
            continue
        made, expected = checked.named(batch, Y), plain.named(batch, Y)
        assert made.keys() == expected.keys()
        np.testing.assert_allclose(list(made.values()), list(expected.values()), rtol=1e-5)
        assert {name: array.tobytes() for name, array in checked.state.items()} != before
    for name, array in plain.state.items():
        np.testing.assert_allclose(checked.state[name], array, rtol=1e-5, atol=1e-7)
    checked.load_state(
        {name: np.full_like(a, np.inf) for name, a in checked.state.items() if a.dtype.kind == "f"}, partial=True
    )
    with pytest.raises(CheckError, match="makes a NaN"):
        checked(X, Y)
