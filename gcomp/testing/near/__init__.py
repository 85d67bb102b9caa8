"""Near misses: programs that a pass changes, with something changed that its rewrites look at.

Mistakes sit in conditions, and a program that was made for a rewrite fulfils all of them. So one thing about it is
changed (or two or three), at the ops that the pass touched and at their neighbours: an attribute by one, another order
of dimensions, another operand of the same type, another element type, a size to 0, 1 or a symbol, a second user, a
region around, a constant by one unit in the last place. What is valid then is judged as any program. None of this knows
the pass: what it touched is observed.
"""

from __future__ import annotations

from gcomp.testing.near.misses import near_miss
from gcomp.testing.near.sites import touch

__all__ = ["near_miss", "touch"]
