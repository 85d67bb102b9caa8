"""Judges the ONNX importers: small models at random next to ONNX Runtime, and the node cases of ONNX's own suite.

Both go through the importer and the reference interpreter. Run are those with operators whose importers reach what was
patched. What ONNX Runtime refuses, the onnx package's reference evaluator computes.
"""

from __future__ import annotations

import dis
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.frontends.onnx.engine import registry
from gcomp.reference.interpreter import interpret
from gcomp.testing.foreign.onnx_nodes import Model, models
from tests.conformance.comparison import imprecision, structural_difference
from tests.conformance.outcomes import run_case
from tests.conformance.suite import Case, cases
from tests.mutants.edits import PATCHED
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tools import onnx_judge, onnx_mutants

Array = np.ndarray[Any, Any]
Operators = frozenset[tuple[str, str]]

PACKAGE, BUILDER = "gcomp.frontends.onnx.", "gcomp.ir.builder"
MOST = 400
"""How many trials a mutant takes at most."""


@dataclass(frozen=True)
class Trial:
    """A model to run, by the operators in it; `problem` says what is wrong with its outputs, if anything is."""

    name: str
    operators: Operators
    problem: Callable[[], str]


@lru_cache(1)
def prepared(seed: int) -> list[Trial]:
    """All models with what they should compute: those at random first, of each operator one, then of each another."""
    registry.load_families()
    suite = [case for case in cases().values() if case.kind == "node" and not case.is_random]
    trials = [Trial(case.name, case.operators, partial(_case_problem, case)) for case in suite]
    for model in models(seed):
        if (expected := _expected(model)) is not None:
            trial = Trial(model.text, frozenset({("", model.operator)}), partial(_model_problem, model, expected))
            if not trial.problem():  # where peers go ways of their own, other tests say why
                trials.append(trial)
    distances({""})  # what importers use is looked up once
    order = np.random.default_rng(seed).permutation(len(trials))
    turns = Counter[Operators]()
    ordered: list[tuple[bool, int, Trial]] = []
    for trial in (trials[i] for i in order):
        ordered.append((trial.name.startswith("test_"), turns[trial.operators], trial))
        turns[trial.operators] += 1
    return [trial for _, _, trial in sorted(ordered, key=lambda entry: entry[:2])]


def _expected(model: Model) -> list[Array] | None:
    """What peers compute; None where no peer takes the model."""
    case = onnx_mutants.Mutant(model.operator, "", model.proto, dict(model.inputs))
    for peer in (onnx_judge.runtime, onnx_judge.evaluator):
        if not isinstance(results := peer(case), str):
            return results
    return None


def _case_problem(case: Case) -> str:
    outcome = run_case(case, "reference", "roundings")
    return "" if outcome.kind in ("passed", "unsupported") else f"{outcome.kind}: {outcome.detail}"


def _model_problem(model: Model, expected: list[Array]) -> str:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = interpret(import_onnx(model.proto), list(model.inputs.values()))
    except UnsupportedError:
        return ""
    except Exception as error:  # whatever the mistake makes of it
        return f"{type(error).__name__}: {error}"
    inputs = list(model.inputs.values())
    return structural_difference(results, expected) or imprecision(results, expected, inputs, model.operator) or ""


@judge_of("import", prepared)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first model that the importer gets wrong."""
    near = distances({called(name) for _, name in PATCHED}) or dict.fromkeys(operators_of({m for m, _ in PATCHED}), 0)
    about = [trial for trial in prepared(seed) if trial.operators & near.keys()]
    trials = sorted(about, key=lambda trial: min(near[key] for key in trial.operators & near.keys()))[:MOST]
    for tried, trial in enumerate(trials, 1):
        if problem := trial.problem():
            return Kill(tried, f"{trial.name}: {problem}")
    return Survival(len(trials))


def distances(names: set[str]) -> dict[tuple[str, str], int]:
    """The operators whose importers reach what is called by one of the names, and in how many calls."""
    levels = _callers(names)
    found: dict[tuple[str, str], int] = {}
    for key, importers in _importers().items():
        reached = {called(f.__qualname__) for f in importers}.union(*(used(f.__code__) for f in importers))
        if close := reached & levels.keys():
            found[key] = min(levels[name] for name in close)
    return found


def operators_of(modules: set[str]) -> set[tuple[str, str]]:
    """The operators that modules import."""
    return {key for key, importers in _importers().items() if any(f.__module__ in modules for f in importers)}


def _importers() -> dict[tuple[str, str], list[FunctionType]]:
    known = registry.registered_versions()
    return {key: [cast(FunctionType, registry.lookup(*key, n)) for n in versions] for key, versions in known.items()}


def _callers(names: set[str]) -> dict[str, int]:
    """What calls some of these, or others that do, and over how many calls."""
    levels, level = dict.fromkeys(names, 0), 0
    while more := {name for name, calls in _uses().items() if calls & levels.keys()} - levels.keys():
        level += 1
        levels |= dict.fromkeys(more, level)
    return levels


@lru_cache(1)
def _uses() -> dict[str, set[str]]:
    """What each function of the frontend uses, by what it is called."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in [m for name, m in sys.modules.items() if name.startswith(PACKAGE) or name == BUILDER]:
        for function in _functions(module):
            found[called(function.__qualname__)] |= used(function.__code__)
    return found


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods of a module."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            parts = (getattr(part, "__func__", part) for part in vars(value).values())
            yield from (part for part in parts if isinstance(part, FunctionType))
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value


def called(name: str) -> str:
    """How code calls what has a qualified name: `f`, or `.m` for a method."""
    return f".{name.rpartition('.')[2]}" if "." in name.replace(".<locals>.", "") else name


@cache
def used(code: CodeType) -> set[str]:
    """What a function and those inside it use: `f` for a global, `.m` for an attribute."""
    found: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "IMPORT_FROM"):
            found.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            found.add(f".{instruction.argval}")
    return found.union(*(used(part) for part in code.co_consts if isinstance(part, CodeType)))
