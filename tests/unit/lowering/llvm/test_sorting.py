"""Sorts as machine code: of long rows sorted chunks are merged; of rows that are cut only so much is kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gcomp.dtypes import dtype_of
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.llvm.settings import settings_for
from gcomp.lowering.tiles.schedules import schedule
from tests.unit.lowering.llvm.test_lower import agree, planned

ORDER = {
    "ascending": "%r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "descending": "%r = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "total": "%r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "by the second": "%r = stablehlo.compare LT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
}


def sort(order: str, n: int, kept: int | None = None) -> str:
    """Two operands, sorted along the first of two dimensions; the first `kept` rows of both results."""
    x, y = f"tensor<{n}x3xf32>", f"tensor<{n}x3xi32>"
    cut = ""
    values, out = ("%s#0", "%s#1"), (x, y)
    if kept is not None:
        values, out = ("%f", "%g"), (f"tensor<{kept}x3xf32>", f"tensor<{kept}x3xi32>")
        cut = f"""%f = stablehlo.slice %s#0 [0:{kept}, 0:3] : ({x}) -> {out[0]}
          %g = stablehlo.slice %s#1 [0:{kept}, 0:3] : ({y}) -> {out[1]}"""
    return f"""func.func @main(%x: {x}, %y: {y}) -> ({out[0]}, {out[1]}) {{
      %s:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
        {ORDER[order]}
        stablehlo.return %r : tensor<i1>
      }}) : ({x}, {y}) -> ({x}, {y})
      {cut}
      return {values[0]}, {values[1]} : {out[0]}, {out[1]}
    }}"""


def values(n: int, order: str) -> tuple[np.ndarray, np.ndarray]:
    """Few different numbers, zeros of both signs, and NaN where the comparator has a place for it."""
    random = np.random.default_rng(n)
    odd = [np.nan, -np.nan] if order == "total" else []
    x = random.choice(np.array([-2.5, -0.0, 0.0, 1.0, 7.0, np.inf, -np.inf, *odd], np.float32), (n, 3))
    return x, random.integers(-3, 3, (n, 3)).astype(np.int32)


@pytest.mark.parametrize(
    ("order", "n"), [*itertools.product(ORDER, [33, 49, 100]), ("total", 129), ("by the second", 257)]
)
def test_long_rows_are_merged(order: str, n: int) -> None:
    agree(sort(order, n), values(n, order))


@pytest.mark.parametrize(("n", "kept"), [(20, 3), (100, 1), (100, 16), (100, 17), (257, 40), (129, 129), (64, 0)])
def test_only_the_first_are_kept(n: int, kept: int) -> None:
    agree(sort("descending", n, kept), values(n, "descending"))


@pytest.mark.parametrize(
    ("order", "n", "kept"),
    [*((order, *size) for order in ORDER for size in [(36, 1), (70, 17)]), ("total", 64, 16), ("descending", 100, 20)],
)
def test_few_of_many_are_kept_as_all_are_looked_through(order: str, n: int, kept: int) -> None:
    program = planned(sort(order, n, kept))
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    (step,) = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512)).steps
    assert step.kernel.argument_roles.count("inout") == 2
    agree(sort(order, n, kept), values(n, order))


NAN_FIRST = """%g = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %n = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %o = stablehlo.compare EQ, %b, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %f = stablehlo.and %n, %o : tensor<i1>
        %r = stablehlo.or %g, %f : tensor<i1>"""
"""The greatest first, and NaN before them."""
SOME_NAN_LAST = NAN_FIRST.replace("NE, %a, %a", "NE, %b, %b").replace("EQ, %b, %b", "EQ, %a, %a")
EQUAL_TOO = ORDER["descending"].replace("GT", "GE")
ORDERS = {**ORDER, "NaN first": NAN_FIRST, "NaN last": SOME_NAN_LAST, "or equal": EQUAL_TOO}


def rows_of(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that rise, fall, have one number only or few that are not 0, and numbers with NaN and infinities."""
    random = np.random.default_rng(n)
    x = random.standard_normal((n, 3)).astype(np.float32)
    if kind == "odd":
        odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
        x = np.where(random.random((n, 3)) < 0.3, random.choice(odd, (n, 3)), x)
    elif kind != "random":
        steps = np.arange(n, dtype=np.float32)[:, None]
        x = {"rising": steps, "falling": -steps, "equal": 0 * steps, "few": np.where(x > 1.5, x, 0)}[kind] + 0 * x
    return x, random.integers(-3, 3, (n, 3)).astype(np.int32)


@pytest.mark.parametrize(
    ("order", "kind"),
    [*((order, "few") for order in ORDERS), *((order, "odd") for order in ("total", "NaN first", "NaN last")),
     *(("descending", kind) for kind in ("random", "rising", "falling", "equal"))],
)  # fmt: skip
def test_a_limit_says_what_of_long_rows_is_sorted(order: str, kind: str) -> None:
    text = sort("ascending", 140, 20).replace(ORDER["ascending"], ORDERS[order])
    program = planned(text)
    (launch,) = [op for op in program.ops() if isinstance(op, LaunchOp)]
    found = schedule(launch, "kernel", program.ranges, settings_for(launch, program.ranges, 512))
    assert found.form == "what a limit leaves of rows, sorted"
    agree(text, rows_of(kind, 140))


@pytest.mark.parametrize(("n", "kept"), [(64, 1), (65, 10), (300, 5), (129, 21)])
def test_rows_of_any_length_have_a_limit(n: int, kept: int) -> None:
    agree(sort("descending", n, kept), rows_of("random", n))


@pytest.mark.parametrize("n", [3, 17, 50])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui8", "f64"])
def test_the_greatest_of_rows_of_any_length(dtype: str, n: int) -> None:
    text = f"""func.func @main(%x: tensor<2x?x{dtype}, ["2", "n"]>) -> (tensor<2x3x{dtype}>, tensor<2x3xi32>) {{
      %0:2 = chlo.top_k(%x, k = 3) : tensor<2x?x{dtype}, ["2", "n"]> -> (tensor<2x3x{dtype}>, tensor<2x3xi32>)
      return %0#0, %0#1 : tensor<2x3x{dtype}>, tensor<2x3xi32>
    }}"""
    random = np.random.default_rng(n)
    for x in (random.integers(0, 5, (2, n)), np.arange(2 * n).reshape(2, n), np.arange(2 * n)[::-1].reshape(2, n)):
        agree(text, [x.astype(dtype_of(dtype))])


def test_the_cut_is_part_of_the_kernel() -> None:
    kernels = [op for op in planned(sort("ascending", 100, 5)).ops() if isinstance(op, LaunchOp)]
    assert [kernel.kind_name for kernel in kernels] == ["sort"]
    both = sort("ascending", 100, 5).replace("return %f, %g", "return %f, %s#1").replace(
        "-> (tensor<5x3xf32>, tensor<5x3xi32>)", "-> (tensor<5x3xf32>, tensor<100x3xi32>)"
    ).replace(": tensor<5x3xf32>, tensor<5x3xi32>", ": tensor<5x3xf32>, tensor<100x3xi32>")  # fmt: skip
    agree(both, values(100, "ascending"))
