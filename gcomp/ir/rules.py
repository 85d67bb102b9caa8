"""Rewrite rules as data: executed by the pattern driver, and read by generators, provers and documentation alike.

    x = Var("x")
    Rule(
        "transpose-of-transpose",
        lhs=Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
        rhs=Op(hlo.TransposeOp, x, permutation=Calc(lambda p, q: tuple(p[i] for i in q))),
    )

A left side is a term: `Var` matches any value, `Const` a constant, `Op` an op with the given operands, whose properties
match a literal or are captured by `Attr`. A right side is a term of the captured names, with properties computed by
`Calc`. A rule whose `where` does not hold of a match does not apply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gcomp.exactness import Exactness
from gcomp.ir.op import GraphOp


@dataclass(frozen=True)
class Var:
    """Any value; the same name twice is the same value."""

    name: str


@dataclass(frozen=True)
class Const:
    """On the left, an inline constant: a splat of `value` if given; `name` captures its array.

    On the right, a constant of the type of the value captured as `like`, filled with `value`.
    """

    name: str = ""
    value: Any = None
    like: str = ""


@dataclass(frozen=True)
class Attr:
    """Captures a property's plain Python value."""

    name: str


@dataclass(frozen=True)
class Calc:
    """A value computed from captured names: the function's parameters name what it needs."""

    function: Callable[..., Any]

    def __call__(self, captured: Mapping[str, Any]) -> Any:
        names = inspect.signature(self.function).parameters
        return self.function(**{n: captured[n] for n in names})


@dataclass(frozen=True, init=False)
class Op:
    """An op with operand terms and properties; `type` computes the result type where the op does not infer it.

    `commutes` lets a left side match with its two operands swapped.
    """

    op: type[GraphOp]
    operands: tuple[Term, ...]
    properties: Mapping[str, Any] = field(hash=False)
    type: Calc | None
    commutes: bool

    def __init__(
        self, op: type[GraphOp], *operands: Term, type: Calc | None = None, commutes: bool = False, **properties: Any
    ) -> None:
        for name, value in (("op", op), ("operands", operands), ("properties", properties), ("type", type),
                            ("commutes", commutes)):  # fmt: skip
            object.__setattr__(self, name, value)


Term: TypeAlias = Var | Const | Op


@dataclass(frozen=True)
class Rule:
    """`lhs` becomes `rhs` where `where` holds, within `exactness`. The name is unique and kebab-case."""

    name: str
    lhs: Op
    rhs: Term
    where: Calc | None = None
    exactness: Exactness = Exactness.E0
    doc: str = ""
