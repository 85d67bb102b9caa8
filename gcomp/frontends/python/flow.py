"""What rewritten Python calls (see `rewriting`): control flow that runs as Python's where it can, and is built where a
traced value decides."""

from __future__ import annotations

from gcomp.frontends.python.conditionals import if_
from gcomp.frontends.python.expressions import and_, call, compare, either, not_, or_
from gcomp.frontends.python.loops import for_, range_, while_

__all__ = ["and_", "call", "compare", "either", "for_", "if_", "not_", "or_", "range_", "while_"]
