"""Each condition of each rule, dropped or made weaker: the prover refutes what is left, or the condition is needless.

    python -m tests.mutants.conditions [RULE] [--seconds 20] [--write]

Conditions are what a left side asks (a value or an attribute that is the same twice, a property, a constant), and what
`where` asks: each part of a conjunction, each `all` that could be `any`, each comparison that could admit more. Where a
rule pays (`profit`) is none. A rule without a condition that is needless would apply more often:
docs/generated/conditions.md lists them. The exit code is 1 where something is neither refuted nor proved, and nobody
said why.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import inspect
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from rich.console import Console
from rich.progress import track

from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.testing.prove import Proof, Status, prove
from gcomp.testing.prove.catalog import own_rules
from tests.support.twins import rebuilt, terms

PAGE = Path(__file__).resolve().parents[2] / "docs" / "generated" / "conditions.md"


@dataclass(frozen=True)
class Weakened:
    """A rule with one condition less: what was dropped, or made weaker."""

    original: Rule
    condition: str
    rule: Rule


def weakened(rule: Rule) -> list[Weakened]:
    """Each condition of a rule, one at a time."""
    found: dict[str, Rule] = {}
    for condition, changed in (*_left_sides(rule), *_wheres(rule)):
        found.setdefault(condition, replace(changed, name=f"{rule.name}/{condition}", profit=None))
    return [Weakened(rule, condition, changed) for condition, changed in found.items()]


# ---- left sides -----------------------------------------------------------------------------------------------------


def _left_sides(rule: Rule) -> Iterator[tuple[str, Rule]]:
    seen: dict[str, int] = {}
    used = _used(rule)
    for place, term in enumerate(terms(rule.lhs)):
        for condition, changed in _weaker(term, seen, used):
            lhs = _with(rule.lhs, place, changed)
            if isinstance(lhs, Op):
                yield condition, replace(rule, lhs=lhs)


def _weaker(term: Term, seen: dict[str, int], used: set[str]) -> Iterator[tuple[str, Term]]:
    """The ways in which one term may ask less; `seen` counts the names before it."""
    if isinstance(term, Var | Const) and term.name:
        seen[term.name] = count = seen.get(term.name, 0) + 1
        if count > 1:
            yield f"{term.name} is the same value (place {count})", replace(term, name="another")
    if isinstance(term, Const):
        if term.value is not None:
            yield f"the constant is {term.value}", replace(term, value=None)
        if not term.name or term.name not in used:
            yield f"there is a constant{'' if term.value is None else f' {term.value}'}", Var("any")
    for name, value in term.properties.items() if isinstance(term, Op) else ():
        others = {n: v for n, v in term.properties.items() if n != name}
        if not isinstance(value, Attr):
            yield f"{name} is {value}", rebuilt(cast(Op, term), properties=others)
            continue
        seen[value.name] = count = seen.get(value.name, 0) + 1
        if count > 1:
            yield f"{name} is {value.name} too", rebuilt(cast(Op, term), properties={**others, name: Attr("another")})


def _used(rule: Rule) -> set[str]:
    """The names of which something needs what was captured as a constant or an attribute."""
    calcs = [rule.where] if rule.where is not None else []
    for term in terms(rule.rhs):
        if isinstance(term, Const) and isinstance(term.value, Calc):
            calcs.append(term.value)
        if isinstance(term, Op):
            calcs += [value for value in (*term.properties.values(), term.type) if isinstance(value, Calc)]
    return {name for calc in calcs for name in calc.needs}


def _with(term: Term, place: int, new: Term) -> Term:
    """A term with another one at a place, counted as `terms` goes."""
    if place == 0:
        return new
    assert isinstance(term, Op)
    place -= 1
    operands = list(term.operands)
    for i, operand in enumerate(operands):
        count = sum(1 for _ in terms(operand))
        if place < count:
            operands[i] = _with(operand, place, new)
            break
        place -= count
    return rebuilt(term, operands=tuple(operands))


# ---- where ----------------------------------------------------------------------------------------------------------


def _wheres(rule: Rule) -> Iterator[tuple[str, Rule]]:
    if rule.where is None:
        return
    yield "where", replace(rule, where=None)
    function = inspect.unwrap(rule.where.function)
    if not isinstance(function, FunctionType):
        return
    for condition, changed in _functions(function):
        yield f"where: {condition}", replace(rule, where=Calc(changed, rule.where.needs))


def _functions(function: FunctionType) -> Iterator[tuple[str, FunctionType]]:
    """The function of a condition with one part of it weaker."""
    source = textwrap.dedent(inspect.getsource(function))
    tree = ast.parse(source)
    definition = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if definition is None:
        return
    count = sum(1 for _ in ast.walk(definition))
    for place in range(count):
        copy = ast.parse(ast.unparse(definition))
        node = list(ast.walk(copy.body[0]))[place] if place < sum(1 for _ in ast.walk(copy.body[0])) else None
        for condition, change in _changes(node):
            fresh = ast.parse(ast.unparse(definition))
            change(list(ast.walk(fresh.body[0]))[place])
            yield condition, _compiled(function, fresh)


def _changes(node: ast.AST | None) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for i, part in enumerate(node.values):
            yield f"{ast.unparse(part)}", lambda n, i=i: n.values.pop(i)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "all":
        yield f"any for {ast.unparse(node)}", lambda n: setattr(n.func, "id", "any")
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _ADMITS:
        more = _ADMITS[type(node.ops[0])]
        yield f"{more.__name__} for {ast.unparse(node)}", lambda n: n.ops.__setitem__(0, more())


_ADMITS: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.Gt: ast.GtE}
"""Comparison -> one that admits more. An equality that admits more is one that is dropped."""


def _compiled(function: FunctionType, tree: ast.Module) -> FunctionType:
    free = function.__code__.co_freevars
    text = ast.unparse(tree)
    if free:
        text = f"def outer({', '.join(free)}):\n{textwrap.indent(text, '    ')}\n    return {function.__name__}\n"
    code = compile(text, f"<weakened {function.__qualname__}>", "exec", __future__.annotations.compiler_flag)
    names: dict[str, Any] = {}
    exec(code, function.__globals__, names)  # noqa: S102 - that is the point
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    made = names["outer"](*cells) if free else names[function.__name__]
    return cast(FunctionType, made)


# ---- all ------------------------------------------------------------------------------------------------------------

NEEDLESS: dict[tuple[str, str], str] = {
    ("transpose-of-unit-dims", "where: not _identity(p)"): "transpose-identity has it, and leaves out the reshape",
    ("", "where: is_tensor(type)"): "what is no tensor has no element type to look at: nothing is missed",
}
"""(rule, or none for all, and condition) -> why it is asked for, though the rule is right without it."""


def why_asked(one: Weakened) -> str | None:
    """Why a rule asks for what it does not need; None where nobody said."""
    return NEEDLESS.get((one.original.name, one.condition)) or NEEDLESS.get(("", one.condition))


Found = list[tuple[Weakened, Proof]]


def run(rules: Sequence[Rule], seconds: float) -> Iterator[tuple[Weakened, Proof]]:
    """Each condition with what the prover says of the rule without it."""
    for rule in rules:
        for one in weakened(rule):
            yield one, prove(one.rule, seconds)


def open_ends(found: Found) -> Found:
    """What is neither refuted nor known to be needless."""
    left = [(one, proof) for one, proof in found if proof.status is not Status.REFUTED]
    return [(one, proof) for one, proof in left if why_asked(one) is None]


def _family(rule: Rule) -> str:
    return rule.family or rule.name


def main() -> int:
    """Weaken all, print what is not refuted, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rule", nargs="?", default="", help="only rules whose names contain this")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the processor, for each (20)")
    parser.add_argument("--write", action="store_true", help="write docs/generated/conditions.md")
    options = parser.parse_args()
    rules = [rule for rule in own_rules() if options.rule in rule.name]
    total, started = sum(len(weakened(rule)) for rule in rules), time.process_time()
    found: Found = []
    for one, proof in track(run(rules, options.seconds), "conditions", total, console=Console(stderr=True)):
        found.append((one, proof))
        if proof.status is not Status.REFUTED:
            print(f"{one.rule.name}: {proof.status.value}, {proof.how}", flush=True)  # noqa: T201
    refuted = sum(proof.status is Status.REFUTED for _, proof in found)
    print(f"{refuted} of {len(found)} refuted, {len(open_ends(found))} open")  # noqa: T201
    if options.write:
        PAGE.write_text("\n".join(_page(found, time.process_time() - started)) + "\n", "utf-8")
    return 1 if open_ends(found) else 0


def _page(found: Found, seconds: float) -> Iterator[str]:
    refuted = [(one, proof) for one, proof in found if proof.status is Status.REFUTED]
    confirmed = sum(proof.confirmed for _, proof in refuted)
    yield f"""\
# Conditions of rules

Generated by `python -m tests.mutants.conditions --write`; do not edit.

Does each rule ask for what it needs, and for no more? Every condition of every rule (a value or an attribute that must
be the same twice, a property, a constant, and each part of `where`) is dropped or made weaker, one at a time, and the
prover ([proofs.md](proofs.md)) is asked about what is left. If it refutes that, the condition is needed, and the prover
would have caught the mistake. If it proves that, the condition is needless, and a rewrite is being missed.

**{len(refuted)} of {len(found)} are refuted**, {confirmed} of them confirmed by the reference interpreter, in
{seconds:.0f} seconds.

## Not refuted
"""
    left = [(one, proof) for one, proof in found if proof.status is not Status.REFUTED]
    rows = [(one.original.name, one.condition, proof.status.value, why_asked(one) or "") for one, proof in left]
    yield from _table(("rule", "without the condition", "is", "why it is asked for"), rows)
    yield "\n## Refuted\n\nOf the rules of a table, the first.\n"
    shown: dict[tuple[str, str], tuple[str, ...]] = {}
    for one, proof in refuted:
        text = (proof.counterexample or "").replace("\n", "; ")
        shown.setdefault((_family(one.original), one.condition), (_family(one.original), one.condition, text))
    yield from _table(("rule", "without the condition", "counterexample"), [*shown.values()])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        yield "None."
        return
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    sys.exit(main())
