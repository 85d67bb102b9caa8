"""Where a wrong answer comes from: the first pass and rewrite that change it, or the first op that makes a NaN."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.dims import Size, comparisons
from gcomp.dtypes import is_complex, is_float, text_of
from gcomp.errors import GcompError, InternalError
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.judging.deadline import Deadline
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import named_inputs
from gcomp.passes.judging import Failure, Work, classes_of, judge
from gcomp.passes.structure import structure
from gcomp.passes.verifying import Follower
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.numpy.rounding import widen
from gcomp.reference.plan import Step
from gcomp.reference.table import Value
from gcomp.testing.reduce.ops import main_ops
from gcomp.testing.reduce.signature import set_outputs, tidy

_MOST_LINES, _MOST_CHARACTERS = 24, 180

Array = np.ndarray[Any, Any]
Given = Sequence[Array] | Mapping[str, Array]


# ---- the first wrong pass, and its first wrong rewrite --------------------------------------------------------------


@dataclass(frozen=True)
class Culprit:
    """The first pass of a pipeline that changes the answer, and the first of its rewrites that does."""

    failure: Failure
    step: Pass
    position: int
    """The pass's position in the pipeline, from 0."""
    applications: int
    """The rewrites of the whole pipeline up to and with the wrong one (`--bisect-limit`); 0 if it is not known."""
    program: Program
    """The program that the pass was given."""
    change: str
    """What the wrong rewrite changed in the program's text, as a difference."""


def bisect_pipeline(
    program: Program,
    passes: Sequence[Pass],
    inputs: Given | None = None,
    *,
    seed: int = 0,
    report: Callable[[int, Pass], object] | None = None,
    follower: Follower | None = None,
) -> Culprit | None:
    """The first pass that changes what a program computes on `inputs` beyond its class; None where none does.

    Also found: the first that crashes, or that leaves a program that is not valid. Inputs of all kinds and sizes are
    made from `seed` where none are given. `follower` knows afterwards what was compared. The program stays as it is.
    Raises GcompError where the reference cannot run it.
    """
    follower = follower or Follower(seed=seed)
    follower.inputs = None if inputs is None else named_inputs(program, inputs)
    current, context = program.clone(), PassContext()
    rules: list[str] = []
    context.watchers.append(lambda rule, where: rules.append(rule))
    for position, step in enumerate(passes):
        if report is not None:
            report(position, step)
        before, applied, looked_at = current.clone(), context.applications, dict[Size, None]()
        reference = follower.reference(before)
        rules.clear()
        try:
            with comparisons(looked_at):
                step.run(current, context)
            work = Work(structure(current) != reference.shape, classes_of(rules, context), looked_at)
            failure = follower.judge(step, reference, current, work, len(rules))
        except Exception as error:
            if isinstance(error, GcompError) and not isinstance(error, InternalError):
                raise
            failure = judge(step, reference)
            if failure is None:
                raise
        if failure is not None:
            count = applied + failure.application if failure.rule else 0
            change = _change(step, before, failure.application) if failure.rule else ""
            return Culprit(failure, step, position, count, before, change)
    return None


def _change(step: Pass, program: Program, application: int) -> str:
    """What one application of a rewrite changed, as lines with + and -."""
    texts: list[list[str]] = []
    for limit in (application - 1, application):
        copy = program.clone()
        try:
            step.run(copy, PassContext(bisect_limit=limit))
            texts.append(_number_values(copy))
        except Exception:
            return ""
    lines = difflib.unified_diff(texts[0], texts[1], lineterm="", n=1)
    shown = [_cut(line) for line in lines if not line.startswith(("---", "+++", "@@"))]
    return "\n".join(
        shown[:_MOST_LINES] + ([f"... {len(shown) - _MOST_LINES} lines more"] * (len(shown) > _MOST_LINES))
    )


def _cut(line: str) -> str:
    """A line for people: long constants and types are cut."""
    return line if len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 3] + "..."


def _number_values(program: Program) -> list[str]:
    """The text with names that do not shift when an op comes or goes before."""
    for i, op in enumerate(program.ops()):
        for result in op.results:
            result.name_hint = result.name_hint or f"{op.name.rpartition('.')[2]}_{i}"
    return program.text().splitlines()


# ---- the first op that makes a NaN or an infinity -------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """A tensor in a few numbers."""

    dtype: str
    shape: tuple[int, ...]
    least: float | None
    greatest: float | None
    nans: int
    infinities: int

    def __str__(self) -> str:
        text = f"{self.dtype}{list(self.shape)}"
        if self.least is not None:
            text += f" in {self.least:.6g} .. {self.greatest:.6g}"
        return text + "".join(f", {n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "inf")) if n)


@dataclass(frozen=True)
class Origin:
    """The first op whose result has a NaN (or an infinity) though none of its operands has."""

    what: str
    """`NaN` or `inf`."""
    where: str
    """The op and its location; or the input or weight that holds it from the start."""
    operands: tuple[Described, ...] = ()
    result: Described | None = None
    op: Operation | None = None

    def __str__(self) -> str:
        lines = [f"the first {self.what} comes from {self.where}"]
        lines += [f"  operand {i}: {operand}" for i, operand in enumerate(self.operands)]
        return "\n".join([*lines, *([f"  result: {self.result}"] if self.result is not None else [])])


def find_nonfinite(program: Program, inputs: Given | None = None, *, seed: int = 0) -> list[Origin]:
    """Where the first NaN and the first infinity of a run of the reference come from; empty where there are none."""
    arrays = sample_inputs(program, seed) if inputs is None else named_inputs(program, inputs)
    finder = _Finder(program)
    for port, array in zip(program.inputs(), arrays, strict=False):
        finder.see_source(f"the input {port.name!r}", array)
    finder.run(arrays)
    return list(finder.found.values())


class _Finder(Interpreter):
    """Runs a program and looks at every op's operands and results, but not inside the bodies of folds."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.found: dict[str, Origin] = {}

    def see_source(self, name: str, array: Array) -> None:
        """Note the NaN of what comes from outside; infinities there may be meant."""
        if "NaN" not in self.found and (seen := describe(array)) is not None and seen.nans:
            self.found["NaN"] = Origin("NaN", name, result=seen)

    def _results(
        self, step: Step, args: list[Value], captured: Mapping[SSAValue, Value], batched: bool
    ) -> Sequence[Value]:
        results = super()._results(step, args, captured, batched)
        if not self._within_body and len(self.found) < 2:
            self._look(step.op, args, results)
        return results

    def _look(self, op: Operation, args: Sequence[Value], results: Sequence[Value]) -> None:
        for result in results:
            seen = describe(result)
            if seen is None or not (seen.nans or seen.infinities):
                continue
            operands = [described for a in args if (described := describe(a)) is not None]
            if not args:
                if seen.nans:
                    self.see_source(where(op), result)
                continue
            for what, count, had in (
                ("NaN", seen.nans, any(o.nans for o in operands)),
                ("inf", seen.infinities, any(o.infinities for o in operands)),
            ):
                if count and not had and what not in self.found:
                    shown = tuple(d for a in args if (d := describe(a, every=True)) is not None)
                    self.found[what] = Origin(what, where(op), shown, seen, op)


def describe(value: Value, *, every: bool = False) -> Described | None:
    """A tensor of floats (with `every`, of anything) in a few numbers; None for other values."""
    if not isinstance(value, np.ndarray):
        return None
    array = cast(Array, value)
    text = text_of(array.dtype)
    if is_float(text) or is_complex(text):
        wide = widen(array)
        magnitudes = np.abs(wide) if is_complex(text) else wide
        nans, infinities = np.isnan(magnitudes), np.isinf(magnitudes)
        finite = magnitudes[~nans & ~infinities]
        bounds = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
        return Described(text, array.shape, *bounds, int(nans.sum()), int(infinities.sum()))
    if not every:
        return None
    numbers = array.astype(np.float64)
    bounds = (float(numbers.min()), float(numbers.max())) if numbers.size else (None, None)
    return Described(text, array.shape, *bounds, 0, 0)


# ---- the first op that a target computes otherwise ------------------------------------------------------------------


def first_op(
    program: Program, wrong: Callable[[Program], bool], deadline: Deadline | None = None
) -> tuple[Operation, int] | None:
    """The first op of main after which a program that ends there is `wrong`; None where the whole is right.

    Found by halving: it is wrong up to this op, and right up to the one before. With it comes how many ops before it
    may be the first as well: some, where the deadline came first.
    """
    ops = [i for i, op in enumerate(main_ops(program)) if op.results]
    if not ops or not wrong(program):
        return None
    low, high = -1, len(ops) - 1
    while high - low > 1 and (deadline is None or not deadline.is_over):
        middle = (low + high) // 2
        found = wrong(_until(program, ops[middle]))
        if found:
            high = middle
        elif deadline is None or not deadline.is_over:
            low = middle
    return main_ops(program)[ops[high]], high - low - 1


def _until(program: Program, index: int) -> Program:
    """The program that returns the results of one op of main."""
    part = program.clone()
    set_outputs(part, [(f"r{i}", r) for i, r in enumerate(main_ops(part)[index].results)])
    tidy(part)
    return part


__all__ = ["Culprit", "Origin", "bisect_pipeline", "describe", "find_nonfinite", "first_op"]
