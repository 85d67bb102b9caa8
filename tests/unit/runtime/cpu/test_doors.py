"""Every door of gcomp leads to the target `cpu`, and gives what the reference, or the source's own library, gives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import gcomp
from gcomp import ops
from gcomp.cli import main
from gcomp.dtypes import dtype_of
from gcomp.errors import InputError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.runtime.cpu.variants import this_machine
from tests.unit.training.models import MLP, X, Y

Array = np.ndarray[Any, Any]
NAME = f"cpu:{this_machine()}"
SQUARE = """func.func @main(%x: tensor<?x4xf32, ["n", "4"]> {gcomp.name = "x"})
    -> (tensor<?x4xf32, ["n", "4"]> {gcomp.name = "r"}) {
  %y = stablehlo.multiply %x, %x : tensor<?x4xf32, ["n", "4"]>
  return %y : tensor<?x4xf32, ["n", "4"]>
}"""


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: object) -> int:
        monkeypatch.setattr(sys, "argv", ["gcomp", *map(str, args)])
        with pytest.raises(SystemExit) as caught:
            main()
        assert isinstance(caught.value.code, int)
        return caught.value.code

    (tmp_path / "m.mlir").write_text(SQUARE)
    np.save(tmp_path / "x.npy", X)
    artifact, out = tmp_path / "m.gcomp", tmp_path / "out.npy"
    assert run("compile", tmp_path / "m.mlir", "-o", artifact, "--target", "cpu") == 0
    assert gcomp.load(artifact).target == NAME
    assert run("run", artifact, "--input", f"x={tmp_path / 'x.npy'}", "-o", f"r={out}") == 0
    assert np.load(out).tobytes() == (X * X).tobytes()


def test_the_onnx_backend() -> None:
    from gcomp import onnx_backend

    text = "g (float[n, 4] x) => (float[n, 4] y) { y = Mul(x, x) }"
    prepared = onnx_backend.prepare(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'), target="cpu")
    (found,) = prepared.run([X])
    assert prepared.model is not None and prepared.model.target == NAME and found.tobytes() == (X * X).tobytes()


def test_torch_compile() -> None:
    torch = pytest.importorskip("torch")
    compiled = torch.compile(lambda x: torch.relu(x) * x, backend="gcomp", options={"target": "cpu"})
    x = torch.linspace(-2, 2, 9)
    assert torch.equal(compiled(x), torch.relu(x) * x)


def test_jit_with_keys_and_control_flow() -> None:
    """Random bits are JAX's, to the last one; so are the turns of a loop and what a branch takes."""
    import jax
    import jax.numpy as jnp

    def function(key: Any, x: Any) -> Any:
        noise = jax.random.bits(key, (5,), "uint32")
        found = jax.lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 2, x)
        return noise, jax.lax.cond(found[0] > 10, lambda v: v - 1, lambda v: v + 1, found)

    key, x = jax.random.key(3), jnp.arange(4.0)
    jitted = gcomp.jit(function, target="cpu")
    for found, wanted in zip(jitted(key, x), jax.jit(function)(key, x), strict=True):
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
    assert jitted.model(key, x).target == NAME


def test_functions_of_gcomp() -> None:
    @gcomp.function(target="cpu")
    def halves(x):
        while x.sum() > 1:
            x = x / 2
        return ops.concatenate([x, x], 0)

    assert np.asarray(halves(np.ones(4, np.float32))).tolist() == [0.25] * 8


def test_a_training_step_keeps_its_state() -> None:
    """The losses of ten steps are those of `xla:cpu`, but for rounding; the state is donated."""
    losses = []
    for target in ("cpu", "xla:cpu"):
        step = gcomp.train_step(MLP, loss="cross_entropy", optimizer="adamw:lr=0.05", target=target)
        losses.append([float(step(X, Y)) for _ in range(10)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_a_donated_array_is_the_results_memory() -> None:
    model = gcomp.compile(SQUARE, target="cpu", donate=["x"])
    x = np.full((2, 4), 3, np.float32)
    (found,) = model(x)
    assert np.shares_memory(found, x) and found.tolist() == [[9.0] * 4] * 2


def test_prints_are_in_order_and_change_no_bit(tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    def function(x: Any) -> Any:
        jax.debug.print("{} of {x:.1f}", x, x=x.sum())
        y = jnp.exp(x)
        jax.debug.print("{}", y[0])
        return y * 2

    model = gcomp.compile(function, np.float32([1, 2]), target="cpu")
    model.save(tmp_path / "m.gcomp")
    x = np.float32([0, 2])
    quiet = gcomp.compile(lambda x: jnp.exp(x) * 2, x, target="cpu")(x)
    for one in (model, gcomp.load(tmp_path / "m.gcomp")):
        lines: list[str] = []
        with gcomp.printing_to(lines.append):
            assert np.asarray(one(x)).tobytes() == np.asarray(quiet).tobytes()
        assert lines == ["[0. 2.] of 2.0", "1.0"]


def test_branches_whose_results_have_other_sizes() -> None:
    """A branch that does not run at a call's sizes does not have to fit them."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
      g (bool c, float[n] x) => (float[m] y) <float[3] w = {1, 2, 3}> {
        y = If(c) <then_branch = t () => (float[p] a) { a = Add(x, w) },
                   else_branch = e () => (float[q] b) { b = Neg(x) }>
      }""")
    compiled = gcomp.compile(model, target="cpu")
    calls = ((False, 5, [0, -1, -2, -3, -4]), (True, 3, [1, 3, 5]), (False, 3, [0, -1, -2]), (True, 1, [1, 2, 3]))
    for c, n, expected in calls:
        np.testing.assert_array_equal(compiled(c=np.array(c), x=np.arange(n, dtype=np.float32))[0], expected)
    with pytest.raises(InputError, match="sizes do not fit together"):
        compiled(c=np.array(True), x=np.arange(5, dtype=np.float32))


def test_buckets_are_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match="arguments of its code"):
        gcomp.compile(SQUARE, target="cpu", buckets={"n": (2, 4)}, dims={"n": (1, 4)})


@pytest.mark.parametrize("type", ["complex<f32>", "complex<f64>"])
def test_complex_numbers_by_their_parts(type: str) -> None:
    x = (np.arange(4) + 1j * np.arange(4)[::-1]).astype(dtype_of(type))
    agree(f"tensor<4x{type}>", "stablehlo.multiply %x, %x", x)


@pytest.mark.parametrize(
    "type", ["i4", "ui4", "i8", "f16", "bf16", "f64", "f8E4M3FN", "f8E5M2", "f8E5M2FNUZ", "f4E2M1FN"]
)
def test_element_types(type: str) -> None:
    x = np.array([-3, -2, -1, 0, 1, 2, 3, 4]).astype(dtype_of(type))
    agree(f"tensor<8x{type}>", "stablehlo.add %x, %x", x)


def agree(type: str, op: str, x: Array) -> None:
    """The bits of an op are the reference's."""
    text = f"func.func @main(%x: {type}) -> {type} {{\n%y = {op} : {type}\nreturn %y : {type}\n}}"
    (found,) = gcomp.compile(text, target="cpu")(x)
    (wanted,) = interpret(Program.parse(text), [x])
    assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()
