"""The SMT solver, for the modules of this package that need it.

z3 is an optional dependency: whoever imports this module without it is told which extra to install. z3 has no type
information, so its terms are `Any` here and wherever they go; `Term` says so.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from gcomp.errors import UsageError

try:
    import z3 as _z3
except ModuleNotFoundError:
    raise UsageError("proofs need the solver z3, which is not installed", fix="pip install 'gcomp[prove]'") from None

Term: TypeAlias = Any
"""A z3 expression."""

Index: TypeAlias = "tuple[Term, ...]"
"""One integer term for each dimension."""

z3: Any = _z3
