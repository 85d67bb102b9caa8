"""A pass is held to what a backend makes of the names of composites, too, and not only to what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.dialects.builtin import DictionaryAttr

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import TRUSTED, attribute_of, by_name, composite, trust
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.judging import Reference, judge
from gcomp.passes.references import sets_for
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program

IMPOSTOR = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.composite "gcomp.softmax" %x {composite_attributes = {axis = 1 : i64}, decomposition = @body}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func private @body(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.negate %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
"""A composite of a known name that holds something else: it means what it holds."""


@dataclass(frozen=True)
class OnComposites(Pass):
    """Trusts every composite, or gives it another axis; what they hold stays as it is."""

    name: ClassVar[str] = "on-composites"
    exactness: ClassVar[Exactness] = Exactness.E2
    axis: int | None = None

    def run(self, program: Program, context: PassContext) -> bool:
        changed = [self.change(op) for op in program.ops() if isinstance(op, hlo.CompositeOp)]
        return any(changed)

    def change(self, op: hlo.CompositeOp) -> bool:
        if self.axis is None:
            return trust(op)
        before = op.attributes_of()["axis"]
        op.properties["composite_attributes"] = DictionaryAttr({"axis": attribute_of(self.axis)})
        return before != self.axis


def softmax() -> Program:
    """A trusted softmax."""
    program = Program.empty([("x", tensor((2, 3), "f32"))])
    results = composite(Builder(program), "gcomp.softmax", list(program.block.args), {"axis": 1})
    program.finish([("y", results[0])])
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    trust(op)
    return program


def judged(step: Pass, program: Program):
    return judge(step, Reference(program, sets_for(step, program, 0)))


def test_trust_in_an_impostor_changes_what_a_program_means() -> None:
    program = Program.parse(IMPOSTOR)
    step, after = OnComposites(), program.clone()
    assert step.run(after, PassContext())
    inputs = inputs_for(program, 0, "edges")
    # What the composite holds is the same.
    assert interpret(after, inputs)[0].tobytes() == interpret(program, inputs)[0].tobytes()
    failure = judged(step, program)
    assert failure is not None
    assert failure.kind == "meaning"
    assert "what its name says" in failure.message


@pytest.mark.parametrize(("axis", "kind"), [(0, "meaning"), (7, "invalid")])
def test_attributes_without_their_decomposition_are_missed(axis: int, kind: str) -> None:
    failure = judged(OnComposites(axis), softmax())
    assert failure is not None
    assert failure.kind == kind


def test_trust_in_what_is_canonical_changes_nothing() -> None:
    program = softmax()
    assert by_name(program) is None
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    op.attributes.clear()
    assert judged(OnComposites(), program) is None


def test_generated_programs_hold_trusted_composites_that_are_what_their_names_say() -> None:
    programs = [seeded_program(number, 12) for number in range(150)]
    trusted = [p for p in programs if any(TRUSTED in op.attributes for op in p.ops())]
    assert trusted
    assert all(by_name(program) is None for program in trusted)
