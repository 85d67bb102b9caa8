"""What a campaign found and reached: programs, ops by element type, rewrites that applied, passes that changed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from xdsl.ir import Operation

from gcomp.ir.types import dtype_text, is_tensor
from gcomp.passes.base import PassContext

Key = tuple[str, ...]
"""What makes a failure the same bug as another."""


class Undefined(Exception):
    """A program says nothing here: it has no meaning to hold to, or a meaning that leaves too much open."""


@dataclass(frozen=True)
class Found:
    """A failure: the program's number, what makes it the same bug as another, and what to say of it."""

    number: int
    key: Key
    message: str
    others: tuple[int, ...] = ()
    """Some more programs that show it: one may become smaller than another."""


def _counter() -> Counter[str]:
    return Counter()


@dataclass
class Coverage:
    """Counts. `ops` counts programs by `op of element type`; `refused` those that the reference gave no answer for.

    `known` counts programs by the rewrites that were tried on them, `rules` those in which a rewrite applied, and
    `applications` how often it did; `changed` those in which a pass applied any (or, where it counts none, changed
    something).

    Where a campaign is about lines of source, `looked` counts the programs that were looked at, `reached` those that
    ran one of the lines.

    Of a target: `unsupported` counts the programs that it does not take by reason, `deviations` those where it differs
    in a known way by the ways' names.
    """

    programs: int = 0
    refused: int = 0
    looked: int = 0
    reached: int = 0
    unsupported: Counter[str] = field(default_factory=_counter)
    deviations: Counter[str] = field(default_factory=_counter)
    ops: Counter[str] = field(default_factory=_counter)
    known: Counter[str] = field(default_factory=_counter)
    rules: Counter[str] = field(default_factory=_counter)
    applications: Counter[str] = field(default_factory=_counter)
    passes: Counter[str] = field(default_factory=_counter)
    changed: Counter[str] = field(default_factory=_counter)

    def saw(self, ops: Iterable[Operation]) -> None:
        """Count a program by its ops, each once."""
        self.programs += 1
        self.saw_ops(ops)

    def saw_ops(self, ops: Iterable[Operation]) -> None:
        """Count ops of a program that is counted already."""
        found: set[str] = set()
        for op in ops:
            for value in op.results or op.operands[:1]:
                if is_tensor(value.type):
                    found.add(f"{op.name} {dtype_text(value.type)}")
        self.ops.update(found)

    @property
    def judged(self) -> int:
        """How many programs could be held to something."""
        return self.programs - self.refused - self.unsupported.total()

    def ran(self, name: str, changed: bool, context: PassContext) -> None:
        """Count a pass that ran, and the rewrites it applied."""
        self.passes[name] += 1
        # A pass that has rewrites may also have dropped what was dead.
        self.changed[name] += bool(context.applications) or (changed and not context.known)
        self.known.update(dict.fromkeys((*context.known, *context.counts), 1))
        self.rules.update(dict.fromkeys(context.counts, 1))
        self.applications.update(context.counts)

    def seldom(self, least: int = 30) -> dict[str, int]:
        """The rewrites that were applied less often, with how often they were."""
        counts = {name: self.applications[name] for name in self.known}
        return {name: n for name, n in sorted(counts.items(), key=itemgetter(1)) if n < least}

    def add(self, other: Coverage) -> None:
        """Add another's counts."""
        self.programs += other.programs
        self.refused += other.refused
        self.looked += other.looked
        self.reached += other.reached
        for name in ("unsupported", "deviations", "ops", "known", "rules", "applications", "passes", "changed"):
            getattr(self, name).update(getattr(other, name))
