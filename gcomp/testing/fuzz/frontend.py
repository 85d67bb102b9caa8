"""Frontends: ONNX nodes, JAX functions and torch functions, imported and run by the reference, beside their own.

ONNX nodes with attributes at random are computed by ONNX's reference evaluator and, where it is installed, by ONNX
Runtime; the node cases of ONNX's own suite have their results. JAX functions are computed by JAX, torch functions by
torch's eager mode. What is wrong is blamed on an operator, or on a step of a function.
"""

from __future__ import annotations

import json
import traceback
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.owners import is_own
from gcomp.reference.interpreter import interpret
from gcomp.testing.fuzz.broken import BrokenFiles
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.door import MAX_STEPS, Door, Prepared, Report, Undefined, Wrong
from gcomp.testing.fuzz.imported import ORIGINS, Origin, Sample
from gcomp.testing.mutate.harness import SECONDS, Hang, limited, problem_of, trace_of
from gcomp.testing.oracles.near import apart

Array = np.ndarray[Any, Any]


def judge(sample: Sample) -> Wrong | None:
    """What is wrong with what is imported, if anything. UnsupportedError where the frontend says that it does not take
    it."""
    if sample.is_broken:
        return judge_file(sample)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = sample.load()
            names = tuple(port.name for port in program.inputs())
            if sample.names and names != sample.names:
                return Wrong("names", f"{sample.text}: inputs are called {names}, and not {sample.names}")
            found = interpret(program, list(sample.inputs), max_steps=MAX_STEPS)
    except UnsupportedError as error:
        if any(words in str(error) for words in sample.refusals):
            raise
        return Wrong("refused", f"{sample.text}: {error}")
    except Undefined:
        raise
    except Exception as error:  # whatever an importer makes of it
        sample.expected()  # what its own evaluator does not take is Undefined
        return Wrong("crash", f"{sample.text}: {type(error).__name__}: {error}", type(error).__name__)
    problems = [apart(found, expected, sample.inputs, sample.rtol) for expected in sample.expected()]
    if all(problems):
        return Wrong("meaning", f"{sample.text}: {problems[0]}")
    return None


def judge_file(sample: Sample) -> Wrong | None:
    """What is wrong with how a broken file is read, or refused, if anything."""
    try:
        with limited(SECONDS), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            sample.load()
    except GcompError as error:
        problem = problem_of(error)
        return None if problem is None else Wrong("crash", f"{sample.text}: {problem}", _place(error))
    except Undefined:
        raise
    except (Exception, Hang) as error:  # whatever a reader makes of it
        return Wrong("crash", f"{sample.text}: {trace_of(error)}", _place(error))
    return None


def _place(error: BaseException) -> str:
    """What was raised first, and by which function of gcomp."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_own(f.filename)]
    last = f" in {Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{last}"


class Frontend(Door):
    """Frontends, by turns."""

    name: ClassVar[str] = "frontend"
    summary: ClassVar[str] = (
        "ONNX, JAX and torch, imported and run by the reference, beside their own evaluation; broken files"
    )
    components: ClassVar[str] = "operators and functions"
    looks: ClassVar[bool] = False
    varies: ClassVar[bool] = False
    origins: ClassVar[tuple[str, ...]] = ("onnx",) * 6 + ("jaxpr", "torch", "files", "files")

    @cached_property
    def known(self) -> dict[str, Origin]:
        """The origins by name, loaded when they are asked for."""
        made = {**ORIGINS, "files": BrokenFiles}
        return {name: made[name]() for name in dict.fromkeys(self.origins)}

    def missing(self) -> str:
        reasons = [origin.missing() for origin in self.known.values()]
        return "; ".join(reasons) if all(reasons) else ""

    def at(self, number: int) -> tuple[Origin, int]:
        """The origin that has its turn, and the number of its sample."""
        turn, place = divmod(number, len(self.origins))
        name = self.origins[place]
        return self.known[name], turn * self.origins.count(name) + self.origins[:place].count(name)

    def topic(self, number: int) -> str:
        origin, place = self.at(number)
        return f"{origin.name}: {origin.topic(place)}"

    def prepare(self, number: int, size: int) -> Prepared:
        origin, place = self.at(number)
        if why := origin.missing():
            raise Undefined(why)
        sample = origin.sample(place)
        return sample.load, frozenset(sample.about)

    def attempt(self, number: int, size: int, coverage: Coverage) -> Found | None:
        coverage.programs += 1
        origin, place = self.at(number)
        try:
            if why := origin.missing():
                raise UnsupportedError(f"{origin.name} is left out", why=why)
            sample = origin.sample(place)
            wrong = judge(sample)
        except UnsupportedError as error:
            coverage.unsupported[(error.why or error.what).splitlines()[0]] += 1
            return None
        except (GcompError, Undefined):
            coverage.refused += 1
            return None
        if wrong is None:
            coverage.rules.update({f"{origin.name} {name}" for name in sample.about})
            return None
        blamed = f"{origin.name} {self._blamed(origin, place, wrong)}"
        key = (self.name, wrong.kind, wrong.detail, blamed)
        return Found(number, key, f"{self.name}: {wrong.message}\n  at fault: {blamed}")

    def _blamed(self, origin: Origin, place: int, wrong: Wrong) -> str:
        """The step after which the function is wrong first; an operator otherwise."""
        count = self._least(origin, place, wrong)
        about = origin.sample(place, count).about
        return about[-1] if origin.steps(place) > 1 else " + ".join(about)

    def _least(self, origin: Origin, place: int, wrong: Wrong) -> int:
        for count in range(1, origin.steps(place)):
            try:
                found = judge(origin.sample(place, count))
            except (GcompError, Undefined):
                continue
            if found is not None and found.kind == wrong.kind:
                return count
        return origin.steps(place)

    def write(self, found: Found, size: int, path: Path, seconds: float, report: Report | None = None) -> Path:
        origin, place = self.at(found.number)
        wrong = judge(origin.sample(place))
        count = origin.steps(place) if wrong is None else self._least(origin, place, wrong)
        sample = origin.sample(place, count)
        row = {"run": f"gcomp fuzz --what {self.name} --case FILE", "number": found.number, "steps": count,
               "sample": sample.text, "about": sample.about, "said": found.message,
               "inputs": [x.tolist() if x.dtype.kind in "biuf" else str(x) for x in sample.inputs]}  # fmt: skip
        path = path.with_suffix(".json")
        path.write_text(json.dumps(row, indent=1) + "\n", "utf-8")
        return path

    def again(self, path: Path, number: int) -> str:
        try:
            row = json.loads(path.read_text("utf-8"))
            origin, place = self.at(int(row["number"]))
            sample = origin.sample(place, int(row["steps"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is no case", why=f"{type(error).__name__}: {error}") from None
        wrong = judge(sample)
        return "" if wrong is None else f"{self.name}: {wrong.message}\n  at fault: {' + '.join(sample.about)}"


class Onnx(Frontend):
    """ONNX alone."""

    name: ClassVar[str] = "onnx"
    summary: ClassVar[str] = "ONNX nodes, imported, beside ONNX's reference evaluator and ONNX Runtime"
    origins: ClassVar[tuple[str, ...]] = ("onnx",)


class Jaxpr(Frontend):
    """JAX alone."""

    name: ClassVar[str] = "jaxpr"
    looks: ClassVar[bool] = True
    summary: ClassVar[str] = "JAX functions, traced and imported, beside JAX"
    origins: ClassVar[tuple[str, ...]] = ("jaxpr",)


class Torch(Frontend):
    """Torch alone."""

    name: ClassVar[str] = "torch"
    summary: ClassVar[str] = "torch functions, exported and imported, beside eager mode"
    origins: ClassVar[tuple[str, ...]] = ("torch",)


class Files(Frontend):
    """Broken files alone."""

    name: ClassVar[str] = "files"
    summary: ClassVar[str] = "broken models, texts and saved programs: read, or refused with one whole error"
    origins: ClassVar[tuple[str, ...]] = ("files",)
