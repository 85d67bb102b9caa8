"""Rules as people write them."""

from __future__ import annotations

from typing import Any

from gcomp.ir.rules import Attr, Calc, Const, Op, Term, Var


def term_text(term: Term) -> str:
    """A term as people write it: `transpose(transpose(x, permutation=p), permutation=q)`."""
    match term:
        case Var():
            return term.name
        case Const():
            return value_text(term.value) if term.value is not None else term.name or "constant"
        case Op():
            operands = [term_text(t) for t in term.operands]
            properties = [f"{name}={value_text(value)}" for name, value in term.properties.items()]
            properties += [f"others of {term.like}"] if term.like else []
            return f"{term.op.name.partition('.')[2]}({', '.join(operands + properties)})"


def value_text(value: Any) -> str:
    """A property, constant or condition of a rule: what it is, or the function that computes it and of what."""
    match value:
        case Attr():
            return value.name
        case Calc():
            name = getattr(value.function, "__name__", "<lambda>").strip("_")
            return f"{'computed' if name == '<lambda>' else name}({', '.join(value.needs)})"
        case _:
            return str(value)
