"""ONNX's node tests with every input dim made a symbol of its own: the same results, or a refusal, and never others."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from tests.conformance.lists import not_passed
from tests.conformance.outcomes import run_case
from tests.conformance.suite import Case, cases

CHUNKS = 16
QUICK = (5,)
"""The chunk that `make test` runs; the others are for the sweep."""


def symbolic_twin(case: Case) -> Case:
    """The case with a new symbol for each dim of each input."""
    model = copy.deepcopy(case.model)
    assert model is not None
    count = 0
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 0:
                count += 1
                dim.ClearField("dim_value")
                dim.dim_param = f"s{count}"
    return replace(case, source=replace(case.source, model=model))


@pytest.mark.parametrize(
    "chunk", [pytest.param(i, marks=() if i in QUICK else pytest.mark.slow) for i in range(CHUNKS)]
)
def test_symbolic_twins(chunk: int) -> None:
    listed = not_passed()
    problems: list[str] = []
    names = sorted(name for name, case in cases().items() if case.kind == "node" and name not in listed)
    for name in names[chunk::CHUNKS]:
        outcome = run_case(symbolic_twin(cases()[name]), "reference", "roundings")
        if outcome.kind not in ("passed", "unsupported"):
            problems.append(f"{name}: {outcome.kind}: {outcome.detail}")
    assert not problems, "\n".join(problems)
