"""The outputs and their tangents, by forward mode: the tangents of inputs and weights `wrt` are inputs `t(name)`.

Where `wrt` is left out, all inputs of floats are meant; where `of` is, all outputs of floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.autodiff.programs import differentiate
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class ForwardMode(Pass):
    """Return the tangents of outputs too."""

    name: ClassVar[str] = "jvp"
    keeps_meaning: ClassVar[bool] = False

    of: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> bool:
        differentiate(program, self.of, self.wrt)
        return True
