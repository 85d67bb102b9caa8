"""Wrong passes that every judge refutes: `python -m tests.verdicts` prints which does."""

from __future__ import annotations

from dataclasses import dataclass, field

from gcomp.ir.program import Program
from gcomp.sources import import_model


@dataclass(frozen=True)
class Wrong:
    """A wrong pass, and a program on which it is wrong at some inputs of some sizes."""

    name: str
    program: str
    sizes: dict[str, str] = field(default_factory=dict[str, str])
    """The ranges of the program's symbols, as `--dim` takes them."""
    why: str = ""
    """What the pass does, and where it is wrong."""

    def parsed(self) -> Program:
        """The program."""
        return import_model(self.program, dims=self.sizes)


WRONG = (
    Wrong("subtract-self", """
func.func @main(%x: tensor<4x5xf32> {gcomp.name = "x"}, %y: tensor<4x5xf32> {gcomp.name = "y"}) -> tensor<4x5xf32> {
  %0 = stablehlo.add %x, %y : tensor<4x5xf32>
  %1 = stablehlo.subtract %0, %0 : tensor<4x5xf32>
  %2 = stablehlo.multiply %x, %y : tensor<4x5xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}""", why="x - x becomes 0, also where x is NaN or infinite."),
    Wrong("minimum-with-two", """
func.func @main(%x: tensor<?x3xf32, ["n", "3"]> {gcomp.name = "x"}) -> tensor<?x3xf32, ["n", "3"]> {
  %0 = gcomp.dim "min(2, n)" : tensor<i64>
  %1 = stablehlo.convert %0 : (tensor<i64>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<?x3xf32, ["n", "3"]>
  %3 = stablehlo.multiply %x, %2 : tensor<?x3xf32, ["n", "3"]>
  return %3 : tensor<?x3xf32, ["n", "3"]>
}""", {"n": "1..64"}, "min(n, 2) becomes 2, also where n is 1."),
    Wrong("maximum-without-init", """
func.func @main(%x: tensor<4x?xf32, ["4", "n"]> {gcomp.name = "x"}) -> tensor<4xf32> {
  %low = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<4x?xf32, ["4", "n"]>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""", {"n": "0..8"}, "a maximum begins at -inf in place of the least number, which shows for rows without elements."),
    Wrong("atan2-swapped", """
func.func @main(%x: tensor<6xf32> {gcomp.name = "x"}, %y: tensor<6xf32> {gcomp.name = "y"}) -> tensor<6xf32> {
  %0 = stablehlo.cbrt %x : tensor<6xf32>
  %1 = stablehlo.sine %0 : tensor<6xf32>
  %2 = stablehlo.cbrt %y : tensor<6xf32>
  %3 = stablehlo.cosine %2 : tensor<6xf32>
  %4 = stablehlo.atan2 %1, %3 : tensor<6xf32>
  return %4 : tensor<6xf32>
}""", why="atan2(sin(cbrt(x)), cos(cbrt(y))) has its operands swapped: no program has that by chance."),
)  # fmt: skip
