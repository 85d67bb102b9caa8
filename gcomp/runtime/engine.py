"""What runs the plans of a target, found by the target's name: the half of a target that a loaded model needs.

A family of targets is a class: `gcomp.targets.NAME` has those of this package, and other packages add theirs through
the entry point group `gcomp.targets`. Importing such a module imports nothing heavy; its methods do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.runtime.buckets import PaddedExecutor
from gcomp.runtime.executor import Array, Executor, StatefulExecutor
from gcomp.runtime.plan import Plan
from gcomp.runtime.signature import Signature


class Ability(Enum):
    """An optional capability of targets. Its value: what an error says where it is missing, and the error's class."""

    BUCKETS = "there are no buckets", UnsupportedError
    STATE = "no state is kept between calls", UnsupportedError
    LOOKING = "inner values are not shown", UnsupportedError
    TUNING = "results of tuning (--tuned) are not used", UsageError
    MEMORY_BUDGET = "there is no memory budget", UsageError
    NUMERICS = "there are no classes of numerics", UsageError
    THREADS = "the number of threads is not set", UsageError
    LAUNCHES = "there are no launches", UsageError
    """The plan is a list of launches, with a source, flops and bytes for each."""
    MESH = "programs for several devices are not run", UnsupportedError
    PROFILE = "the time of each kernel is not measured", UnsupportedError
    COMPILES_WHEN_LOADED = "nothing is compiled when a model is loaded", UsageError

    def __init__(self, refusal: str, error: type[GcompError]) -> None:
        self.refusal, self.error = refusal, error


class Engine(ABC):
    """What runs the plans of one target.

    `family` is the part of its name before the colon, `variants` are what stands after it, between commas. `samples`
    are names of the family for messages and listings.
    """

    family: ClassVar[str]
    samples: ClassVar[tuple[str, ...]]
    abilities: ClassVar[frozenset[Ability]]
    lacking: ClassVar[Mapping[str, frozenset[Ability]]] = {}
    """By variant, which abilities of the family's it has not got."""
    reasons: ClassVar[Mapping[Ability, str]] = {}
    """Why an ability is lacking."""

    def __init__(self, name: str) -> None:
        """Raises UsageError for a name that is none of the family's."""
        self.name = name
        self.variants = _variants(name)
        if not self.accepts():
            raise UsageError(f"there is no target {name[:80]!r}", fix=f"the targets are: {known_targets()}")

    @classmethod
    def full_name(cls, name: str) -> str:
        """The name that a plan has for a target of the family, which people may abridge. Raises UnsupportedError."""
        return name

    def accepts(self) -> bool:
        """Whether the variants are ones that the family may have; a GPU that is not known is refused when compiling."""
        return all(self.variants)

    @classmethod
    def offers(cls, variants: tuple[str, ...], ability: Ability) -> bool:
        """Whether the family's target of these variants has an ability."""
        return ability in cls.abilities and not any(ability in cls.lacking.get(name, ()) for name in variants)

    def can(self, ability: Ability) -> bool:
        """Whether the target has an ability."""
        return self.offers(self.variants, ability)

    def require(self, ability: Ability, what: str | None = None, where: str | None = None) -> None:
        """Raises the ability's error, which says `what` does not happen, for a target that has not got it."""
        if self.can(ability):
            return
        able = [name for f in families().values() for name in f.samples if f.offers(_variants(name), ability)]
        raise ability.error(
            f"{what or ability.refusal} on the target {self.name[:80]}",
            where=where,
            why=self.reasons.get(ability),
            fix=f"compile for {' or '.join(able)}" if able else None,
        )

    @abstractmethod
    def executor(self, plan: Plan, weights: Mapping[str, Array]) -> Executor:
        """What runs a plan. Raises UnsupportedError where this machine cannot."""

    def stateful_executor(self, plan: Plan, weights: Mapping[str, Array]) -> StatefulExecutor:
        """What runs a plan with a state (`Ability.STATE`)."""
        raise self._missing(Ability.STATE)

    def padded_executor(self, plan: Plan, weights: Mapping[str, Array], signature: Signature) -> PaddedExecutor:
        """What runs a plan with buckets (`Ability.BUCKETS`), for callers who see `signature`."""
        raise self._missing(Ability.BUCKETS)

    def set_threads(self, count: int) -> None:
        """Compute with so many threads (`Ability.THREADS`), where they are the process's and not each model's.

        Raises UsageError for a number that cannot be, or comes too late.
        """
        raise self._missing(Ability.THREADS)

    def launch_plans(self, text: str, where: str) -> Mapping[str, Any]:
        """By architecture, the plan that a segment's text is (`Ability.LAUNCHES`). Raises ArtifactError."""
        raise self._missing(Ability.LAUNCHES)

    def predicted(self, architecture: str, flops: int, moved: int, *, narrow: bool) -> float | None:
        """The seconds that the cost model says of a launch; None where it knows no such machine."""
        return None

    def _missing(self, ability: Ability) -> Exception:
        self.require(ability)
        return NotImplementedError(f"{type(self).__name__} says that it has {ability.name}, and does not")


def _variants(name: str) -> tuple[str, ...]:
    """What stands after a target's colon, between commas."""
    return tuple(variant.strip() for variant in name.partition(":")[2].split(","))


_OWN = ("cpu", "xla", "triton")
"""The families of this package, each in a module of `gcomp.targets` by its name."""


def _own(family: str) -> type[Engine]:
    return import_module(f"gcomp.targets.{family}").TARGET


@cache
def families() -> Mapping[str, type[Engine]]:
    """All families by name: those of this package, then those of others."""
    from importlib.metadata import entry_points  # a tenth of what loading a small model takes

    found = {family: _own(family) for family in _OWN}
    for entry in entry_points(group="gcomp.targets"):
        found.setdefault(entry.name, entry.load())
    return found


def known_targets() -> str:
    """Targets of all families, for messages."""
    return ", ".join(name for family in families().values() for name in family.samples)


@cache
def engine_named(name: str) -> Engine:
    """What runs the plans of a target. UsageError, with the names there are, for one that there is not."""
    family = name.partition(":")[0]
    found = _own(family) if family in _OWN else families().get(family)
    full = name if found is None else found.full_name(name)
    if found is None or ":" not in full:
        raise UsageError(f"there is no target {name[:80]!r}", fix=f"the targets are: {known_targets()}")
    return found(full)


def engine_of(plan: Plan) -> Engine:
    """What runs a plan. UnsupportedError where this gcomp has no such target."""
    try:
        return engine_named(plan.target)
    except UsageError:
        raise UnsupportedError(
            f"This gcomp does not run models for the target {plan.target[:80]!r}.",
            why=f"It runs those for: {known_targets()}.",
            fix="Compile the model for one of them.",
        ) from None


__all__ = ["Ability", "Engine", "engine_named", "engine_of", "families", "known_targets"]
