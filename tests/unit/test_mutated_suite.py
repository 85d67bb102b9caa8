"""Mutants of the ONNX suite's models: refused by one GcompError, or with results that agree with the peers'.

Other mutants are tried each day; GCOMP_MUTANT_SEED chooses those of a seed. A failing one is shown by
`python tools/fuzz_onnx.py --seed SEED --only NUMBER`. Hypothesis looks for others, and makes what fails smaller.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from onnx import parser

pytest.importorskip("onnxruntime")

from gcomp.testing.mutate import nodes
from tests.support.thinning import examples
from tools import mutant_workers, onnx_judge, onnx_mutants
from tools.onnx_judge import FAILED
from tools.onnx_mutants import Mutant

COUNT = examples(200)
SEED = int(os.environ.get("GCOMP_MUTANT_SEED", datetime.datetime.now(tz=datetime.UTC).toordinal()))


@pytest.fixture(scope="module")
def judge() -> Iterator[mutant_workers.Worker]:
    with mutant_workers.worker() as made:
        yield made


def test_mutants_of_the_suite_are_refused_or_right(judge: mutant_workers.Worker) -> None:
    found = [(n, judge.judge(onnx_mutants.mutant(SEED, n), with_target=False)) for n in range(COUNT)]
    assert not [(SEED, n, verdict.problem) for n, verdict in found if verdict.outcome == FAILED]
    assert sum("agrees" in verdict.outcome for _, verdict in found) > COUNT / 4


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.randoms(use_true_random=False))
def test_mutants_that_hypothesis_makes(judge: mutant_workers.Worker, chance: Random) -> None:
    case = onnx_mutants.made(chance)
    verdict = judge.judge(case, with_target=False)
    assert verdict.outcome != FAILED, f"{verdict.problem}\n{onnx.printer.to_text(case.model)}"


def test_a_number_names_a_mutant() -> None:
    first, again, other = (onnx_mutants.mutant(5, n) for n in (7, 7, 8))
    assert first.model == again.model and first.mutators == again.mutators
    assert str(first.inputs) == str(again.inputs)
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
PAIR = """<ir_version: 10, opset_import: ["" : 21]> g (seq(float[]) x) => (y)
    <int64 one = {1}> { a = SequenceAt(x, one)  y = SequenceInsert(x, a) }"""


@pytest.mark.parametrize("wrong", ["Neg", "Identity"])
def test_a_wrong_result_is_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, other = (parser.parse_model(RELU.replace("Relu", operator)) for operator in ("Relu", wrong))
    x: Any = {"x": np.asarray([-1, 0, 2, 3], np.float32)}
    assert outcome(Mutant("", "", right, x), with_target=True) == "agrees with ONNX Runtime"
    results = onnx_judge.runtime(Mutant("", "", right, x))
    monkeypatch.setattr(onnx_judge, "runtime", lambda case: results)
    monkeypatch.setattr(onnx_judge, "evaluator", lambda case: results)
    assert outcome(Mutant("", "", other, x)) == FAILED


def outcome(case: Mutant, with_target: bool = False) -> str:
    return onnx_judge.judge(case, with_target, lambda step: None).outcome


def test_sequences_are_compared_too() -> None:
    proto = parser.parse_model(PAIR)
    inputs: Any = {"x": [np.asarray([1, 2], np.float32), np.asarray([3], np.float32)]}
    assert outcome(Mutant("", "", proto, inputs), with_target=True) == "agrees with ONNX Runtime"


def test_an_error_that_does_not_say_where_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp.errors import InvalidModelError
    from gcomp.frontends import onnx as frontend

    def refuse(*given: Any, **options: Any) -> Any:
        raise InvalidModelError("Something is wrong.")

    monkeypatch.setattr(frontend, "import_onnx", refuse)
    verdict = onnx_judge.judge(Mutant("", "", parser.parse_model(RELU), None), False, lambda step: None)
    assert verdict.outcome == FAILED and "where" in verdict.problem


def test_a_worker_that_does_not_answer_is_replaced(judge: mutant_workers.Worker) -> None:
    case = Mutant("", "", parser.parse_model(RELU), {"x": np.zeros(4, np.float32)})
    impatient = mutant_workers.Worker(mutant_workers.Limits(seconds=0))
    started = time.monotonic()
    verdict = impatient.judge(case, with_target=False)
    assert verdict.outcome == FAILED and "no answer" in verdict.problem and time.monotonic() - started < 60
    assert judge.judge(case, with_target=False).outcome == "agrees with ONNX Runtime"
