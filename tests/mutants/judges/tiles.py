"""Judges the tile level: kernels of generated programs as tile programs, in the evaluator, against the reference."""

from __future__ import annotations

from functools import lru_cache

from gcomp.errors import GcompError
from gcomp.ir.program import Program
from gcomp.testing.fuzz.coverage import Coverage
from gcomp.testing.fuzz.kernels import Cut, cut, run_kernels
from gcomp.testing.fuzz.plan import TILE, Plan
from gcomp.testing.generate.choices import Seeded
from tests.mutants.judges import Kill, Survival, judge_of
from tests.mutants.mutant import Mutant

PROGRAMS, DIRECTED = 400, 80
"""Generated programs, each of some four kernels, and programs of what these seldom hold."""

TEXTS = (
    """func.func @main(%x: tensor<4x5xFLOAT>, %y: tensor<4x5xFLOAT>) -> tensor<4x5xi1> {
  %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4x5xFLOAT>, tensor<4x5xFLOAT>) -> tensor<4x5xi1>
  return %z : tensor<4x5xi1>
}""",
    """func.func @main(%x: tensor<12xNARROW>, %y: tensor<12xNARROW>) -> tensor<12xi1> {
  %0 = stablehlo.OP %x, %y : tensor<12xNARROW>
  %z = stablehlo.compare LT, %0, %x : (tensor<12xNARROW>, tensor<12xNARROW>) -> tensor<12xi1>
  return %z : tensor<12xi1>
}""",
    """func.func @main(%x: tensor<3x5x4xf32>, %y: tensor<3x4x6xf32>) -> tensor<3x5x6xf32> {
  %z = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<3x5x4xf32>, tensor<3x4x6xf32>) -> tensor<3x5x6xf32>
  return %z : tensor<3x5x6xf32>
}""",
)
"""A total order, integers of few bits that leave their range, and products of batches (every other one)."""
_WORDS = {"FLOAT": ("f32", "f16", "f64"), "NARROW": ("i4", "i2", "ui4"), "OP": ("add", "multiply", "subtract")}


def directed(number: int, plan: Plan) -> Cut:
    """The program of a number, of those texts."""
    choices, text = Seeded(number), TEXTS[min(number % 4, 2)]
    for word, options in _WORDS.items():
        text = text.replace(word, choices.chosen(options))
    return cut(number, plan, Program.parse(text))


@lru_cache(1)
def prepared(seed: int) -> tuple[list[Cut], list[str]]:
    """The programs of a seed, and what is wrong with others with nothing patched: these would kill controls."""
    plan, good, wrong = Plan(target=TILE), list[Cut](), list[str]()
    first = seed << 32
    for number in range(first, first + DIRECTED + PROGRAMS):
        try:
            made = (directed if number < first + DIRECTED else cut)(number, plan)
            found = run_kernels(made, Coverage()).found
        except GcompError:
            continue  # the passes or the reference refuse it
        if found is None:
            good.append(made)
        else:
            wrong.append(found.message)
    return good, wrong


def failures(seed: int) -> list[str]:
    """Prepare: texts of what is wrong already."""
    return prepared(seed)[1]


@judge_of("tiles", failures)
def judge(seed: int, mutant: Mutant) -> Kill | Survival:
    """The first program one of whose kernels is wrong."""
    good = prepared(seed)[0]
    for tried, made in enumerate(good, 1):
        try:
            found = run_kernels(made, Coverage()).found
        except GcompError:
            continue  # the reference's own
        if found is not None:
            return Kill(tried, found.message)
    return Survival(len(good))
