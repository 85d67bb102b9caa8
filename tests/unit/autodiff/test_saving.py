"""What the way back computes again is what it would have read, and less is saved for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.analysis.work import Nominal
from gcomp.autodiff.programs import differentiate_back
from gcomp.autodiff.saving import save_least
from gcomp.errors import GcompError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.inputs import inputs_for
from gcomp.testing.generate.program import seeded_program

NETWORK = """
func.func @main(%x: tensor<8x16xf32> {gcomp.name = "x"}, %a: tensor<16x32xf32> {gcomp.name = "a"},
                %b: tensor<32x4xf32> {gcomp.name = "b"}) -> (tensor<f32> {gcomp.name = "loss"}) {
  %h = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %t = stablehlo.tanh %h : tensor<8x32xf32>
  %s = stablehlo.sine %h : tensor<8x32xf32>
  %y = stablehlo.multiply %t, %s : tensor<8x32xf32>
  %z = stablehlo.dot_general %y, %b, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}"""  # noqa: E501


def values() -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16, 32), (32, 4))]


def test_the_cut_goes_through_the_narrowest_place() -> None:
    program = Program.parse(NETWORK)
    saving = differentiate_back(program, wrt=["a", "b"], bytes_of=Nominal(program.ranges).bytes)
    assert saving is not None
    # h alone, of what the way back reads: h, tanh, sine and their product.
    assert (saving.saved_bytes, saving.needed_bytes) == (8 * 32 * 4, 4 * 8 * 32 * 4)
    assert [op.name for op in saving.again] != [] and not any(isinstance(op, hlo.DotGeneralOp) for op in saving.again)
    assert sum(isinstance(op, hlo.DotGeneralOp) for op in program.ops()) == 4


@pytest.mark.parametrize("pipeline", ["", "canonicalize,cse,fold-constants,dce"])
def test_the_gradient_is_the_same_to_the_bit(pipeline: str) -> None:
    least, everything = (
        gcomp.grad(Program.parse(NETWORK), wrt=["a", "b"], value=True, save=save) for save in ("least", "all")
    )
    for program in (least, everything):
        PassManager(parse_pipeline(pipeline)).run(program)
    for one, other in zip(interpret(least, values()), interpret(everything, values()), strict=True):
        assert one.tobytes() == other.tobytes()
    assert [sum(op.name == "stablehlo.tanh" for op in p.ops()) for p in (least, everything)] == [2, 1]


def test_outputs_are_kept_anyway() -> None:
    loss = 'tensor<f32> {gcomp.name = "loss"}'
    text = NETWORK.replace(f"({loss})", f"({loss}, tensor<8x32xf32>)")
    program = Program.parse(text.replace("return %l : tensor<f32>", "return %l, %t : tensor<f32>, tensor<8x32xf32>"))
    saving = differentiate_back(program, "loss", ["a", "b"], value=True, bytes_of=Nominal(program.ranges).bytes)
    assert saving is not None and saving.needed_bytes == 3 * 8 * 32 * 4


def test_any_cut_of_a_program_keeps_its_meaning() -> None:
    """Which ops are the way back does not matter to what is computed: any last part of a program will do."""
    judged = 0
    for seed in range(150):
        program = seeded_program(seed)
        inputs = inputs_for(program, seed)
        try:
            expected = interpret(program, inputs)
        except GcompError:
            continue
        ops = [op for op in program.block.ops if op is not program.returned]
        saving = save_least(program, ops[len(ops) // 2 :], Nominal(program.ranges).bytes)
        program.verify("after saving")
        for one, other in zip(expected, interpret(program, inputs), strict=True):
            assert one.tobytes() == other.tobytes(), seed
        judged += bool(saving.again)
    assert judged > 40


def test_a_report_says_what_was_decided() -> None:
    said: list[str] = []
    gcomp.grad(Program.parse(NETWORK), wrt=["a", "b"], report=said.append)
    assert said == ["saved for the way back: 1 values of 1,024 bytes, instead of 4,096; 3 ops run again"]


def test_another_way_to_save_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no way to save 'some'"):
        gcomp.grad(Program.parse(NETWORK), save="some")  # type: ignore[arg-type]
