"""How much a rewrite may change results, and a target's kernels: the classes of docs/guides/semantics.md."""

from __future__ import annotations

from enum import Enum
from typing import Literal

Numerics = Literal["exact", "standard", "fast"]
"""How exact a target's kernels are, where it has classes for it."""
DEFAULT_NUMERICS: Numerics = "standard"
"""The class where nothing is said."""


class Exactness(Enum):
    """What a rewrite promises about the values it changes."""

    E0 = "bit-identical"
    E1 = "identical except the sign of zero and the payload of NaN"
    E2 = "reassociated: error at most twice the original's, and inside the bound"
    E3 = "value-changing: NaN and infinities where the original has them, and only when the user asks"
