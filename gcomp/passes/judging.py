"""What a pass promises, held against what it did to one program, and the rewrite that broke the promise.

A pass does not crash, leaves a valid program, says whether it changed anything, keeps the signature and (within its
exactness) the meaning, and finds nothing to do on its own result. Where it fails, the applications of its rewrites are
bisected: the first that breaks the promise is named, with the op it was applied to and the op's location.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from gcomp.errors import GcompError, InternalError, UnsupportedError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Port, Program
from gcomp.ir.types import same_shape
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import Difference, difference, same_values
from gcomp.passes.manager import Instrument
from gcomp.reference.freedom import left_open
from gcomp.reference.inputs import input_sets, sample_inputs
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.planned import runner
from gcomp.reference.wider import WiderInterpreter

Array = np.ndarray[Any, Any]
Kind = Literal["crash", "invalid", "claim", "signature", "meaning", "unsettled"]

_SAID: dict[Kind, str] = {
    "crash": "crashed",
    "invalid": "left a program that is not valid",
    "claim": "did not say the truth about whether it changed the program",
    "signature": "changed the program's signature",
    "meaning": "changed what the program computes",
    "unsettled": "finds something to do on its own result",
}

MAX_STEPS = 200_000
"""Inputs that are made up may send a loop round for ever: a run of more ops than these says nothing."""


MOST_ELEMENTS = 1 << 20
"""Sets of inputs of more elements than these are left out where inputs are made up."""
_READABLE = 8
"""Inputs of so many elements or fewer stand in the message."""


@dataclass(frozen=True)
class Failure:
    """A promise that a pass broke: which one (`kind`), in which rewrite, and where.

    `rule` and `where` are the first rewrite application that breaks it (the `application`-th) and the op that it was
    applied to; they are empty for a pass that does not count its rewrites. `error` is the class of what went wrong: an
    exception's, or the exactness that does not hold.
    """

    kind: Kind
    step: str
    message: str
    rule: str = ""
    where: str = ""
    error: str = ""
    application: int = 0

    @property
    def op(self) -> str:
        """The name of the op that the rewrite was applied to."""
        return self.where.partition(" at ")[0]

    def fingerprint(self) -> tuple[str, str, str, str]:
        """What makes two failures the same bug: kind (and a crash's exception), pass, rewrite, op."""
        kind = f"{self.kind}: {self.error}" if self.kind == "crash" else self.kind
        return (kind, self.step, self.rule, self.op)

    @property
    def what(self) -> str:
        """One sentence: the pass, and what it did."""
        return f"the pass {self.step} {_SAID[self.kind]}"

    @property
    def culprit(self) -> str:
        """The rewrite and the op, in words; empty where it is not known."""
        if not self.rule:
            return ""
        return f"the rewrite {self.rule} (application {self.application} of the pass) on {self.where}"

    def __str__(self) -> str:
        return "\n  ".join([self.what, *filter(None, [self.culprit]), self.message])


class Reference:
    """What one program computes on sets of inputs, evaluated when it is asked for and kept.

    The program must not change. A set of inputs that the reference refuses is left out; where it refuses all of them,
    so does `usable`.
    """

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Sequence[Array]] | Callable[[], Sequence[Sequence[Array]]],
        *,
        max_steps: int | None = MAX_STEPS,
        expected: Mapping[int, list[Array]] | None = None,
    ) -> None:
        self.program = program
        self.max_steps = max_steps
        self._inputs = inputs
        self.ports = (program.inputs(), program.outputs())
        self._expected: dict[int, list[Array] | GcompError] = dict(expected or {})
        self.found: dict[int, list[Array]] = {}
        """What the program that was compared last computed."""
        self._wider: dict[int, list[Array]] = {}
        self._interpreter: Interpreter | None = None

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """All that makes the program what it is (`structure`)."""
        return structure(self.program)

    @cached_property
    def inputs(self) -> list[list[Array]]:
        """The sets of inputs; made when they are first asked for, where a function makes them."""
        return [list(arrays) for arrays in (self._inputs() if callable(self._inputs) else self._inputs)]

    def expected(self, sample: int) -> list[Array] | GcompError:
        """The outputs for a set of inputs, or why there are none."""
        if sample not in self._expected:
            self._interpreter = self._interpreter or Interpreter(self.program, max_steps=self.max_steps)
            try:
                self._expected[sample] = self._interpreter.run(self.inputs[sample])
            except GcompError as error:
                self._expected[sample] = error
        return self._expected[sample]

    def wider(self, sample: int) -> list[Array]:
        """The outputs for a set of inputs, evaluated in wider precision."""
        if sample not in self._wider:
            self._wider[sample] = WiderInterpreter(self.program, max_steps=self.max_steps).run(self.inputs[sample])
        return self._wider[sample]

    def usable(self) -> list[int]:
        """The sets of inputs that the reference can run. Raises what it said of the last one where it runs none."""
        found = [i for i in range(len(self.inputs)) if not isinstance(self.expected(i), GcompError)]
        if not found and self.inputs and isinstance(last := self.expected(len(self.inputs) - 1), GcompError):
            raise last
        return found


def arrays_for(step: Pass, program: Program, seed: int, *, most: int | None = None) -> list[list[Array]]:
    """Sets of inputs of all kinds and sizes to judge a pass on (`gcomp.reference.inputs`); `most` of them at most."""
    return [one.arrays for one in input_sets(program, step.exactness, seed, most=most) if one.elements <= MOST_ELEMENTS]


# ---- judging --------------------------------------------------------------------------------------------------------


@dataclass
class _Trial:
    """One run of a pass: the rewrites applied, and the promise that was found broken."""

    applied: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    kind: Kind | None = None
    message: str = ""
    error: str = ""
    sample: int | None = None
    again: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The rewrites that were applied to the pass's own result."""
    failed: tuple[str, str] | None = None
    exactness: Exactness | None = None
    """The weakest class of the rewrites applied; None where that is the pass's own."""

    def found(self, kind: Kind, message: str, error: str = "") -> _Trial:
        self.kind, self.message, self.error = kind, message, error
        return self


Ran = Callable[[PassContext, bool], object]
"""Told what a pass did: the context of its run, which counts its rewrites, and whether it says that it changed any."""


def judge(step: Pass, reference: Reference, *, ran: Ran | None = None) -> Failure | None:
    """The promise that a pass breaks on a program, or None. The program stays as it is.

    Raises GcompError where the reference cannot run the program, so that there is nothing to compare with.
    """
    trial = _run(step, reference, None, None, ran)
    return None if trial.kind is None else _blamed(step, reference, trial)


def judge_result(
    step: Pass, reference: Reference, after: Program, changed: bool, *, settles: bool = True
) -> Failure | None:
    """As `judge`, for a pass that has run already and left `after`, which stays as it is."""
    trial = _examine(step, reference, after, changed, _Trial(), None)
    if trial.kind is None and changed and settles:
        trial = _settle(step, after.clone(), trial)
    return None if trial.kind is None else _blamed(step, reference, trial)


def _run(step: Pass, reference: Reference, limit: int | None, sample: int | None, ran: Ran | None = None) -> _Trial:
    """Run the pass on a copy and hold it to its promises; with a limit, not to settling."""
    program, trial = reference.program.clone(), _Trial()
    most = _endless(program)
    context = PassContext(bisect_limit=most if limit is None else limit)
    context.watchers.append(lambda rule, where: trial.applied.append((rule, where)))
    changed = False
    try:
        changed = step.run(program, context)
    except Exception as error:
        if isinstance(error, UnsupportedError) and step.level != "graph":
            return trial  # the program stays on its level, and the user is told why
        if isinstance(error, GcompError) and not isinstance(error, InternalError):
            reference.usable()  # What the reference refuses too may be the program's fault.
        trial.failed = context.failed
        return trial.found("crash", f"{type(error).__name__}: {error}", type(error).__name__)
    finally:
        if ran is not None:
            ran(context, changed)
    if trial.applied and all(rule in context.classes for rule, _ in trial.applied):
        trial.exactness = max(context.classes.values(), key=list(Exactness).index)
    if limit is None and len(trial.applied) >= most:
        trial.again = trial.applied[-1:]
        return trial.found("unsettled", f"it has applied {most} rewrites and does not end")
    trial = _examine(step, reference, program, changed, trial, sample)
    settles = trial.kind is None and changed and limit is None
    return _settle(step, program, trial, context.flops) if settles else trial


def _endless(program: Program) -> int:
    """More rewrites than a pass that ends applies."""
    return 1000 + 50 * program.op_count()


def _examine(
    step: Pass, reference: Reference, after: Program, changed: bool, trial: _Trial, sample: int | None
) -> _Trial:
    same = structure(after) == reference.shape
    if not changed:
        return trial if same else trial.found("claim", "it changed the program and said that it did not")
    try:
        after.verify()
    except VerificationError as error:
        return trial.found("invalid", f"{error.where}: {error.why}", type(error).__name__)
    if same:
        return trial.found("claim", "it said that it changed the program and did not")
    if why := _signature(reference.ports, after):
        return trial.found("signature", why)
    steps = None if reference.max_steps is None else 4 * reference.max_steps
    running, exactness = runner(after, max_steps=steps), trial.exactness or step.exactness
    for i in range(len(reference.inputs)) if sample is None else (sample,):
        if (found := _meaning(exactness, reference, running, i)) is not None:
            trial.sample = i
            shown = _shown(reference.ports[0], reference.inputs[i])
            return trial.found("meaning", f"{found.where}: {found.why}{shown}", exactness.name)
    reference.usable()
    return trial


def _signature(ports: tuple[Sequence[Port], Sequence[Port]], after: Program) -> str | None:
    """How the signature changed: sizes that were not known may be, all else must stay."""
    try:
        now = after.inputs(), after.outputs()
    except GcompError as error:
        return f"{error.what}: {error.why}"
    for kind, old, new in zip(("input", "output"), ports, now, strict=True):
        if len(old) != len(new):
            return f"there were {len(old)} {kind}s, now there are {len(new)}"
        for a, b in zip(old, new, strict=True):
            if replace(a, shape=()) != replace(b, shape=()) or not same_shape(a.shape, b.shape):
                return f"the {kind} {a} became {b}"
    return None


def _meaning(exactness: Exactness, reference: Reference, after: Interpreter, sample: int) -> Difference | None:
    expected = reference.expected(sample)
    if isinstance(expected, GcompError):
        return None
    try:
        actual = reference.found[sample] = after.run(reference.inputs[sample])
    except GcompError as error:
        return Difference("the result cannot be run", f"{error.what} ({error.where}; {error.why})")
    return beyond(exactness, reference, sample, expected, actual)


def beyond(
    exactness: Exactness, reference: Reference, sample: int, expected: Sequence[Array], actual: Sequence[Array]
) -> Difference | None:
    """How `actual` differs from what the program computes by more than a class of exactness allows, if it does."""
    ports, inputs = reference.ports[1], reference.inputs[sample]
    if same_values(ports, exactness, expected, actual):
        return None
    wider = reference.wider(sample) if exactness is Exactness.E2 else [None] * len(expected)
    found = difference(ports, exactness, expected, actual, wider)
    if found is None or exactness is Exactness.E0 or [a.shape for a in expected] != [a.shape for a in actual]:
        return found
    masks = left_open(reference.program, exactness, inputs, expected, actual, max_steps=reference.max_steps)
    if not any(mask.any() for mask in masks):
        return found
    held = [np.where(mask, old, new) if mask.any() else new
            for mask, old, new in zip(masks, expected, actual, strict=True)]  # fmt: skip
    return difference(ports, exactness, expected, held, wider)


def _shown(ports: Sequence[Port], arrays: Sequence[Array]) -> str:
    """Inputs that are few enough to be read."""
    if not arrays or sum(array.size for array in arrays) > _READABLE:
        return ""
    texts = [f"{port.name} = {array.tolist()}" for port, array in zip(ports, arrays, strict=False)]
    return "; where " + ", ".join(texts)


def _settle(step: Pass, program: Program, trial: _Trial, flops: int = 0) -> _Trial:
    """Run the pass on its own result, which it must leave alone; what it spent of budgets stays spent."""
    context, before = PassContext(bisect_limit=_endless(program), flops=flops), structure(program)
    context.watchers.append(lambda rule, where: trial.again.append((rule, where)))
    try:
        changed = step.run(program, context)
    except Exception as error:
        trial.failed = context.failed
        return trial.found("crash", f"on its own result: {type(error).__name__}: {error}", type(error).__name__)
    if changed:
        return trial.found("unsettled", f"run again, it applies {len(trial.again)} rewrites more")
    if structure(program) != before:
        return trial.found("claim", "on its own result, it changed the program and said that it did not")
    return trial


# ---- blaming --------------------------------------------------------------------------------------------------------


def _blamed(step: Pass, reference: Reference, trial: _Trial) -> Failure:
    """The failure of a trial, with the first rewrite application that brings it about."""
    assert trial.kind is not None
    failure = Failure(trial.kind, str(step.spec()), trial.message, error=trial.error)
    if trial.kind == "unsettled":
        rule, where = trial.again[0] if trial.again else ("", "")
        return replace(failure, rule=rule, where=where, application=len(trial.applied) + 1 if rule else 0)

    def breaks(limit: int) -> _Trial | None:
        found = _run(step, reference, limit, trial.sample)
        same = found.kind == trial.kind and (trial.kind != "crash" or found.error == trial.error)
        return found if same else None

    number, first = bisect_applications(breaks, _limit_of(step, reference, trial))
    if first is None or number == 0:
        rule, where = trial.failed if trial.failed is not None else ("", "")
        return replace(failure, rule=rule, where=where)
    rule, where = first.failed or (first.applied[number - 1] if len(first.applied) >= number else ("", ""))
    return replace(failure, rule=rule, where=where, application=number if rule else 0)


def _limit_of(step: Pass, reference: Reference, trial: _Trial) -> int:
    """A limit under which the pass does all that it did; where a rewrite crashed, it was not counted."""
    applied = trial.applied
    if not applied:  # judged by its result: run it again to count
        context = PassContext(bisect_limit=_endless(reference.program))
        context.watchers.append(lambda rule, where: applied.append((rule, where)))
        try:
            step.run(reference.program.clone(), context)
        except Exception as error:
            trial.failed = trial.failed or context.failed
            trial.error = trial.error or type(error).__name__
    return len(applied) + 1


def bisect_applications(breaks: Callable[[int], _Trial | None], limit: int) -> tuple[int, _Trial | None]:
    """The number of applications at which a promise breaks (one fewer keeps it), and the trial that shows it.

    0: it breaks with none applied. (0, None): it does not break within `limit`.
    """
    found = breaks(limit)
    if found is None:
        return 0, None
    low, high = -1, limit
    while high - low > 1:
        middle = (low + high) // 2 if low >= 0 else 0
        if (trial := breaks(middle)) is None:
            low = middle
        else:
            high, found = middle, trial
    return high, found


# ---- telling whether a program changed ------------------------------------------------------------------------------


def structure(program: Program) -> tuple[object, ...]:
    """All that makes a program what it is, but names and locations: equal for programs that are the same."""
    numbers: dict[SSAValue, int] = {}
    parts: list[object] = []
    for op in program.ops():
        regions: list[object] = []
        for region in op.regions:
            for block in region.blocks:
                for arg in block.args:
                    numbers[arg] = len(numbers)
                # How many ops a block has tells where it ends in the walk.
                regions.append((tuple(block.arg_types), sum(1 for _ in block.ops)))
        operands = tuple([numbers.get(v, -1) for v in op.operands])
        for result in op.results:
            numbers[result] = len(numbers)
        properties = tuple(op.properties.items()) if op.properties else ()
        attributes = tuple(op.attributes.items()) if op.attributes else ()
        types = () if isinstance(op, ModuleOp | FuncOp) else tuple(op.result_types)
        parts.append((op.name, operands, properties, attributes, types, tuple(regions)))
        if isinstance(op, WeightOp) and op.symbol in program.weights:
            parts.append(id(program.weights[op.symbol]))
    return tuple(parts)


# ---- during a compilation -------------------------------------------------------------------------------------------


@dataclass
class JudgeEach(Instrument):
    """Holds every pass of a pipeline to its promises; VerificationError names the rewrite, the op and its location."""

    inputs: Sequence[Array] | None = None
    """Inputs to compare the meaning on; by default they are made from `seed`."""
    seed: int = 0
    edges: bool = False
    """Whether inputs that are made hold values at the edges too."""
    original: Program | None = None
    known: Mapping[int, list[Array]] | None = None
    """What the program computed after the last pass that changed it, ..."""
    state: tuple[object, ...] = ()
    """... and what it was then."""

    def before(self, step: Pass, program: Program) -> None:
        self.original = program.clone()
        if structure(self.original) != self.state:
            self.known = None

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        assert self.original is not None
        if not step.keeps_meaning:
            # Another program: it must be valid, and what comes after is held to what it means.
            program.verify(f"after {step.spec()}")
            self.original = self.known = self.inputs = None
            self.state = structure(program)
            return
        if self.edges and self.inputs is None:
            reference = Reference(self.original, arrays_for(step, self.original, self.seed))
        else:
            self.inputs = self.inputs if self.inputs is not None else sample_inputs(self.original, self.seed)
            reference = Reference(self.original, [self.inputs], max_steps=None, expected=self.known)
        self.original = None
        # Budgets that hold for a whole run may have stopped a pass here, so settling shows only from a fresh start.
        if (failure := judge_result(step, reference, program, changed, settles=self.edges)) is not None:
            raise VerificationError(
                failure.what,
                where=failure.culprit or None,
                why=failure.message,
                fix="find the smallest program that shows it with gcomp reduce, and what led there with gcomp bisect",
            )
        self.known, self.state = reference.found or self.known, structure(program)


__all__ = [
    "MAX_STEPS", "Failure", "JudgeEach", "Kind", "Ran", "Reference", "arrays_for", "beyond", "bisect_applications",
    "judge", "judge_result", "structure",
]  # fmt: skip
