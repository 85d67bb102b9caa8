"""Padded symbols: each is the size of what inputs hold, and the input `length(symbol)` says how much of it is data.

The real elements of an output, those within its size at the true lengths, are what they were: ops that mix elements
along a padded dimension get padding that changes nothing, and sizes that are read as numbers are the true ones.
docs/guides/variable_lengths.md shows their use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcomp.errors import UsageError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.padding.programs import pad_program
from gcomp.passes.base import Pass, PassContext


@dataclass(frozen=True)
class PadDims(Pass):
    """Let symbols be padded."""

    name: ClassVar[str] = "pad-dims"
    keeps_meaning: ClassVar[bool] = False
    exactness: ClassVar[Exactness] = Exactness.E2
    """Sums of products have more terms, all zero, and so may be added in another order; all else is bit-identical."""

    dims: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> bool:
        if not self.dims:
            raise UsageError("it is not said which dimensions to pad", fix="pad-dims{dims=seq}")
        pad_program(program, self.dims)
        return True
