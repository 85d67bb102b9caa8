"""Products as lists of factors: of any depth, and no longer than a pattern has use for."""

from __future__ import annotations

from gcomp.analysis.spreads import MOST_FACTORS, Read, factors
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.raising.raise_activations import monomial
from gcomp.passes.registry import all_passes


def result(*lines: str) -> tuple[Program, Read]:
    """A program of one line after the other on %x and %0, and its output."""
    body = "\n".join(f"  %{i + 1} = {line.format(i)} : tensor<4xf32>" for i, line in enumerate(lines))
    program = Program.parse(
        "func.func @main(%x: tensor<4xf32>, %0: tensor<4xf32>) -> tensor<4xf32> {\n"
        f"{body}\n  return %{len(lines)} : tensor<4xf32>\n}}"
    )
    return program, Read.of(program.returned.operands[0])


def test_a_value_that_is_squared_again_and_again_is_one_factor() -> None:
    """It has 2 ** 80 of them: powers of integers, decomposed, were listed for ever."""
    program, read = result(*["stablehlo.multiply %{0}, %{0}"] * 80)
    assert [f.value for f in factors(read)] == [read.value]
    for step in all_passes().values():
        if step.name.startswith("raise-"):
            step().run(program, PassContext())


def test_a_long_product_is_one_factor() -> None:
    _, read = result(*["stablehlo.multiply %{}, %x"] * 3000)
    assert [f.value for f in factors(read)] == [read.value]


def test_the_factors_of_a_short_product_are_in_order() -> None:
    program, read = result("stablehlo.multiply %{}, %x", "stablehlo.multiply %x, %{}")
    x, y = program.block.args
    assert [f.value for f in factors(read)] == [x, y, x]


def test_powers_of_powers_and_chains_of_negations_end() -> None:
    cubes = ["stablehlo.constant dense<3.0>", *["stablehlo.power %{}, %1"] * 40]
    _, read = result(*cubes)
    assert monomial(read) == (1.0, [read])
    _, read = result(*["stablehlo.negate %{}"] * 3000)
    assert monomial(read) == (1.0, [read])
    _, read = result(*["stablehlo.negate %{}"] * 3)
    number, rest = monomial(read)
    assert number == -1 and len(rest) == 1 <= MOST_FACTORS


def test_the_power_of_a_large_number_is_infinite() -> None:
    _, read = result("stablehlo.constant dense<3.0>", "stablehlo.constant dense<1.0e+38>", "stablehlo.power %{}, %1",
                     "stablehlo.power %{}, %1")  # fmt: skip
    number, rest = monomial(read)
    assert number == float("inf") and not rest
