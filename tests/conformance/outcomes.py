"""Running one case on one engine, and how it ended."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tests.conformance.comparison import difference, imprecision, structural_difference
from tests.conformance.engines import ENGINES, Refused
from tests.conformance.suite import Case

CLASSES = ("passed", "rounding", "wrong", "unsupported", "error", "crash", "timeout", "no data")
"""`rounding`: all outputs are within the roundings of their dtypes (`comparison.imprecision`), one is beyond the case's
tolerance, which is less than two roundings of f16. `wrong`: other outputs than expected. `unsupported`: the engine says
that it does not take the model. `error`: any other exception. `crash`: the process died. `timeout`: it had to be ended.
`no data`: the case is not on disk."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended. `host_steps` are the plan's, by function; `fixed` counts inputs given as constants."""

    kind: str
    detail: str = ""
    host_steps: tuple[str, ...] = ()
    fixed: int = 0


Rule = Literal["suite", "roundings", "both"]
"""How outputs are compared: by the case's tolerances, as ONNX's own runner does; by roundings; by both."""


def run_case(case: Case, engine: str, rule: Rule = "suite") -> Outcome:
    """Run a case on an engine and compare."""
    if case.model is None:
        return Outcome("no data", f"{case.source} is not there, and nothing is downloaded")
    try:
        data = case.data()
    except Exception as error:
        return Outcome("no data", _first(error))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            runs = ENGINES[engine]()(case.model, [inputs for inputs, _ in data])
    except Refused as error:
        return Outcome("unsupported", _first(error))
    except MemoryError as error:
        return Outcome("error", f"MemoryError: {_first(error)}")
    except Exception as error:
        return Outcome("error", f"{type(error).__name__}: {_first(error)}")
    done = Outcome("passed", host_steps=runs.host_steps, fixed=runs.fixed)
    for (inputs, expected), outputs in zip(data, runs.outputs, strict=True):
        if problem := _problem(case, inputs, outputs, expected, rule):
            return replace(done, kind=problem.kind, detail=problem.text)
    return done


@dataclass(frozen=True)
class Problem:
    """Why outputs do not pass; `kind` is an outcome's."""

    text: str
    kind: str = "wrong"


def _problem(case: Case, inputs: list[Any], outputs: list[Any], expected: list[Any], rule: Rule) -> Problem | None:
    if problem := structural_difference(outputs, expected):
        return Problem(problem)
    if case.is_random:
        return None
    # The other kinds are whole networks, to which the bound on roundings of one node does not apply.
    rounded = case.kind != "node" or not (found := imprecision(outputs, expected, inputs, case.name))
    if rule != "suite" and not rounded:
        return Problem(found or "")
    if (rule != "roundings" or case.kind != "node") and (beyond := difference(outputs, expected, case.rtol, case.atol)):
        return Problem(beyond, "rounding" if rounded and case.kind == "node" else "wrong")
    return None


def _first(error: BaseException) -> str:
    """An error's message in one line, without places in other people's sources."""
    text = " / ".join(line.strip() for line in str(error).splitlines() if line.strip())
    text = re.sub(r"/\S*/(onnxruntime_src|onnxruntime)/\S*:\d+ ", "", text)
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)[:300]
