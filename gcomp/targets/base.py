"""A target: the passes, the lowering and the cost model that make a plan, and what runs it (`Engine`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gcomp.exactness import Numerics
from gcomp.runtime.engine import Ability, Engine, engine_named, families

if TYPE_CHECKING:
    from gcomp.analysis.accounts import Account
    from gcomp.ir.program import Program
    from gcomp.runtime.plan import Plan

Report = Callable[[str], object]
"""Is told what is being done, for people who wait."""


class Target(Engine):
    """What programs are compiled for.

    One object is one target, as `triton:sm_80,sm_90`. Importing its module imports nothing heavy: loading a model does
    that, too.
    """

    @property
    @abstractmethod
    def machine(self) -> str:
        """The machine (`gcomp.analysis.machines`) whose cost model fusion and `explain` use."""

    @abstractmethod
    def pipeline(self, memory_budget: int | None = None, numerics: Numerics = "standard") -> str:
        """The passes for this target, of a class of numerics; within a budget of bytes, kernels may run again.

        A budget is given only to a target that has `Ability.MEMORY_BUDGET`, other numerics to one with `NUMERICS`.
        """

    def get_ready(self) -> None:
        """Start what `lower` will need, while the model is imported and passes run."""

    @abstractmethod
    def lower(self, program: Program, *, report: Report, tuned: Path | None = None) -> Plan:
        """The plan of a program after the pipeline. `tuned` is a file of `gcomp tune`, given where there is `TUNING`.

        Raises UnsupportedError, which names the op and its place, for what the target cannot run.
        """

    def predicted(self, architecture: str, flops: int, moved: int, *, narrow: bool) -> float | None:
        from gcomp.analysis.machines import MACHINES

        machine = MACHINES.get(architecture)
        return None if machine is None else machine.seconds(flops, moved, narrow=narrow)

    def code_texts(self, program: Program) -> Mapping[str, str]:
        """Kernel name -> further code given to its compiler besides the plan's source; empty for most targets.

        `program` is one after the pipeline.
        """
        return {}

    def accounts(self, program: Program) -> Sequence[Account]:
        """How each launch of a program after the pipeline is computed, and why, in order; none where nobody says it."""
        return ()

    def join(self, plan: Plan, program: Program, aside: Plan, shown: Program) -> Plan:
        """The plan of a program, and beside it that of the program of what is shown (`Ability.LOOKING`)."""
        raise self._missing(Ability.LOOKING)


def target_named(name: str) -> Target:
    """The target of a name. UsageError, with the names there are, for one that there is not."""
    return cast(Target, engine_named(name))


def sample_targets() -> Mapping[str, Target]:
    """Targets of all families by name, for listings and tests."""
    return {name: target_named(name) for family in families().values() for name in family.samples}


__all__ = ["Ability", "Report", "Target", "sample_targets", "target_named"]
