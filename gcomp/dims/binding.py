"""Meeting actual sizes: solving for symbols, and the constraints that only they can decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from gcomp.dims.algebra import Dim, DimError, Size, evaluate
from gcomp.dims.functions import dmax, substitute, symbols_of
from gcomp.dims.ranges import Range, Ranges
from gcomp.dims.text import parse

ConstraintKind = Literal["eq", "le", "broadcast", "divides"]


_Entry = tuple[Size, int, str]


def bind(dims: Sequence[tuple[Size, int, str]], ranges: Ranges) -> dict[str, int]:
    """The values of all symbols in `dims`, a sequence of (formula, actual size, place).

    A formula gives a value once it is linear in its only unknown symbol. Every formula and every range is
    checked. Raises DimError naming the place, the formula, the size and the reason.
    """
    env: dict[str, int] = {}
    origin: dict[str, _Entry] = {}
    # Plain symbols first: a mismatch is then reported at the derived formula, not at the symbol itself.
    pending = sorted(dims, key=lambda entry: str(entry[0]) not in symbols_of(entry[0]))
    progress = True
    while progress:
        progress = False
        for entry in pending:
            solved = _solve(entry, env, origin)
            if solved is not None:
                name, env[name] = solved
                origin[name] = entry
                progress = True
    for name, value in env.items():
        _check_range(name, value, origin[name], ranges[name])
    for entry in dims:
        _check_formula(entry, env, origin)
    return env


def _solve(entry: _Entry, env: Mapping[str, int], origin: Mapping[str, _Entry]) -> tuple[str, int] | None:
    """The symbol that a formula determines and its value, if it is linear in the only symbol without one."""
    formula, actual, _ = entry
    unknown = symbols_of(formula) - env.keys()
    if len(unknown) != 1:
        return None
    (name,) = unknown
    try:
        partial = substitute(formula, env)
    except DimError:
        # Division by zero: the check of ranges or of this formula will report it.
        return None
    if isinstance(partial, int):
        return None
    (monomial, scale), *rest = partial.terms
    if [(atom.text, exponent) for atom, exponent in monomial] != [(name, 1)] or any(m for m, _ in rest):
        return None
    value, remainder = divmod(actual - sum(c for _, c in rest), scale)
    if remainder:
        given = _describe_given(symbols_of(formula) - unknown, env, origin)
        raise _mismatch(entry, f": no integer {name} gives that size{given}")
    return name, value


def _mismatch(entry: _Entry, reason: str, value: str = "") -> DimError:
    formula, actual, place = entry
    return DimError(f"{place}: expected {formula}{value}, got {actual}{reason}")


def _describe_given(names: frozenset[str], env: Mapping[str, int], origin: Mapping[str, _Entry]) -> str:
    known = [f"{name} = {env[name]} from {origin[name][2]}" for name in sorted(names)]
    return f" ({', '.join(known)})" if known else ""


def _check_range(name: str, value: int, entry: _Entry, allowed: Range) -> None:
    if value % allowed.multiple_of:
        raise _mismatch(entry, f": {name} = {value} is not a multiple of {allowed.multiple_of} (range {allowed})")
    if value not in allowed:
        raise _mismatch(entry, f": {name} = {value} is outside its range {allowed}")


def _check_formula(entry: _Entry, env: Mapping[str, int], origin: Mapping[str, _Entry]) -> None:
    formula, actual, _ = entry
    missing = sorted(symbols_of(formula) - env.keys())
    if missing:
        hint = "some input must have it as a dimension of its own"
        raise _mismatch(entry, f": cannot solve for {', '.join(missing)}; {hint}")
    try:
        expected = evaluate(formula, env)
    except DimError as error:
        raise _mismatch(entry, f": {error}") from None
    if expected != actual:
        value = f" = {expected}" if isinstance(formula, Dim) else ""
        raise _mismatch(entry, _describe_given(symbols_of(formula), env, origin), value)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A relation between two sizes that must hold at run time, at the place `where`.

    Kinds: "eq" lhs == rhs; "le" lhs <= rhs; "divides" rhs is a multiple of lhs; "broadcast" the sizes are
    equal or one of them is 1, as `broadcast_dim` needs.
    """

    kind: ConstraintKind
    lhs: Size
    rhs: Size
    where: str

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that decide it."""
        return symbols_of(self.lhs) | symbols_of(self.rhs)

    def check(self, env: Mapping[str, int]) -> str | None:
        """What is wrong under `env`, or None. Raises DimError if a size cannot be evaluated."""
        lhs, rhs = evaluate(self.lhs, env), evaluate(self.rhs, env)
        reason = _violation(self.kind, lhs, rhs)
        if reason is None and self.kind == "broadcast" and self._misses_empty(lhs, rhs):
            reason = "cannot broadcast, one being empty and the other 1, with"
        if reason is None:
            return None
        return f"{self.where}: {_show_value(self.lhs, lhs)} {reason} {_show_value(self.rhs, rhs)}"

    def _misses_empty(self, lhs: int, rhs: int) -> bool:
        return {lhs, rhs} == {0, 1} and isinstance(self.lhs, Dim) and isinstance(self.rhs, Dim)

    def to_json(self) -> dict[str, str | int]:
        return {
            "kind": self.kind,
            "lhs": size_to_json(self.lhs),
            "rhs": size_to_json(self.rhs),
            "where": self.where,
        }

    @staticmethod
    def from_json(value: object) -> Constraint:
        """The constraint that `to_json` wrote. Raises DimError for anything else."""
        if not isinstance(value, dict):
            raise DimError(f"a constraint must be an object, not {type(value).__name__}")
        fields = cast(dict[object, object], value)
        kind, where = fields.get("kind"), fields.get("where")
        if kind not in get_args(ConstraintKind) or not isinstance(where, str) or len(fields) != 4:
            raise DimError(f"bad constraint {fields!r:.200}")
        lhs, rhs = size_from_json(fields.get("lhs")), size_from_json(fields.get("rhs"))
        return Constraint(cast(ConstraintKind, kind), lhs, rhs, where)


def _violation(kind: ConstraintKind, lhs: int, rhs: int) -> str | None:
    match kind:
        case "eq":
            return None if lhs == rhs else "must equal"
        case "le":
            return None if lhs <= rhs else "must be at most"
        case "broadcast":
            return None if lhs == rhs or 1 in (lhs, rhs) else "must equal, or one of them be 1, to broadcast with"
        case "divides":
            return None if (rhs % lhs == 0 if lhs else rhs == 0) else "must divide"


def _show_value(size: Size, value: int) -> str:
    return f"{size} = {value}" if isinstance(size, Dim) else str(size)


def size_to_json(size: Size) -> int | str:
    """An int for a constant, the canonical text otherwise."""
    return str(size) if isinstance(size, Dim) else size


def size_from_json(value: object) -> Size:
    """The size that `size_to_json` wrote. Raises DimError for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise DimError(f"a size must be an integer or text, not {type(value).__name__}")
    return parse(value)


def broadcast_dim(a: Size, b: Size) -> tuple[Size, Literal["broadcast"] | None]:
    """The size of NumPy-style broadcasting of `a` with `b`, and the kind of constraint that makes it true.

    Raises DimError for two constants that do not broadcast. The result for two symbolic sizes is their
    maximum, which is wrong only for an empty dimension against 1; `Constraint.check` refuses that.
    """
    if a == b or b == 1:
        return a, None
    if a == 1:
        return b, None
    if isinstance(a, int) and isinstance(b, int):
        raise DimError(f"sizes {a} and {b} do not broadcast: they must be equal, or one of them 1")
    if isinstance(a, int) or isinstance(b, int):
        return (a if isinstance(a, int) else b), "broadcast"
    return dmax(a, b), "broadcast"
