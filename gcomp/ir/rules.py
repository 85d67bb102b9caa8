"""Rewrite rules as data: executed by the pattern driver, and read by generators, provers and documentation alike.

    x = Var("x")
    Rule(
        "transpose-of-transpose",
        lhs=Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
        rhs=Op(hlo.TransposeOp, x, permutation=Calc(lambda p, q: tuple(p[i] for i in q))),
    )

A left side is a term: `Var` matches any value, `Const` a constant, `Op` an op with the given operands, whose properties
match a literal or are captured by `Attr`. A right side is a term of the captured names, with properties computed by
`Calc`. A rule whose `where` does not hold of a match does not apply. Nor does one whose `profit` does not hold, but it
says only where applying a rule pays, and the rule must be right without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.records import record


@record
class Var:
    """Any value; the same name twice is the same value."""

    name: str


@record
class Const:
    """On the left, an inline constant: a splat of `value` if given; `name` captures its array.

    On the right, a constant of the type of the value captured as `like`, filled with `value`.
    """

    name: str = ""
    value: Any = None
    like: str = ""


@record
class Attr:
    """Captures a property's plain Python value."""

    name: str


@record
class Calc:
    """A value computed from captured names: those in `of`, or else those that the function's parameters have."""

    function: Callable[..., Any]
    of: tuple[str, ...] = ()

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The names of what the function is given, in order."""
        return self.of or tuple(inspect.signature(self.function).parameters)

    def __call__(self, captured: Mapping[str, Any]) -> Any:
        return self.function(*[captured[n] for n in self.needs])


@dataclass(frozen=True, init=False)
class Op:
    """An op with operand terms and properties; `type` computes the result type where the op does not infer it.

    `commutes` lets a left side match with its two operands swapped. `like` names a captured value (or `root`): a right
    side takes the properties that it does not name, and copies of the regions, from the op that computes it.
    """

    op: type[GraphOp]
    operands: tuple[Term, ...]
    properties: Mapping[str, Any] = field(hash=False)
    type: Calc | None
    commutes: bool
    like: str

    def __init__(
        self, op: type[GraphOp], *operands: Term, type: Calc | None = None, commutes: bool = False, like: str = "",
        **properties: Any,
    ) -> None:  # fmt: skip
        for name, value in (("op", op), ("operands", operands), ("properties", properties), ("type", type),
                            ("commutes", commutes), ("like", like)):  # fmt: skip
            object.__setattr__(self, name, value)

    @cached_property
    def makers(self) -> tuple[frozenset[str], ...]:
        """For each operand of a left side the names of the ops that can compute it, none where any value will do."""
        return tuple([_makers_of(operand) for operand in self.operands])


Term: TypeAlias = Var | Const | Op


_CONSTANTS = frozenset({hlo.ConstantOp.name, hlo.BroadcastInDimOp.name})
"""What an inline constant, a splat of a symbolic shape too, is computed by."""


def _makers_of(term: Term) -> frozenset[str]:
    match term:
        case Var():
            return frozenset()
        case Const():
            return _CONSTANTS
        case Op():
            return frozenset({term.op.name})


@record
class Rule:
    """`lhs` becomes `rhs` where `where` holds, within `exactness`. The name is unique and kebab-case.

    `profit` says where that pays. It may ask what `where` must not, such as who computes a value, and who else uses it:
    the meaning does not depend on it, and proofs leave it out. `family` names the table that made a rule for each of
    many ops.
    """

    name: str
    lhs: Op
    rhs: Term
    where: Calc | None = None
    exactness: Exactness = Exactness.E0
    doc: str = ""
    profit: Calc | None = None
    family: str = ""

    def __post_init__(self) -> None:
        for word, condition in (("where", self.where), ("profit", self.profit)):
            if not isinstance(condition, Calc | None):  # pyright: ignore[reportUnnecessaryIsInstance] - user code may not be typed
                raise TypeError(f"{word} of the rule {self.name} is {condition!r}; a condition is Calc(function)")
