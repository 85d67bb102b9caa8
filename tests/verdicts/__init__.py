"""Wrong passes that every judge refutes: `python -m tests.verdicts` prints which does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gcomp.ir.program import Program
from gcomp.sources import import_model

FILES = [Path(__file__).with_name(name) for name in ("wrong.py", "conditions.py")]
"""Where the passes are, for `--load`."""


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
    Wrong("log-of-exp", """
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.exponential %x : tensor<6xf32>
  %1 = stablehlo.log %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="log(exp(x)) becomes x, also where exp(x) overflows."),
    Wrong("cancel", """
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.subtract %y, %x : tensor<6xf32>
  %1 = stablehlo.add %x, %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="x + (y - x) becomes y, also where x is infinite."),
    Wrong("convert-back", """
func.func @main(%x: tensor<6xi32>) -> tensor<6xi32> {
  %0 = stablehlo.convert %x : (tensor<6xi32>) -> tensor<6xf32>
  %1 = stablehlo.convert %0 : (tensor<6xf32>) -> tensor<6xi32>
  return %1 : tensor<6xi32>
}""", why="an i32 converted to f32 and back stays as it is, also between the numbers that f32 holds."),
    Wrong("half-size", """
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = gcomp.dim "2*floordiv(n, 2)" : tensor<i64>
  %1 = stablehlo.convert %0 : (tensor<i64>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<?xf32, ["n"]>
  %3 = stablehlo.add %x, %2 : tensor<?xf32, ["n"]>
  return %3 : tensor<?xf32, ["n"]>
}""", {"n": "2..64"}, "twice half of n becomes n, also where n is odd."),
    Wrong("known-branch", """
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %1 = "stablehlo.case"(%c) ({
    stablehlo.return %x : tensor<6xf32>
  }, {
    stablehlo.return %y : tensor<6xf32>
  }) : (tensor<i32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="a case of a constant takes its first branch for negative ones, and not the last."),
    Wrong("invariant-carry", """
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %a = %x, %b = %y, %s = %x)
    : tensor<i32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
   cond {
    %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.subtract %s, %a : tensor<6xf32>
    stablehlo.return %n, %b, %a, %t : tensor<i32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }
  return %0#3 : tensor<6xf32>
}""", why="what a loop carries counts as unchanged, also where two values are exchanged."),
    Wrong("window-of-one", """
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %c) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1>, padding = dense<[[1, -1]]> : tensor<1x2xi64>}
    : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="windows of one element are the elements, also where padding moves them."),
    Wrong("scatter-one", """
func.func @main(%x: tensor<6xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<6xf32> {
  %1 = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<6xf32>, tensor<1xi32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="a scatter of one element writes the nearest place where the index is out of bounds."),
    Wrong("divide-by-power", """
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c = stablehlo.constant dense<0x00000001> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.divide %x, %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="x / c becomes x * (1 / c) for powers of two, also where 1 / c overflows."),
    Wrong("reverse-of-one", """
func.func @main(%x: tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<?x3xf32, ["n", "3"]>
  return %0 : tensor<?x3xf32, ["n", "3"]>
}""", {"n": "1..64"}, "a reverse of a dimension that may be 1 is left out, also where it is longer."),
    Wrong("negative-below-zero", """
func.func @main(%x: tensor<6xi32>) -> tensor<6xi1> {
  %c = stablehlo.constant dense<0> : tensor<6xi32>
  %0 = stablehlo.negate %x : tensor<6xi32>
  %1 = stablehlo.compare LT, %0, %c : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  return %1 : tensor<6xi1>
}""", why="-x < 0 becomes x > 0 for integers, also for the least of them."),
    Wrong("pad-of-pad", """
func.func @main(%x: tensor<6xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  %0 = stablehlo.pad %x, %v, low = [-1], high = [0], interior = [0] : (tensor<6xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = stablehlo.pad %0, %v, low = [1], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}""", why="a pad of a pad adds up the amounts, also where the inner one cuts off what the outer one fills."),
    Wrong("transpose-of-transpose", """
func.func @main(%x: tensor<3x3x3xf32>) -> tensor<3x3x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<3x3x3xf32>) -> tensor<3x3x3xf32>
  return %1 : tensor<3x3x3xf32>
}""", why="two permutations are composed in the wrong order, where the shapes allow it."),
    Wrong("sort-down", """
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}""", why="sorting downwards becomes sorting upwards and reversing, also for zeros of both signs and NaN."),
    Wrong("read-beside-write", """
func.func @main(%x: tensor<6xf32>, %u: tensor<2xf32>) -> tensor<2xf32> {
  %four = stablehlo.constant dense<4> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %four : (tensor<6xf32>, tensor<2xf32>, tensor<i32>) -> tensor<6xf32>
  %1 = stablehlo.dynamic_slice %0, %six, sizes = [2] : (tensor<6xf32>, tensor<i32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}""", why="what is read behind a write is read before it, also where the start is clamped back onto it."),
    Wrong("not-of-compare", """
func.func @main(%x: tensor<6xi32>, %y: tensor<6xi32>) -> tensor<6xi1> {
  %0 = stablehlo.compare LT, %x, %y : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %1 = stablehlo.not %0 : tensor<6xi1>
  %2 = stablehlo.compare EQ, %0, %1 : (tensor<6xi1>, tensor<6xi1>) -> tensor<6xi1>
  return %2 : tensor<6xi1>
}""", why="a comparison is changed in place to its opposite, also where something else reads it."),
)  # fmt: skip
