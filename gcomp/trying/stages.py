"""The stages of `gcomp try`, in the order in which things become known."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gcomp.corpus.entries import names
from gcomp.corpus.store import corpus
from gcomp.errors import GcompError, UsageError
from gcomp.passes.base import Pass
from gcomp.passes.manager import PassManager
from gcomp.testing.generate.passes import get_ready
from gcomp.trying.change import Change, changes
from gcomp.trying.conduct import conduct_of
from gcomp.trying.correct import prove_rules, reduce_failures, try_programs
from gcomp.trying.findings import Findings
from gcomp.trying.hanging import reduce_hanging
from gcomp.trying.misses import Miss, misses_in
from gcomp.trying.models import Model, models_in
from gcomp.trying.places import Fired, places_of, ranked
from gcomp.trying.subject import Subject
from gcomp.trying.values import values_of
from gcomp.trying.worth import worth_of

Report = Callable[[str], object]

STAGES = ("conduct", "proofs", "programs", "reduction", "values", "places", "changes", "misses", "worth")
"""In their order."""
_OF_MODELS = ("places", "changes", "misses", "worth")
_SHARES = {"conduct": 0.05, "proofs": 0.1, "programs": 0.25, "reduction": 0.25, "values": 0.06}
"""Parts of the whole time that stages of correctness have."""
_PLACES_END, _CHANGES_END, _MISSES_END = 0.6, 0.78, 0.84
"""When the stages that look at models end, as parts of the whole time."""
_MOST, _LEAST = 0.88, 0.03
"""Parts of the whole time: what all stages have, beside imports and the page; what a stage has that begins late."""
_MISSED_MODELS, _MISSED_SECONDS = 16, 3.0
_MODEL_SECONDS = 30.0


@dataclass
class Options:
    """How much is asked: seconds in all, processes, the seed of programs, the user's models, and which stages."""

    seconds: float = 60.0
    jobs: int = 2
    seed: int = 0
    own: Path | None = None
    only: tuple[str, ...] = STAGES
    all: bool = False
    """Ask what a wrong pass would change, too."""
    folder: Path = Path("try")
    wanted: tuple[str, ...] = ()
    """Models of the corpus; all, where none is named."""


@dataclass
class Trial:
    """A subject while it is tried: `run` gives the name of each stage once its findings are there."""

    subject: Subject
    options: Options
    report: Report = lambda said: None
    found: Findings = field(init=False)
    stage: str = ""
    _hanging: list[tuple[Pass, int]] = field(default_factory=list[tuple[Pass, int]])
    """Passes that do not end, and the number of a program of theirs on which they do not."""
    _idle: set[str] = field(default_factory=set[str])
    """Models in which the passes are known to do nothing."""

    def __post_init__(self) -> None:
        self.found = Findings(self.subject.name, self.subject.target)

    def run(self) -> Iterator[str]:
        """Run the stages. What is known is in `found` at any time, also where this is interrupted."""
        own = self._own_models()
        self.end = time.monotonic() + _MOST * self.options.seconds
        models: list[Model] = []
        if {"conduct", "programs", "values"} & set(self.options.only):
            get_ready()
        for stage in STAGES:
            why = self._why_not(stage)
            if why:
                self.found.left_out[stage] = why
                continue
            self.stage = stage
            if stage in _OF_MODELS and not models:
                started = time.monotonic()
                models = self._models(own)
                self.end += time.monotonic() - started  # to make the corpus takes a minute, once
            with self._timed(stage):
                getattr(self, f"_{stage}")(models)
            yield stage
        self.stage = ""

    def _why_not(self, stage: str) -> str:
        """Why a stage is left out; empty where it is not."""
        subject, found = self.subject, self.found
        if stage not in self.options.only:
            return "was not asked for"
        if stage in ("conduct", "proofs", "programs", "values") and not subject.tried:
            return "no pass is new in the pipeline"
        if stage == "programs" and {"hangs", "dies"} & found.correct.faults.keys():
            return "it does not end"
        if stage == "reduction" and not found.correct.failing and not self._hanging:
            return "there is nothing to reduce"
        looks_at_models = stage in STAGES[STAGES.index("values") :]
        if found.correct.wrong and looks_at_models and not self.options.all:
            return "the pass is wrong (--all asks all the same)"
        if stage == "places" and not subject.is_placed:
            return "it is in the pipeline"
        if stage == "misses" and not subject.tried:
            return "there are no rewrites of its own"
        return ""

    @contextmanager
    def _timed(self, stage: str) -> Generator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.found.seconds[stage] = time.monotonic() - started

    def _share(self, stage: str) -> float:
        return _SHARES[stage] * self.options.seconds

    def _moment(self, part: float) -> float:
        """A moment of the whole time; at least a little is left for what begins late."""
        return max(self.end - (1 - part) * self.options.seconds, time.monotonic() + _LEAST * self.options.seconds)

    def _own_models(self) -> list[Model]:
        """The user's models. UsageError where there are none, and for a model of the corpus that there is not."""
        own = [] if self.options.own is None else list(models_in(self.options.own))
        if unknown := [name for name in self.options.wanted if name not in names()]:
            raise UsageError(f"there is no model {unknown[0]!r} in the corpus", fix=f"it has: {', '.join(names())}")
        return own

    def _models(self, own: list[Model]) -> list[Model]:
        known = corpus(self.options.wanted, report=self.report)
        self.found.corpus, self.found.skipped = known.version, dict(known.skipped)
        found = own + [Model(member.name, member) for member in known.members]
        self.found.models = len(found)
        return found

    # ---- correct? ----

    def _conduct(self, models: list[Model]) -> None:
        for step in self.subject.tried:
            self.report(f"watching {step.name}")
            said = conduct_of(step, until=time.monotonic() + self._share("conduct"))
            self.found.correct.faults |= said.faults
            if said.hanging is not None:
                self._hanging.append((step, said.hanging))

    def _proofs(self, models: list[Model]) -> None:
        for rule in prove_rules(self.subject.tried, self.options.jobs, self._share("proofs")):
            self.found.correct.rules.append(rule)
            self.report(f"{rule.name}: {rule.status}")

    def _programs(self, models: list[Model]) -> None:
        self._campaign = try_programs(
            self.subject.tried, self.found.correct, seconds=self._share("programs"), jobs=self.options.jobs,
            seed=self.options.seed, report=self.report,
        )  # fmt: skip

    def _reduction(self, models: list[Model]) -> None:
        self.report("making the counterexample small")
        for step, number in self._hanging[:1]:
            case = reduce_hanging(step, number, self.options.folder, self._share("reduction"))
            self.found.correct.counterexamples += [case] if case is not None else []
        if self._hanging:
            return
        for case in reduce_failures(*self._campaign, self.options.folder, self._share("reduction")):
            self.found.correct.counterexamples.append(case)

    def _values(self, models: list[Model]) -> None:
        for step in self.subject.tried[:1]:
            self.report("edge values")
            self.found.correct.values = values_of(step, self._share("values")).words()

    # ---- what does it change? ----

    def _places(self, models: list[Model]) -> None:
        fired: list[Fired] = []
        for one in places_of(models, self.subject, jobs=self.options.jobs, until=self._moment(_PLACES_END)):
            fired.append(one)
            self.report(f"places: {len(fired)} of {len(models)} models")
            if one.error:
                self.found.skipped[one.model] = one.error
        if not fired:
            self.found.left_out["places"] = "there was no time left (--seconds)"
        self.found.places = ranked(fired, self.subject)
        if self.found.places:
            self.subject = self.subject.at(self.found.places[0].at)
        assert self.subject.place is not None
        self.found.place = self.subject.describe_place(self.subject.place)
        self._idle = {one.model for one in fired if not one.error and self.subject.place not in one.applied}

    def _changes(self, models: list[Model]) -> None:
        models = [model for model in models if model.name not in self.found.skipped]
        # At this place, nothing applies there: compiling them says no more.
        self.found.changes += [Change(model.name, {}) for model in models if model.name in self._idle]
        models, total = [model for model in models if model.name not in self._idle], len(models)
        until = self._moment(_CHANGES_END)
        for change in changes(models, self.subject, jobs=self.options.jobs, seconds=_MODEL_SECONDS, until=until):
            if change.error:
                self.found.skipped[change.model] = change.error
            else:
                self.found.changes.append(change)
            self.report(f"changes: {len(self.found.changes)} of {total} models, {len(self.found.firing)} changed")
        known = {change.model for change in self.found.changes} | self.found.skipped.keys()
        late = [model.name for model in models if model.name not in known]
        self.found.skipped |= dict.fromkeys(late, "there was no time left (--seconds)")
        slow = [c for c in self.found.firing if c.after and c.after.tried_seconds > c.after.pass_seconds / 2]
        if slow and slow[0].after is not None:
            worst = max(slow, key=lambda c: c.after.tried_seconds if c.after else 0.0)
            assert worst.after is not None
            self.found.correct.faults["slow"] = (
                f"is slow: {worst.after.tried_seconds * 1e3:.0f} ms on {worst.model}, where all other passes together "
                f"take {(worst.after.pass_seconds - worst.after.tried_seconds) * 1e3:.0f} ms"
            )

    def _misses(self, models: list[Model]) -> None:
        """In models that are not changed, small ones first; the program as it is at the passes' place."""
        end = min(time.monotonic() + _MISSED_SECONDS, self._moment(_MISSES_END))
        found: dict[tuple[str, str], Miss] = {}
        for model in models[:_MISSED_MODELS]:
            if time.monotonic() > end:
                break
            try:
                program = model.program()
                place = self.subject.place or 0
                PassManager(self.subject.before[:place] if self.subject.is_placed else ()).run(program)
                for step in self.subject.tried if self.subject.is_placed else ():
                    PassManager([step]).run(program)
                missed = misses_in(program, self.subject.tried, end)
            except GcompError:
                continue
            for miss in missed:
                key = miss.rewrite, miss.condition
                known = found.get(key)
                count = miss.count + (known.count if known else 0)
                where = known.where if known else f"{model.name}: {miss.where}"
                found[key] = Miss(*key, count, where, max(miss.parts, known.parts if known else 0))
        order = sorted(found.values(), key=lambda miss: (-miss.parts, -miss.count))
        self.found.misses = order[:10]

    # ---- is it worth it? ----

    def _worth(self, models: list[Model]) -> None:
        by_name = {model.name: model for model in models}
        changed = [change.model for change in self.found.firing if not change.same]
        for one in worth_of([by_name[n] for n in changed], self.subject, until=self._moment(1.0), report=self.report):
            if one.error:
                self.found.skipped[one.model] = one.error
            else:
                self.found.worth.append(one)


__all__ = ["STAGES", "Options", "Trial"]
