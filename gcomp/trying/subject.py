"""What is tried: a pass beside the pipeline without it, or one pipeline beside another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import ndiff
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.passes.base import LEVELS, Pass
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import load_passes, parse_pipeline
from gcomp.targets.base import target_named


@dataclass(frozen=True)
class Subject:
    """Two pipelines, `before` and `after`, and the passes that are `tried`: those that make the difference.

    `place` is where the tried passes stand in `after`, for passes that are put into the pipeline (None: they are part
    of it already, or whole pipelines are compared).
    """

    name: str
    target: str
    before: tuple[Pass, ...]
    after: tuple[Pass, ...]
    tried: tuple[Pass, ...]
    place: int | None = None
    file: Path | None = None

    @property
    def is_placed(self) -> bool:
        """Whether the passes are new to the pipeline, so that their place is open."""
        return self.place is not None

    def at(self, place: int) -> Subject:
        """The same with the tried passes before the pass of that number of `before` (or at its end)."""
        after = (*self.before[:place], *self.tried, *self.before[place:])
        return replace(self, after=after, place=place)

    def places(self) -> list[int]:
        """Where the tried passes may stand: not after passes of a later level."""
        low, high = (pick(LEVELS.index(step.level) for step in self.tried) for pick in (min, max))
        ranks = [LEVELS.index(step.level) for step in self.before]
        return [
            k
            for k in range(len(ranks) + 1)
            if max(ranks[:k], default=low) <= low and min(ranks[k:], default=high) >= high
        ]

    def describe_place(self, place: int) -> str:
        """Where that is, in words."""
        if place == 0:
            return "first of all"
        step = self.before[place - 1]
        count = sum(s == step for s in self.before[:place])
        again = (
            f", the {_ORDINALS[min(count, len(_ORDINALS)) - 1]} time" if sum(s == step for s in self.before) > 1 else ""
        )
        return f"after {step.name}{again}"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def subject_of(
    what: str | None, *, target: str = "cpu", pipeline: str | None = None, against: str | None = None,
    chosen: Sequence[str] = (),
) -> Subject:  # fmt: skip
    """What a command line asks about: a Python file, the name of a pass, or two pipelines. Raises UsageError.

    Of a file with several passes, all are tried, in their order, or those that are `chosen`.
    """
    if pipeline is not None or against is not None:
        if what is not None or pipeline is None or against is None:
            raise UsageError("two pipelines are compared", fix="gcomp try --pipeline A --against B")
        before, after = parse_pipeline(against), parse_pipeline(pipeline)
        tried = tuple(dict.fromkeys(step for step in after if step not in before))
        return Subject(_difference(before, after), target, tuple(before), tuple(after), tried)
    if what is None:
        raise UsageError("there is nothing to try", fix="gcomp try my_pass.py, or gcomp try PASS")
    own = tuple(parse_pipeline(target_named(target).pipeline()))
    if what.endswith(".py"):
        names = load_passes(Path(what))
        if unknown := [name for name in chosen if name not in names]:
            raise UsageError(f"there is no pass {unknown[0]!r} in {what}", fix=f"it has: {', '.join(names)}")
        tried = tuple(step for name in (chosen or names) for step in parse_pipeline(name))
        return _placed(",".join(chosen or names), target, own, tried, Path(what))
    if chosen:
        raise UsageError(
            "--pass says which pass of a file is tried", fix=f"gcomp try {chosen[0]}, or gcomp try FILE.py"
        )
    tried = tuple(parse_pipeline(what))
    if len(tried) == 1 and any(type(step) is type(tried[0]) for step in own):
        kind = type(tried[0])
        without = tuple(step for step in own if type(step) is not kind)
        return Subject(what, target, without, own, tuple(dict.fromkeys(s for s in own if type(s) is kind)))
    return _placed(what, target, own, tried, None)


def _difference(before: Sequence[Pass], after: Sequence[Pass]) -> str:
    """How one pipeline differs from another: `-cse +dce`."""
    first, second = ([str(step.spec()) for step in steps] for steps in (before, after))
    signs = [line for line in ndiff(first, second) if line[0] in "+-"]
    return " ".join(f"{line[0]}{line[2:]}" for line in signs) or "the same pipeline"


def _placed(name: str, target: str, own: tuple[Pass, ...], tried: tuple[Pass, ...], file: Path | None) -> Subject:
    """Passes in a pipeline: as a start, at the end of what all targets share."""
    if bad := [step.name for step in tried if not step.keeps_meaning]:
        raise UsageError(f"{bad[0]} makes another program", fix=f"gcomp fuzz --pass {bad[0]} holds it to its own laws")
    subject = Subject(name, target, own, own, tried, 0, file)
    shared = len(parse_pipeline(TO_FUSION))
    places = subject.places()
    return subject.at(max((k for k in places if k <= shared), default=places[-1]))


__all__ = ["Subject", "subject_of"]
