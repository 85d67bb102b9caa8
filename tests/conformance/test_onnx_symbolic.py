"""ONNX's node tests with every input dim made a symbol of its own: the same results, or a refusal, and never others."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.onnx_nodes import cases, expected, run

CHUNKS = 16
QUICK = (0, 5, 10)
"""The chunks that `make test` runs; the others are for the sweep."""


def symbolic_twin(case: Any) -> Any:
    """The case with a new symbol for each dim of each input."""
    model = copy.deepcopy(case.model)
    count = 0
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 0:
                count += 1
                dim.ClearField("dim_value")
                dim.dim_param = f"s{count}"
    return replace(case, model=model)


@pytest.mark.parametrize(
    "chunk", [pytest.param(i, marks=() if i in QUICK else pytest.mark.slow) for i in range(CHUNKS)]
)
def test_symbolic_twins(chunk: int) -> None:
    listed = expected()
    problems: list[str] = []
    for name in sorted(cases().keys() - listed.keys())[chunk::CHUNKS]:
        outcome = run(symbolic_twin(cases()[name]))
        if outcome.kind not in ("pass", "unsupported"):
            problems.append(f"{name}: {outcome.kind}: {outcome.detail}")
    assert not problems, "\n".join(problems)
