"""Stages of compiling: what is done to the program before and after passes, to the plan, and to the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcomp.ir.program import Program
    from gcomp.passes.manager import Instrument
    from gcomp.runtime.model import Model
    from gcomp.runtime.plan import Plan


class Stage:
    """A thing that a user asked for. Stages are run in one order at each of these points; most do something at two."""

    def before_passes(self, program: Program) -> None:
        """Look at the program as it was imported, and change it."""

    def instruments(self) -> Sequence[Instrument]:
        """What watches the passes."""
        return ()

    def after_passes(self, program: Program) -> None:
        """Look at the program as it is lowered."""

    def on_plan(self, plan: Plan, program: Program) -> Plan:
        """The plan with what the stage adds to it."""
        return plan

    def on_model(self, model: Model) -> None:
        """Set what the model has from this stage."""
