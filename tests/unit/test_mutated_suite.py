"""Mutants of the ONNX suite's models: refused by one GcompError, or with results that agree with the peers'."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import pytest
from onnx import parser

pytest.importorskip("onnxruntime")

from gcomp.testing.mutate import nodes
from tools import onnx_mutants

COUNT = 120


def test_mutants_of_the_suite_are_refused_or_right() -> None:
    found = [(n, onnx_mutants.judge(onnx_mutants.mutant(0, n), False, lambda step: None)) for n in range(COUNT)]
    assert not [(n, verdict.problem) for n, verdict in found if verdict.outcome == "FAILED"]
    assert sum("agrees" in verdict.outcome for _, verdict in found) > COUNT / 4


def test_a_number_names_a_mutant() -> None:
    first, again, other = (onnx_mutants.mutant(5, n) for n in (7, 7, 8))
    assert first.model == again.model and first.mutators == again.mutators
    assert first.inputs is None or all(
        np.array_equal(x, again.inputs[k], equal_nan=True) for k, x in first.inputs.items()
    )
    assert other.model != first.model


def test_every_mutator_changes_some_model() -> None:
    models = [sample.model for sample in onnx_mutants.samples()[0][::10]]
    pool = nodes.Pool.of(models)
    for mutator in dict.fromkeys(nodes.MUTATORS):
        assert any(changes(mutator, model, pool) for model in models), mutator.__name__


def changes(mutator: nodes.Mutator, model: onnx.ModelProto, pool: nodes.Pool) -> bool:
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    onnx_mutants.raw(copied)
    before = copied.SerializeToString()
    for seed in range(5):
        mutator(Random(seed), copied, pool)
    return copied.SerializeToString() != before


RELU = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] y) { y = Relu(x) }"""


@pytest.mark.parametrize("wrong", ["Neg", "Identity"])
def test_a_wrong_result_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, other = (parser.parse_model(RELU.replace("Relu", operator)) for operator in ("Relu", wrong))
    x = {"x": np.asarray([-1, 0, 2, 3], np.float32)}
    assert onnx_mutants.judge(onnx_mutants.Mutant("", "", right, x), True, lambda step: None).outcome == (
        "agrees with ONNX Runtime"
    )
    results = onnx_mutants.runtime(onnx_mutants.Mutant("", "", right, x))
    monkeypatch.setattr(onnx_mutants, "runtime", lambda case: results)
    monkeypatch.setattr(onnx_mutants, "evaluator", lambda case: results)
    assert onnx_mutants.judge(onnx_mutants.Mutant("", "", other, x), False, lambda step: None).outcome == "FAILED"
