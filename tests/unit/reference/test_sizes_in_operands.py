"""Operands that are sizes and contradict their op: refused as the model's fault, by the reference and after shapes."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dims import parse
from gcomp.errors import InvalidModelError
from gcomp.ir.program import Program
from gcomp.ir.types import below, differ_always
from gcomp.passes.base import PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret

CASES = {
    "pad": "%0 = stablehlo.dynamic_pad %x, %z, %o, %o, %s : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, "
    "tensor<1xi64>) -> tensor<3xf32>",
    "stride": "%0 = stablehlo.real_dynamic_slice %x, %o, %t, %s : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, "
    "tensor<1xi64>) -> tensor<3xf32>",
    "reshape": "%0 = stablehlo.dynamic_reshape %x, %s : (tensor<3xf32>, tensor<1xi64>) -> tensor<3xf32>",
    "iota": "%0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<3xf32>",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [-1, -2])
def test_contradictions_are_refused(name: str, size: int) -> None:
    program = Program.parse(f"""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %o = stablehlo.constant dense<0> : tensor<1xi64>
      %t = stablehlo.constant dense<3> : tensor<1xi64>
      %s = stablehlo.constant dense<{size}> : tensor<1xi64>
      {CASES[name]}
      return %0 : tensor<3xf32>
    }}""")
    for step in parse_pipeline("infer-shapes"):
        step.run(program, PassContext())
    program.verify()
    with pytest.raises(InvalidModelError):
        interpret(program, [np.zeros(3, np.float32)])


def test_a_symbol_may_be_0() -> None:
    assert not differ_always(parse("n + 1"), 1) and differ_always(parse("n + 2"), 1)
    assert not below(0, parse("n")) and below(parse("n"), parse("n + 1"))
