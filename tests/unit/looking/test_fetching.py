"""Values inside of a compiled program: found by any of their names, and no burden to the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import gcomp
from gcomp.errors import ArtifactError, UnsupportedError, UsageError
from gcomp.ir.fetching import fetching, find
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import random_program

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
W = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)

LOOP = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i, %y = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    %inner = stablehlo.sine %v : tensor<4xf32>
    stablehlo.return %next, %inner : tensor<i32>, tensor<4xf32>
  }
  %z = stablehlo.cosine %y : tensor<4xf32>
  return %z : tensor<4xf32>
}"""


def _model() -> onnx.ModelProto:
    nodes = [
        oh.make_node("MatMul", ["x", "w"], ["hidden/states"], name="mm"),
        oh.make_node("Split", ["hidden/states"], ["left", "right"], name="halves", axis=1, num_outputs=2),
        oh.make_node("Exp", ["left"], ["grown"], name="grow"),
        oh.make_node("Mul", ["grown", "right"], ["y"]),
    ]
    ports = [oh.make_tensor_value_info("x", 1, ["n", 3])], [oh.make_tensor_value_info("y", 1, ["n", 2])]
    graph = oh.make_graph(nodes, "g", *ports, [onnx.numpy_helper.from_array(W, "w")])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)])


def test_every_name_of_a_value_finds_it() -> None:
    model = gcomp.compile(_model(), fetch=[])
    hidden = X @ W
    for key, wanted in {"hidden/states": hidden, "mm": hidden, "grow": np.exp(hidden[:, :2]), "%x": X}.items():
        assert np.allclose(model.fetch(key, X)[key], wanted), key
    parts = model.fetch(["halves"], x=X)
    assert list(parts) == ["halves#0", "halves#1"] and np.allclose(parts["halves#1"], hidden[:, 2:])
    assert np.allclose(model.fetch("halves#1", X)["halves#1"], hidden[:, 2:])
    assert model.fetch(["y"], X)["y"].tobytes() == np.asarray(model(X)[0]).tobytes()


def test_fetched_values_come_besides_and_survive_saving(tmp_path: Path) -> None:
    plain, model = (gcomp.compile(_model(), target="xla:cpu", fetch=fetch) for fetch in (None, ["left", "y"]))
    assert [o.name for o in model.outputs] == ["y", "left"]
    model.save(tmp_path / "m.gcomp")
    for one in (model, gcomp.load(tmp_path / "m.gcomp")):
        (y,) = one(X)
        assert y.tobytes() == plain(X)[0].tobytes()
        assert np.allclose(one.named(X)["left"], (X @ W)[:, :2])
        assert one.plan.texts["main.mlir"] == plain.plan.texts["main.mlir"]
    with pytest.raises(UsageError, match="does not give 'right'") as error:
        gcomp.load(tmp_path / "m.gcomp").fetch("right", X)
    assert "--fetch" in str(error.value)


def test_lines_and_operations_of_other_frontends() -> None:
    import jax.numpy as jnp
    import torch

    def of_jax(x):
        return jnp.tanh(jnp.sin(x) * 2)

    line = of_jax.__code__.co_firstlineno + 1
    found = gcomp.compile(of_jax, X, fetch=[]).fetch([f"test_fetching.py:{line}", "sin"], X)
    assert np.allclose(found["sin"], np.sin(X))
    assert any(np.allclose(v, np.tanh(np.sin(X) * 2)) for k, v in found.items() if k.startswith("test_fetching.py"))

    class OfTorch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.sin(x)).exp()

    model = gcomp.compile(OfTorch(), torch.from_numpy(X), fetch=["relu"])
    assert np.allclose(model.named(X)["relu"], np.maximum(np.sin(X), 0))


def test_results_keep_their_structure() -> None:
    model = gcomp.compile(lambda x: {"a": x + 1, "b": (x * 2,)}, X, fetch=["mul"])
    result = model(X)
    assert result.keys() == {"a", "b"} and np.array_equal(result["b"][0], X * 2)


def test_donated_inputs_may_be_fetched() -> None:
    text = """func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}) -> (tensor<4xf32> {gcomp.name = "y"}) {
      %y = stablehlo.sine %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    import jax.numpy as jnp

    x = np.arange(4, dtype=np.float32)
    model = gcomp.compile(text, donate=["x"], fetch=["%x"])
    given = jnp.asarray(x)
    found = model.named(given)
    assert np.array_equal(found["%x"], x) and np.allclose(found["y"], np.sin(x))
    assert given.is_deleted()


def test_values_of_loops_are_refused_with_a_way_out() -> None:
    program = Program.parse(LOOP)
    with pytest.raises(UsageError, match="not a value of the whole program") as error:
        find(program, ["%inner"])
    assert "print" in str(error.value) and "while" in str(error.value)
    (fetched,) = interpret(fetching(program, ["%y"]), [np.ones(4, np.float32)])
    assert np.allclose(fetched, np.sin(np.sin(np.sin(np.ones(4)))))


@pytest.mark.parametrize(("key", "near"), [("hidden/state", "hidden/states"), ("grw", "grow"), ("%X", "x, y")])
def test_unknown_names_have_near_ones(key: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"no value '{key}'") as error:
        gcomp.compile(_model(), fetch=[key])
    assert near in str(error.value) and "gcomp opt" in str(error.value)


def test_what_cannot_be_fetched_is_refused() -> None:
    with pytest.raises(UsageError, match="names 2 values"):
        gcomp.compile(_model(), fetch=["halves#7"])
    with pytest.raises(UnsupportedError, match="triton:sm_90"):
        gcomp.compile(_model(), fetch=["mm"], target="triton:sm_90")
    text = """func.func @main() -> tensor<2xf32> {
      %a = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.constant dense<1.0> : tensor<f32>
      %n = stablehlo.constant dense<2> : tensor<1xi64>
      %r = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
      %y = stablehlo.sine %r : tensor<2xf32>
      return %y : tensor<2xf32>
    }"""
    with pytest.raises(UnsupportedError, match="random numbers without a key"):
        gcomp.compile(text, fetch=["%r"])


def test_a_plan_with_an_impossible_count_is_refused(tmp_path: Path) -> None:
    import dataclasses

    model = gcomp.compile(_model(), fetch=["left"])
    for fetched in (-1, 3):
        model.plan = dataclasses.replace(model.plan, fetched=fetched)
        model.save(tmp_path / "m.gcomp")
        with pytest.raises(ArtifactError, match="not valid"):
            gcomp.load(tmp_path / "m.gcomp")


@pytest.mark.parametrize("seed", range(12))
def test_fetching_changes_no_other_output(seed: int) -> None:
    """By construction: the program's own steps are those of the program without fetches."""
    program = random_program(Seeded(seed))
    if any(op.name == "stablehlo.rng" for op in program.ops()):
        return
    values = [op.results[0] for op in program.block.ops if op.results and op.operands]
    before, inputs = program.text(), inputs_for(program, seed)
    outputs = interpret(program, inputs)
    from gcomp.ir.fetching import printed_names

    names = printed_names(program)
    for value in values[:: max(1, len(values) // 3)]:
        (seen,) = interpret(fetching(program, [f"%{names[value]}"]), inputs)
        assert seen.shape is not None
        assert program.text() == before
        again = interpret(program, inputs)
        assert [a.tobytes() for a in again] == [a.tobytes() for a in outputs]


def test_values_of_a_training_step_move_nothing() -> None:
    """A model with a state gives what is fetched, and its state goes on as without."""
    from gcomp.training import training_step
    from tests.unit.training.models import MLP, X, Y

    program = training_step(MLP, optimizer="sgd:lr=0.1", dims={"n": len(X)}).program
    product = next(line for line in program.text().splitlines() if "dot_general" in line).split("=")[0].strip()
    plain, seen = gcomp.compile(program.clone()), gcomp.compile(program.clone(), fetch=[product])
    for _ in range(2):
        first, second = plain.named(X, Y), seen.named(X, Y)
        assert second.keys() - first.keys() == {product}
        assert all(np.asarray(first[key]).tobytes() == np.asarray(second[key]).tobytes() for key in first)
    states = [{name: array.tobytes() for name, array in model.state.items()} for model in (plain, seen)]  # type: ignore[attr-defined]
    assert states[0] == states[1]
