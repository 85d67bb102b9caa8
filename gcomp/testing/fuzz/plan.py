"""What a fuzzing campaign tries on each program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from random import Random

from gcomp.errors import UsageError
from gcomp.exactness import Exactness
from gcomp.passes.base import Pass
from gcomp.passes.registry import all_passes, parse_pipeline
from gcomp.targets.base import target_named
from gcomp.testing.fuzz.doors import OF_PASSES, PASSES, door_of, judge_of
from gcomp.testing.fuzz.numbers import base_of
from gcomp.testing.fuzz.source_lines import SourceLines

MOST_PASSES = 6


@dataclass(frozen=True)
class Plan:
    """Passes, a pipeline, or a target; programs of about `size` ops.

    `passes` are tried one at a time, on programs that are made for each, and in turn with that several at a time, in an
    order of each program's own; a `pipeline` as it is written; a `target` compiles what its own pipeline
    leaves, or `pipeline`, which has all that it needs, and must compute what the reference does. `named` passes were
    asked for: each of their rewrites must have been tried. `what` names the door for all else
    (`gcomp.testing.fuzz.doors`).
    """

    passes: tuple[str, ...] = ()
    pipeline: str | None = None
    target: str | None = None
    size: int = 15
    named: bool = False
    what: str = PASSES
    about: SourceLines | None = None
    """The lines of source that programs must run to be judged; any program is, where there are none."""

    @staticmethod
    def of(
        passes: tuple[str, ...] = (), pipeline: str | None = None, target: str | None = None, size: int = 15,
        what: str | None = None, about: SourceLines | None = None,
    ) -> Plan:  # fmt: skip
        """A plan whose passes exist; those of the graph level where nothing is said. UsageError for an unknown name.

        `what` is one of the doors (`gcomp.testing.fuzz.doors`), which have no passes and no target. Passes that make
        another program have a door of their own, and are fuzzed there. Where lines of source are all that is said,
        what judges their first file is tried (`gcomp.testing.fuzz.doors.judge_of`).
        """
        if about is not None:
            if not passes and pipeline is None and target is None and what is None:
                option, value = _judge_of(about)
                passes = (value,) if option == "--pass" else ()
                target, what = (value if option == "--target" else None), (value if option == "--what" else None)
            return replace(Plan.of(passes, pipeline, target, size, what), about=about)
        if target == "tile" and what is None and not passes and pipeline is None:
            target, what = None, "tile"
        door = what or _door_of_passes(passes, pipeline)
        if door != PASSES:
            if what is not None and (passes or pipeline is not None or target is not None):
                raise UsageError(f"--what {what} excludes --pass, --pipeline and --target", fix="leave them out")
            door_of(door)
            return Plan(size=size, what=door)
        if passes and pipeline is not None:
            raise UsageError("--pass and --pipeline exclude each other", fix="give one of them")
        if target is not None:
            passes, pipeline = (), _completed_pipeline(target, passes, pipeline)
        named = bool(passes)
        if not named and pipeline is None and target is None:
            # Passes of later levels are tried by name: phases only move forward, and orders here are arbitrary.
            passes = tuple([name for name, step in all_passes().items() if step.level == "graph"])
        plan = Plan(passes, pipeline, target, size, named)
        plan.fixed()
        for name in passes:
            parse_pipeline(name)
        return plan

    def fixed(self) -> list[Pass]:
        """The passes that run on every program as they are written."""
        if self.pipeline is not None:
            return [*_passes(self.pipeline)]
        if self.target is None:
            return []
        return [*_passes(target_named(self.target).pipeline())]

    @cached_property
    def in_memory(self) -> bool:
        """Whether memory is planned."""
        named = [step for name in self.passes for step in _passes(name)]
        return any(step.level == "buffer" for step in (*named, *self.fixed()))

    def single(self, number: int) -> Pass | None:
        """The pass that the program of a number is made for; None where several are tried on it, or a pipeline."""
        number, count = base_of(number), len(self.passes)
        if not count or (count > 1 and number % 2):
            return None
        found = _passes(self.passes[(number // 2 if count > 1 else number) % count])
        return found[0] if len(found) == 1 else None

    def steps(self, random: Random) -> list[Pass]:
        """The passes that one program goes through, in order."""
        if not self.passes:
            return self.fixed()
        count = random.randint(1, min(MOST_PASSES, len(self.passes)))
        return [step for name in random.sample(self.passes, count) for step in _passes(name)]


def _completed_pipeline(target: str, passes: tuple[str, ...], pipeline: str | None) -> str | None:
    """What runs before a target compiles: passes, and then its own; or a pipeline, followed by the target's own where
    that plans memory and the pipeline does not. None for just its own."""
    own = target_named(target).pipeline()
    if passes:
        return ",".join((*passes, own))
    if pipeline is None or not _plans_memory(own) or _plans_memory(pipeline):
        return pipeline
    return ",".join(filter(None, (pipeline, own)))


def _plans_memory(pipeline: str) -> bool:
    return any(step.level == "buffer" for step in _passes(pipeline))


def _judge_of(about: SourceLines) -> tuple[str, str]:
    known = [found for span in about.spans if (found := judge_of(span.path)) is not None]
    if not known:
        raise UsageError(f"what judges {about} is not known", fix="say it with --pass, --target or --what")
    return known[0]


def _door_of_passes(passes: tuple[str, ...], pipeline: str | None) -> str:
    """Where passes are fuzzed. UsageError where some make another program, and others do not."""
    steps = [step for text in (*passes, *([pipeline] if pipeline is not None else [])) for step in _passes(text)]
    others = [step.name for step in steps if not step.keeps_meaning]
    if not others:
        return PASSES
    doors = {OF_PASSES.get(name, "") for name in others}
    door = doors.pop() if len(doors) == 1 else ""
    if door and len(others) == len(steps):
        return door
    fix = f"gcomp fuzz --what {door}" if door else "leave it out; tests/property/test_looking.py holds it to its laws"
    raise UsageError(f"{others[0]} makes another program: what it computes is not what the program computed", fix=fix)


@cache
def _passes(text: str) -> tuple[Pass, ...]:
    """Passes keep nothing between runs, and reading their names takes as long as making a program."""
    return tuple(parse_pipeline(text))


def weakest(steps: list[Pass]) -> Exactness:
    """What may change when all of the passes run."""
    return max((step.exactness for step in steps), key=list(Exactness).index, default=Exactness.E0)
