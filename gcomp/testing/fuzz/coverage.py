"""What a campaign has reached: programs, ops by element type, rewrites that fired, passes that changed something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation

from gcomp.ir.types import dtype_text, is_tensor


def _counter() -> Counter[str]:
    return Counter()


@dataclass
class Coverage:
    """Counts. `ops` counts programs by `op of element type`; `refused` those that the reference gave no answer for.

    Of a target: `unsupported` counts the programs that it does not take by reason, `deviations` those where it differs
    in a known way by the ways' names.
    """

    programs: int = 0
    refused: int = 0
    unsupported: Counter[str] = field(default_factory=_counter)
    deviations: Counter[str] = field(default_factory=_counter)
    ops: Counter[str] = field(default_factory=_counter)
    rules: Counter[str] = field(default_factory=_counter)
    passes: Counter[str] = field(default_factory=_counter)
    changed: Counter[str] = field(default_factory=_counter)

    def saw(self, ops: Iterable[Operation]) -> None:
        """Count a program by its ops, each once."""
        self.programs += 1
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

    def ran(self, name: str, changed: bool, rules: Mapping[str, int]) -> None:
        """Count a pass that ran, and the rewrites it applied."""
        self.passes[name] += 1
        self.changed[name] += changed
        self.rules.update(dict.fromkeys(rules, 1))

    def add(self, other: Coverage) -> None:
        """Add another's counts."""
        self.programs += other.programs
        self.refused += other.refused
        for name in ("unsupported", "deviations", "ops", "rules", "passes", "changed"):
            getattr(self, name).update(getattr(other, name))
