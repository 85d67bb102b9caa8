"""chlo.ragged_dot and chlo.scan: JAX's own definitions, the pass that writes them as StableHLO, and XLA."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from jax import lax

import gcomp
from gcomp.errors import UnsupportedError, VerificationError
from gcomp.ir import chlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.structures import RaggedDotDimensions
from gcomp.ir.types import tensor
from gcomp.lowering.xla import lower
from gcomp.passes.base import PassContext
from gcomp.passes.convert.expand_chlo import ExpandChlo
from gcomp.reference.interpreter import interpret

Array = np.ndarray[Any, Any]

# ---- ragged_dot ------------------------------------------------------------------------------------------------------

SHAPES = {"b": 2, "m": 5, "k": 4, "n": 3, "h": 2, "g": 3}
"""Sizes by letter; `g` counts the groups."""
CASES: dict[str, tuple[str, str, str, str, str]] = {
    # lhs, rhs, group_sizes, ragged, result
    "free": ("mk", "gkn", "g", "m", "mn"),
    "free, batched": ("bmk", "gbkn", "bg", "m", "bmn"),
    "free, groups inside": ("mbk", "bkgn", "bg", "m", "bmn"),
    "free, one more outside": ("hmk", "kgn", "hg", "m", "hmn"),
    "free, the same groups for each batch": ("bmk", "bgkn", "g", "m", "bmn"),
    "contracted": ("mk", "kn", "g", "k", "gmn"),
    "contracted, batched": ("kbm", "nkb", "bg", "k", "gbmn"),
    "contracted, one more outside": ("hkm", "nkh", "hg", "k", "gmn"),
    "contracted, the same groups for each batch": ("bmk", "bkn", "g", "k", "gbmn"),
    "batched": ("bmk", "bkn", "g", "b", "bmn"),
}


def dimensions(lhs: str, rhs: str, ragged: str) -> RaggedDotDimensions:
    """`b` is batched, `k` contracted; `h` is contracted where both sides have it."""
    contracted = [c for c in "hk" if c in lhs and c in rhs]
    return RaggedDotDimensions(
        *((tuple(s.index(c) for c in "b" if c in s)) for s in (lhs, rhs)),
        *((tuple(s.index(c) for c in contracted)) for s in (lhs, rhs)),
        (lhs.index(ragged),),
        (rhs.index("g"),) if "g" in rhs else (),
    )


def ragged_program(name: str, element: str, sizes: Array | None = None) -> Program:
    lhs, rhs, groups, ragged, result = CASES[name]
    types = [tensor([SHAPES[c] for c in letters], element) for letters in (lhs, rhs)]
    types.append(tensor([SHAPES[c] for c in groups], "i32"))
    program = Program.empty(list(zip(("x", "y", "g"), types, strict=True)))
    made = Builder(program).emit(
        chlo.RaggedDotOp, *program.block.args, types=(tensor([SHAPES[c] for c in result], element),),
        ragged_dot_dimension_numbers=dimensions(lhs, rhs, ragged),
    )  # fmt: skip
    program.finish([("z", made)])
    program.verify()
    return program


def ragged_inputs(name: str, dtype: str, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    lhs, rhs, groups, ragged, _ = CASES[name]
    shapes = [[SHAPES[c] for c in letters] for letters in (lhs, rhs, groups)]
    arrays = [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes[:2]]
    # Groups that leave rows over, empty ones, and ones beyond the end.
    return [*arrays, rng.integers(0, SHAPES[ragged], shapes[2]).astype(np.int32)]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_ragged_dot_is_what_jax_defines(name: str, dtype: str) -> None:
    lhs, rhs, _, ragged, _ = CASES[name]
    d = dimensions(lhs, rhs, ragged)
    numbers = lax.RaggedDotDimensionNumbers(((d[2], d[3]), (d[0], d[1])), d[4], d[5])
    for seed in range(4):
        arrays = ragged_inputs(name, dtype, seed)
        (result,) = interpret(ragged_program(name, {"float32": "f32", "int8": "i8"}[dtype]), arrays)
        assert np.array_equal(result, lax.ragged_dot_general(*arrays, numbers))


@pytest.mark.parametrize("name", CASES)
def test_ragged_dot_compiles_to_the_same(name: str) -> None:
    program, arrays = ragged_program(name, "f32"), ragged_inputs(name, "float32")
    expected = interpret(program, arrays)
    with pytest.raises(UnsupportedError, match="expand-chlo"):
        lower(program)
    assert np.array_equal(gcomp.compile(program, verify="full")(*arrays)[0], expected[0])


def test_rows_meet_no_other_group_and_negative_sizes_are_none() -> None:
    program = ragged_program("free", "f32")
    x, y = np.ones((5, 4), np.float32), np.ones((3, 4, 3), np.float32)
    x[4], y[1] = np.nan, np.inf
    arrays = [x, y, np.array([2, -3, 2], np.int32)]
    expanded = program.clone()
    assert ExpandChlo().run(expanded, PassContext())
    for each in (program, expanded):
        assert np.array_equal(interpret(each, arrays)[0], np.array([[4.0] * 3] * 4 + [[0.0] * 3]))


RAGGED = """func.func @main(%x: tensor<5x4xf32>, %y: tensor<3x4x2xf32>, %g: tensor<GROUPS>) -> tensor<RESULTxf32> {
  %r = "chlo.ragged_dot"(%x, %y, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
    : (tensor<5x4xf32>, tensor<3x4x2xf32>, tensor<GROUPS>) -> tensor<RESULTxf32>
  func.return %r : tensor<RESULTxf32>
}"""


@pytest.mark.parametrize(
    "groups, result, constraint", [("i32", "5x2", "C7"), ("5x3xi32", "5x2", "C7"), ("4xi32", "5x2", "C8"),
                                   ("3xi32", "2x5", "C9"), ("3xi32", "3x5x2", "C9")],
)  # fmt: skip
def test_ragged_dots_that_do_not_fit_are_refused(groups: str, result: str, constraint: str) -> None:
    with pytest.raises(VerificationError, match=f"ragged_dot-{constraint}"):
        Program.parse(RAGGED.replace("GROUPS", groups).replace("RESULT", result))


# ---- scan ------------------------------------------------------------------------------------------------------------

SCAN = """
module attributes {gcomp.ranges = {n = "0..9"}} {
func.func @main(%x: tensor<?x2xf32, ["n", "2"]>, %i: tensor<?x2xi32, ["n", "2"]>, %c: tensor<2xf32>, %s: tensor<i32>)
    -> (tensor<?x2xf32, ["n", "2"]>, tensor<?xi32, ["n"]>, tensor<2xf32>, tensor<i32>) {
  %r:4 = "chlo.scan"(%x, %i, %c, %s) <{dimension = 0 : i64, is_reverse = REVERSE,
      operandSegmentSizes = array<i32: 2, 2>, resultSegmentSizes = array<i32: 2, 2>}> ({
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xi32>, %carry: tensor<2xf32>, %count: tensor<i32>):
    %two = stablehlo.constant dense<2.0> : tensor<2xf32>
    %t = stablehlo.multiply %carry, %two : tensor<2xf32>
    %sum = stablehlo.add %a, %t : tensor<2xf32>
    %out = stablehlo.subtract %a, %carry : tensor<2xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %total = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
    %next = stablehlo.add %count, %total : tensor<i32>
    stablehlo.return %out, %count, %sum, %next : tensor<2xf32>, tensor<i32>, tensor<2xf32>, tensor<i32>
  }) : (tensor<?x2xf32, ["n", "2"]>, tensor<?x2xi32, ["n", "2"]>, tensor<2xf32>, tensor<i32>)
    -> (tensor<?x2xf32, ["n", "2"]>, tensor<?xi32, ["n"]>, tensor<2xf32>, tensor<i32>)
  func.return %r#0, %r#1, %r#2, %r#3
    : tensor<?x2xf32, ["n", "2"]>, tensor<?xi32, ["n"]>, tensor<2xf32>, tensor<i32>
}
}
"""


def scanned(x: Array, i: Array, c: Array, s: Array, reverse: bool) -> list[Array]:
    """JAX's scan of the same body."""

    def step(carry: Any, row: Any) -> Any:
        (sum, count), (a, b) = carry, row
        return (a + 2 * sum, count + b.sum(dtype=b.dtype)), (a - sum, count)

    (c, s), (y, counts) = lax.scan(step, (c, s), (x, i), reverse=reverse)
    return [np.asarray(v) for v in (y, counts, c, s)]


@pytest.mark.parametrize("size, reverse", list(product((0, 1, 4), (False, True))))
def test_scan_is_what_jax_defines(size: int, reverse: bool) -> None:
    program = Program.parse(SCAN.replace("REVERSE", str(reverse).lower()))
    rng = np.random.default_rng(size)
    arrays = [rng.integers(-5, 6, (size, 2)).astype(t) for t in (np.float32, np.int32)]
    arrays += [np.array([3, -1], np.float32), np.array(7, np.int32)]
    expected = scanned(*arrays, reverse)
    model = gcomp.compile(program.clone())
    for results in (interpret(program, arrays), model(*arrays)):
        assert all(map(np.array_equal, results, expected))


def test_a_scan_without_inputs_counts_by_its_size() -> None:
    text = """func.func @main(%c: tensor<i32>) -> (tensor<SIZExi32>, tensor<i32>) {
      %r:2 = "chlo.scan"(%c) <{dimension = 0 : i64, scan_dim_size = SIZE : i64,
          operandSegmentSizes = array<i32: 0, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%a: tensor<i32>):
        %s = stablehlo.add %a, %a : tensor<i32>
        stablehlo.return %a, %s : tensor<i32>, tensor<i32>
      }) : (tensor<i32>) -> (tensor<SIZExi32>, tensor<i32>)
      func.return %r#0, %r#1 : tensor<SIZExi32>, tensor<i32>
    }"""
    for size in (0, 1, 5):
        program = Program.parse(text.replace("SIZE", str(size)))
        expected = [np.int32(3) << np.arange(size, dtype=np.int32), np.int32(3) << np.int32(size)]
        start = np.array(3, np.int32)
        runs = [interpret(program, [start]), gcomp.compile(program.clone())(start)]
        if size:
            # XLA has the op, but not without steps.
            runs.append(gcomp.compile(program.clone(), target="xla:cpu", pipeline="cse")(start))
        for results in runs:
            assert all(map(np.array_equal, results, expected))


def test_scans_that_xla_cannot_take_name_the_pass() -> None:
    text = SCAN.replace("REVERSE", "false").replace('"0..9"', '"2..2"')
    captured = Program.parse(text.replace("%t = stablehlo.multiply %carry, %two", "%t = stablehlo.multiply %carry, %c"))
    with pytest.raises(UnsupportedError, match="expand-chlo"):
        gcomp.compile(captured.clone(), target="xla:cpu", pipeline="cse")
    arrays = [np.ones((2, 2), np.float32), np.ones((2, 2), np.int32), np.ones(2, np.float32), np.array(1, np.int32)]
    assert all(map(np.array_equal, gcomp.compile(captured)(*arrays), interpret(captured, arrays)))


@pytest.mark.parametrize(
    "old, new", [("dimension = 0 : i64", "dimension = 0 : i64, scan_dim_size = 3 : i64"),
                 ("dimension = 0 : i64", "dimension = 2 : i64")],
)  # fmt: skip
def test_scans_that_do_not_fit_are_refused(old: str, new: str) -> None:
    text = SCAN.replace("REVERSE", "false").replace('"0..9"', '"2..2"')
    with pytest.raises(VerificationError, match="scan-C"):
        Program.parse(text.replace(old, new))
