"""Hostile artifacts: each is refused, or does what it says; one that differs from what was written is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import dims
from gcomp.dtypes import dtype_of
from gcomp.errors import ArtifactError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.runtime.model import Model
from gcomp.testing.mutate import run
from tests.support.mutate import artifacts
from tests.support.mutate.artifacts import Mutant, Sample

Array = np.ndarray[Any, Any]

SEALED, UNSEALED = 1500, 900

SMALL = r"{'kind': 'le', 'lhs': 'batch', 'rhs': '7', 'where': 'x'}".replace("'", r"\22")
DENSE = """
module attributes {gcomp.ranges = {batch = "1..8"}, gcomp.constraints = ["SMALL"]} {
func.func public @main(%x: tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "x", gcomp.donated},
                       %n: tensor<i32> {gcomp.name = "n"})
    -> (tensor<?x3xf32, ["batch", "3"]> {gcomp.name = "y"}, tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "z"}) {
  %w = gcomp.weight @w : tensor<4x3xf32>
  %b = gcomp.weight @b : tensor<i1>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x4xf32, ["batch", "4"]>, tensor<4x3xf32>) -> tensor<?x3xf32, ["batch", "3"]>
  %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.select %b, %x, %1 : tensor<i1>, tensor<?x4xf32, ["batch", "4"]>
  func.return %0, %2 : tensor<?x3xf32, ["batch", "3"]>, tensor<?x4xf32, ["batch", "4"]>
}
}
""".replace("SMALL", SMALL)
PLAIN = """func.func @main(%x: tensor<3xi32>) -> (tensor<3xi32>, tensor<i32>) {
  %0 = stablehlo.add %x, %x : tensor<3xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  func.return %0, %1 : tensor<3xi32>, tensor<i32>
}"""
HOSTED = """
module attributes {gcomp.ranges = {n = "0..", b = "1.."}} {
func.func @main(%x: tensor<?x4xf32, ["b", "4"]>) -> (tensor<?xi64, ["n"]>, tensor<?xf32, ["n"]>) {
  %v, %p, %q, %c = "gcomp.host"(%x) <{function = "unique", config = {sorted = false}}> : (tensor<?x4xf32, ["b", "4"]>)
    -> (tensor<?xf32, ["n"]>, tensor<?xi64, ["n"]>, tensor<?xi64, ["4*b"]>, tensor<?xi64, ["n"]>)
  %y = stablehlo.add %v, %v : tensor<?xf32, ["n"]>
  %d = stablehlo.divide %p, %c : tensor<?xi64, ["n"]>
  func.return %d, %y : tensor<?xi64, ["n"]>, tensor<?xf32, ["n"]>
}
}
"""
PADDED = """
module attributes {gcomp.ranges = {n = "1..9"}} {
func.func @main(%x: tensor<?x2xf32, ["n", "2"]>) -> (tensor<2xf32>, tensor<?x2xf32, ["n", "2"]>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<?x2xf32, ["n", "2"]>, tensor<f32>) -> tensor<2xf32>
  %r = stablehlo.reverse %x, dims = [0] : tensor<?x2xf32, ["n", "2"]>
  func.return %s, %r : tensor<2xf32>, tensor<?x2xf32, ["n", "2"]>
}
}
"""
WEIGHTS = {"w": np.arange(12, dtype=np.float32).reshape(4, 3), "b": np.array(True)}


def inputs_for(model: Model) -> list[Array]:
    """Inputs that fit a model's signature, each symbol at its least size."""
    ranges = model.signature.ranges
    shapes = [[dims.parse(d) for d in port.dims] for port in model.inputs]
    env = {s: ranges[s].lo for shape in shapes for size in shape for s in dims.symbols_of(size)}
    sizes = [[dims.evaluate(size, env) for size in shape] for shape in shapes]
    if any(np.prod([float(n) for n in shape]) > 1e5 for shape in sizes):
        raise ArtifactError("The inputs are too large to try.", why=str(sizes)[:80])
    return [np.ones(shape, dtype_of(port.dtype)) for shape, port in zip(sizes, model.inputs, strict=True)]


def results_of(model: Model) -> list[Array]:
    """A call's results, which must be of the types that the signature says."""
    inputs = inputs_for(model)
    results = list(model.named(*inputs).values())
    for port, result in zip(model.outputs, results, strict=True):
        assert (result.dtype, result.ndim) == (dtype_of(port.dtype), len(port.dims)), port
    return results


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Sample, Model]]:
    folder, made = tmp_path_factory.mktemp("artifacts"), list[tuple[Sample, Model]]()
    for name, text, weights in (("dense", DENSE, WEIGHTS), ("plain", PLAIN, {}), ("hosted", HOSTED, {})):
        model = Model(lower(Program.parse(text)), weights, producers={"test": "1"}, licences=("MIT",))
        model.save(folder / name)
        made.append((Sample.of((folder / name).read_bytes()), model))
    padded = gcomp.compile(PADDED, target="xla:cpu", buckets={"n": [4, 9]})
    padded.save(folder / "padded")
    return [*made, (Sample.of((folder / "padded").read_bytes()), padded)]


def test_sealed_mutants_are_refused_or_do_what_they_say(originals: list[tuple[Sample, Model]], tmp_path: Path) -> None:
    path = tmp_path / "mutant.gcomp"
    samples = [sample for sample, _ in originals]
    known = [(model.plan, results_of(model)) for _, model in originals]

    def use(mutant: Mutant) -> str:
        if mutant.data in (sample.data for sample in samples):
            return "unchanged"
        path.write_bytes(mutant.data)
        model = gcomp.load(path)
        assert mutant.sealed or len(model.weights), "a file that nobody wrote was loaded"
        _ = repr(model), model.segments
        for plan, results in known:
            if model.plan == plan and all(
                np.array_equal(model.weights[n], w) for n, w in WEIGHTS.items() if n in plan.weights
            ):
                assert mutant.sealed
                assert all(map(np.array_equal, results_of(model), results))
                return "neutral"
        results_of(model)
        return "another model"

    tally = run(artifacts.cases(samples, SEALED), use)
    sys.stdout.write(f"{tally.table()}\n")
    assert not tally.failures, str(tally)
    assert tally.cases == SEALED
    assert {outcome for mutator, outcome in tally.outcomes if mutator == "call_function"} == {"ArtifactError"}


def test_what_nobody_wrote_is_refused(originals: list[tuple[Sample, Model]], tmp_path: Path) -> None:
    path = tmp_path / "mutant.gcomp"
    digits = tmp_path / "digits.gcomp"
    gcomp.compile(Path(__file__).parents[2] / "examples/digits/digits.onnx").save(digits)
    samples = [Sample.of(digits.read_bytes()), *(sample for sample, _ in originals)]

    def use(mutant: Mutant) -> str:
        if mutant.data in (sample.data for sample in samples):
            return "unchanged"
        path.write_bytes(mutant.data)
        with pytest.raises(ArtifactError) as caught:
            gcomp.load(path, verify="full")
        raise caught.value

    tally = run(artifacts.cases(samples, UNSEALED, sealed=False), use)
    sys.stdout.write(f"{tally.table()}\n")
    assert not tally.failures, str(tally)
    assert tally.by_outcome().keys() <= {"ArtifactError", "unchanged"}
