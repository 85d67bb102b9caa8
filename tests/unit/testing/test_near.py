"""Near misses: they are valid, differ from the program they are of, and reach what conditions look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from gcomp.dtypes import text_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of, tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.judging import Reference, judge, sets_for, structure
from gcomp.passes.registry import all_passes
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value
from gcomp.testing.fuzz import Limits, Plan, fuzz
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.near import near_miss, touch
from gcomp.testing.near.types import map_sizes

SOFTMAX = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %d = stablehlo.subtract %x, %n : tensor<2x3xf32>
  %e = stablehlo.exponential %d : tensor<2x3xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %q = stablehlo.divide %e, %t : tensor<2x3xf32>
  return %q : tensor<2x3xf32>
}"""


def test_what_a_pass_touches_is_observed() -> None:
    program = Program.parse(SOFTMAX)
    step = all_passes()["raise-softmax"]()
    found = touch(step, program)
    names = {op.name for i, op in enumerate(program.ops()) if i in found.places}
    assert {"stablehlo.divide", "stablehlo.exponential", "stablehlo.reduce"} <= names
    assert found.rewrites == ("raise-softmax",)
    assert not touch(all_passes()["dce"](), program).places


def test_near_misses_are_valid_and_differ_and_leave_the_program_alone() -> None:
    program, seen = Program.parse(SOFTMAX), set[tuple[object, ...]]()
    before, places = structure(program), touch(all_passes()["raise-softmax"](), program).places
    for seed in range(60):
        miss = near_miss(program, places, Seeded(seed))
        if miss is None:
            continue  # none of its tries was valid
        miss.verify()
        assert structure(miss) != before
        seen.add(structure(miss))
    assert structure(program) == before
    assert len(seen) > 40


def test_weights_are_of_the_type_that_reads_them() -> None:
    """Also where sizes and element types have changed everywhere."""
    program = Program.empty([("x", tensor((2, 3), "f32"))])
    b = Builder(program)
    program.finish([("y", b.add(program.block.args[0], b.weight("w", np.ones((2, 3), np.float32))))])
    types: set[Attribute] = set()
    for seed in range(60):
        found = near_miss(program, range(3), Seeded(seed)) or program
        for op in found.ops():
            if isinstance(op, WeightOp):
                array = found.weights[op.symbol]
                assert tensor(array.shape, text_of(array.dtype)) == op.result.type
                types.add(op.result.type)
    assert len(types) > 5


def test_reductions_become_empty_or_single_and_begin_with_other_values() -> None:
    """A maximum over no elements is its initial value, and one of a row of infinities may be a limit."""
    program = Program.parse(SOFTMAX)
    places = touch(all_passes()["raise-softmax"](), program).places
    sizes, inits = set[object](), set[float]()
    for seed in range(400):
        miss = near_miss(program, places, Seeded(seed))
        for op in miss.ops() if miss is not None else ():
            if isinstance(op, hlo.ReduceOp):
                sizes |= {shape_of(op.operands[0])[d] for d in op.value("dimensions")}
                init = constant_value(op.init_values[0])
                inits |= {float(init)} if init is not None and not np.iscomplexobj(init) else set()
    assert {0, 1, 3} <= sizes
    assert {-np.inf, 0.0, float(np.finfo(np.float32).min)} <= inits


# ---- passes with conditions that do not look closely enough ----


class _Careless(Pattern):
    """What each of these takes for nothing, or for something simpler, holds only where a condition says so."""

    def made(self, op: hlo.TransposeOp) -> SSAValue | None:
        inner = op.operand.owner
        return inner.operands[0] if isinstance(inner, hlo.TransposeOp) else None


class Untransposed(_Careless):
    """Two transposes are none, whatever they do: right for exchanges of two dimensions."""

    name = "untransposed"
    roots = (hlo.TransposeOp,)

    def rewrite(self, op: hlo.TransposeOp, b: Builder) -> Sequence[SSAValue] | None:
        found = self.made(op)
        return [found] if found is not None and found.type == op.result.type else None


class Unsliced(Pattern):
    """What is sliced off a value and put back before it is the value: it does not look at where it came from."""

    name = "unsliced"
    roots = (hlo.ConcatenateOp,)

    def rewrite(self, op: hlo.ConcatenateOp, b: Builder) -> Sequence[SSAValue] | None:
        makers = [v.owner for v in op.operands]
        if len(makers) != 2 or not all(isinstance(maker, hlo.SliceOp) for maker in makers):
            return None
        first, second = (maker.operands[0] for maker in makers if isinstance(maker, hlo.SliceOp))
        return [first] if first is second and first.type == op.result.type else None


class Unrounded(Pattern):
    """There and back is nothing: it does not look at what lies between."""

    name = "unrounded"
    roots = (hlo.ConvertOp,)

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = op.operand.owner
        same = isinstance(inner, hlo.ConvertOp) and inner.operand.type == op.result.type
        return [inner.operands[0]] if same else None


CARELESS = {pattern.name: pattern for pattern in (Untransposed, Unsliced, Unrounded)}


@dataclass(frozen=True)
class Applies(Pass):
    """Applies one of them."""

    name: ClassVar[str] = "applies"
    pattern: str = ""

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (CARELESS[self.pattern](),), context)


@pytest.fixture
def applies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pass can be named."""
    monkeypatch.setitem(cast("dict[str, type[Pass]]", all_passes()), "applies", Applies)
    yield


@pytest.mark.usefixtures("applies")
@pytest.mark.parametrize(
    ("pattern", "programs"),
    [
        ("unrounded", 100),
        pytest.param("unsliced", 300, marks=pytest.mark.slow),
        pytest.param("untransposed", 400, marks=pytest.mark.slow),
    ],
)
def test_a_condition_that_is_missing_is_found(pattern: str, programs: int) -> None:
    """In passes that the generator knows nothing of but their source, within a few hundred programs."""
    outcome = fuzz(Plan.of((f"applies{{pattern={pattern}}}",)), Limits(programs=programs), seed=4)
    assert {key[2] for key in outcome.failures} == {pattern}


@dataclass(frozen=True)
class Annotates(Pass):
    """Drives xDSL's own rewriter: it erases what is dead, and annotates a sine; a cosine becomes a sine."""

    name: ClassVar[str] = "annotates"

    def run(self, program: Program, context: PassContext) -> bool:
        class Mark(RewritePattern):
            def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
                if isinstance(op, hlo.SineOp) and "user.seen" not in op.attributes:
                    op.attributes["user.seen"] = UnitAttr()
                    rewriter.has_done_action = True
                if isinstance(op, hlo.CosineOp):
                    rewriter.replace(op, hlo.SineOp(operands=[op.operands[0]], result_types=[op.result_types]))

        return PatternRewriteWalker(Mark()).rewrite_module(program.module)


@pytest.mark.parametrize(("name", "applies"), [("sine", False), ("cosine", True)])
def test_passes_of_xdsl_patterns_apply_where_they_compute_otherwise(name: str, applies: bool) -> None:
    program = Program.parse(f"""
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.{name} %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}}""")
    assert touch(Annotates(), program).applied is applies
    coverage = Coverage()
    judge(Annotates(), Reference(program, lambda: sets_for(Annotates(), program, 0)),
          ran=lambda context, changed: coverage.ran("annotates", changed, context))  # fmt: skip
    assert coverage.changed["annotates"] == applies


def test_constants_become_sizes_and_what_is_next_to_them() -> None:
    """A pass that takes `iota < size - 1` for true everywhere was called right: no constant came near a size."""
    program = Program.parse("""
func.func @main(%x: tensor<1x7xi32>) -> tensor<1x7xi1> {
  %0 = stablehlo.iota dim = 1 : tensor<1x7xi32>
  %1 = stablehlo.constant dense<100> : tensor<1x7xi32>
  %2 = stablehlo.compare LT, %0, %1 : (tensor<1x7xi32>, tensor<1x7xi32>) -> tensor<1x7xi1>
  return %2 : tensor<1x7xi1>
}""")
    met = set[int]()
    for seed in range(800):
        found = near_miss(program, range(6), Seeded(seed)) or program
        compares = [op for op in found.ops() if isinstance(op, hlo.CompareOp)]
        arrays = [constant_value(value) for op in compares for value in op.operands]
        met |= {
            int(a.flat[0]) for a in arrays if a is not None and a.size and a.dtype == np.int32 and a.shape == (1, 7)
        }
    assert {6, 7, 8} <= met


def test_what_would_be_too_large_is_no_near_miss() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = stablehlo.add %x, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}""")
    assert not map_sizes(program.clone(), {4: 1 << 32})
    assert map_sizes(program.clone(), {4: 5})
