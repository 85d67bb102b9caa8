"""What a pass is, and what it is given."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from xdsl.utils.arg_spec import ArgSpecConvertible

from gcomp.dims import Size
from gcomp.exactness import Exactness
from gcomp.ir.program import Program


@dataclass
class PassContext:
    """State of one pipeline run, shared by its passes."""

    bisect_limit: int | None = None
    """Stop applying rewrites after this many (None: never)."""
    applications: int = 0
    """How many rewrites were applied so far."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """Applications per rule name."""
    flops: int = 0
    """What evaluating ops has cost so far, for budgets that hold for the whole run."""
    last: str = ""
    """The last rewrite: rule and op, for reports."""
    classes: dict[str, Exactness] = field(default_factory=dict[str, Exactness])
    """The exactness of the rewrites that the pattern driver applied, by name."""
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    """The rewrites (`gcomp.passes.rewriting.Rewrite`) that the pattern driver was given, by name."""
    only: Exactness | None = None
    """The pattern driver leaves out rewrites of weaker classes than this one (None: it applies all)."""
    failed: tuple[str, str] | None = None
    """The rewrite, and the op it was tried on, in which an error arose."""
    looked_at: dict[Size, None] | None = None
    """Formulas of sizes whose sign passes asked for (`gcomp.dims.comparisons`); None: they are not noted."""
    watchers: list[Callable[[str, str], None]] = field(default_factory=list[Callable[[str, str], None]])
    """Called with rule name and op location before each rewrite."""

    def with_same_limits(self) -> PassContext:
        """A context for another run like the one that comes: the same limits, of which as much is used."""
        return PassContext(
            bisect_limit=self.bisect_limit, applications=self.applications, flops=self.flops, only=self.only
        )

    @property
    def exhausted(self) -> bool:
        """Whether the bisect limit is reached."""
        return self.bisect_limit is not None and self.applications >= self.bisect_limit

    def takes(self, exactness: Exactness) -> bool:
        """Whether rewrites of a class are applied."""
        order = list(Exactness)
        return self.only is None or order.index(exactness) <= order.index(self.only)

    def allow(self, rule: str, where: str) -> bool:
        """Count one rewrite, unless the bisect limit is reached; False means: do not apply it."""
        if self.exhausted:
            return False
        self.applications += 1
        self.counts[rule] += 1
        self.last = f"{rule} on {where}"
        for watch in self.watchers:
            watch(rule, where)
        return True


LEVELS = ("graph", "kernel", "buffer")
"""Levels of the IR, from the first to the last that a program is on."""


@dataclass(frozen=True)
class Pass(ArgSpecConvertible):
    """A transformation of a program in place. Options are dataclass fields of the subclass (`fuse{max-ops=32}`).

    `name` is kebab-case; `level` is that of `LEVELS` it works on; a `required` pass runs in every pipeline of its
    target; `exactness` is the weakest class of what it does. A pass is idempotent: on its own result it changes
    nothing, so that a manager may skip it there.
    """

    name: ClassVar[str]
    level: ClassVar[str] = "graph"
    required: ClassVar[bool] = False
    exactness: ClassVar[Exactness] = Exactness.E0
    keeps_meaning: ClassVar[bool] = True
    """False of a transformation to another program: what is returned changes, and running it again changes it again."""
    places_values: ClassVar[bool] = False
    """Whether it may say how inputs and outputs lie on devices; no other pass changes that."""

    @abstractmethod
    def run(self, program: Program, context: PassContext) -> bool:
        """Transform the program; say whether anything changed."""

    def broken_law(self, program: Program) -> str | None:
        """What is not so, in a program that the pass has left, though the pass's first line says it; None otherwise.

        Override it where a pass promises more than to keep the meaning: who judges the pass holds it to that too.
        """
        return None
