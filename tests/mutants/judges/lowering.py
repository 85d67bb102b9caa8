"""Judges the lowering to XLA and the runtime: programs through XLA:CPU in this process, next to the reference.

Programs, inputs and what the reference makes of them are prepared once for a seed, and so are the plans. What is
lowered to the plan of before needs no run. Where the plan of before differs from the reference in the same way, it is
XLA's deviation and no mistake. Where the runtime is patched, only the programs written by hand tell: XLA computes them
to the reference's bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UnsupportedError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.passes.checking import TARGET_ROUNDINGS, difference
from gcomp.passes.judging import MAX_STEPS
from gcomp.reference.interpreter import interpret
from gcomp.reference.wider import interpret_wider
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Plan
from gcomp.testing.fuzz.exhibits import exhibits
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program
from tests.mutants.edits import PATCHED
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.support.cases import all_cases

Array = np.ndarray[Any, Any]

CASES, PROGRAMS, RUNS = 400, 60, 40
"""How many cases of ops and random programs a seed has, and how many of all programs are run at most."""


@dataclass(frozen=True)
class Call:
    """One call: inputs, what the reference computes, and that in wider precision."""

    inputs: list[Array]
    expected: Sequence[Array]
    wider: Sequence[Array]


@dataclass(frozen=True)
class Exhibit:
    """A program, the calls to make of it in order, and the plan that it had."""

    name: str
    program: Program
    calls: list[Call]
    plan: Plan
    sharp: bool
    """Whether it was written by hand."""


@lru_cache(1)
def prepared(seed: int) -> list[Exhibit]:
    """All programs of a seed: those written by hand first."""
    import_module("gcomp.runtime.xla.executor")  # which takes long; the device is opened by who runs a plan
    found = [_prepared(*exhibit, sharp=True) for exhibit in exhibits(seed)]
    for made in _programs(seed):
        with suppress(GcompError):  # some have no meaning that the reference knows, some XLA does not take
            found.append(_prepared(*made, sharp=False))
    return found


def _prepared(name: str, program: Program, inputs: list[list[Array]], *, sharp: bool) -> Exhibit:
    return Exhibit(name, program, [_call(program, arrays) for arrays in inputs], lower(program.clone()), sharp)


def _programs(seed: int) -> Iterator[tuple[str, Program, list[list[Array]]]]:
    rng = np.random.default_rng(seed)
    cases = [case for case in all_cases(seed=seed) if case.compare != "norm" and not case.without_cpp]
    for i in rng.permutation(len(cases))[:CASES]:
        case = cases[i]
        yield case.name, Program.parse(case.text, case.name), [list(case.inputs)]
    for number in range(PROGRAMS):
        program = seeded_program(seed * 1000 + number, 8)
        yield f"program {seed * 1000 + number}", program, [inputs_for(program, k, "whole") for k in (1, 2)]


def _call(program: Program, inputs: list[Array]) -> Call:
    expected = interpret(program, inputs, max_steps=MAX_STEPS)
    return Call(inputs, expected, interpret_wider(program, inputs, max_steps=MAX_STEPS))


@judge_of("xla", prepared)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program that XLA runs wrong, or that does not compile any more."""
    runtime = any(name.startswith(("gcomp.runtime", "gcomp.dims")) for name, _ in PATCHED)
    runs = 0
    for tried, exhibit in enumerate(prepared(seed), 1):
        try:
            plan = lower(exhibit.program.clone())
        except Exception as error:  # whatever the mistake makes of it
            return Kill(tried, f"{exhibit.name}: {type(error).__name__}: {error}")
        if not (exhibit.sharp if runtime else plan != exhibit.plan):
            continue
        problem = _problem(exhibit, plan)
        if problem and (exhibit.sharp or _problem(exhibit, exhibit.plan) != problem):
            return Kill(tried, f"{exhibit.name}: {problem}")
        runs += 1
        if runs == RUNS:
            break
    return Survival(runs)


def _problem(exhibit: Exhibit, plan: Plan) -> str:
    """What a plan does wrong, if anything."""
    try:
        model = Model(plan, dict(exhibit.program.weights.items()))
        for call in exhibit.calls:
            given = [np.array(x) for x in call.inputs]
            results = model(*given)
            actual = [np.array(y) for y in (results if isinstance(results, tuple) else (results,))]
            if any(a.tobytes() != b.tobytes() for a, b in zip(given, call.inputs, strict=True)):
                return "a call writes to its inputs"
            ports = exhibit.program.outputs()
            if found := difference(ports, Exactness.E2, call.expected, actual, call.wider, TARGET_ROUNDINGS):
                return f"{found.where}: {found.why}"
    except UnsupportedError:
        return ""
    except Exception as error:  # whatever the mistake makes of it
        return f"{type(error).__name__}: {error}"
    return ""
