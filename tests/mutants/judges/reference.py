"""Judges the reference's ops: the cases around every op, against the C++ reference interpreter (XLA where it cannot).

What the oracles say is drawn once for a seed, and the programs are parsed once; a mutant costs their evaluation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret
from gcomp.testing.oracles import Oracle, OracleFailure, WorkerOracle, XlaOracle
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.support.cases import Case, all_cases, family_cases, measure
from tests.support.cases.evaluate import Key, key_of

Array = np.ndarray[Any, Any]
LIMITS = Path(__file__).parents[3] / "docs" / "generated" / "ulp.md"
COMPILED = 8
CORNERS = {case.label for case in family_cases("corners.corners")}


@dataclass(frozen=True)
class Judged:
    """A case with its program, what its oracle computed, and by how many ulp the reference may differ."""

    case: Case
    program: Program
    expected: list[Array]
    ulps: float


@lru_cache(1)
def judged(seed: int) -> list[Judged]:
    """The cases of a seed, in an order of its own."""
    limits, cases = _limits(), _cases(seed)
    with Oracle(timeout=120) as cpp, XlaOracle(timeout=120) as xla, ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(_expected, one, {i: c for i, c in enumerate(cases) if bool(c.without_cpp) == (one is xla)})
                for one in (cpp, xla)]  # fmt: skip
        programs = [Program.parse(case.text, case.name) for case in cases]
        expected = {i: results for run in runs for i, results in run.result().items()}
    found = [
        Judged(case, program, results, limits[key_of(case)])
        for i, (case, program) in enumerate(zip(cases, programs, strict=True))
        if not isinstance(results := expected[i], OracleFailure)
    ]
    # What is published was measured on other inputs: some functions of f64 and of complex numbers are a little further.
    found = [one for one in found if not _problem(one)]
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[i] for i in order]


def _cases(seed: int) -> list[Case]:
    """The cases, with two draws of inputs; of those that XLA has to compile, which takes long, some for each op."""
    compiled = Counter[str]()
    found: list[Case] = []
    for case in (*all_cases(seed=2 * seed), *all_cases(seed=2 * seed + 1)):
        compiled[case.op] += bool(case.without_cpp)
        if not case.without_cpp or compiled[case.op] <= COMPILED or case.label in CORNERS:
            found.append(case)
    return found


def _expected(oracle: WorkerOracle, cases: Mapping[int, Case]) -> dict[int, list[Array] | OracleFailure]:
    """What an oracle computes; a failure where it cannot take a case with the inputs of this seed."""
    return {i: oracle.run(case.text, case.inputs) for i, case in cases.items()}


def _limits() -> dict[Key, float]:
    """By how many ulp the reference may differ from an oracle: what is published."""
    limits: dict[Key, float] = defaultdict(float)
    for line in LIMITS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].partition(".")[0] in ("stablehlo", "chlo"):
            limits[cells[0], cells[1], cells[2]] = float(cells[3])
    return limits


@judge_of("reference", judged)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first case on which the reference and its oracle disagree."""
    for tried, one in enumerate(judged(seed), 1):
        if problem := _problem(one):
            return Kill(tried, f"{one.case.name}: {problem}")
    return Survival(len(judged(seed)))


def _problem(one: Judged) -> str:
    try:
        results = interpret(one.program, one.case.inputs)
    except Exception as error:  # whatever the mistake makes of it
        return f"{type(error).__name__}: {error}"
    for ours, theirs in zip(results, one.expected, strict=True):
        measured = measure(ours, theirs, one.case.compare)
        if measured.mismatch is not None:
            return measured.mismatch
        if measured.ulps > one.ulps:
            return f"{measured.ulps} ulp, {one.ulps} are allowed"
    return ""
