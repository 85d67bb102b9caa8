"""The reducer: what shows a failure becomes a few ops that show the same one, whatever the program is made of."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from xdsl.ir import Operation, SSAValue

from gcomp.errors import GcompError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite, is_canonical
from gcomp.ir.program import Program
from gcomp.ir.rules import Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, shape_of, tensor
from gcomp.passes.base import PassContext
from gcomp.passes.graph.dce import DeadCodeElimination
from gcomp.passes.raising.raise_norms import RaiseNorms
from gcomp.passes.rewriting import constant_value
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.testing.check import check_pass
from gcomp.testing.oracles import OracleFailure
from gcomp.testing.reduce import constant_count, op_count, reduce_program
from gcomp.testing.reduce.predicates import TargetCheck, TargetFailure, fails_alike, keeps_failure
from gcomp.testing.reduce.record import carrier, record_values, recorded_inputs
from gcomp.testing.reduce.signature import set_outputs
from tests.unit.testing.wrong_passes import WRONG, program_of, wrong

x, y = Var("x"), Var("y")


def has(*names: str) -> Callable[[Program], bool]:
    """Whether a program has ops of all these names."""
    return lambda program: {f"stablehlo.{n}" for n in names} <= {op.name for op in program.ops()}


def names(program: Program) -> list[str]:
    return [op.name.partition(".")[2] for op in program.block.ops if not op.name.endswith(".return")]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_passes_are_reduced_to_a_few_ops(name: str) -> None:
    step, _ = WRONG[name]
    program = program_of(name)
    failure = check_pass(step, program)
    assert failure is not None and 15 <= op_count(program) <= 30
    started = time.process_time()
    small = reduce_program(program, keeps_failure(step, failure))
    assert op_count(small) <= 3
    assert time.process_time() - started < 20
    again = check_pass(step, Program.parse(small.text()))
    assert again is not None and again.fingerprint() == failure.fingerprint(), "the text alone shows the same bug"


def test_reduction_is_deterministic_and_leaves_the_program_alone() -> None:
    step, _ = WRONG["max and min swapped"]
    program = program_of("max and min swapped")
    text, failure = program.text(), check_pass(step, program)
    assert failure is not None
    first, second = (reduce_program(program, keeps_failure(step, failure)).text() for _ in range(2))
    assert first == second and program.text() == text


def test_a_failure_does_not_slip_to_another() -> None:
    """Two bugs in one pass: the one that was found first is kept, also where the other would be smaller."""
    big = Rule("big", Op(hlo.MaximumOp, Op(hlo.MinimumOp, x, y), x), Op(hlo.MinimumOp, x, y))
    small = Rule("small", Op(hlo.AbsOp, x), x)
    step = wrong("two", big, small)
    program = program_of("max and min swapped")
    b = Builder(program)
    del b
    found = check_pass(wrong("two", big), parsed(MINMAX))
    assert found is not None and found.rule == "big"
    reduced = reduce_program(parsed(MINMAX), keeps_failure(step, found))
    assert names(reduced) == ["minimum", "maximum"]


def parsed(text: str) -> Program:
    return Program.parse(text)


MINMAX = """
func.func @main(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.minimum %x, %y : tensor<3x5xf32>
  %1 = stablehlo.maximum %0, %x : tensor<3x5xf32>
  %2 = stablehlo.abs %1 : tensor<3x5xf32>
  %3 = stablehlo.tanh %2 : tensor<3x5xf32>
  return %3 : tensor<3x5xf32>
}
"""


# ---- what a program may be made of ----

NESTED = """
func.func @main(%p: tensor<i1>, %n: tensor<i32>, %x: tensor<6x4xf32>, %y: tensor<6x4xf32>)
    -> (tensor<6x4xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %a = stablehlo.add %x, %y : tensor<6x4xf32>
  %c = "stablehlo.if"(%p) ({
    %t = stablehlo.tanh %a : tensor<6x4xf32>
    %u = "stablehlo.case"(%n) ({
      %v = stablehlo.cosine %t : tensor<6x4xf32>
      stablehlo.return %v : tensor<6x4xf32>
    }, {
      %v = stablehlo.sine %t : tensor<6x4xf32>
      %w = stablehlo.abs %v : tensor<6x4xf32>
      stablehlo.return %w : tensor<6x4xf32>
    }) : (tensor<i32>) -> tensor<6x4xf32>
    stablehlo.return %u : tensor<6x4xf32>
  }, {
    stablehlo.return %a : tensor<6x4xf32>
  }) : (tensor<i1>) -> tensor<6x4xf32>
  %r:2 = stablehlo.while(%i = %zero, %s = %c) : tensor<i32>, tensor<6x4xf32>
  cond {
    %k = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %k : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = func.call @f(%s) : (tensor<6x4xf32>) -> tensor<6x4xf32>
    stablehlo.return %j, %d : tensor<i32>, tensor<6x4xf32>
  }
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.reduce(%r#1 init: %init) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<6x4xf32>, tensor<f32>) -> tensor<f32>
  return %r#1, %e : tensor<6x4xf32>, tensor<f32>
}
func.func private @f(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = stablehlo.exponential %x : tensor<6x4xf32>
  %1 = stablehlo.logistic %0 : tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
"""


@pytest.mark.parametrize("wanted", ["tanh", "sine", "exponential", "logistic", "compare", "add"])
def test_what_stands_in_regions_and_functions_is_brought_out(wanted: str) -> None:
    small = reduce_program(parsed(NESTED), has(wanted))
    assert names(small) == [wanted] if wanted != "compare" else op_count(small) <= 3
    assert not list(small.callees())


def test_control_flow_that_matters_stays() -> None:
    small = reduce_program(parsed(NESTED), has("while", "logistic"))
    assert "stablehlo.while" in small.text() and op_count(small) <= 5


def test_ops_on_constants_become_constants() -> None:
    program = parsed("""
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<5.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.add %x, %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}""")
    sums = "stablehlo.add"
    small = reduce_program(
        program, lambda p: any(op.name == sums and constant_value(op.operands[1]) is not None for op in p.ops())
    )
    assert names(small) == ["constant", "add"] and op_count(small) == 1 and constant_count(small) == 1


def test_ops_that_are_the_same_become_one() -> None:
    """Where what is looked for needs both uses: one nearer value of the type does not do."""
    program = parsed("""func.func @main(%x: tensor<2xi8>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.convert %x : (tensor<2xi8>) -> tensor<2xf32>
  %1 = stablehlo.multiply %0, %y : tensor<2xf32>
  %2 = stablehlo.convert %x : (tensor<2xi8>) -> tensor<2xf32>
  %3 = stablehlo.divide %1, %2 : tensor<2xf32>
  return %3 : tensor<2xf32>
}""")

    def wanted(candidate: Program) -> bool:
        divisions = [op for op in candidate.block.ops if isinstance(op, hlo.DivideOp)]
        return any(
            isinstance(op.lhs.owner, hlo.MultiplyOp) and isinstance(op.rhs.owner, hlo.ConvertOp) for op in divisions
        ) and any(isinstance(op.lhs.owner, hlo.ConvertOp) for op in candidate.ops() if isinstance(op, hlo.MultiplyOp))

    assert names(reduce_program(program, wanted)) == ["convert", "multiply", "divide"]


def test_what_must_be_computed_from_narrow_integers_may_be_a_constant() -> None:
    program = parsed("""func.func @main(%x: tensor<2xi8>, %y: tensor<2xi8>) -> tensor<2xi32> {
  %0 = stablehlo.convert %x : (tensor<2xi8>) -> tensor<2xi32>
  %1 = stablehlo.convert %y : (tensor<2xi8>) -> tensor<2xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<2xi32>
  return %2 : tensor<2xi32>
}""")

    def known(value: SSAValue) -> bool:
        return isinstance(value.owner, hlo.ConvertOp | hlo.ConstantOp)

    small = reduce_program(
        program, lambda p: any(known(op.lhs) and known(op.rhs) for op in p.ops() if isinstance(op, hlo.SubtractOp))
    )
    assert op_count(small) == 1 and constant_count(small) >= 1


def test_a_composite_with_the_decomposition_of_its_name_is_one_step() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.composite "gcomp.NAME" %x {decomposition = @f, composite_attributes = {axis = 1 : i64}}
    : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func private @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.negate %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
    assert op_count(parsed(text.replace("NAME", "softmax"))) == 2, "what it does is not what its name says"
    program = Program.empty([("x", tensor((2, 3), "f32"))])
    program.finish([("y", composite(Builder(program), "gcomp.softmax", [*program.block.args], {"axis": 1})[0])])
    assert op_count(program) == 1


def test_a_composite_stays_what_its_name_stands_for() -> None:
    """A case with another's decomposition says nothing of programs that people have."""
    program = Program.empty([("x", tensor((2, 3), "f32"))])
    program.finish([("y", composite(Builder(program), "gcomp.softmax", [*program.block.args], {"axis": 1})[0])])

    def has_composite(candidate: Program) -> bool:
        return any(isinstance(op, hlo.CompositeOp) for op in candidate.ops())

    small = reduce_program(program, has_composite)
    (op,) = [op for op in small.ops() if isinstance(op, hlo.CompositeOp)]
    assert is_canonical(small, op) and op_count(small) == 1


def test_a_kernel_is_the_steps_in_it_and_one_where_there_are_none() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = kernel.launch loop "constant" (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
    %1 = stablehlo.constant dense<0.0> : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }
  %2 = kernel.launch loop "two" (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
    %3 = stablehlo.negate %a : tensor<2xf32>
    %4 = stablehlo.abs %3 : tensor<2xf32>
    stablehlo.return %4 : tensor<2xf32>
  }
  return %0, %2 : tensor<2xf32>, tensor<2xf32>
}"""
    assert op_count(parsed(text)) == 3


def test_a_reduction_that_applies_one_op_is_one_step() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %i: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce(%x init: %i) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.OP %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }
  return %0 : tensor<2xf32>
}"""
    assert op_count(parsed(text.replace("OP", "add"))) == 1
    assert op_count(parsed(text.replace("OP", "subtract"))) == 2, "it is written with a body"


def test_what_the_pass_made_before_may_be_there_from_the_start() -> None:
    source = parsed("""
func.func @main(%x: tensor<4x8xf32>, %s: tensor<8xf32>) -> tensor<4x8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<8.0> : tensor<4x1xf32>
  %e = stablehlo.constant dense<1.0e-5> : tensor<4x1xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.reshape %1 : (tensor<4xf32>) -> tensor<4x1xf32>
  %3 = stablehlo.divide %2, %n : tensor<4x1xf32>
  %4 = stablehlo.add %3, %e : tensor<4x1xf32>
  %5 = stablehlo.rsqrt %4 : tensor<4x1xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %7 = stablehlo.multiply %x, %6 : tensor<4x8xf32>
  %8 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %9 = stablehlo.multiply %7, %8 : tensor<4x8xf32>
  return %9 : tensor<4x8xf32>
}""")
    step = RaiseNorms()

    def scaled(program: Program) -> bool:
        """Whether the pass takes a scale into a norm that it has found, or that was there."""
        context = PassContext()
        step.run(program.clone(), context)
        return context.counts["raise-norm-scale"] > 0

    assert scaled(source)
    assert op_count(reduce_program(source, scaled)) > 5
    assert op_count(reduce_program(source, scaled, step=step)) <= 3


def test_a_branch_is_opened_where_its_result_needs_sizes_of_another() -> None:
    def runs(program: Program) -> bool:
        with suppress(GcompError):
            return has("sine")(program) and bool(interpret(program, sample_inputs(program, 0)))
        return False

    small = reduce_program(
        parsed("""
func.func @main(%p: tensor<i1>, %x: tensor<1x?xf32, ["1", "n"]>, %y: tensor<f32>) -> tensor<1x?xf32, ["1", "n"]> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.sine %y : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x?xf32, ["1", "n"]>
    stablehlo.return %2 : tensor<1x?xf32, ["1", "n"]>
  }, {
    stablehlo.return %x : tensor<1x?xf32, ["1", "n"]>
  }) : (tensor<i1>) -> tensor<1x?xf32, ["1", "n"]>
  return %0 : tensor<1x?xf32, ["1", "n"]>
}"""),
        runs,
    )
    assert names(small) == ["sine"]


def test_an_op_becomes_a_number_of_the_program() -> None:
    def limited(program: Program) -> bool:
        """Whether what is computed is 100, which is the limit."""
        return has("minimum", "negate")(program) and float(interpret(program, sample_inputs(program, 0))[0]) == -100

    small = reduce_program(
        parsed("""
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.constant dense<100.0> : tensor<f32>
  %1 = stablehlo.multiply %x, %x : tensor<f32>
  %2 = stablehlo.exponential %1 : tensor<f32>
  %3 = stablehlo.constant dense<200.0> : tensor<f32>
  %4 = stablehlo.maximum %2, %3 : tensor<f32>
  %5 = stablehlo.minimum %4, %0 : tensor<f32>
  %6 = stablehlo.negate %5 : tensor<f32>
  return %6 : tensor<f32>
}"""),
        limited,
    )
    assert op_count(small) == 2


def test_what_a_dot_sums_over_shrinks_though_other_sizes_are_the_same() -> None:
    small = reduce_program(
        parsed("""
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4x3xf32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x4x3xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}"""),
        lambda p: any(isinstance(o, hlo.DotGeneralOp) and shape_of(o.rhs)[-1:] == (3,) for o in p.ops()),
    )
    (dot,) = (op for op in small.ops() if isinstance(op, hlo.DotGeneralOp))
    assert shape_of(dot.rhs)[0] == 1 and shape_of(dot.rhs)[-1] == 3


def test_a_dot_becomes_one_of_a_value_with_itself() -> None:
    small = reduce_program(
        parsed("""
func.func @main(%x: tensor<2x5xi8>, %y: tensor<7x5x3xi8>) -> tensor<2x7x3xf32> {
  %0 = stablehlo.convert %x : (tensor<2x5xi8>) -> tensor<2x5xf32>
  %1 = stablehlo.convert %y : (tensor<7x5x3xi8>) -> tensor<7x5x3xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [1]
    : (tensor<2x5xf32>, tensor<7x5x3xf32>) -> tensor<2x7x3xf32>
  return %2 : tensor<2x7x3xf32>
}"""),
        lambda p: any(
            op.name == "stablehlo.dot_general" and all(isinstance(v.owner, hlo.ConvertOp) for v in op.operands)
            for op in p.ops()
        ),
    )
    assert names(small) == ["convert", "dot_general"] and shape_of(small.block.args[0]) == ()


def test_what_is_moved_is_moved_before_it_is_computed() -> None:
    def added(p: Program) -> bool:
        """Whether a converted value is added, perhaps moved, to one of another type that is rounded."""
        sums = [op for op in p.ops() if op.name == "stablehlo.add" and op.operands[0] is not op.operands[1]]
        return any("stablehlo.convert" in {o.name for o in before(op)} for op in sums)

    def before(op: Operation) -> list[Operation]:
        owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        moves = (hlo.TransposeOp, hlo.BroadcastInDimOp)
        return [o for owner in owners for o in (owner, *(before(owner) if isinstance(owner, moves) else ()))]

    small = reduce_program(
        parsed("""
func.func @main(%x: tensor<2x5xi8>, %y: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %0 = stablehlo.convert %x : (tensor<2x5xi8>) -> tensor<2x5xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>
  %2 = stablehlo.add %1, %y : tensor<5x2xf32>
  return %2 : tensor<5x2xf32>
}"""),
        added,
    )
    assert names(small) == ["convert", "add"]


def test_one_dimension_shrinks_with_the_constants_and_broadcasts_of_its_shape() -> None:
    program = parsed("""
func.func @main(%x: tensor<2x3xi8>, %y: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.convert %x : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %c = stablehlo.constant dense<5.0> : tensor<2x3xf32>
  %1 = stablehlo.multiply %0, %c : tensor<2x3xf32>
  %2 = stablehlo.dot_general %1, %y, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}""")

    def two_columns(p: Program) -> bool:
        dots = [op for op in p.ops() if isinstance(op, hlo.DotGeneralOp)]
        return {"stablehlo.multiply"} <= {op.name for op in p.ops()} and any(
            len(shape_of(op.rhs)) == 2 and shape_of(op.rhs)[1] == 2 for op in dots
        )

    small = reduce_program(program, two_columns)
    (dot,) = (op for op in small.ops() if isinstance(op, hlo.DotGeneralOp))
    assert shape_of(dot.lhs) == (1, 1) and shape_of(dot.rhs) == (1, 2)


@pytest.mark.parametrize("raises", [True, False])
def test_a_broken_pass_that_drops_dead_code_breaks_no_reduction(monkeypatch: pytest.MonkeyPatch, raises: bool) -> None:
    def run(self: DeadCodeElimination, program: Program, context: PassContext) -> bool:
        if raises:
            raise KeyError("broken")
        set_outputs(program(program)[:0])
        return False

    monkeypatch.setattr(DeadCodeElimination, "run", run)
    assert op_count(reduce_program(parsed(NESTED), has("logistic"))) == 1


def test_dead_code_stays_where_the_failure_needs_it() -> None:
    program = parsed("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.negate %x : tensor<4xf32>
  %2 = stablehlo.abs %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}""")
    assert names(reduce_program(program, has("sine"))) == ["sine"]

    def unused_sine(p: Program) -> bool:
        return any(op.name == "stablehlo.sine" and not op.results[0].has_one_use() for op in p.ops())

    assert names(reduce_program(program, unused_sine)) == ["sine"]


# ---- smaller shapes, simpler values ----


def biggest(program: Program) -> int:
    return max(int(np.prod([s if isinstance(s, int) else 1 for s in shape_of(v)]))
               for op in program.block.ops for v in (*op.results, *op.operands))  # fmt: skip


SHAPES: dict[str, tuple[str, int]] = {
    "add": ("%0 = stablehlo.add %x, %x : tensor<12x20xf32>\nreturn %0 : tensor<12x20xf32>", 1),
    "reshape": ("%0 = stablehlo.reshape %x : (tensor<12x20xf32>) -> tensor<3x4x20xf32>\n"
                "return %0 : tensor<3x4x20xf32>", 1),
    "slice": ("%0 = stablehlo.slice %x [2:8, 5:19:3] : (tensor<12x20xf32>) -> tensor<6x5xf32>\n"
              "return %0 : tensor<6x5xf32>", 2),
    "pad": ("%p = stablehlo.constant dense<1.0> : tensor<f32>\n"
            "%0 = stablehlo.pad %x, %p, low = [3, 0], high = [0, 7], interior = [2, 0]\n"
            "    : (tensor<12x20xf32>, tensor<f32>) -> tensor<37x27xf32>\n"
            "return %0 : tensor<37x27xf32>", 2),
    "concatenate": ("%0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<12x20xf32>, tensor<12x20xf32>)"
                    " -> tensor<12x40xf32>\nreturn %0 : tensor<12x40xf32>", 2),
    "dot_general": ("%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]"
                    " : (tensor<12x20xf32>, tensor<12x20xf32>) -> tensor<12x12xf32>\nreturn %0 : tensor<12x12xf32>", 1),
    "transpose": ("%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<12x20xf32>) -> tensor<20x12xf32>\n"
                  "return %0 : tensor<20x12xf32>", 1),
    "iota": ("%0 = stablehlo.iota dim = 1 : tensor<12x20xf32>\n%1 = stablehlo.add %0, %x : tensor<12x20xf32>\n"
             "return %1 : tensor<12x20xf32>", 1),
    "dynamic_slice": ("%i = stablehlo.constant dense<3> : tensor<i32>\n"
                      "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 20]"
                      " : (tensor<12x20xf32>, tensor<i32>, tensor<i32>) -> tensor<4x20xf32>\n"
                      "return %0 : tensor<4x20xf32>", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_become_small(name: str) -> None:
    body, most = SHAPES[name]
    result = body.rpartition(": ")[2]
    program = parsed(f"func.func @main(%x: tensor<12x20xf32>) -> {result} {{\n{body}\n}}")
    small = reduce_program(program, has(name))
    assert names(small)[-1] == name and biggest(small) <= most, small.text()


def test_sizes_that_matter_stay() -> None:
    """A failure that needs three rows keeps three, and shrinks the rest."""
    program = parsed(f"func.func @main(%x: tensor<12x20xf32>) -> tensor<12x20xf32> {{\n{SHAPES['add'][0]}\n}}")
    small = reduce_program(program, lambda p: has("add")(p) and shape_of(p.block.args[0])[0] >= 3)  # type: ignore[operator]
    assert shape_of(small.block.args[0]) == (3, 1)


def test_symbols_stay_symbols() -> None:
    text = """
module attributes {gcomp.ranges = {batch = "1..64", seq = "1.."}} {
func.func @main(%x: tensor<?x?x8xf32, ["batch", "seq", "8"]>, %y: tensor<?x4xf32, ["seq", "4"]>)
    -> tensor<?x8xf32, ["batch*seq", "8"]> {
  %0 = stablehlo.tanh %x : tensor<?x?x8xf32, ["batch", "seq", "8"]>
  %1 = stablehlo.reshape %0 : (tensor<?x?x8xf32, ["batch", "seq", "8"]>) -> tensor<?x8xf32, ["batch*seq", "8"]>
  return %1 : tensor<?x8xf32, ["batch*seq", "8"]>
}
}"""
    small = reduce_program(parsed(text), has("reshape"))
    assert names(small) == ["reshape"]
    assert [str(s) for s in shape_of(small.block.args[0])] == ["batch", "seq", "1"]
    assert dict(small.ranges) == dict(parsed(text).ranges)


def test_constants_and_weights_become_simple() -> None:
    program = Program.empty([("x", tensor((16, 16), "f32"))])
    b = Builder(program)
    rng = np.random.default_rng(0)
    w = b.weight("w", rng.standard_normal((16, 16)).astype(np.float32))
    value = b.add(b.multiply(program.block.args[0], w), b.constant(rng.standard_normal(16).astype(np.float32)))
    program.finish([("y", value)])

    def two_constants(p: Program) -> bool:
        count = sum(op.name in ("stablehlo.constant", "gcomp.weight") for op in p.ops())
        return has("add", "multiply")(p) and count >= 2

    small = reduce_program(program, two_constants)
    assert not len(small.weights) and small.text().count("dense<0.0>") == 2 and biggest(small) == 1
    assert Program.parse(small.text()).text() == small.text()


def test_element_types_become_the_everyday_ones() -> None:
    program = parsed("""
func.func @main(%x: tensor<4xf64>, %i: tensor<4xui8>) -> (tensor<4xf64>, tensor<4xi1>) {
  %c = stablehlo.constant dense<[1.5, 2.5, 3.5, 4.5]> : tensor<4xf64>
  %0 = stablehlo.add %x, %c : tensor<4xf64>
  %1 = stablehlo.compare LT, %i, %i, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  return %0, %1 : tensor<4xf64>, tensor<4xi1>
}""")
    small = reduce_program(program, has("add", "compare"))
    assert {dtype_text(v.type) for v in small.block.args} == {"f32", "i32"} and "SIGNED" in small.text()
    assert "f64" in reduce_program(program, lambda p: has("add")(p) and "f64" in p.text()).text()


def test_properties_become_simple() -> None:
    program = parsed("""
func.func @main(%x: tensor<1x8x8x4xf32>, %k: tensor<3x3x2x4xf32>) -> tensor<1x5x8x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[2, 1], [1, 1]], rhs_dilate = [1, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64,
     precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}
    : (tensor<1x8x8x4xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x8x4xf32>
  return %0 : tensor<1x5x8x4xf32>
}""")
    small = reduce_program(program, has("convolution"))
    assert "HIGHEST" not in small.text() and "[[2, 1]" not in small.text() and biggest(small) <= 8, small.text()


# ---- given inputs ----


def test_the_values_of_a_failing_run_are_carried_along() -> None:
    """x may equal 700: the failure needs that very number, which only an earlier op makes of the inputs."""
    left = Op(hlo.CompareOp, x, Const(value=700.0), comparison_direction="EQ")
    step = wrong("known", Rule("never-equal", left, Const(value=False)))
    program = parsed("""
func.func @main(%x: tensor<8xf32> {gcomp.name = "x"}) -> tensor<8xi1> {
  %k = stablehlo.constant dense<1.000000e+02> : tensor<8xf32>
  %0 = stablehlo.multiply %x, %k : tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  %c = stablehlo.constant dense<7.000000e+02> : tensor<8xf32>
  %2 = stablehlo.compare EQ, %1, %c, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %3 = stablehlo.tanh %1 : tensor<8xf32>
  return %2 : tensor<8xi1>
}""")
    arrays = [-np.arange(8, dtype=np.float32)]
    failure = check_pass(step, program, arrays)
    assert failure is not None and check_pass(step, program) is None
    known = record_values(program, arrays)
    small = reduce_program(program, keeps_failure(step, failure, carrier(known)))
    assert names(small) == ["constant", "compare"] and check_pass(step, small) is None
    inputs = recorded_inputs(small, known)
    assert inputs is not None and 700 in inputs[0]
    found = check_pass(step, small, inputs)
    assert found is not None and found.fingerprint() == failure.fingerprint()


def test_a_candidate_that_does_not_end_is_not_smaller() -> None:
    """With values given, runs had no bound: a loop whose counter was reduced away went on for ever."""
    step = wrong("swapped", Rule("swap", Op(hlo.MaximumOp, x, y), Op(hlo.MinimumOp, x, y)))
    text = """
func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}, %y: tensor<4xf32> {gcomp.name = "y"}) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0, %1 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    %4 = stablehlo.maximum %v, %y : tensor<4xf32>
    stablehlo.return %3, %4 : tensor<i32>, tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}"""
    program, endless = parsed(text), parsed(text.replace("return %3, %4", "return %i, %4"))
    arrays = [np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)]
    failure = check_pass(step, program, arrays)
    assert failure is not None
    interesting = keeps_failure(step, failure, arrays)
    assert interesting(program) and not interesting(endless)


# ---- commands and targets ----

TOOL = """
import re, sys
text = open(sys.argv[1]).read()
assert text.count("func.func") == 1
if "stablehlo.cosine" in text and "stablehlo.tanh" in text:
    sys.exit("boom: cosine")
sys.exit(1 if "stablehlo.tanh" in text else 0)
"""


@pytest.fixture
def tool(tmp_path: object) -> str:
    path = f"{tmp_path}/tool.py"
    with open(path, "w") as stream:
        stream.write(TOOL)
    return f"{sys.executable} -S -E {path} {{}}"


def test_any_command_s_failure_is_kept(tool: str) -> None:
    program = parsed("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.sine %0 : tensor<4xf32>
  %2 = stablehlo.cosine %1 : tensor<4xf32>
  %3 = stablehlo.abs %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}""")
    assert names(reduce_program(program, fails_alike(tool, program))) == ["tanh"], "one status stands for both failures"
    kept = names(reduce_program(program, fails_alike(tool, program, match="boom: cosine")))
    assert sorted(kept) == ["cosine", "tanh"]
    with pytest.raises(UsageError, match="does not contain"):
        fails_alike(tool, program, match="sine boom")
    with pytest.raises(UsageError, match=r"no \{\}"):
        fails_alike("true", program)
    with pytest.raises(UsageError, match="succeeds"):
        fails_alike("true {}", program)
    with pytest.raises(UsageError, match="cannot run 'no-such-tool'"):
        fails_alike("no-such-tool {}", program)


class Broken:
    """Stands for a worker with a target that is wrong about tanh, and dies of cosine."""

    def run(self, text: str, inputs: list[np.ndarray]) -> list[np.ndarray] | OracleFailure:
        if "cosine" in text:
            return OracleFailure("the worker ended with signal SIGSEGV", "crashed")
        program = Program.parse(re.sub("tanh", "sine", text))
        from gcomp.reference.interpreter import interpret

        return interpret(program, inputs)

    def close(self) -> None:
        """Nothing to end."""


def test_a_target_s_failure_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of("max and min swapped")
    with TargetCheck("xla:cpu") as check:
        check.oracle = Broken()  # type: ignore[assignment]
        crash = check.failure(program)
        assert crash is not None and crash.kind == "crashed"
        assert names(reduce_program(program, check.keeps(crash))) == ["cosine"]
        without = parsed(re.sub("cosine", "negate", program.text()))
        wrong_answer = check.failure(without)
        assert wrong_answer is not None and wrong_answer.kind == "meaning"
        assert names(reduce_program(without, check.keeps(wrong_answer))) == ["tanh"]


def test_a_target_runs_in_another_process_and_agrees() -> None:
    program = program_of("max and min swapped")
    with TargetCheck("xla:cpu") as check:
        assert check.failure(program, sample_inputs(program, 3)) is None


def test_weights_of_every_rank_reach_the_target() -> None:
    program = Program.empty([("x", tensor((3,), "f32"))])
    b = Builder(program)
    scalar, vector = b.weight("s", np.array(2.5, np.float32)), b.weight("w", np.arange(3, dtype=np.float32))
    program.finish([("y", b.add(b.multiply(program.block.args[0], scalar), vector))])
    with TargetCheck("xla:cpu") as check:
        assert check.failure(program) is None


def test_reasons_are_compared_without_their_numbers() -> None:
    one, other = (TargetFailure("refused", f"op %{n} at 0x{n}f: {n} elements") for n in (1, 22))
    assert one.fingerprint() == other.fingerprint() != TargetFailure("crashed", one.message).fingerprint()


def test_wrong_answers_of_a_target_are_told_apart_by_how_they_are_wrong() -> None:
    texts = (
        "output 'y': class at [0, 1]: expected 1.5, got nan (bits 0x7fc00000); class at [0, 2]: expected 2.0, got nan",
        "output 'z': class at [3]: expected -0.25, got nan (bits 0x7fc00000)",
        "output 'y': class at [0]: expected inf, got 12.5",
        "output 'y': RMS error 4.18e+06 exceeds 1.34, worst at [7]: expected 1.5, got 2.5",
        "output 'y': shape: expected [2], got [3]",
        "output 'r1': class at [0, 0]: expected nan (bits 0x7fc00000), got 0.0; class at [1, 0]: expected 1.0, got nan",
    )
    prints = [TargetFailure("meaning", text).fingerprint() for text in texts]
    assert prints[0] == prints[1] == ("meaning", "class: a number becomes NaN")
    assert prints[2] == ("meaning", "class: infinity becomes a number")
    assert prints[5] == ("meaning", "class: NaN becomes a number")
    assert len({*prints}) == 5


# ---- limits ----


def test_nothing_is_reduced_where_nothing_fails() -> None:
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_program(parsed(MINMAX), has("cosine"))


def test_the_time_is_kept_and_progress_told() -> None:
    told: list[tuple[int, int]] = []

    def slow(program: Program) -> bool:
        time.sleep(0.05)
        return has("tanh")(program)

    started = time.monotonic()
    small = reduce_program(program_of("a crash"), slow, seconds=0.4, report=lambda p: told.append((p.ops, p.tried)))
    assert time.monotonic() - started < 4
    assert "stablehlo.tanh" in small.text() and told[-1][0] == op_count(small) and told[-1][1] > 0
