"""Factorizations in branches and loops on processors: the code calls the host, which computes them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import ArtifactError, InternalError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.llvm.clibrary.library import library_files
from gcomp.lowering.llvm.lower import lowerings
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.numpy import host
from gcomp.reference.planned import PlannedExecutor
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.runtime.model import Model
from gcomp.runtime.steps import HostCall, walk
from gcomp.targets.base import target_named
from gcomp.testing.plans import PlanRunner
from tests.unit.runtime.cpu.test_processes import NUMPY_ALONE, python

Array = np.ndarray[Any, Any]

GROWING = """func.func @main(%x: tensor<?x3x3xf32, ["n", "3", "3"]> {gcomp.name = "x"},
    %last: tensor<f32> {gcomp.name = "last"}) -> (tensor<?x3x3xf32, ["n", "3", "3"]> {gcomp.name = "y"}) {
  %y = "stablehlo.while"(%x) ({
  ^bb0(%v: tensor<?x3x3xf32, ["n", "3", "3"]>):
    %l = stablehlo.cholesky %v, lower = true : tensor<?x3x3xf32, ["n", "3", "3"]>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%l init: %zero) applies stablehlo.add across dimensions = [0, 1, 2]
      : (tensor<?x3x3xf32, ["n", "3", "3"]>, tensor<f32>) -> tensor<f32>
    %more = stablehlo.compare LT, %sum, %last : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }, {
  ^bb0(%v: tensor<?x3x3xf32, ["n", "3", "3"]>):
    %l = stablehlo.cholesky %v, lower = false : tensor<?x3x3xf32, ["n", "3", "3"]>
    %inverse = "stablehlo.triangular_solve"(%l, %v) <{left_side = true, lower = false, unit_diagonal = false,
      transpose_a = #stablehlo<transpose TRANSPOSE>}>
      : (tensor<?x3x3xf32, ["n", "3", "3"]>, tensor<?x3x3xf32, ["n", "3", "3"]>) -> tensor<?x3x3xf32, ["n", "3", "3"]>
    %more = stablehlo.add %v, %inverse : tensor<?x3x3xf32, ["n", "3", "3"]>
    %turned = stablehlo.transpose %more, dims = [0, 2, 1]
      : (tensor<?x3x3xf32, ["n", "3", "3"]>) -> tensor<?x3x3xf32, ["n", "3", "3"]>
    %next = stablehlo.add %more, %turned : tensor<?x3x3xf32, ["n", "3", "3"]>
    stablehlo.return %next : tensor<?x3x3xf32, ["n", "3", "3"]>
  }) : (tensor<?x3x3xf32, ["n", "3", "3"]>) -> tensor<?x3x3xf32, ["n", "3", "3"]>
  return %y : tensor<?x3x3xf32, ["n", "3", "3"]>
}"""
"""The condition and the body of a loop factorize matrices, of which there are any number."""

ENDLESS = """func.func @main(%x: tensor<3x3xf32> {gcomp.name = "x"}) -> (tensor<3x3xf32> {gcomp.name = "y"}) {
  %y = "stablehlo.while"(%x) ({
  ^bb0(%v: tensor<3x3xf32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<3x3xf32>, tensor<f32>) -> tensor<f32>
    %more = stablehlo.compare LT, %sum, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }, {
  ^bb0(%v: tensor<3x3xf32>):
    %a = stablehlo.abs %v : tensor<3x3xf32>
    %l = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>
    %n = stablehlo.add %l, %v : tensor<3x3xf32>
    %next = stablehlo.subtract %n, %v : tensor<3x3xf32>
    stablehlo.return %next : tensor<3x3xf32>
  }) : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}"""
"""A loop that ends by what the host gives: where it gives nothing, it would run for ever."""


def matrices(count: int) -> Array:
    """Symmetric ones, with positive eigenvalues."""
    x = np.random.default_rng(count).standard_normal((count, 3, 3)).astype(np.float32)
    return x @ x.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)


def planned(text: str) -> Program:
    program = Program.parse(text)
    PassManager(parse_pipeline(f"inline,{target_named('cpu').pipeline()}")).run(program)
    return program


def calls_of(model: Model) -> list[str]:
    """The host functions that a model's code calls."""
    target = target_named(model.target)
    plans = [plan for name, text in model.plan.texts.items() if name.endswith(".json")
             for plan in target.launch_plans(text, name).values()]  # fmt: skip
    return [step.function for plan in plans for step in walk(plan.steps) if isinstance(step, HostCall)]


def test_loops_at_any_size_in_bits_of_the_evaluator(tmp_path: Path) -> None:
    model, program = gcomp.compile(GROWING, target="cpu"), planned(GROWING)
    assert calls_of(model) == ["cholesky", "cholesky", "triangular_solve"]
    model.save(tmp_path / "m.gcomp")
    loaded, steps = gcomp.load(tmp_path / "m.gcomp"), lowerings(program, VARIANTS["x86-64-v3"])
    for count, last in ((2, 1e3), (5, 300), (1, 0), (3, -1)):
        inputs = [matrices(count), np.float32(last)]
        (expected,) = interpret(Program.parse(GROWING), inputs)
        for one in (model, loaded):
            (found,) = one(*inputs)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            (evaluated,) = PlanRunner(program, steps).run([inputs[0], np.asarray(inputs[1])])
            assert np.asarray(found).tobytes() == evaluated.tobytes()
        np.testing.assert_allclose(PlannedExecutor(program).run(inputs)[0], expected, rtol=1e-5)


def _functions() -> dict[str, Callable[[Any], Any]]:
    import jax
    import jax.numpy as jnp

    eye, lax, linalg = np.eye(3, dtype=np.float32), jax.lax, jnp.linalg
    steps = [linalg.cholesky, linalg.inv, linalg.pinv]
    return {
        "expm": jax.scipy.linalg.expm,
        "eigh": lambda a: lax.while_loop(lambda s: linalg.eigvalsh(s).max() < 50, lambda s: s * 1.5, a),
        "qr-svd": lambda a: lax.cond(a.sum() > 3, lambda a: linalg.qr(a)[0], lambda a: linalg.svd(a)[0], a),
        "lu": lambda a: lax.scan(lambda c, x: (linalg.solve(c + eye, x), linalg.det(c)), a, jnp.stack([a, a])),
        "complex": lambda a: lax.fori_loop(0, 2, lambda i, v: linalg.cholesky(v @ v.T.conj() + eye), a + 0j * a),
        "nested": lambda a: lax.fori_loop(0, 3, lambda i, v: lax.switch(i, steps, v @ v.T + eye), a),
    }


@pytest.mark.parametrize("name", ["expm", "eigh", "qr-svd", "lu", "complex", "nested"])
def test_functions_of_jax(name: str) -> None:
    import jax

    function, a = _functions()[name], matrices(1)[0]
    model = gcomp.compile(function, a, target="cpu")
    assert calls_of(model)
    for x in (a, -a - a.T) if name == "qr-svd" else (a,):
        for found, expected in zip(jax.tree.leaves(model(x)), jax.tree.leaves(function(x)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def test_calls_at_the_same_time_of_several_models() -> None:
    models = [gcomp.compile(GROWING, target="cpu", threads=2), gcomp.compile(GROWING, target="cpu")]
    expected = {n: models[0](matrices(n), np.float32(200))[0] for n in range(1, 5)}
    wrong: list[int] = []

    def call(n: int) -> None:
        for turn in range(20):
            (found,) = models[turn % 2](matrices(n), np.float32(200))
            if not np.array_equal(found, expected[n]):
                wrong.append(n)

    workers = [threading.Thread(target=call, args=[n]) for n in expected]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize("error", [KeyboardInterrupt("a key"), UnsupportedError("no matrix"), ValueError("of this")])
def test_what_a_call_raises_ends_the_loop_and_reaches_the_caller(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = gcomp.compile(ENDLESS, target="cpu"), -np.eye(3, dtype=np.float32)
    (expected,) = model(x)

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setitem(host.HOST_FUNCTIONS, "cholesky", fail)  # type: ignore[arg-type]
        kind = InternalError if isinstance(error, ValueError) else type(error)
        with pytest.raises(kind, match="cholesky failed" if kind is InternalError else str(error)):
            model(x)
    assert np.array_equal(model(x)[0], expected)
    for wrong in (lambda a, lower: (), lambda a, lower: (a[:2],), lambda a, lower: (a.astype(np.float64),)):
        with monkeypatch.context() as patched:
            patched.setitem(host.HOST_FUNCTIONS, "cholesky", wrong)  # type: ignore[arg-type]
            with pytest.raises(InternalError, match="cholesky gave"):
                model(x)


def test_a_process_with_numpy_alone(tmp_path: Path) -> None:
    model, x = gcomp.compile(ENDLESS, target="cpu"), -np.eye(3, dtype=np.float32)
    model.save(tmp_path / "m.gcomp")
    np.save(tmp_path / "x.npy", x)
    assert python(NUMPY_ALONE, tmp_path / "m.gcomp", tmp_path / "x.npy", tmp_path / "y.npy") == "[]\n"
    assert np.load(tmp_path / "y.npy").tobytes() == model(x)[0].tobytes()


def test_plans_whose_calls_cannot_be_are_refused(tmp_path: Path) -> None:
    model = gcomp.compile(ENDLESS, target="cpu")
    plan = model.plan
    (name,) = [name for name, text in plan.texts.items() if '"kind":"host"' in text]
    text = plan.texts[name]
    (step,) = [s for s in walk(target_named(model.target).launch_plans(text, name).popitem()[1].steps)
               if isinstance(s, HostCall)]  # fmt: skip
    for old, new, why in (
        ('"function":"cholesky"', '"function":"system"', "does not have, 'system'"),
        (f'"buffer":{step.outputs[0].buffer},"dims"', '"buffer":0,"dims"', "writes to an input"),
        ('"dims":["3","3"]', '"dims":["3","33"]', "larger than its buffer"),
        ('{"lower":true}', '{"upper":true}', "cholesky failed"),
    ):
        assert old in text
        model.plan = dataclasses.replace(plan, texts={**plan.texts, name: text.replace(old, new)})
        model.save(tmp_path / "m.gcomp")
        with pytest.raises(ArtifactError, match=why):
            gcomp.load(tmp_path / "m.gcomp")(-np.eye(3, dtype=np.float32))


def test_targets_that_cannot_be_called_from_refuse_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"cholesky does not run in branches and loops(.|\n)*for cpu"):
        gcomp.compile(ENDLESS, target="triton:sm_90")
    with pytest.raises(UnsupportedError, match="cholesky runs in Python"):
        library_files(gcomp.compile(ENDLESS, target="cpu").plan, {}, "net")
