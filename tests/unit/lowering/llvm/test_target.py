"""The target `cpu` through gcomp's doors: names, pipelines, what is refused, what is shown of a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from gcomp.runtime.engine import Ability
from gcomp.targets.base import target_named

Array = np.ndarray[Any, Any]

MLP = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.tanh %0 : tensor<4x8xf32>
  %2 = stablehlo.add %1, %x : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}"""


def inputs() -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    return random.standard_normal((4, 8), np.float32), random.standard_normal((8, 8), np.float32)


def test_the_short_name_is_this_machines() -> None:
    assert target_named("cpu").name == f"cpu:{this_machine()}"
    assert gcomp.compile(MLP, target="cpu").target == f"cpu:{this_machine()}"


@pytest.mark.parametrize("name", ["cpu:", "cpu:x86", "cpu:x86-64-v3,x86-64-v3", "cpu:x86-64-v3,"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="there is no target"):
        target_named(name)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_pipeline_ends_with_places_in_memory(name: str) -> None:
    target = target_named(f"cpu:{name}")
    names = [step.name for step in parse_pipeline(target.pipeline())]
    assert names[-4:] == ["fuse", "pack-convolution-weights", "order-for-memory", "plan-memory"]
    assert "rematerialize" in target.pipeline(1 << 20)


def test_models_run_and_are_kept(tmp_path: Path) -> None:
    x, w = inputs()
    model = gcomp.compile(MLP, target="cpu", threads=2)
    (found,) = model(x, w)
    np.testing.assert_allclose(found, np.tanh(x @ w) + x, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "mlp.gcomp")
    (again,) = gcomp.load(tmp_path / "mlp.gcomp")(x, w)
    assert again.tobytes() == found.tobytes()


def test_inner_values_are_fetched_and_change_nothing(tmp_path: Path) -> None:
    x, w = inputs()
    plain = gcomp.compile(MLP, target="cpu")(x, w)[0]
    model = gcomp.compile(MLP, target="cpu", fetch=["%1"])
    model.save(tmp_path / "mlp.gcomp")
    for found in (model, gcomp.load(tmp_path / "mlp.gcomp")):
        assert np.asarray(found(x, w)[0]).tobytes() == plain.tobytes()
        np.testing.assert_allclose(found.fetch("%1", x, w)["%1"], np.tanh(x @ w), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.fetch("%0", x, w)["%0"], x @ w, rtol=1e-5, atol=1e-6)


def test_checks_are_compiled_in() -> None:
    model = gcomp.compile(MLP, target="cpu", checks=["nan"])
    x, w = inputs()
    model(x, w)
    with pytest.raises(GcompError, match="NaN"):
        model(x * np.float32(np.nan), w)


def test_a_memory_budget_and_tuning() -> None:
    target = target_named("cpu")
    assert target.can(Ability.MEMORY_BUDGET) and target.can(Ability.TUNING)
    gcomp.compile(MLP, target="cpu", memory_budget="1MiB")


def test_nothing_imports_jax(tmp_path: Path) -> None:
    (tmp_path / "mlp.mlir").write_text(MLP)
    code = (
        "import sys, gcomp, numpy as np\n"
        f"model = gcomp.compile({str(tmp_path / 'mlp.mlir')!r}, target='cpu')\n"
        "model(np.zeros((4, 8), np.float32), np.zeros((8, 8), np.float32))\n"
        "print(sorted(name for name in ('jax', 'llvmlite', 'torch', 'scipy') if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.strip() == "[]", done.stdout


LATE = """module attributes {gcomp.ranges = {k = "0.."}} {
func.func public @main(%x: tensor<6xf32>, %n: tensor<1xi64>)
    -> (tensor<?xf32, ["k"]>, tensor<6xf32>, tensor<1x1xi64>) {
  %a = stablehlo.add %n, %n : tensor<1xi64>
  %s = stablehlo.sine %x : tensor<6xf32>
  %h = "gcomp.host"(%a) <{function = "extents", config = {role = "a length"}}> :
      (tensor<1xi64>) -> tensor<?x0xi1, ["k", "0"]>
  %i = stablehlo.iota dim = 0 : tensor<?xf32, ["k"]>
  %c = stablehlo.cosine %i : tensor<?xf32, ["k"]>
  %r = stablehlo.reverse %c, dims = [0] : tensor<?xf32, ["k"]>
  %v = stablehlo.reshape %a : (tensor<1xi64>) -> tensor<1x1xi64>
  %t = stablehlo.add %s, %s : tensor<6xf32>
  func.return %r, %t, %v : tensor<?xf32, ["k"]>, tensor<6xf32>, tensor<1x1xi64>
}
}"""


@pytest.mark.parametrize("count", [0, 1, 40])
def test_sizes_that_the_host_says_are_known_before_they_are_used(count: int) -> None:
    """Fusion and order keep what is of such sizes behind the host step; a stage may only show what another made."""
    given = [np.arange(6, dtype=np.float32), np.array([count], np.int64)]
    for found, expected in zip(
        gcomp.compile(LATE, target="cpu")(*given), interpret(Program.parse(LATE), given), strict=True
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


GROWN = """module attributes {gcomp.ranges = {k = "0..", n = "0.."}} {
func.func @main(%x: tensor<?xf32, ["n"]>, %c: tensor<1xi64>) -> tensor<?xf32, ["k + n"]> {
  %s = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %r = stablehlo.reverse %s, dims = [0] : tensor<?xf32, ["n"]>
  %h = "gcomp.host"(%c) <{function = "extents", config = {role = "a length"}}> :
      (tensor<1xi64>) -> tensor<?x0xi1, ["k", "0"]>
  %i = stablehlo.iota dim = 0 : tensor<?xf32, ["k"]>
  %j = stablehlo.concatenate %i, %r, dim = 0 : (tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k + n"]>
  %t = "stablehlo.sort"(%j) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<?xf32, ["k + n"]>) -> tensor<?xf32, ["k + n"]>
  %o = stablehlo.reverse %t, dims = [0] : tensor<?xf32, ["k + n"]>
  func.return %o : tensor<?xf32, ["k + n"]>
}
}"""


@pytest.mark.parametrize("sizes", [(0, 0), (3, 5), (7, 0)])
def test_memory_before_a_host_step_needs_no_size_that_it_finds(sizes: tuple[int, int]) -> None:
    given = [np.sin(np.arange(sizes[0], dtype=np.float32)), np.array([sizes[1]], np.int64)]
    found, expected = gcomp.compile(GROWN, target="cpu")(*given), interpret(Program.parse(GROWN), given)
    assert np.array_equal(found[0], expected[0])


def test_a_size_that_the_host_finds_may_stay_within_a_segment() -> None:
    """No input or output of the second segment says what k is."""
    text = """module attributes {gcomp.ranges = {k = "0.."}} {
    func.func @main(%c: tensor<1xi64>) -> tensor<f32> {
      %a = stablehlo.add %c, %c : tensor<1xi64>
      %h = "gcomp.host"(%a) <{function = "extents", config = {role = "a length"}}> :
          (tensor<1xi64>) -> tensor<?x0xi1, ["k", "0"]>
      %i = stablehlo.iota dim = 0 : tensor<?xf32, ["k"]>
      %s = "stablehlo.sort"(%i) <{dimension = 0 : i64, is_stable = false}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %g = stablehlo.compare GT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }) : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["k"]>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32, ["k"]>, tensor<f32>) -> tensor<f32>
      func.return %t : tensor<f32>
    }
    }"""
    compiled = gcomp.compile(text, target="cpu")
    for count in (0, 3, 50):
        assert compiled(np.array([count], np.int64))[0] == sum(range(2 * count))
    with pytest.raises(UnsupportedError, match="size k is known only while the model runs"):
        compiled.memory()


def test_the_arena_of_a_wide_range_is_sized_by_the_call() -> None:
    text = """func.func @main(%x: tensor<?x100xf32, ["n", "100"]>) -> tensor<?x100xf32, ["n", "100"]> {
      %s = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = false}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }) : (tensor<?x100xf32, ["n", "100"]>) -> tensor<?x100xf32, ["n", "100"]>
      %r = stablehlo.reverse %s, dims = [0] : tensor<?x100xf32, ["n", "100"]>
      func.return %r : tensor<?x100xf32, ["n", "100"]>
    }"""
    model = gcomp.compile(text, target="cpu", dims={"n": "1..100000000000"})
    x = np.arange(200, dtype=np.float32).reshape(2, 100)
    assert np.array_equal(model(x)[0], x[::-1])
    assert model.memory(n=2).temporary_bytes < 1 << 16


def test_memory_that_addresses_do_not_reach_is_refused_with_its_bytes() -> None:
    kind = f"tensor<{1 << 30}x{1 << 30}xf32>"
    folded = "%t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0, 1]"
    text = f"""func.func @main(%x: {kind}) -> tensor<f32> {{
      %s = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = false}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }}) : ({kind}) -> {kind}
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      {folded} : ({kind}, tensor<f32>) -> tensor<f32>
      return %t : tensor<f32>
    }}"""
    with pytest.raises(UnsupportedError, match=r"takes (9,223|13,835),[\d,]+ bytes of memory"):
        gcomp.compile(text, target="cpu")


@pytest.mark.parametrize("of", ["%y", "%n"])
@pytest.mark.parametrize("read", ["%c", "%d"])
def test_what_lies_nowhere_is_made_after_a_host_step_of_what_it_is_made_of(of: str, read: str) -> None:
    """A number in the shape of an input, or of what was computed before, which nothing else needs."""
    text = f"""func.func @main(%x: tensor<1x1xcomplex<f32>>, %y: tensor<2x3xf32>)
        -> (tensor<1x1xcomplex<f32>>, tensor<2x3xf32>) {{
      %n = stablehlo.tanh %y : tensor<2x3xf32>
      %0 = stablehlo.cholesky %x, lower = true : tensor<1x1xcomplex<f32>>
      %c = "chlo.constant_like"({of}) <{{value = 2.5 : f32}}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %d = stablehlo.negate %c : tensor<2x3xf32>
      func.return %0, {read} : tensor<1x1xcomplex<f32>>, tensor<2x3xf32>
    }}"""
    found = gcomp.compile(text, target="cpu")(np.full((1, 1), 4, np.complex64), np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(found[1], np.full((2, 3), 2.5 if read == "%c" else -2.5, np.float32))


def test_a_weight_that_several_layers_share_is_stored_in_panels() -> None:
    """As those of a detector's heads, which see each level of a pyramid: each layer made a transpose of its own."""
    dims = "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}"
    groups = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    heads = [
        f"%y{n} = stablehlo.convolution(%x{n}, %w) {dims} {groups} : "
        f"(tensor<1x32x{n}x{n}xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x{n}x{n}xf32>"
        for n in (4, 6)
    ]
    program = Program.parse("""
      func.func @main(%x4: tensor<1x32x4x4xf32>, %x6: tensor<1x32x6x6xf32>)
          -> (tensor<1x64x4x4xf32>, tensor<1x64x6x6xf32>) {
        %w = gcomp.weight @w : tensor<64x32x1x1xf32>
    """ + "\n".join(heads) + """
        return %y4, %y6 : tensor<1x64x4x4xf32>, tensor<1x64x6x6xf32>
      }""")  # fmt: skip
    program.weights.add("w", np.random.default_rng(0).standard_normal((64, 32, 1, 1), np.float32))
    PassManager(parse_pipeline(target_named("cpu:x86-64-v4").pipeline())).run(program)
    ((_, weight),) = program.weights.items()
    assert weight.shape == (2, 32, 32)
