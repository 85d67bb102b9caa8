"""inline: what it refuses, where copies say that they come from, and programs with calls in an arena."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.ir import text
from gcomp.ir.buffer import arena
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.graph.inline import Inline
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import KERNELS
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.reference.planned import PlannedExecutor

SQUARE = """
func.func private @f0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32> loc("power")
  return %0 : tensor<4xf32>
}"""


def chain(length: int) -> Program:
    """Functions of which each calls the one before it twice."""
    functions = [
        f"""
func.func {"private @f" + str(i) if i < length else "@main"}(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = func.call @f{i - 1}(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = func.call @f{i - 1}(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}}"""
        for i in range(1, length + 1)
    ]
    return Program.parse("\n".join([*functions, SQUARE]))


def test_copies_name_what_they_copy_and_the_calls() -> None:
    program = chain(2)
    assert Inline().run(program, PassContext())
    program.verify()
    assert [describe(op.location) for op in program.block.ops if op.results] == [
        "power, called at first, called at first", "power, called at first", "power, called at first", "power",
    ]  # fmt: skip
    assert not Inline().run(program, PassContext())


def test_what_grows_without_end_is_refused() -> None:
    """Before anything is copied: the count is that of the program that inlining makes."""
    endless = chain(60)
    before = endless.text()
    with pytest.raises(UnsupportedError, match="more than 1000000 ops") as caught:
        Inline().run(endless, PassContext())
    assert caught.value.where is not None
    assert endless.text() == before


def test_the_limit_counts_what_inlining_makes() -> None:
    """Every copy counts, with its function's op and return, beside what was there."""
    program = chain(6)
    own = program.op_count()
    copied = sum(2 * (2**i + 2) for i in range(6))
    with pytest.raises(UnsupportedError, match="more than"):
        Inline(max_ops=own + copied - 1).run(program, PassContext())
    assert Inline(max_ops=own + copied).run(program, PassContext())
    assert sum(1 for op in program.main.walk()) == 2**6 + 2


def test_what_calls_itself_or_nothing_is_refused() -> None:
    program = chain(2)
    for name, why in (("f1", "calls itself"), ("main", "calls itself"), ("f9", "no function 'f9'")):
        broken = Program(text.parse_module(program.text(), "test"))
        call = next(op for op in broken.ops() if isinstance(op, CallOp))
        call.properties["callee"] = SymbolRefAttr(name)
        with pytest.raises(InvalidModelError, match=why):
            Inline().run(broken, PassContext())


def test_programs_with_calls_are_planned() -> None:
    program, x = chain(3), np.array([-1.5, 0.5, 1.0, 1.1], np.float32)
    expected = interpret(program, [x])
    PassManager(parse_pipeline(KERNELS)).run(program)
    assert arena(program.module)
    assert PlannedExecutor(program).run([x])[0].tobytes() == expected[0].tobytes()
