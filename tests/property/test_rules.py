"""Every rule, on programs made from its own left side: it applies, and keeps the meaning within its own class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Const, Op, Rule, Term, Var
from gcomp.ir.types import element_of, element_type, rank_of, shape_of, tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.checking import MeaningCheck
from gcomp.passes.manager import CheckEach, CheckUnchanged, PassManager, VerifyEach
from gcomp.passes.rewriting import apply_rewrites
from tests.property.program_strategies import Draw, edge_inputs, finished
from tools.rules_table import own_passes, rewrites_of

RULES = {rule.name: rule for cls in own_passes().values() for rule in rewrites_of(cls)[0]}


def only(rule: Rule) -> Pass:
    """The pass that applies one rule."""

    @dataclass(frozen=True)
    class Only(Pass):
        name = rule.name
        exactness = rule.exactness

        def run(self, program: Program, context: PassContext) -> bool:
            return apply_rewrites(program, (rule,), context)

    return Only()


class LeftSide:
    """Builds a left side: variables are inputs, constants splats, captured properties drawn at random."""

    def __init__(self, draw: Draw, element: str) -> None:
        shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        kinds = {"x": element, "y": element, "p": "i1"}
        self.program = Program.empty([(name, tensor(shape, kind)) for name, kind in kinds.items()])
        self.values = dict(zip(kinds, self.program.block.args, strict=True))
        self.draw, self.b = draw, Builder(self.program)

    def build(self, term: Term, element: str) -> SSAValue:
        match term:
            case Var():
                return self.values[term.name]
            case Const():
                return self.b.full(shape_of(self.values["x"]), term.value, element)
            case Op():
                return self._build_op(term, element)

    def _build_op(self, term: Op, element: str) -> SSAValue:
        kinds = ["i1" if term.op is hlo.SelectOp and i == 0 else element for i in range(len(term.operands))]
        operands = [self.build(t, kind) for t, kind in zip(term.operands, kinds, strict=True)]
        if term.commutes and self.draw(st.booleans()):
            operands.reverse()
        properties = {k: self._property(k, v, operands[0]) for k, v in term.properties.items()}
        if term.op is hlo.ConcatenateOp:
            properties["dimension"] = 0
        types = None if term.op.INFERS else (self._type(term, operands[0], properties),)
        return self.b.emit(term.op, *operands, types=types, **properties)

    def _property(self, name: str, wanted: Any, x: SSAValue) -> Any:
        rank = rank_of(x)
        if not isinstance(wanted, Attr):
            return wanted
        if name == "permutation":
            return self.draw(st.permutations(range(rank)))
        if name == "broadcast_dimensions":
            first = self.draw(st.integers(0, 1))
            return list(range(first, first + rank))
        return [d for d in range(rank) if self.draw(st.booleans())]

    def _type(self, term: Op, x: SSAValue, properties: dict[str, Any]) -> Any:
        shape = list(shape_of(x))
        if term.op is hlo.ReshapeOp:
            shape = self.draw(st.sampled_from([shape, shape[::-1], [1, *shape]]))
        if term.op is hlo.BroadcastInDimOp:
            shape = [2] * properties["broadcast_dimensions"][0] + shape
        return tensor(shape, element_of(x))


def ops_of(term: Term) -> Iterator[Op]:
    """All op terms in a term."""
    if isinstance(term, Op):
        yield term
        for operand in term.operands:
            yield from ops_of(operand)


def elements_of(rule: Rule) -> list[str]:
    """The element types that every op of a left side takes."""
    texts = ("f32", "i32", "i1")
    return [t for t in texts if all(element_type(t) in o.op.ELEMENTS or o.op is hlo.SelectOp for o in ops_of(rule.lhs))]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_applies_and_keeps_the_meaning(rule: Rule) -> None:
    applied = 0

    @settings(max_examples=40, deadline=None)
    @given(data=st.data(), element=st.sampled_from(elements_of(rule)))
    def check(data: st.DataObject, element: str) -> None:
        nonlocal applied
        left = LeftSide(data.draw, element)
        program, context = finished(left.program, [left.build(rule.lhs, element)]), PassContext()
        instruments = [CheckUnchanged(), VerifyEach(), CheckEach(MeaningCheck(inputs=edge_inputs))]
        PassManager([only(rule)], instruments).run(program, context)
        applied += context.counts[rule.name]

    check()
    assert applied, "the rule never applied to its own left side"
