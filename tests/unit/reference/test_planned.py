"""The planned executor computes what the interpreter does, and faults on every kind of wrong plan."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir.buffer import places, set_arena, set_places
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.memory.plan_memory import planned_ops
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import PlannedExecutor
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program

CHAIN = """
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = stablehlo.negate %x : tensor<64xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<64xf32>
  %2 = stablehlo.abs %1 : tensor<64xf32>
  return %1, %2 : tensor<64xf32>, tensor<64xf32>
}"""
X = np.linspace(-2, 2, 64, dtype=np.float32)


def planned(text: str, *offsets: int, arena: int = 1024) -> Program:
    """A program with these places, one for each op."""
    program = Program.parse(text)
    ops = sorted(planned_ops(program), key=list(program.block.ops).index)
    for op, offset in zip(ops, offsets, strict=True):
        set_places(op, [offset])
    set_arena(program.module, arena)
    return program


def test_a_right_plan_runs() -> None:
    program = planned(CHAIN, 0, 256, 512)
    executor = PlannedExecutor(program)
    for mine, theirs in zip(executor.run([X]), interpret(program, [X]), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert executor.peak == 768


@pytest.mark.parametrize(
    ("offsets", "arena", "why"),
    [
        ((0, 256, 256), 1024, "two living values on the same bytes"),
        ((0, 256, 384), 1024, "two living values on the same bytes"),
        ((0, 256, 512), 700, "leaves the arena"),
        ((0, 1000, 512), 1024, "leaves the arena"),
        ((0, 0, 256), 1024, "write over what it still reads"),
        ((0, 128, 512), 1024, "write over what it still reads"),
    ],
)
def test_a_wrong_plan_faults(offsets: tuple[int, ...], arena: int, why: str) -> None:
    with pytest.raises(VerificationError, match=why) as caught:
        PlannedExecutor(planned(CHAIN, *offsets, arena=arena)).run([X])
    assert caught.value.where is not None
    assert "stablehlo" in caught.value.where


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("reverse {}, dims = [0]", (5,)),  # place i reads place 4 - i: as even as it is
        ("reverse {}, dims = [0, 1]", (3, 3)),
        ("transpose {}, dims = [1, 0]", (3, 3)),
        ("transpose {}, dims = [1, 0]", (5, 5)),
        ("transpose {}, dims = [0, 2, 1]", (2, 3, 3)),
    ],
)
def test_a_kernel_that_reads_places_as_even_as_its_own_faults_in_place(op: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    type = f"tensor<{'x'.join(map(str, shape))}xf32>"
    text = f"""
      func.func @main(%x: {type}) -> {type} {{
        %0 = stablehlo.negate %x : {type}
        %1 = stablehlo.{op.format("%0")} : FROM
        return %1 : {type}
      }}""".replace("FROM", f"({type}) -> {type}" if "transpose" in op else type)
    with pytest.raises(VerificationError, match="write over what it still reads"):
        PlannedExecutor(planned(text, 0, 0)).run([x])
    apart = planned(text, 0, 512)
    assert PlannedExecutor(apart).run([x])[0].tolist() == interpret(apart, [x])[0].tolist()


def test_no_plan_is_refused() -> None:
    with pytest.raises(VerificationError, match="no memory plan"):
        PlannedExecutor(Program.parse(CHAIN))
    program = Program.parse(CHAIN)
    set_arena(program.module, 1024)
    with pytest.raises(VerificationError, match="no place"):
        PlannedExecutor(program).run([X])


SWAP = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<3> : tensor<i32>
  %2:3 = stablehlo.while(%i = %0, %a = %x, %b = %y) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %3 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %4 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.add %i, %4 : tensor<i32>
    stablehlo.return %5, %b, %a : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  return %2#1, %2#2 : tensor<4xf32>, tensor<4xf32>
}"""


def test_values_that_a_loop_swaps_are_copied() -> None:
    program = Program.parse(SWAP)
    inputs = [np.arange(4, dtype=np.float32), np.arange(4, 8, dtype=np.float32)]
    PassManager(parse_pipeline("fuse,plan-memory")).run(program)
    program.verify()
    assert "copy" in program.text()
    found = PlannedExecutor(program).run(inputs)
    assert found[0].tolist() == [4, 5, 6, 7]
    assert found[1].tolist() == [0, 1, 2, 3]


def test_sizes_without_a_bound_are_refused_and_those_with_one_planned_for_the_largest() -> None:
    text = """
      builtin.module attributes {gcomp.ranges = {n = "1..100"}} {
        func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
          %0 = stablehlo.negate %x : tensor<?xf32, ["n"]>
          %1 = stablehlo.reverse %0, dims = [0] : tensor<?xf32, ["n"]>
          return %1 : tensor<?xf32, ["n"]>
        }
      }"""
    program = Program.parse(text)
    PassManager(parse_pipeline("plan-memory")).run(program)
    assert sorted(offset for op in planned_ops(program) for offset in places(op) or ()) == [0, 512]
    for size in (1, 7, 100):
        x = np.arange(size, dtype=np.float32)
        assert PlannedExecutor(program).run([x])[0].tolist() == interpret(program, [x])[0].tolist()
    with pytest.raises(UnsupportedError, match="no bound"):
        PassManager(parse_pipeline("plan-memory")).run(Program.parse(text.replace("1..100", "1..")))


@pytest.mark.parametrize("number", range(40))
def test_generated_programs_run_in_their_arena(number: int) -> None:
    program = seeded_program(number, 15)
    inputs = inputs_for(program, number, "edges")
    expected = interpret(program, inputs, max_steps=100_000)
    try:
        PassManager(parse_pipeline("fuse,order-for-memory,plan-memory")).run(program)
    except UnsupportedError:
        pytest.skip("the program has a call or a tuple, which no plan places")
    program.verify()
    for mine, theirs in zip(PlannedExecutor(program).run(inputs), expected, strict=True):
        assert mine.tobytes() == theirs.tobytes()
