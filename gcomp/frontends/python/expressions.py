"""Expressions of rewritten code in which Python asks for a truth."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gcomp.dims import Dim
from gcomp.errors import UsageError
from gcomp.frontends.python.variables import is_traced
from gcomp.ops.arithmetic import equal, less, logical_and, logical_not, logical_or, where
from gcomp.ops.control import cond
from gcomp.tensors.site import where_here
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import OPEN


def and_(*parts: Callable[[], Any]) -> Any:
    """`a and b`."""
    return _join_by(parts, logical_and, lambda x, y: where(x, y, x), goes_on=True)


def or_(*parts: Callable[[], Any]) -> Any:
    """`a or b`."""
    return _join_by(parts, logical_or, lambda x, y: where(x, x, y), goes_on=False)


def _join_by(
    parts: Sequence[Callable[[], Any]], logical: Callable[[Any, Any], Any], chosen: Callable[[Any, Any], Any],
    *, goes_on: bool,
) -> Any:  # fmt: skip
    value = parts[0]()
    for part in parts[1:]:
        if is_traced(value):
            _truth(value)
            other = part()
            booleans = value.element == "i1" and (isinstance(other, bool) or getattr(other, "element", "") == "i1")
            value = (logical if booleans else chosen)(value, other)
        elif bool(value) is goes_on:
            value = part()
        else:
            break
    return value


def _truth(value: Tensor) -> None:
    """Refuse a tensor that has no one truth."""
    if value.ndim:
        raise UsageError(
            f"a tensor of shape {value.shape} has no truth value", where=where_here(),
            fix="reduce it (`any`, `all`), or combine element by element: ops.logical_and, `&`",
        )  # fmt: skip


def not_(value: Any) -> Any:
    """`not a`."""
    if not is_traced(value):
        return not value
    _truth(value)
    return logical_not(value)


def either(test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """`a if test else b`."""
    if not is_traced(test):
        return then() if test else other()
    return cond(test, then, other)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


def compare(left: Any, *rest: Any) -> Any:
    """`a < b`, `a < b < c`, ...: names of comparisons and the operands on their right."""
    found: Any = True
    for name, operand in zip(rest[::2], rest[1::2], strict=True):
        right = operand()
        result = _of_sizes(name, left, right) if isinstance(left, Dim) or isinstance(right, Dim) else None
        if result is None:
            result = _COMPARISONS[name](left, right)
        found = result if found is True else logical_and(found, result) if is_traced(found) else found and result
        if not is_traced(found) and not isinstance(found, Tensor) and len(rest) > 2 and not found:
            return found
        left = right
    return found


def _of_sizes(name: str, left: Any, right: Any) -> Any:
    """A comparison with a symbolic size: known where the difference is, else traced."""
    if name in ("Is", "IsNot", "In", "NotIn") or not all(isinstance(v, int | Dim) for v in (left, right)):
        return _of_tensors(name, left, right) if isinstance(left, Tensor) or isinstance(right, Tensor) else None
    difference = left - right
    if isinstance(difference, int):
        return _COMPARISONS[name](difference, 0)
    if not OPEN.traces:
        raise UsageError(f"the sizes {left} and {right} cannot be compared before they are known", where=where_here())
    return _of_tensors(name, left, right)


def _of_tensors(name: str, left: Any, right: Any) -> Any:
    if name in ("Eq", "NotEq"):
        same = equal(left, right)
        return same if name == "Eq" else logical_not(same)
    if name in ("Lt", "GtE"):
        below = less(left, right)
        return below if name == "Lt" else logical_not(below)
    above = less(right, left)
    return above if name == "Gt" else logical_not(above)
