"""The gradient of output `of` for inputs and weights `wrt`, by reverse mode: what the program returns in its place.

Where `wrt` is left out, all inputs of floats are meant. With `value`, the outputs that there were come first. An output
that is no real scalar asks for its cotangent, as the input `ct(of)`. With `save=least`, what is cheap is computed again
where that saves memory between the way forward and the way back; with `save=all`, it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.analysis.work import Nominal
from gcomp.autodiff.programs import differentiate_back
from gcomp.autodiff.saving import saves_least
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class ReverseMode(Pass):
    """Return the gradient of an output."""

    name: ClassVar[str] = "vjp"
    keeps_meaning: ClassVar[bool] = False

    of: str = ""
    wrt: tuple[str, ...] = ()
    value: bool = False
    save: str = "least"

    def run(self, program: Program, context: PassContext) -> bool:
        sizes = Nominal(program.ranges).bytes if saves_least(self.save) else None
        differentiate_back(program, self.of, self.wrt, value=self.value, bytes_of=sizes)
        return True
