"""ONNX's node tests: every case passes, or is listed as unsupported and still is."""

from __future__ import annotations

import pytest

from tests.conformance.onnx_nodes import cases, expected, run

CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_node_cases(chunk: int) -> None:
    listed = expected()
    problems: list[str] = []
    for name in sorted(cases())[chunk::CHUNKS]:
        outcome = run(cases()[name])
        if outcome.kind == "pass" and name in listed:
            problems.append(f"{name} passes now: renew the list with python -m tests.conformance.onnx_nodes --write")
        elif outcome.kind not in ("pass", "unsupported") or (outcome.kind != "pass" and name not in listed):
            problems.append(f"{name}: {outcome.kind}: {outcome.detail}")
    assert not problems, "\n".join(problems)


def test_every_listed_case_exists() -> None:
    assert expected().keys() <= cases().keys()
