"""What torch knows of symbolic sizes: their ranges, and the guards under which it runs a graph.

A guard that says that two sizes are equal holds at every call of the graph, so that one may stand for the other: a
flattened image of `8 * (s // 2) ** 2` elements is one of 72 where torch compared it with a matrix of 72 rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from gcomp import dims
from gcomp.dims import Constraint, Dim, Range, Ranges, Size, narrowed
from gcomp.errors import UnsupportedError

WHERE = "a guard of torch"


class Guards:
    """The ranges of symbols, and the relations among them, of the environment that fake tensors have their sizes from.

    Relations that gcomp's sizes do not express are left out: they are torch's to check.
    """

    def __init__(self, environment: Any, size: Any) -> None:
        """`size` makes sizes of torch's expressions, and raises UnsupportedError for those that there are not."""
        self._environment = environment
        self.relations: list[tuple[str, Size, Size]] = []
        if environment is not None:
            # Sizes of fake values are in the symbols that torch has kept, and guards in those that it began with.
            for guard in environment.guards:
                self.relations += _relation(environment.replace(guard.expr), size)
        self._zeros = [z for kind, a, b in self.relations if kind == "eq" and isinstance(z := a - b, Dim)]
        self._defined: dict[str, Size] = {}
        self._reduced: dict[Size, Size] = {}

    @property
    def is_trivial(self) -> bool:
        """Whether no sizes are known to be equal."""
        return not self._zeros and not self._defined

    def define(self, size: Any, found: Size) -> None:
        """Say what a size is that torch has a symbol for, and nothing more."""
        if isinstance(size, Dim) and str(size) in dims.symbols_of(size) and str(size) not in dims.symbols_of(found):
            self._defined[str(size)] = found
            self._reduced.clear()

    def reduce(self, size: Size) -> Size:
        """The size in fewer symbols, by what is known to be equal."""
        if isinstance(size, int) or self.is_trivial:
            return size
        if size not in self._reduced:
            self._reduced[size] = self._compute(size)
        return self._reduced[size]

    def _compute(self, size: Size) -> Size:
        try:
            size = dims.substitute(size, self._defined)
            for zero in self._zeros:
                size = dims.reduce_modulo(size, zero)
        except dims.DimLimitError:
            pass  # It stays as it is, which is right, too.
        return size

    def range_of(self, symbol: str) -> Range:
        """The range of a symbol."""
        return self._ranges.get(symbol, Range(0))

    @property
    def _ranges(self) -> dict[str, Range]:
        known: dict[Any, Any] = {} if self._environment is None else self._environment.var_to_range
        return {symbol.name: range_of(bounds) for symbol, bounds in known.items()}

    def narrow(self, ranges: Ranges) -> Ranges:
        """The ranges of symbols without ends at which torch does not run the graph."""
        return narrowed(ranges, self.constraints(ranges))

    def constraints(self, symbols: Iterable[str]) -> list[Constraint]:
        """The relations among these symbols."""
        known = frozenset(symbols)
        found = [Constraint(kind, a, b, WHERE) for kind, a, b in self.relations if kind in ("eq", "le")]
        return [constraint for constraint in found if constraint.symbols <= known]


NOTHING = Guards(None, None)
_CURRENT: ContextVar[Guards] = ContextVar("guards", default=NOTHING)


@contextmanager
def under(guards: Guards) -> Generator[None]:
    """Inside the `with`, sizes are made in fewer symbols."""
    token = _CURRENT.set(guards)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Guards:
    """What is known where a graph is imported."""
    return _CURRENT.get()


_RELATIONS = {"Equality": ("eq", 0), "LessThan": ("le", 0), "StrictLessThan": ("le", 1)}
_TURNED = {"GreaterThan": ("le", 0), "StrictGreaterThan": ("le", 1)}


def _relation(expression: Any, size: Any) -> list[tuple[str, Size, Size]]:
    """What an expression of sympy says of two sizes, or of several in turn; nothing where gcomp cannot say it."""
    kind = type(expression).__name__
    if kind == "And":
        return [found for part in expression.args for found in _relation(part, size)]
    if kind not in _RELATIONS and kind not in _TURNED:
        return []
    try:
        left, right = (size(part) for part in expression.args)
    except (UnsupportedError, dims.DimError):
        return []
    if kind in _TURNED:
        left, right = right, left
    name, more = {**_RELATIONS, **_TURNED}[kind]
    return [(name, left + more, right)]


def environment_of(values: Sequence[Any]) -> Any:
    """The environment (torch's `ShapeEnv`) of the first symbolic size among fake values; None where all are fixed."""
    for value in values:
        for size in getattr(value, "shape", None) or [value]:
            if hasattr(size, "node") and hasattr(size.node, "shape_env"):
                return size.node.shape_env
    return None


_LEAST = -(1 << 62)
"""Less than any Python int that stands for a size counted from an end."""


@lru_cache(256)
def range_of(values: Any) -> Range:
    """The range of a symbol, from torch's bounds."""
    low, high = (int(bound) if bound.is_Integer else None for bound in (values.lower, values.upper))
    if high is not None and high < 0:
        return Range(_LEAST if low is None else low, high)
    return Range(max(0, low or 0), high)
