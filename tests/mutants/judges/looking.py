"""Judges what looks into programs: prints and checks in generated programs, and in programs made for them.

Looking changes no output; prints are the same lines, in the same order, before and after passes; the check that fails
is the one that the case was made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.transform.insert_checks import InsertChecks
from gcomp.passes.transform.thread_prints import OUTPUT
from gcomp.reference.interpreter import Interpreter
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant
from tests.property.test_looking import look_at_one

GENERATED = 40

PRINTS = """func.func @main(%x: tensor<4xf32>, %last: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  gcomp.print "twice {values}" %x : tensor<4xf32>
  gcomp.print "twice {values}" %x : tensor<4xf32>
  %a = "stablehlo.if"(%yes) ({
    gcomp.print "branch"
    stablehlo.return %one : tensor<i32>
  }, {
    stablehlo.return %zero : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  %b = "stablehlo.if"(%yes) ({
    gcomp.print "branch"
    stablehlo.return %one : tensor<i32>
  }, {
    stablehlo.return %zero : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  %i, %unused = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %last, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    gcomp.print "turn {values}" %at : tensor<i32>
    stablehlo.return %next, %v : tensor<i32>, tensor<4xf32>
  }
  %c = "stablehlo.if"(%yes) ({
    %five = stablehlo.constant dense<5> : tensor<i32>
    gcomp.print "inside"
    stablehlo.return %five : tensor<i32>
  }, {
    %six = stablehlo.constant dense<6> : tensor<i32>
    stablehlo.return %six : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  gcomp.print "end {values}" %c : tensor<i32>
  return %x : tensor<4xf32>
}"""
LINES = [*["twice [0. 1. 2. 3.]"] * 2, "branch", "branch", "turn 0", "turn 1", "inside", "end 5"]
PIPELINES = ("dce", "cse", "fold-constants,canonicalize", "cse,dce,fold-constants,canonicalize,cse,dce",
             "canonicalize,fuse,order-for-memory", "thread-prints", "cse,thread-prints,cse,dce")  # fmt: skip

LOOP = """func.func @main(%x: tensor<4xf32>, %last: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %i, %y = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %last, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    %less = stablehlo.subtract %v, %two : tensor<4xf32>
    %odd = stablehlo.and %at, %one : tensor<i32>
    %is = stablehlo.compare EQ, %odd, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %new = "stablehlo.if"(%is) ({
      %root = stablehlo.sqrt %less : tensor<4xf32>
      stablehlo.return %root : tensor<4xf32>
    }, {
      stablehlo.return %less : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
  }
  %z = stablehlo.log %y : tensor<4xf32>
  return %z : tensor<4xf32>
}"""
FILLED = """func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %fill = stablehlo.constant dense<0x7FC00000> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %y = stablehlo.select %p, %fill, %x : tensor<i1>, tensor<4xf32>
  %z = stablehlo.add %y, %one : tensor<4xf32>
  %a = stablehlo.log %x : tensor<4xf32>
  %b = stablehlo.sqrt %x : tensor<4xf32>
  return %z, %a, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}"""
DERIVED = """func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}) -> (tensor<f32> {gcomp.name = "loss"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n, %z = stablehlo.while(%at = %i, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    %w = stablehlo.sine %v : tensor<4xf32>
    gcomp.print "turn {values}" %at : tensor<i32>
    stablehlo.return %next, %w : tensor<i32>, tensor<4xf32>
  }
  %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}"""
SLICE = """func.func @main(%x: tensor<5xf32>, %i: tensor<{}>) -> tensor<2xf32> {{
  %y = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<5xf32>, tensor<{}>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}}"""


def printed(pipeline: str) -> str | None:
    """What is wrong with what is printed after passes."""
    program, lines = Program.parse(PRINTS), list[str]()
    PassManager(parse_pipeline(pipeline)).run(program)
    outputs = Interpreter(program, sink=lines.append).run([np.arange(4, dtype=np.float32), np.asarray(2, np.int32)])
    if program.outputs()[-1].name == OUTPUT and outputs[-1] != len(LINES):
        return f"{pipeline}: {outputs[-1]} lines are counted"
    return None if lines == LINES else f"{pipeline}: {lines}"


def checked(text: str, inputs: list[np.ndarray], kinds: tuple[str, ...]) -> tuple[str, int]:
    """The op of the check that fails (empty: none does), and the turn."""
    program = Program.parse(text)
    InsertChecks(kinds).run(program, PassContext())
    program.verify("with checks")
    *_, number, turn = Interpreter(program).run(inputs)
    rows = [row.data["op"].data for row in program.module.attributes["gcomp.checks"].data]  # type: ignore[attr-defined]
    return (rows[int(number)] if number >= 0 else ""), int(turn)


def in_loops() -> str | None:
    """What is wrong with the check that fails in a loop."""
    x = np.float32([1, 2, 3, 4])
    for turns, start, wanted in ((1, x, ("stablehlo.log", -1)), (4, x, ("stablehlo.sqrt", 1)), (2, x + 90, ("", -1))):
        if (found := checked(LOOP, [start, np.asarray(turns, np.int32)], ("nan",))) != wanted:
            return f"after {turns} turns {found}, not {wanted}"
    return None


def derived() -> str | None:
    """What is wrong with what a gradient prints."""
    program, lines = Program.parse(DERIVED), list[str]()
    PassManager(parse_pipeline("vjp{of=loss wrt=x value=true}")).run(program)
    Interpreter(program, sink=lines.append).run([np.arange(4, dtype=np.float32)])
    return None if lines == ["turn 0", "turn 1"] else str(lines)


def of_two() -> str | None:
    """What is wrong with the check that fails where two do, or where a NaN was there on purpose."""
    x = np.float32([1, 2, 3, 4])
    for inputs, wanted in (([x, np.asarray(True)], ""), ([-x, np.asarray(False)], "stablehlo.log")):
        if (found := checked(FILLED, inputs, ("nan",))[0]) != wanted:
            return f"{found!r}, not {wanted!r}"
    return None


def of_indices() -> str | None:
    """What is wrong with the check of an index."""
    for text, dtype in (("i32", np.int32), ("ui8", np.uint8), ("ui64", np.uint64)):
        for index in (-1, 0, 3, 4, 2**63):
            if np.iinfo(dtype).min <= index <= np.iinfo(dtype).max:
                inputs = [np.zeros(5, np.float32), np.asarray(index, dtype)]
                fails = bool(checked(SLICE.format(text, text), inputs, ("index",))[0])
                if fails != (not 0 <= index <= 3):
                    return f"the index {index} of type {text}: {fails}"
    return None


def generated(seed: int) -> str | None:
    """What is wrong with looking into the program of a number."""
    try:
        look_at_one(seed)
    except AssertionError as error:
        return str(error).partition("\n")[0]
    return None


def laws(seed: int) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """All that is tried, by name."""
    yield "checks in loops", in_loops
    yield "two checks", of_two
    yield "prints of a gradient", derived
    yield "checks of indices", of_indices
    for pipeline in PIPELINES:
        yield f"prints after {pipeline}", lambda pipeline=pipeline: printed(pipeline)
    for number in range(seed * GENERATED, (seed + 1) * GENERATED):
        yield f"program {number}", lambda number=number: generated(number)


def already(seed: int) -> list[str]:
    """What is wrong with nothing patched."""
    return [f"{name}: {why}" for name, law in laws(seed) if (why := law()) is not None]


@judge_of("looking", already)
def judge_looking(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first law that does not hold."""
    tried = 0
    for tried, (name, law) in enumerate(laws(seed), 1):
        try:
            why = law()
        except (GcompError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        if why is not None:
            return Kill(tried, f"{name}: {why}")
    return Survival(tried)
