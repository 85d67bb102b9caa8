"""What may be removed when its results are not used: a custom call and a composite are as pure as they say."""

from __future__ import annotations

import pytest
from xdsl.traits import is_side_effect_free

from gcomp.ir import stablehlo as hlo
from gcomp.ir import text

PROGRAM = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %r = stablehlo.composite "my.op" %x {{decomposition = @impl}} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}}
func.func private @impl(%x: tensor<2xf32>) -> tensor<2xf32> {{
  {body}
  func.return %y : tensor<2xf32>
}}"""
CALL = "%y = stablehlo.custom_call @f(%x) {{has_side_effect = {}}} : (tensor<2xf32>) -> tensor<2xf32>"
NESTED = """%y = "stablehlo.while"(%x) ({{
  ^bb0(%a: tensor<2xf32>):
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<2xf32>):
    {}
    stablehlo.return %y : tensor<2xf32>
  }}) : (tensor<2xf32>) -> tensor<2xf32>"""


@pytest.mark.parametrize(
    ("body", "pure"),
    [
        ("%y = stablehlo.negate %x : tensor<2xf32>", True),
        (CALL.format("false"), True),
        (CALL.format("true"), False),
        (NESTED.format(CALL.format("false")), True),
        (NESTED.format(CALL.format("true")), False),
        ('%y = stablehlo.composite "other.op" %x {decomposition = @impl} : (tensor<2xf32>) -> tensor<2xf32>', True),
        ("%y = func.call @main(%x) : (tensor<2xf32>) -> tensor<2xf32>", False),
    ],
)
def test_a_composite_has_the_effects_of_its_decomposition(body: str, pure: bool) -> None:
    module = text.parse_module(PROGRAM.format(body=body))
    composite = next(op for op in module.walk() if isinstance(op, hlo.CompositeOp))
    assert is_side_effect_free(composite) is pure


def test_a_composite_without_its_function_is_not_pure() -> None:
    module = text.parse_module(PROGRAM.format(body="%y = stablehlo.negate %x : tensor<2xf32>"))
    composite = next(op for op in module.walk() if isinstance(op, hlo.CompositeOp))
    composite.detach()
    assert not is_side_effect_free(composite)
