"""What a pass changes of a program alone, and programs that its own code leads to."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.rewriting import Pattern
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.planned import runner
from gcomp.testing.fuzz.guided import reached_programs
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.mentioned import named_elements
from gcomp.testing.generate.passes import program_for
from gcomp.testing.near import touch
from gcomp.testing.near.excerpt import changed_excerpt, excerpt
from tests.verdicts.conditions import NEGATIVE, READ_BESIDE
from tests.verdicts.wrong import CANCEL, SCATTER_ONE, pass_of

DEEP = """
func.func @main(%x: tensor<?x3xf32, ["n", "3"]>, %y: tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]> {
  %0 = stablehlo.tanh %x : tensor<?x3xf32, ["n", "3"]>
  %1 = stablehlo.sine %y : tensor<?x3xf32, ["n", "3"]>
  %2 = stablehlo.subtract %1, %0 : tensor<?x3xf32, ["n", "3"]>
  %3 = stablehlo.add %0, %2 : tensor<?x3xf32, ["n", "3"]>
  %4 = stablehlo.cosine %3 : tensor<?x3xf32, ["n", "3"]>
  return %4 : tensor<?x3xf32, ["n", "3"]>
}"""


def names(program: Program) -> list[str]:
    return [op.name for op in program.block.ops][:-1]


def place(program: Program, kind: type[Operation]) -> int:
    return next(i for i, op in enumerate(program.ops()) if isinstance(op, kind))


def test_what_a_pass_changes_alone_is_given_its_operands() -> None:
    step, program = CANCEL(), Program.parse(DEEP)
    found = changed_excerpt(step, program, touch(step, program).places)
    assert found is not None
    assert names(found[0]) == ["stablehlo.subtract", "stablehlo.add"]
    assert [port.shape for port in found[0].inputs()] == [port.shape for port in program.inputs()]
    assert found[1].applied and "stablehlo.tanh" in names(program)


def test_an_excerpt_keeps_constants_and_what_others_read_and_names_sizes() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.maximum %x, %0 : tensor<?xf32, ["n"]>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}""")
    cut = excerpt(program, [place(program, hlo.BroadcastInDimOp)])
    assert cut is not None
    assert names(cut) == ["stablehlo.constant", "stablehlo.broadcast_in_dim"]
    assert [port.name for port in cut.inputs()] == ["size_n"]
    inner = place(program, hlo.ReduceOp) + 1
    body = excerpt(program, [inner])
    assert body is not None and names(body) == ["stablehlo.add"]
    whole = excerpt(program, [inner, *(i for i, op in enumerate(program.ops()) if op.parent is program.block)])
    assert whole is not None and whole.op_count() == program.op_count()
    given = sample_inputs(program)
    assert runner(whole).run(given)[0] == runner(program).run(given)[0]


def test_the_code_of_a_pass_leads_to_what_it_changes() -> None:
    """Of programs that are made without looking, one in a hundred or fewer is changed by these."""
    for step in (SCATTER_ONE(), NEGATIVE(), READ_BESIDE()):
        assert any(one.touched.applied for seed in range(4) for one in reached_programs(step, seed)), step.name


class Rare(Pattern):
    """It asks for an element type that few programs have."""

    name = "rare-element"
    roots = (hlo.OrOp,)

    def rewrite(self, op: hlo.OrOp, b: Builder) -> Sequence[SSAValue] | None:
        return [op.lhs] if dtype_text(op.lhs.type) == "f8E5M2" else None


def test_programs_have_the_element_types_that_a_pass_names() -> None:
    step = pass_of(Rare())()
    assert named_elements(type(step), (Rare(),)) == ("f8E5M2",)
    kept = [program_for(step, Seeded(seed), 2, seed) for seed in range(60)]
    found = [all("f8E5M2" in str(port.dtype) for port in program.inputs()) for program in kept]
    assert sum(found) > 4
