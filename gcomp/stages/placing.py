"""What a program says of devices: only some targets run a program on several."""

from __future__ import annotations

from gcomp.ir.program import Program
from gcomp.ir.sdy import is_sharded
from gcomp.runtime.engine import Ability
from gcomp.stages.base import Stage
from gcomp.targets.base import Target


class Placing(Stage):
    """Refuses programs for several devices where the target has one."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def before_passes(self, program: Program) -> None:
        """Raises UnsupportedError where a program has meshes or shardings, and the target runs on one device."""
        if is_sharded(program.module):
            self.target.require(Ability.MESH)
