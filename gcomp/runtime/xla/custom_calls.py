"""The custom-call targets that a program may name. Everything else is refused, foreign Python callbacks above all."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OF_HOST = re.compile(
    r"lapack_[sdcz]\w+_ffi"  # jaxlib's dense linear algebra
    r"|tridiagonal_solve_perturbed_ffi"
    r"|gcomp_print"  # gcomp.runtime.xla.prints: the one call back, which writes a line
)
ALLOWED = re.compile(
    _OF_HOST.pattern
    + r"|mhlo\.(topk|erf|tan|asin|acos|atan|sinh|cosh|asinh|acosh|atanh)"  # ops that JAX writes as calls
    r"|Sharding|ApproxTopK"
)

_NAMED = re.compile(r'custom_call\s+@(?:"([^"]*)"|([\w$.-]+))|call_target_name\s*=\s*"([^"]*)"')


def is_of_host(target: str) -> bool:
    """Whether a target is there on processors alone."""
    return _OF_HOST.fullmatch(target) is not None


def refused_targets(targets: Iterable[str]) -> list[str]:
    """Those of the targets that are not allowed, in order and once each."""
    return [target for target in dict.fromkeys(targets) if not ALLOWED.fullmatch(target)]


def targets_in(text: str) -> list[str]:
    """The targets that a program's text or template names in a usual way: enough for a first, early look."""
    return [a or b or c for a, b, c in _NAMED.findall(text)]
