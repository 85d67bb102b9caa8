"""Judging the reference by the oracles: each case once, and the largest distances by op and element type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gcomp.dtypes import text_of
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.oracles.process import OracleFailure, WorkerOracle
from tests.support.cases.case import Case
from tests.support.cases.measure import measure

Key = tuple[str, str, str]
"""(op, element type, judge): the judge is "C++" or "XLA:CPU"."""


@dataclass
class Verdict:
    """What a number of cases came to."""

    ulps: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    faults: list[str] = field(default_factory=list[str])
    judged: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    """How many result elements each judge compared."""


def key_of(case: Case) -> Key:
    """Where a case's distance belongs."""
    text = text_of(case.inputs[0].dtype) if case.inputs else ""
    return case.op, text, "XLA:CPU" if case.without_cpp else "C++"


def published_ulps(page: str) -> dict[Key, float]:
    """The distances above 0 that docs/generated/ulp.md gives; 0 for all others."""
    limits: dict[Key, float] = defaultdict(float)
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].partition(".")[0] in ("stablehlo", "chlo"):
            limits[cells[0], cells[1], cells[2]] = float(cells[3])
    return limits


def judge(cases: Iterable[Case], cpp: WorkerOracle, xla: WorkerOracle) -> Verdict:
    """Run each case in the reference and in its judge."""
    verdict = Verdict()
    for case in cases:
        key = key_of(case)
        for ulps, size, fault in _distances(case, xla if case.without_cpp else cpp):
            if fault is not None:
                verdict.faults.append(f"{case.name} against {key[2]}: {fault}")
            verdict.ulps[key] = max(verdict.ulps[key], ulps)
            verdict.judged[key] += size
    return verdict


def _distances(case: Case, oracle: WorkerOracle) -> Iterator[tuple[float, int, str | None]]:
    ours = interpret(Program.parse(case.text, case.name), case.inputs)
    theirs = oracle.run(case.text, case.inputs)
    if isinstance(theirs, OracleFailure):
        yield 0.0, 0, theirs.reason
        return
    for a, b in zip(ours, theirs, strict=True):
        measured = measure(a, b, case.compare)
        yield measured.ulps, a.size, measured.mismatch
