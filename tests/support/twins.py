"""Wrong twins: a rule with one mistake, which the prover must refute.

A prover that says yes to everything would be worthless and hard to notice. So each rule is changed in every way that
someone might get it wrong (a condition dropped, operands swapped, a constant off, a class of exactness too strict, two
arguments of a function exchanged, another op), and each change must be refuted. A change that makes another correct
rule is no twin; it must stand in `EQUIVALENT`, with the reason, so that nothing passes for correct by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.ir.types import shape_of


@dataclass(frozen=True)
class Twin:
    """A changed rule: `change` is the name of what was done to it."""

    original: str
    change: str
    rule: Rule

    @property
    def name(self) -> str:
        """Unique among all twins."""
        return f"{self.original}/{self.change}"


Mutator = Callable[[Rule], Iterator[tuple[str, Rule]]]


def _two_operands(rule: Rule) -> Iterator[tuple[str, Rule]]:
    yield "two operands", replace(rule, lhs=rebuilt(rule.lhs, operands=(*rule.lhs.operands, Var("other"))))


def _all_equal(root: SSAValue) -> bool:
    return len(set(shape_of(root))) < 2


def _where_equal(where: Calc | None) -> Calc:
    if where is None:
        return Calc(_all_equal)

    def both(root: SSAValue, *values: Any) -> bool:
        return _all_equal(root) and where.function(*values)

    return Calc(both, ("root", *where.needs))


def _on_equal_sizes(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The other changes where all sizes are equal, so that no type gives the mistake away."""
    for mutate in (_without_condition, _missing_step, _other_functions, _more_general):
        for change, changed in mutate(rule):
            yield f"{change}, all sizes equal", replace(changed, where=_where_equal(changed.where))


BY_NAME: dict[str, Mutator] = {
    "concatenate-one": _two_operands,
    "transpose-of-transpose": _on_equal_sizes,
    "transpose-identity": _on_equal_sizes,
    "transpose-of-broadcast": _on_equal_sizes,
    "broadcast-of-broadcast": _on_equal_sizes,
    "sink-transpose-subtract": _on_equal_sizes,
    "sink-transpose-select-view-other-other": _on_equal_sizes,
    "sink-transpose-broadcast": _on_equal_sizes,
    "sink-transpose-reduce": _on_equal_sizes,
}
"""Rule -> a mistake that no general change makes."""


def twins(rule: Rule) -> list[Twin]:
    """Every change of a rule, those that are known to be right left out."""
    found: dict[str, Rule] = {}
    for mutate in (*MUTATORS, *([BY_NAME[rule.name]] if rule.name in BY_NAME else [])):
        for change, changed in mutate(rule):
            found.setdefault(change, replace(changed, name=f"{rule.name}/{change}"))
    known = {change for name, change in EQUIVALENT if name == rule.name}
    return [Twin(rule.name, change, changed) for change, changed in found.items() if change not in known]


# ---- what can go wrong -------------------------------------------------------------------------------------------


def _without_condition(rule: Rule) -> Iterator[tuple[str, Rule]]:
    if rule.where is not None:
        yield "condition dropped", replace(rule, where=None)


def _too_strict(rule: Rule) -> Iterator[tuple[str, Rule]]:
    if rule.exactness is Exactness.E1:
        yield "claims every bit", replace(rule, exactness=Exactness.E0)


def _other_result(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Another variable of the left side where the right side has one."""
    names = sorted({term.name for term in terms(rule.lhs) if isinstance(term, Var)})
    if isinstance(rule.rhs, Var):
        for name in names:
            if name != rule.rhs.name:
                yield f"result is {name}", replace(rule, rhs=Var(name))
    for term in ops_of(rule.rhs):
        if len(term.operands) > 1 and term.op not in _COMMUTING:
            turned = rebuilt(term, operands=term.operands[::-1])
            yield f"operands of {_short(term.op)} swapped", replace(rule, rhs=swapped(rule.rhs, term, turned))


_COMMUTING = (hlo.AddOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp, hlo.AndOp, hlo.OrOp, hlo.XorOp)


def _short(op: type[GraphOp]) -> str:
    return op.name.partition(".")[2]


def _more_general(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """A value that must be the same twice may be two values; a property that must be so may be anything."""
    seen: set[str] = set()

    def renamed(term: Term) -> Term:
        if isinstance(term, Var) and term.name in seen:
            return Var("other")
        if isinstance(term, Var):
            seen.add(term.name)
        return rebuilt(term, operands=tuple(map(renamed, term.operands))) if isinstance(term, Op) else term

    changed = renamed(rule.lhs)
    if isinstance(changed, Op) and changed != rule.lhs:
        yield "different operands", replace(rule, lhs=changed)
    yield from _unlike_properties(rule)
    for name, value in rule.lhs.properties.items():
        if not isinstance(value, Attr):
            others = {n: v for n, v in rule.lhs.properties.items() if n != name}
            yield f"any {name}", replace(rule, lhs=rebuilt(rule.lhs, properties=others))


def _unlike_properties(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """A property that must be the same twice may be two."""
    seen: set[str] = set()
    for term in ops_of(rule.lhs):
        for name, value in term.properties.items():
            if isinstance(value, Attr) and value.name in seen:
                changed = rebuilt(term, properties={**term.properties, name: Attr("another")})
                yield f"another {name}", replace(rule, lhs=swapped(rule.lhs, term, changed))
            if isinstance(value, Attr):
                seen.add(value.name)


def _other_constant(rule: Rule) -> Iterator[tuple[str, Rule]]:
    for side, term in (("left", rule.lhs), ("right", rule.rhs)):
        for constant in (t for t in terms(term) if isinstance(t, Const) and t.value is not None):
            if isinstance(constant.value, Calc):
                continue
            for value in _neighbours(constant.value):
                changed = swapped(term, constant, replace(constant, value=value))
                other = replace(rule, lhs=changed) if side == "left" else replace(rule, rhs=changed)
                yield f"{value} for {constant.value} on the {side}", other


def _neighbours(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if value == 0:
        return [1, 0.0 if str(value).startswith("-") else -0.0] if isinstance(value, float) else [1, -1]
    return [0, value + 1, -value]


def _missing_step(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """One op less on the right, or on the left."""
    if isinstance(rule.rhs, Op):
        yield "last step left out", replace(rule, rhs=rule.rhs.operands[0])
    if isinstance(rule.lhs.operands[0], Op) and isinstance(rule.lhs.operands[0].operands[0], Var):
        shorter = rebuilt(rule.lhs, operands=(rule.lhs.operands[0].operands[0], *rule.lhs.operands[1:]))
        if _captured(shorter) == _captured(rule.lhs):
            yield "first step left out", replace(rule, lhs=shorter)


_SIMILAR: dict[type[GraphOp], type[GraphOp]] = {
    hlo.AddOp: hlo.SubtractOp, hlo.SubtractOp: hlo.AddOp, hlo.MultiplyOp: hlo.MaximumOp, hlo.DivideOp: hlo.RemainderOp,
    hlo.AndOp: hlo.OrOp, hlo.OrOp: hlo.AndOp, hlo.XorOp: hlo.OrOp, hlo.MaximumOp: hlo.AddOp, hlo.MinimumOp: hlo.AddOp,
    hlo.NegateOp: hlo.AbsOp, hlo.NotOp: hlo.NegateOp, hlo.ReverseOp: hlo.TransposeOp,
}  # fmt: skip
"""Op -> one that it is easily taken for."""


def _other_op(rule: Rule) -> Iterator[tuple[str, Rule]]:
    if (similar := _SIMILAR.get(rule.lhs.op)) is not None and not rule.lhs.properties:

        def changed(term: Term) -> Term:
            if not isinstance(term, Op):
                return term
            operands = tuple(map(changed, term.operands))
            return rebuilt(term, op=similar if term.op is rule.lhs.op else term.op, operands=operands)

        left = changed(rule.lhs)
        if isinstance(left, Op):
            yield f"{_short(similar)} for {_short(rule.lhs.op)}", replace(rule, lhs=left)


def _other_functions(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """What a property is computed by gets its arguments exchanged, or its result turned round or inverted."""
    for term in ops_of(rule.rhs):
        for name, value in term.properties.items():
            where = name if term is rule.rhs else f"inner {name}"
            for change, function in _functions(name, value):
                changed = rebuilt(term, properties={**term.properties, name: function})
                yield f"{where} {change}", replace(rule, rhs=swapped(rule.rhs, term, changed))


def _functions(name: str, value: Any) -> Iterator[tuple[str, Calc]]:
    if isinstance(value, Calc):
        if len(names := value.needs) > 1:
            yield "of exchanged arguments", Calc(value.function, (names[1], names[0], *names[2:]))
            yield "is its first argument", Calc(lambda *values: values[0], names)
        yield "turned round", Calc(lambda *values: tuple(reversed(value.function(*values))), names)
        if name == "permutation":
            yield "inverted", Calc(lambda *values: _inverse(value.function(*values)), names)
    if isinstance(value, Attr) and name == "permutation":
        yield "inverted", Calc(_inverse, (value.name,))


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(permutation.index(i) for i in range(len(permutation)))


MUTATORS: tuple[Mutator, ...] = (
    _without_condition, _too_strict, _other_result, _more_general, _other_constant, _missing_step, _other_op,
    _other_functions,
)  # fmt: skip

_SET = "a fold goes through its dimensions in the operand's order, however they are listed"
_EQUAL = "whether two numbers are equal does not depend on their order"
_ZERO = "x + 0 is x but for the sign of zero, which E1 does not compare"

EQUIVALENT: dict[tuple[str, str], str] = {
    ("and-idempotent", "or for and"): "it is or-idempotent",
    ("or-idempotent", "and for or"): "it is and-idempotent",
    ("add-minus-zero", "0.0 for -0.0 on the left"): _ZERO,
    ("subtract-zero", "add for subtract"): _ZERO,
    ("reshape-of-reshape", "first step left out"): "it changes nothing",
    ("slice-of-slice", "strides of exchanged arguments"): "they are multiplied",
    **{(f"pairs-of-{name}", "operands of compare swapped"): _EQUAL for name in ("compare-eq", "compare-ne")},
    ("sink-transpose-reduce", "inner dimensions turned round"): _SET,
    ("sink-transpose-reduce", "inner dimensions turned round, all sizes equal"): _SET,
}
"""(rule, change) -> why the changed rule is right."""


# ---- terms -------------------------------------------------------------------------------------------------------


def terms(term: Term) -> Iterator[Term]:
    """A term and all below it."""
    yield term
    for operand in term.operands if isinstance(term, Op) else ():
        yield from terms(operand)


def ops_of(term: Term) -> Iterator[Op]:
    """The op terms among these."""
    return (t for t in terms(term) if isinstance(t, Op))


def _captured(term: Term) -> set[str]:
    names = {t.name for t in terms(term) if isinstance(t, Var | Const)}
    return names | {v.name for t in ops_of(term) for v in t.properties.values() if isinstance(v, Attr)}


def rebuilt(term: Op, **changes: Any) -> Op:
    """An op term with some of its fields changed."""
    fields = {n: getattr(term, n) for n in ("op", "operands", "properties", "type", "commutes", "like")} | changes
    return Op(fields["op"], *fields["operands"], type=fields["type"], commutes=fields["commutes"],
              like=fields["like"], **fields["properties"])  # fmt: skip


def swapped(term: Any, old: Term, new: Term) -> Any:
    """A term in which `old` is `new`."""
    if term is old:
        return new
    return rebuilt(term, operands=tuple(swapped(t, old, new) for t in term.operands)) if isinstance(term, Op) else term
