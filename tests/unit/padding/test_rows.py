"""Padded programs mean what the programs mean, whatever their padding holds: each row of the table, bit by bit."""

from __future__ import annotations

import re

import pytest

from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.padding.programs import pad_program
from gcomp.padding.rows import audit
from gcomp.padding.table import KINDS, ROWS
from gcomp.passes.base import PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.testing.fuzz.door import Seen
from gcomp.testing.fuzz.padding import Padding
from gcomp.testing.generate.padded import CASES


def test_every_op_has_a_row() -> None:
    assert not audit()
    assert {row.kind for row in ROWS.values()} == set(KINDS)
    assert all(row.reason for row in ROWS.values() if row.kind == "refused")


@pytest.mark.parametrize("name", CASES)
def test_padding_changes_no_bit(name: str) -> None:
    program, door = CASES[name](), Padding()
    for number in range(6):
        wrong = door.judge(program, door.inputs(number, program), number, Seen())
        assert wrong is None, wrong


def test_the_cases_have_every_kind_of_row_but_what_is_refused() -> None:
    ops = {type(op) for make in CASES.values() for op in make().ops()}
    kinds = {ROWS[op].kind for op in ops if op in ROWS}
    assert kinds == set(KINDS) - {"refused"}
    neutral = {op for op, row in ROWS.items() if row.kind in ("neutral", "placed")}
    assert neutral - ops <= {hlo.DotOp, hlo.DynamicGatherOp}


# ---- what is refused ----

SORTED = """module attributes {gcomp.ranges = {n = "1..8"}} {
func.func @main(%x: tensor<?xf32, ["n"]>) -> (TYPE) {
  BODY
}
}"""
REFUSED = {
    "rng": ("tensor<?xf32, [\"n\"]>", """
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.constant dense<3> : tensor<1xi64>
  %y = "stablehlo.rng"(%a, %a, %s) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<?xf32, ["n"]>
  func.return %y : tensor<?xf32, ["n"]>""", "random numbers depend on how many are drawn"),
    "batch_norm": ("tensor<1xf32>", """
  %s = stablehlo.constant dense<1.0> : tensor<1xf32>
  %z = stablehlo.reshape %x : (tensor<?xf32, ["n"]>) -> tensor<?x1xf32, ["n", "1"]>
  %y, %m, %v = "stablehlo.batch_norm_training"(%z, %s, %s) <{epsilon = 0.1 : f32, feature_index = 1 : i64}>
    : (tensor<?x1xf32, ["n", "1"]>, tensor<1xf32>, tensor<1xf32>)
      -> (tensor<?x1xf32, ["n", "1"]>, tensor<1xf32>, tensor<1xf32>)
  func.return %m : tensor<1xf32>""", "reads elements that are not at the result's own place"),
    "no_zero": ("tensor<f8E8M0FNU>", """
  %y = stablehlo.convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xf8E8M0FNU, ["n"]>
  %z = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0]
    : (tensor<?xf8E8M0FNU, ["n"]>, tensor<?xf8E8M0FNU, ["n"]>) -> tensor<f8E8M0FNU>
  func.return %z : tensor<f8E8M0FNU>""", "f8E8M0FNU has no zero to pad with"),
    "shrinks": ("tensor<?xf32, [\"8 - n\"]>", """
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<?xf32, ["8 - n"]>
  func.return %y : tensor<?xf32, ["8 - n"]>""", "may be less for a longer input"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_safe_is_refused_and_named(name: str) -> None:
    type, body, why = REFUSED[name]
    text = SORTED.replace("TYPE", type).replace("BODY", body)
    program = Program.parse(text)
    with pytest.raises(UnsupportedError, match=re.escape(why)) as caught:
        pad_program(program, ["n"])
    assert "n cannot be padded: stablehlo." in caught.value.what
    assert caught.value.fix


def test_inputs_that_shrink_are_refused() -> None:
    text = """module attributes {gcomp.ranges = {n = "1..8"}} {
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["8 - n"]> {gcomp.name = "rest"}) -> tensor<?xf32, ["n"]> {
  func.return %x : tensor<?xf32, ["n"]>
}
}"""
    with pytest.raises(UnsupportedError, match="the size 8 - n of the input 'rest' may be less"):
        pad_program(Program.parse(text), ["n"])


def test_symbols_that_are_not_there_are_refused() -> None:
    text = SORTED.replace("TYPE", 'tensor<?xf32, ["n"]>').replace("BODY", 'func.return %x : tensor<?xf32, ["n"]>')
    with pytest.raises(UsageError, match="no symbolic dimension 'q'"):
        pad_program(Program.parse(text), ["q"])
    with pytest.raises(UsageError, match="named twice"):
        pad_program(Program.parse(text), ["n", "n"])
    program = Program.parse(text)
    (step,) = parse_pipeline("pad-dims{dims=n}")
    assert step.run(program, PassContext())
    with pytest.raises(UsageError, match="has an input 'length\\(n\\)' already"):
        step.run(program, PassContext())
    (empty,) = parse_pipeline("pad-dims")
    with pytest.raises(UsageError, match="not said which dimensions"):
        empty.run(program, PassContext())
    assert [port.name for port in program.inputs()] == ["input0", "length(n)"]
