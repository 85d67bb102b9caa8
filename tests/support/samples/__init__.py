"""Sample programs for every op of StableHLO and CHLO, and for every form that an op has.

`sample` makes a module around one op: its name, its type as `operands -> results` (a tensor type without `tensor<>`),
its properties and its regions. Programs that need more are written out in `modules`. They are to be read, printed and
verified; those of `tests.support.cases` are to be run.
"""

from __future__ import annotations

from tests.support.samples.modules import MODULES
from tests.support.samples.ops import WITHOUT_JAXLIB, sample, samples

__all__ = ["MODULES", "WITHOUT_JAXLIB", "sample", "samples"]
