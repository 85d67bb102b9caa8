"""Loops that write a place of a stack in each turn: each once, out of range, or several times."""

from __future__ import annotations

from gcomp.ir.program import Program

LOOP = """
func.func @main(%x: tensor<4xf64> {gcomp.name = "x"}, %begun: tensor<4xf64> {gcomp.name = "begun"}) -> (tensor<f64> {gcomp.name = "loss"}) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %three = stablehlo.constant dense<3> : tensor<i64>
  %turns = stablehlo.constant dense<4> : tensor<i64>
  %empty = stablehlo.constant dense<0.5> : tensor<4xf64>
  %n, %carry, %stack = stablehlo.while(%i = %zero, %c = %x, %s = START) : tensor<i64>, tensor<4xf64>, tensor<4xf64>
  cond {
    %more = stablehlo.compare LT, %i, %turns : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i64>
    %grown = stablehlo.sine %c : tensor<4xf64>
    %row = stablehlo.slice %grown [1:2] : (tensor<4xf64>) -> tensor<1xf64>
    INDEX
    %t = stablehlo.dynamic_update_slice %s, %row, %at : (tensor<4xf64>, tensor<1xf64>, tensor<i64>) -> tensor<4xf64>
    %d = stablehlo.multiply %grown, %x : tensor<4xf64>
    stablehlo.return %next, %d, %t : tensor<i64>, tensor<4xf64>, tensor<4xf64>
  }
  %weights = stablehlo.constant dense<[1.0, -2.0, 3.0, 5.0]> : tensor<4xf64>
  %cubes = stablehlo.multiply %stack, %weights : tensor<4xf64>
  %start = stablehlo.constant dense<0.0> : tensor<f64>
  %loss = stablehlo.reduce(%cubes init: %start) applies stablehlo.add across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
  return %loss : tensor<f64>
}
"""  # noqa: E501
INDICES = {
    "in order": "%at = stablehlo.add %i, %zero : tensor<i64>",
    "in reverse": "%at = stablehlo.subtract %three, %i : tensor<i64>",
    "beyond the end": "%at = stablehlo.add %i, %two : tensor<i64>",
    "before the beginning": "%at = stablehlo.subtract %two, %i : tensor<i64>",
    "twice each": "%at = stablehlo.divide %i, %two : tensor<i64>",
    "always one": "%at = stablehlo.minimum %one, %two : tensor<i64>",
}


def program(index: str, start: str) -> Program:
    """The loop that writes at one of `INDICES`, into a stack that is `%empty` or the input `%begun`."""
    return Program.parse(LOOP.replace("INDEX", INDICES[index]).replace("START", start))
