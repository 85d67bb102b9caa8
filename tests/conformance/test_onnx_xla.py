"""ONNX's node tests compiled by XLA: the same results as through the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gcomp import driver
from gcomp.ir.program import Program
from tests.conformance.onnx_nodes import cases, expected, run

CHUNKS = 32
QUICK = (7,)
"""The chunk that `make test` runs; the others are for the sweep."""


def on_xla(program: Program, arrays: Sequence[Any]) -> list[Any]:
    outputs = driver.compile(program)(*arrays)
    return [np.asarray(x) for x in outputs]


@pytest.mark.parametrize(
    "chunk", [pytest.param(i, marks=() if i in QUICK else pytest.mark.slow) for i in range(CHUNKS)]
)
def test_node_cases_on_xla(chunk: int) -> None:
    problems: list[str] = []
    for name in sorted(cases().keys() - expected().keys())[chunk::CHUNKS]:
        outcome = run(cases()[name], on_xla)
        if outcome.kind != "pass":
            problems.append(f"{name}: {outcome.kind}: {outcome.detail}")
    assert not problems, "\n".join(problems)
