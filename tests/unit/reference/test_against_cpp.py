"""The reference against independent implementations: the C++ reference interpreter, and XLA where that cannot judge.

What docs/generated/ulp.md publishes is the limit: bit for bit, or so many ulp.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.reference.table import MEANINGS, UNMODELLED
from gcomp.testing.oracles import Oracle, XlaOracle
from tests.support.cases import ELSEWHERE, FAMILIES, all_cases, family_cases
from tests.support.cases.evaluate import Key, Verdict, judge, published_ulps

pytest.importorskip("jaxlib", reason="jaxlib, which ships both oracles, is not installed")

TABLE = Path(__file__).parents[3] / "docs" / "generated" / "ulp.md"


@pytest.fixture(scope="module")
def oracles() -> Iterator[tuple[Oracle, XlaOracle]]:
    with Oracle(timeout=120) as cpp, XlaOracle(timeout=120) as xla:
        yield cpp, xla


@pytest.fixture(scope="module")
def published() -> dict[Key, float]:
    return published_ulps(TABLE.read_text(encoding="utf-8"))


def check(verdict: Verdict, limits: dict[Key, float]) -> None:
    assert verdict.faults == []
    assert verdict.judged
    beyond = {key: (ulps, limits[key]) for key, ulps in verdict.ulps.items() if ulps > limits[key]}
    assert beyond == {}, "measured and published ulp; tools/ulp_table.py writes the table"


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, oracles: tuple[Oracle, XlaOracle], published: dict[Key, float]) -> None:
    check(judge(family_cases(family), *oracles), published)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_full_sweep(family: str, oracles: tuple[Oracle, XlaOracle], published: dict[Key, float]) -> None:
    check(judge(family_cases(family, full=True), *oracles), published)


def test_every_op_with_a_meaning_is_judged() -> None:
    judged = {case.op for case in all_cases()} | {"func.call", "stablehlo.return", "func.return", "sdy.return"}
    modelled = {op.name for op in MEANINGS.keys() - UNMODELLED.keys()}
    assert modelled - judged - ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() <= modelled


def test_case_names_are_unique() -> None:
    names = [f"{case.op}-{case.label}" for case in all_cases()]
    assert len(names) == len(set(names))
