"""What a pass promises, held against what it did to one program, and the rewrite that broke the promise.

A pass does not crash, leaves a valid program, says whether it changed anything, keeps the signature and (within its
exactness) the meaning, and finds nothing to do on its own result. Where it fails, the applications of its rewrites are
bisected: the first that breaks the promise is named, with the op it was applied to and the op's location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from gcomp.dims import Size, comparisons
from gcomp.errors import GcompError, InternalError, UnsupportedError, VerificationError
from gcomp.exactness import Exactness
from gcomp.ir.composites import by_name
from gcomp.ir.program import Port, Program
from gcomp.ir.types import same_shape
from gcomp.owners import line_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.references import MAX_STEPS, Reference, beyond, sets_for
from gcomp.passes.rewriting import most_rewrites
from gcomp.passes.structure import computes_otherwise, structure
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.planned import runner

Array = np.ndarray[Any, Any]
Kind = Literal["crash", "invalid", "claim", "signature", "meaning", "unsettled", "law"]

_SAID: dict[Kind, str] = {
    "crash": "crashed",
    "invalid": "left a program that is not valid",
    "claim": "did not say the truth about whether it changed the program",
    "signature": "changed the program's signature",
    "meaning": "changed what the program computes",
    "unsettled": "finds something to do on its own result",
    "law": "did not do what it says that it does",
}

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
        which = f" (application {self.application} of the pass)" if self.application else ""
        return f"the rewrite {self.rule}{which} on {self.where}"

    def __str__(self) -> str:
        return "\n  ".join([self.what, *filter(None, [self.culprit]), self.message])


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
    classes: tuple[Exactness, ...] = ()
    """The classes of the rewrites applied, strictest first; empty where that is the pass's own."""
    only: Exactness | None = None
    """The class that all rewrites of this run were held to: weaker ones were left out."""
    looked_at: dict[Size, None] = field(default_factory=dict[Size, None])
    """Formulas of sizes whose sign the pass asked for."""

    @property
    def exactness(self) -> Exactness | None:
        """The weakest class of the rewrites applied; None where that is the pass's own."""
        return self.classes[-1] if self.classes else None

    def found(self, kind: Kind, message: str, error: str = "") -> _Trial:
        self.kind, self.message, self.error = kind, message, error
        return self


Ran = Callable[[PassContext, bool], object]
"""Told what a pass did: the context of its run, which counts its rewrites, and whether it says that it changed any."""


@dataclass(frozen=True)
class Work:
    """The record of one run of a pass: whether it reports a change, its rewrites, and the ops it looked at."""

    changed: bool
    classes: tuple[Exactness, ...] = ()
    looked_at: Iterable[Size] = ()


def judge(step: Pass, reference: Reference, *, ran: Ran | None = None) -> Failure | None:
    """The promise that a pass breaks on a program, or None. The program stays as it is.

    Raises GcompError where the reference cannot run the program, so that there is nothing to compare with.
    """
    trial = _run(step, reference, None, None, ran=ran)
    if trial.kind is None:
        trial = _by_class(step, reference, trial)
    return None if trial.kind is None else _blame(step, reference, trial)


def judge_result(
    step: Pass, reference: Reference, after: Program, work: Work, *, settles: bool = True
) -> Failure | None:
    """As `judge`, for a pass that has run already and left `after`, which stays as it is."""
    trial = _Trial(classes=work.classes, looked_at=dict.fromkeys(work.looked_at))
    trial = _examine(step, reference, after, work.changed, trial, None)
    if trial.kind is None and work.changed and settles:
        trial = _settle(step, after.clone(), trial)
    if trial.kind is None and work.changed:
        trial = _by_class(step, reference, trial)
    return None if trial.kind is None else _blame(step, reference, trial)


def classes_of(rules: Iterable[str], context: PassContext) -> tuple[Exactness, ...]:
    """The classes of the rewrites of these names, strictest first; empty where that of one is not known."""
    names = set(rules)
    if not names or not all(name in context.classes for name in names):
        return ()
    return tuple(sorted({context.classes[name] for name in names}, key=list(Exactness).index))


def _by_class(step: Pass, reference: Reference, trial: _Trial) -> _Trial:
    """Hold the rewrites of each stricter class to it alone: what a weaker one allows would hide their mistakes."""
    known = reference.found
    for exactness in trial.classes[:-1]:
        reference.found = {}
        if reference.budget is not None:
            reference.budget.renew()
        found = _run(step, reference, None, None, exactness)
        if found.kind == "meaning":
            return found
    reference.found = known
    return trial


def _run(
    step: Pass,
    reference: Reference,
    limit: int | None,
    sample: int | None,
    only: Exactness | None = None,
    ran: Ran | None = None,
) -> _Trial:
    """Run the pass on a copy and hold it to its promises; with a limit or for a class, not to settling."""
    program, trial = reference.program.clone(), _Trial(only=only)
    most = most_rewrites(program.op_count())
    context = PassContext(bisect_limit=most if limit is None else limit, only=only)
    context.watchers.append(lambda rule, where: trial.applied.append((rule, where)))
    changed = False
    try:
        with comparisons(trial.looked_at):
            changed = step.run(program, context)
    except Exception as error:
        if isinstance(error, UnsupportedError) and step.level != "graph":
            return trial  # the program stays on its level, and the user is told why
        if isinstance(error, GcompError) and not isinstance(error, InternalError):
            reference.usable()  # What the reference refuses too may be the program's fault.
        trial.failed = context.failed
        return trial.found("crash", _crash(error), type(error).__name__)
    finally:
        if ran is not None:
            ran(context, changed and (bool(context.known) or _did_more(step, reference.program, program)))
    trial.classes = classes_of((rule for rule, _ in trial.applied), context)
    if limit is None and len(trial.applied) >= most:
        trial.again = trial.applied[-1:]
        return trial.found("unsettled", f"it has applied {most} rewrites and does not end")
    trial = _examine(step, reference, program, changed, trial, sample)
    settles = trial.kind is None and changed and limit is None and only is None
    return _settle(step, program, trial, context.flops) if settles else trial


def _did_more(step: Pass, before: Program, after: Program) -> bool:
    """Whether a pass changed what is computed; what it left may be no valid program."""
    try:
        return computes_otherwise(step, before, after)
    except Exception:
        return True


def _crash(error: Exception) -> str:
    """What an exception says, and in which line of the user's it came up, if it did."""
    line = line_of(error.__traceback__)
    return f"{type(error).__name__}: {error}" + (f" ({line})" if line else "")


def _examine(
    step: Pass, reference: Reference, after: Program, changed: bool, trial: _Trial, sample: int | None
) -> _Trial:
    same = structure(after) == reference.shape
    if not changed:
        return (
            _lawful(step, after, trial)
            if same
            else trial.found("claim", "it changed the program and said that it did not")
        )
    try:
        after.verify()
    except VerificationError as error:
        return trial.found("invalid", f"{error.where}: {error.why}", type(error).__name__)
    if same:
        return trial.found("claim", "it said that it changed the program and did not")
    if why := _signature(reference.ports, after, step):
        return trial.found("signature", why)
    trial = _compare(step, reference, after, trial, sample)
    return trial if trial.kind is not None else _lawful(step, after, trial)


def _lawful(step: Pass, after: Program, trial: _Trial) -> _Trial:
    why = step.broken_law(after)
    return trial if why is None else trial.found("law", why)


def _compare(step: Pass, reference: Reference, after: Program, trial: _Trial, sample: int | None) -> _Trial:
    """Hold what is left to what the program means, on all sets of inputs; and at sizes that the pass looked at."""
    interpreters: dict[int | None, Interpreter] = {}
    exactness = trial.exactness or step.exactness

    def breaks(i: int) -> bool:
        steps = reference.steps(i)
        if steps not in interpreters:
            interpreters[steps] = runner(after, max_steps=None if steps is None else 4 * steps)
        found = reference.difference(exactness, i, interpreters[steps].run)
        if found is None:
            return False
        trial.sample, made = i, reference.made(i)
        shown = _show_inputs(reference.ports[0], reference.arrays(i)) or (
            "" if made is None else f"; on inputs of {made}"
        )
        trial.found("meaning", f"{found.where}: {found.why}{shown}", exactness.name)
        return True

    if sample is not None:
        breaks(sample)
        return trial
    if not any(map(breaks, range(len(reference.sets)))):
        if not reference.found:
            reference.usable()
        any(map(breaks, reference.add_sizes(trial.looked_at)))
    return trial if trial.kind is not None else _compare_names(exactness, reference, after, trial)


def _compare_names(exactness: Exactness, reference: Reference, after: Program, trial: _Trial) -> _Trial:
    """Hold what a backend makes of the composites' names to the same: what they hold may be right when they are not.

    Raises VerificationError where the program itself has a name that cannot be trusted: the pass is not to blame.
    """
    before = by_name(reference.program)
    try:
        named = by_name(after)
    except VerificationError as error:
        return trial.found("invalid", f"{error.what}: {error.why}", type(error).__name__)
    if named is None:
        return trial
    base = reference if before is None else Reference(before, reference.sets, max_steps=reference.max_steps)
    for i in range(len(base.sets)):
        steps = base.steps(i)
        found = base.difference(exactness, i, runner(named, max_steps=None if steps is None else 4 * steps).run)
        if found is not None:
            trial.sample = i
            why = f"{found.where}: {found.why}; where each trusted composite is what its name says"
            return trial.found("meaning", why, exactness.name)
    return trial


def _signature(ports: tuple[Sequence[Port], Sequence[Port]], after: Program, step: Pass) -> str | None:
    """How the signature changed: sizes that were not known may be, all else must stay."""
    free: dict[str, Any] = {"shape": (), **({"sharding": None} if step.places_values else {})}
    try:
        now = after.inputs(), after.outputs()
    except GcompError as error:
        return f"{error.what}: {error.why}"
    for kind, old, new in zip(("input", "output"), ports, now, strict=True):
        if len(old) != len(new):
            return f"there were {len(old)} {kind}s, now there are {len(new)}"
        for a, b in zip(old, new, strict=True):
            if replace(a, **free) != replace(b, **free) or not same_shape(a.shape, b.shape):
                return f"the {kind} {a} became {b}"
    return None


def _show_inputs(ports: Sequence[Port], arrays: Sequence[Array]) -> str:
    """Inputs that are few enough to be read."""
    if not arrays or sum(array.size for array in arrays) > _READABLE:
        return ""
    texts = [f"{port.name} = {array.tolist()}" for port, array in zip(ports, arrays, strict=False)]
    return "; where " + ", ".join(texts)


def _settle(step: Pass, program: Program, trial: _Trial, flops: int = 0) -> _Trial:
    """Run the pass on its own result, which it must leave alone; what it spent of budgets stays spent."""
    context, before = PassContext(bisect_limit=most_rewrites(program.op_count()), flops=flops), structure(program)
    context.watchers.append(lambda rule, where: trial.again.append((rule, where)))
    try:
        changed = step.run(program, context)
    except Exception as error:
        trial.failed = context.failed
        return trial.found("crash", f"on its own result: {_crash(error)}", type(error).__name__)
    if changed:
        return trial.found("unsettled", f"run again, it applies {len(trial.again)} rewrites more")
    if structure(program) != before:
        return trial.found("claim", "on its own result, it changed the program and said that it did not")
    return trial


# ---- blaming --------------------------------------------------------------------------------------------------------


def _blame(step: Pass, reference: Reference, trial: _Trial) -> Failure:
    """The failure of a trial, with the first rewrite application that brings it about."""
    assert trial.kind is not None
    failure = Failure(trial.kind, str(step.spec()), trial.message, error=trial.error)
    if trial.kind == "unsettled":
        rule, where = trial.again[0] if trial.again else ("", "")
        return replace(failure, rule=rule, where=where, application=len(trial.applied) + 1 if rule else 0)

    def breaks(limit: int) -> _Trial | None:
        found = _run(step, reference, limit, trial.sample, trial.only)
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
        context = PassContext(bisect_limit=most_rewrites(reference.program.op_count()), only=trial.only)
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


__all__ = [
    "MAX_STEPS", "Failure", "Kind", "Ran", "Reference", "Work", "beyond", "bisect_applications",
    "classes_of", "judge", "judge_result", "sets_for", "structure",
]  # fmt: skip
