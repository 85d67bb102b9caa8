"""Symbolic dimensions inside tuples and futures: binding them, and holes for them in export text."""

from __future__ import annotations

import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib

from gcomp.ir.program import Program
from gcomp.lowering.xla.export import export
from gcomp.runtime.template import Template

PROGRAMS = {
    "tuple": """
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<i32>) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.tuple %x, %y : tuple<tensor<?xf32, ["n"]>, tensor<i32>>
  %1 = stablehlo.tuple %0 : tuple<tuple<tensor<?xf32, ["n"]>, tensor<i32>>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tuple<tensor<?xf32, ["n"]>, tensor<i32>>>)
      -> tuple<tensor<?xf32, ["n"]>, tensor<i32>>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<?xf32, ["n"]>, tensor<i32>>) -> tensor<?xf32, ["n"]>
  return %3 : tensor<?xf32, ["n"]>
}""",
    "future": """
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n - 1"]> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<?xf32, ["n"]>):
    %s = stablehlo.slice %a [1:"n"] : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n - 1"]>
    stablehlo.return %s : tensor<?xf32, ["n - 1"]>
  }) : (tensor<?xf32, ["n"]>) -> !stablehlo.future<tensor<?xf32, ["n - 1"]>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<?xf32, ["n - 1"]>>) -> tensor<?xf32, ["n - 1"]>
  return %1 : tensor<?xf32, ["n - 1"]>
}""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bound_programs_verify_and_have_no_symbols(name: str) -> None:
    bound = Program.parse(PROGRAMS[name]).bind({"n": 3})
    bound.verify()
    assert "?" not in bound.text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_export_text_has_holes_for_them(name: str) -> None:
    text = Template(export(Program.parse(PROGRAMS[name]), {"main": ()}, ())).fill({"n": 3})
    assert "?" not in text
    jaxlib.Module.parse(text, mlir.make_ir_context()).operation.verify()
