"""How far windows reach."""

from __future__ import annotations

import pytest

from gcomp.analysis.windows import offsets_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program


def offsets(window: str, init: str = "0.0", fold: str = "add", more: str = "") -> list[str]:
    x = 'tensor<1x?xf32, ["1", "n"]>'
    program = Program.parse(
        f"""func.func @main(%x: {x}) -> tensor<*xf32> {{
      %init = stablehlo.constant dense<{init}> : tensor<f32>
      %pad = stablehlo.constant dense<0.0> : tensor<f32>
      %y = stablehlo.pad %x, %pad, low = [0, 2], high = [0, 100], interior = [0, 0]
        : ({x}, tensor<f32>) -> tensor<1x?xf32, ["1", "n + 102"]>
      %z = "stablehlo.reduce_window"(%y, %init) <{{window_dimensions = array<i64: 1, {window}>{more}}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %m = stablehlo.{fold} %a, %b : tensor<f32>
          stablehlo.return %m : tensor<f32>
      }}) : (tensor<1x?xf32, ["1", "n + 102"]>, tensor<f32>) -> tensor<1x?xf32>
      func.return %z : tensor<1x?xf32>
    }}""".replace("tensor<*xf32>", "tensor<1x?xf32>")
    )
    (op,) = [op for op in program.ops() if isinstance(op, hlo.ReduceWindowOp)]
    return [*map(str, offsets_of(op))]


def test_windows_end_where_there_are_only_identities() -> None:
    assert offsets("1280") == ["1", "max(0, min(1280, n + 2))"]
    assert offsets("1280", more=", window_dilations = array<i64: 1, 3>") == [
        "1",
        "max(0, min(1280, floordiv(n + 1, 3) + 1))",
    ]


@pytest.mark.parametrize(("init", "fold"), [("1.0", "add"), ("0.0", "maximum")])
def test_windows_that_start_with_another_number_look_at_all(init: str, fold: str) -> None:
    assert offsets("1280", init, fold) == ["1", "1280"]
    assert offsets("7", "0xFF800000", "maximum") == ["1", "max(0, min(7, n + 102))"], "the padding is 0, and counts"
