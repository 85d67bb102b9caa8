"""What XLA would get wrong, or end the process over, comes out as the reference says. See upstream_bugs.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gcomp
from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.reference.interpreter import interpret

Array = np.ndarray[Any, Any]


def agree(function: str, *inputs: Array) -> None:
    """The target computes what the reference does, without passes in between."""
    text = f"func.func @main{function}"
    expected = interpret(Program.parse(text), list(inputs))
    found = gcomp.compile(text, target="xla:cpu", pipeline="")(*inputs)
    for old, new in zip(expected, found if isinstance(found, (list, tuple)) else [found], strict=True):
        actual = np.asarray(new)
        assert (old.dtype, old.shape) == (actual.dtype, actual.shape)
        wide = np.complex128 if old.dtype.kind == "c" else np.float64
        assert np.array_equal(old.astype(wide), actual.astype(wide), equal_nan=True), (old, actual)


def pairs(text: str) -> tuple[Array, Array]:
    """All pairs of numbers at the edges of an integer type."""
    limits: Any = ml_dtypes.iinfo(dtype_of(text))
    low, high = int(limits.min), int(limits.max)
    edges = {n for n in (0, 1, 2, 3, 7, 64, 65, 100, -1, -2, -65, low, low + 1, high, high // 2) if low <= n <= high}
    values = np.array(sorted(edges), np.uint64 if text == "ui64" else np.int64).astype(dtype_of(text))
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("text", ["i8", "ui8", "i32", "ui64", "i64", "i4", "ui2"])
def test_integers(text: str) -> None:
    a, b = pairs(text)
    type = f"tensor<{a.size}x{text}>"
    lines = {name: f"%{name} = stablehlo.{name} %x, %y : {type}" for name in ("divide", "remainder", "power")}
    if text not in ("i4", "ui2"):
        # Beside another op, where XLA refuses it.
        lines["sum"] = f"%m = chlo.mulhi %x, %y : {type}, {type} -> {type}\n%sum = stablehlo.add %m, %x : {type}"
    types, results = ", ".join([type] * len(lines)), ", ".join(f"%{name}" for name in lines)
    body = "\n".join(lines.values())
    agree(f"(%x: {type}, %y: {type}) -> ({types}) {{ {body}\n return {results} : {types} }}", a, b)


@pytest.mark.parametrize(("text", "wide"), [("ui4", "ui8"), ("i4", "i8"), ("ui2", "ui8"), ("i2", "i8")])
@pytest.mark.parametrize("op", ["add", "multiply", "subtract"])
def test_what_was_computed_in_few_bits_is_widened(op: str, text: str, wide: str) -> None:
    """And so it is on the way to a power, which is computed in 8 bits."""
    a, b = pairs(text)
    type, result = f"tensor<{a.size}x{text}>", f"tensor<{a.size}x{wide}>"
    agree(f"""(%x: {type}, %y: {type}) -> ({result}, {type}) {{
      %0 = stablehlo.{op} %x, %y : {type}
      %1 = stablehlo.convert %0 : ({type}) -> {result}
      %2 = stablehlo.power %x, %0 : {type}
      return %1, %2 : {result}, {type} }}""", a, b)  # fmt: skip


@pytest.mark.parametrize("text", ["i2", "ui2", "i4"])
@pytest.mark.parametrize("contracting", ["[2] x [2]", "[1] x [1]", "[1, 2] x [1, 2]"])
def test_products_of_few_bits(contracting: str, text: str) -> None:
    kept = [n for k, n in enumerate((3, 1, 2)) if str(k) not in contracting]
    result = f"tensor<{'x'.join(map(str, [*kept, *kept]))}x{text}>"
    agree(
        f"""(%x: tensor<3x1x2x{text}>) -> {result} {{
      %0 = stablehlo.dot_general %x, %x, contracting_dims = {contracting}
        : (tensor<3x1x2x{text}>, tensor<3x1x2x{text}>) -> {result}
      return %0 : {result} }}""",
        (np.arange(6) % 2).reshape(3, 1, 2).astype(dtype_of(text)),
    )


@pytest.mark.parametrize("op", ["divide", "remainder"])
@pytest.mark.parametrize("operands", ["%zero, %zero", "%low, %minus", "%x, %zero", "%rest, %rest"])
def test_divisions_that_fold(op: str, operands: str) -> None:
    agree(f"""(%x: tensor<i32>) -> tensor<i32> {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %minus = stablehlo.constant dense<-1> : tensor<i32>
      %low = stablehlo.constant dense<-2147483648> : tensor<i32>
      %rest = stablehlo.remainder %x, %one : tensor<i32>
      %0 = stablehlo.{op} {operands} : tensor<i32>
      return %0 : tensor<i32>
    }}""", np.array(-3, np.int32))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "divisor", "values"),
    [
        ("f16", -5.96e-08, [0.0, 6e-8, -1e-7]),  # XLA multiplies by its reciprocal, an infinity
        ("f16", 1.4e-05, [0.0, 1e-4, 1.0]),
        ("f32", 2.0**127, [3.0e38, -1.5e38, 0.0]),  # by a denormal, so 0
        ("bf16", 2.0**127, [3.0e38, -1.5e38, 0.0]),
        ("f64", 2.0**1023, [1.7e308, -(2.0**1022), 0.0]),
        ("f8E5M2", 1.5e-05, [0.0, 6e-5, 1.0]),
    ],
)
@pytest.mark.parametrize("form", ["stablehlo", "chlo"])
def test_quotients_by_what_has_no_reciprocal(form: str, text: str, divisor: float, values: list[float]) -> None:
    many, one = f"tensor<3x{text}>", f"tensor<{'3x' if form == 'stablehlo' else ''}{text}>"
    line = f"stablehlo.divide %x, %c : {many}"
    if form == "chlo":
        line = f"chlo.broadcast_divide %x, %c : ({many}, {one}) -> {many}"
    agree(
        f"""(%x: {many}) -> {many} {{
          %c = stablehlo.constant dense<{divisor}> : {one}
          %0 = {line}
          return %0 : {many}
        }}""",
        np.array(values).astype(dtype_of(text)),
    )


@pytest.mark.parametrize("text", ["ui8", "ui16", "ui32", "ui64"])
def test_unsigned_indices_beyond_the_end(text: str) -> None:
    most = int(np.iinfo(dtype_of(text)).max)
    agree(f"""(%x: tensor<3xf32>, %u: tensor<1xf32>) -> (tensor<1xf32>, tensor<3xf32>, tensor<1xf32>) {{
      %i = stablehlo.constant dense<{most}> : tensor<{text}>
      %0 = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<3xf32>, tensor<{text}>) -> tensor<1xf32>
      %1 = stablehlo.dynamic_update_slice %x, %u, %i
        : (tensor<3xf32>, tensor<1xf32>, tensor<{text}>) -> tensor<3xf32>
      %2 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0],
        start_index_map = [0]>, slice_sizes = array<i64: 1>}}> : (tensor<3xf32>, tensor<{text}>) -> tensor<1xf32>
      return %0, %1, %2 : tensor<1xf32>, tensor<3xf32>, tensor<1xf32>
    }}""", np.array([10, 11, 12], np.float32), np.array([0], np.float32))  # fmt: skip


def test_bounds_out_of_order() -> None:
    agree("""(%a: tensor<2xi32>, %x: tensor<2xi32>, %b: tensor<i32>) -> tensor<2xi32> {
      %high = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<i32>) -> tensor<2xi32>
      %0 = stablehlo.clamp %a, %x, %high : tensor<2xi32>
      %1 = stablehlo.maximum %a, %0 : tensor<2xi32>
      return %1 : tensor<2xi32>
    }""", np.array([5, 0], np.int32), np.array([3, 3], np.int32), np.array(1, np.int32))  # fmt: skip


def test_booleans_are_clamped_where_they_are_constants() -> None:
    agree("""() -> tensor<8xi1> {
      %a = stablehlo.constant dense<[false, false, false, false, true, true, true, true]> : tensor<8xi1>
      %x = stablehlo.constant dense<[false, false, true, true, false, false, true, true]> : tensor<8xi1>
      %b = stablehlo.constant dense<[false, true, false, true, false, true, false, true]> : tensor<8xi1>
      %0 = stablehlo.clamp %a, %x, %b : tensor<8xi1>
      return %0 : tensor<8xi1>
    }""")


def test_booleans_are_clamped_between_constants_in_order() -> None:
    agree("""() -> tensor<i1> {
      %no = stablehlo.constant dense<false> : tensor<i1>
      %yes = stablehlo.constant dense<true> : tensor<i1>
      %0 = stablehlo.clamp %no, %no, %yes : tensor<i1>
      return %0 : tensor<i1>
    }""")


def test_constant_bounds_in_order_stay_a_clamp() -> None:
    program = Program.parse("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %a = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.constant dense<6.0> : tensor<f32>
      %0 = stablehlo.clamp %a, %x, %b : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert "stablehlo.clamp" in lower(program).texts["main.mlir"]


def reductions() -> Iterator[tuple[str, int, str, str, str]]:
    for op in ("add", "maximum", "multiply"):
        for size in (0, 1, 2):
            yield op, size, "[1]", "2x", "i32"
        yield op, 2, "[]", "2x2x", "f32"
    yield "add", 2, "[1]", "2x", "i1"


@pytest.mark.parametrize(("op", "size", "dims", "result", "text"), [*reductions()])
def test_the_initial_value_counts_once(op: str, size: int, dims: str, result: str, text: str) -> None:
    agree(f"""(%x: tensor<2x{size}x{text}>, %i: tensor<{text}>) -> tensor<{result}{text}> {{
      %0 = stablehlo.reduce(%x init: %i) applies stablehlo.{op} across dimensions = {dims}
        : (tensor<2x{size}x{text}>, tensor<{text}>) -> tensor<{result}{text}>
      return %0 : tensor<{result}{text}>
    }}""", np.full((2, size), 2).astype(dtype_of(text)), np.array(3).astype(dtype_of(text)))  # fmt: skip


@pytest.mark.parametrize(("dims", "result"), [("[1]", "2x"), ("[]", "2x3x")])
@pytest.mark.parametrize("op", ["add", "xor"])
def test_folds_in_a_wider_type(dims: str, result: str, op: str) -> None:
    start = 0 if dims == "[]" else 5
    agree(f"""(%x: tensor<2x3xi32>, %i: tensor<i32>) -> tensor<{result}i64> {{
      %0 = stablehlo.reduce(%x init: %i) across dimensions = {dims}
        : (tensor<2x3xi32>, tensor<i32>) -> tensor<{result}i64>
      reducer(%a: tensor<i64>, %b: tensor<i64>) {{
        %s = stablehlo.{op} %a, %b : tensor<i64>
        stablehlo.return %s : tensor<i64>
      }}
      return %0 : tensor<{result}i64>
    }}""", np.arange(6, dtype=np.int32).reshape(2, 3) * 10**9, np.array(start, np.int32))  # fmt: skip


def test_a_scatter_without_indices_applies_every_update() -> None:
    agree("""(%x: tensor<1xf32>, %i: tensor<2x0xi32>, %u: tensor<1x2xf32>) -> tensor<1xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers =
          #stablehlo.scatter<update_window_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<1xf32>, tensor<2x0xi32>, tensor<1x2xf32>) -> tensor<1xf32>
      return %0 : tensor<1xf32>
    }""", np.array([2], np.float32), np.zeros((2, 0), np.int32), np.array([[3, 5]], np.float32))  # fmt: skip


@pytest.mark.parametrize("text", ["i2", "i4", "i8", "i32", "i64", "ui8"])
def test_leading_zeros_of_constants(text: str) -> None:
    values, _ = pairs(text)
    type, listed = f"tensor<{values.size}x{text}>", ", ".join(map(str, values))
    agree(f"""(%x: {type}) -> ({type}, {type}) {{
      %c = stablehlo.constant dense<[{listed}]> : {type}
      %0 = stablehlo.count_leading_zeros %c : {type}
      %1 = stablehlo.count_leading_zeros %x : {type}
      return %0, %1 : {type}, {type}
    }}""", values)  # fmt: skip


def test_constants_of_odd_types() -> None:
    agree("""(%x: tensor<6xui2>, %n: tensor<16xi4>) -> (tensor<i1>, tensor<f32>, tensor<12xui2>, tensor<16xi4>) {
      %true = stablehlo.constant dense<true> : tensor<i1>
      %0 = stablehlo.add %true, %true : tensor<i1>
      %c = stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f32>>
      %1 = stablehlo.convert %c : (tensor<complex<f32>>) -> tensor<f32>
      %2 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<6xui2>, tensor<6xui2>) -> tensor<12xui2>
      %3 = stablehlo.popcnt %n : tensor<16xi4>
      return %0, %1, %2, %3 : tensor<i1>, tensor<f32>, tensor<12xui2>, tensor<16xi4>
    }""", (np.arange(6) % 4).astype(ml_dtypes.uint2), np.arange(-8, 8).astype(ml_dtypes.int4))  # fmt: skip


@pytest.mark.parametrize("text", ["i32", "ui2", "f32"])
@pytest.mark.parametrize(
    ("size", "padding", "window", "gap"),
    [(2, (0, -1), 1, 1), (4, (-1, 2), 2, 2), (2, (-4, 5), 1, 1), (3, (3, -1), 2, 1), (0, (-1, -1), 1, 1)],
)
def test_windows_over_an_operand_that_is_cut(
    text: str, size: int, padding: tuple[int, int], window: int, gap: int
) -> None:
    length = max(0, (size - 1) * gap + 1 + sum(padding) - window + 1)
    x, zero = (values.astype(dtype_of(text)) for values in (np.arange(3 * size).reshape(size, 3) % 4, np.array(0)))
    agree(f"""(%x: tensor<{size}x3x{text}>, %i: tensor<{text}>) -> tensor<{length}x4x{text}> {{
      %0 = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: {window}, 1>,
          base_dilations = array<i64: {gap}, 1>, padding = dense<[[{padding[0]}, {padding[1]}], [0, 1]]> :
          tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<{text}>, %b: tensor<{text}>):
        %s = stablehlo.maximum %a, %b : tensor<{text}>
        stablehlo.return %s : tensor<{text}>
      }}) : (tensor<{size}x3x{text}>, tensor<{text}>) -> tensor<{length}x4x{text}>
      return %0 : tensor<{length}x4x{text}>
    }}""", x, zero)  # fmt: skip


def folded_together(first: str, second: str) -> str:
    """The smallest elements of the first type, each with its element of the second."""
    return f"""(%x: tensor<3x{first}>, %y: tensor<3x{second}>, %i: tensor<{first}>, %j: tensor<{second}>)
        -> (tensor<{first}>, tensor<{second}>) {{
      %0, %1 = stablehlo.reduce(%x init: %i), (%y init: %j) across dimensions = [0]
        : (tensor<3x{first}>, tensor<3x{second}>, tensor<{first}>, tensor<{second}>)
        -> (tensor<{first}>, tensor<{second}>)
        reducer(%a: tensor<{first}>, %b: tensor<{first}>) (%c: tensor<{second}>, %d: tensor<{second}>) {{
        %less = stablehlo.compare LT, %a, %b : (tensor<{first}>, tensor<{first}>) -> tensor<i1>
        %value = stablehlo.select %less, %a, %b : tensor<i1>, tensor<{first}>
        %other = stablehlo.select %less, %c, %d : tensor<i1>, tensor<{second}>
        stablehlo.return %value, %other : tensor<{first}>, tensor<{second}>
      }}
      return %0, %1 : tensor<{first}>, tensor<{second}>
    }}"""


@pytest.mark.parametrize(("first", "second"), [("i32", "i2"), ("i4", "i32"), ("ui2", "i2")])
def test_elements_of_few_bits_are_folded_beside_others(first: str, second: str) -> None:
    inputs = [(np.array([3, 2, 3]), first), (np.array([0, 1, 0]), second), (np.array(3), first), (np.array(0), second)]
    agree(folded_together(first, second), *(values.astype(dtype_of(text)) for values, text in inputs))


def test_elements_of_2_bits_before_wider_ones_are_not_folded() -> None:
    with pytest.raises(UnsupportedError, match="elements of 2 bits before wider ones"):
        lower(Program.parse(f"func.func @main{folded_together('i2', 'i32')}"))


CONSTANTS = {
    "power": ("i4", "[-1, -1, 2, 0, 1]", "%0 = stablehlo.power %c, %e : tensor<5xi4>"),
    "convert": (
        "i8",
        "[6.0, -6.0, 4.0, 0.5, -0.0]",
        "%0 = stablehlo.convert %c : (tensor<5xf4E2M1FN>) -> tensor<5xi8>",
    ),
    "round": ("f8E3M4", "[1.0, 0.5, -2.5, 0.0, 12.0]", "%0 = stablehlo.round_nearest_afz %c : tensor<5xf8E3M4>"),
}
"""Op -> the result's element type, the values of a constant, and what is made of it."""


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_that_xla_folds_otherwise(name: str) -> None:
    text, values, line = CONSTANTS[name]
    source = "f4E2M1FN" if name == "convert" else text
    agree(f"""() -> tensor<5x{text}> {{
      %c = stablehlo.constant dense<{values}> : tensor<5x{source}>
      {"%e = stablehlo.constant dense<[-8, -3, -2, -1, -1]> : tensor<5xi4>" if name == "power" else ""}
      {line}
      return %0 : tensor<5x{text}>
    }}""")


REFUSED = {
    "as if they were bytes": (
        "ui2",
        """%0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<ui2>, %b: tensor<ui2>):
          %p = stablehlo.compare LT, %a, %b : (tensor<ui2>, tensor<ui2>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }) : (tensor<2xui2>) -> tensor<2xui2>""",
    ),
    "real parts": ("complex<f32>", "%0 = stablehlo.maximum %x, %x : tensor<2xcomplex<f32>>"),
    "convert to 8 bits": ("i4", "%0, %1 = chlo.top_k(%x, k = 2) : tensor<2xi4> -> (tensor<2xi4>, tensor<2xi32>)"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_written_otherwise_is_refused(why: str) -> None:
    text, line = REFUSED[why]
    program = f"func.func @main(%x: tensor<2x{text}>) -> tensor<2x{text}> {{ {line}\n return %0 : tensor<2x{text}> }}"
    with pytest.raises(UnsupportedError, match=why):
        lower(Program.parse(program))


@pytest.mark.parametrize("text", ["i32", "i64", "ui8", "i4"])
def test_loops_that_count_by_doubling(text: str) -> None:
    agree(
        f"""(%x: tensor<3xf32>) -> (tensor<{text}>, tensor<3xf32>) {{
      %one = stablehlo.constant dense<1> : tensor<{text}>
      %limit = stablehlo.constant dense<3> : tensor<{text}>
      %i, %v = "stablehlo.while"(%one, %x) ({{
      ^bb0(%a: tensor<{text}>, %b: tensor<3xf32>):
        %c = stablehlo.compare LT, %a, %limit : (tensor<{text}>, tensor<{text}>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<{text}>, %b: tensor<3xf32>):
        %n = stablehlo.add %a, %a : tensor<{text}>
        %w = stablehlo.add %b, %b : tensor<3xf32>
        stablehlo.return %n, %w : tensor<{text}>, tensor<3xf32>
      }}) : (tensor<{text}>, tensor<3xf32>) -> (tensor<{text}>, tensor<3xf32>)
      return %i, %v : tensor<{text}>, tensor<3xf32>
    }}""",
        np.array([1, 2, 3], np.float32),
    )


@pytest.mark.parametrize("text, wide", [("i4", "i32"), ("ui4", "i32"), ("i2", "i8")])
def test_products_of_packed_elements_with_a_wider_result(text: str, wide: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2, shape).astype(dtype_of(text)) for shape in ((2, 3), (3, 2)))
    agree(
        f"""(%x: tensor<2x3x{text}>, %y: tensor<3x2x{text}>) -> tensor<2x2x{wide}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<2x3x{text}>, tensor<3x2x{text}>) -> tensor<2x2x{wide}>
      return %0 : tensor<2x2x{wide}>
    }}""",
        x, y,
    )  # fmt: skip


def test_the_initial_value_of_a_wider_fold_over_nothing_counts() -> None:
    agree(
        """(%x: tensor<f32>, %y: tensor<2xf32>) -> tensor<2xf64> {
      %0 = stablehlo.reduce(%y init: %x) across dimensions = [] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf64>
        reducer(%a: tensor<f64>, %b: tensor<f64>) {
        %m = stablehlo.maximum %a, %b : tensor<f64>
        stablehlo.return %m : tensor<f64>
      }
      return %0 : tensor<2xf64>
    }""",
        np.float32(3),
        np.array([0, 5], np.float32),
    )


@pytest.mark.parametrize("text", ["f64", "complex<f32>", "f32"])
def test_groups_of_one_feature_do_not_meet(text: str) -> None:
    # XLA multiplies the NaN of the first group by 0, and adds it to the others, in f64 and complex numbers.
    x, w = (np.arange(1, 1 + n).astype(dtype_of(text)).reshape(1, n) for n in (3, 6))
    x[0, 0] = np.nan
    function = f"""(%x: tensor<1x3x{text}>, %w: tensor<1x6x{text}>) -> tensor<1x6x{text}> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f]x[i, o]->[b, f],
        window = {{stride = [], pad = [], lhs_dilate = [], rhs_dilate = []}}
        {{batch_group_count = 1 : i64, feature_group_count = 3 : i64}}
        : (tensor<1x3x{text}>, tensor<1x6x{text}>) -> tensor<1x6x{text}>
      return %0 : tensor<1x6x{text}>
    }}"""
    found = np.asarray(gcomp.compile(f"func.func @main{function}", target="xla:cpu", pipeline="")(x, w))[0]
    assert np.array_equal(found, [[np.nan, np.nan, 6, 8, 15, 18]], equal_nan=True), found


@pytest.mark.parametrize("pads", [[[-1, 1], [0, 0]], [[-2, 2], [-1, 3]], [[1, -1], [-1, 1]], [[-3, 1], [0, -1]]])
@pytest.mark.parametrize("gaps", [[1, 1], [3, 1]])
def test_convolutions_of_what_is_cropped_at_one_end_and_padded_at_the_other(pads: Any, gaps: list[int]) -> None:
    sizes = [gap * 3 - gap + 1 + low + high - 1 for gap, (low, high) in zip(gaps, pads, strict=True)]
    result = f"tensor<3x2x{sizes[0]}x{sizes[1]}xf32>"
    agree(
        f"""(%x: tensor<3x4x3x3xf32>, %w: tensor<4x2x2x2xf32>) -> {result} {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1],
        window = {{stride = [1, 1], pad = {pads}, lhs_dilate = {gaps}, rhs_dilate = [1, 1]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<3x4x3x3xf32>, tensor<4x2x2x2xf32>) -> {result}
      return %0 : {result}
    }}""",
        np.arange(108, dtype=np.float32).reshape(3, 4, 3, 3), np.arange(32, dtype=np.float32).reshape(4, 2, 2, 2),
    )  # fmt: skip


def test_a_convolution_along_a_line_that_is_cropped_at_one_end_and_padded_at_the_other() -> None:
    agree(
        """(%x: tensor<3x4x2xf32>, %w: tensor<4x1x2xf32>) -> tensor<3x1x1xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[i, o, 0]->[b, f, 0],
        window = {stride = [1], pad = [[-1, 1]], lhs_dilate = [1], rhs_dilate = [1]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<3x4x2xf32>, tensor<4x1x2xf32>) -> tensor<3x1x1xf32>
      return %0 : tensor<3x1x1xf32>
    }""",
        np.arange(24, dtype=np.float32).reshape(3, 4, 2), np.arange(8, dtype=np.float32).reshape(4, 1, 2),
    )  # fmt: skip


@pytest.mark.parametrize(("text", "wide"), [("i2", "i2"), ("ui4", "ui4"), ("i2", "i8")])
def test_convolutions_of_few_bits(text: str, wide: str) -> None:
    x, w = (np.arange(n).astype(dtype_of(text)).reshape(shape) for n, shape in ((4, (4, 1)), (2, (1, 2))))
    agree(
        f"""(%x: tensor<4x1x{text}>, %w: tensor<1x2x{text}>) -> tensor<2x2x{wide}> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f]x[i, o]->[b, f],
        window = {{stride = [], pad = [], lhs_dilate = [], rhs_dilate = []}}
        {{batch_group_count = 2 : i64, feature_group_count = 1 : i64}}
        : (tensor<4x1x{text}>, tensor<1x2x{text}>) -> tensor<2x2x{wide}>
      return %0 : tensor<2x2x{wide}>
    }}""",
        x, w,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["i4", "i8", "ui16", "i32"])
def test_convolutions_of_constants_wrap(text: str) -> None:
    largest = ml_dtypes.iinfo(dtype_of(text)).max
    agree(f"""() -> tensor<3x1x{text}> {{
      %x = stablehlo.constant dense<[[0, {largest}]]> : tensor<1x2x{text}>
      %w = stablehlo.constant dense<[[0, 6, 6], [1, 0, 6]]> : tensor<2x3x{text}>
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f]x[i, o]->[f, b],
        window = {{stride = [], pad = [], lhs_dilate = [], rhs_dilate = []}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x2x{text}>, tensor<2x3x{text}>) -> tensor<3x1x{text}>
      return %0 : tensor<3x1x{text}>
    }}""")


@pytest.mark.parametrize("text", ["f32", "i32", "i1"])
def test_dilated_inputs_that_look_like_groups(text: str) -> None:
    x, w = (np.arange(2 * n).reshape(1, 2, *sizes) % 3 for n, sizes in ((6, (3, 2)), (6, (2, 3))))
    agree(
        f"""(%x: tensor<1x2x3x2x{text}>, %w: tensor<1x2x2x3x{text}>) -> tensor<1x1x4x1x{text}> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
        window = {{stride = [1, 1], pad = [[0, 0], [1, 0]], lhs_dilate = [2, 1], rhs_dilate = [1, 1]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x2x3x2x{text}>, tensor<1x2x2x3x{text}>) -> tensor<1x1x4x1x{text}>
      return %0 : tensor<1x1x4x1x{text}>
    }}""",
        x.astype(dtype_of(text)), w.astype(dtype_of(text)),
    )  # fmt: skip


def test_empty_operands_of_a_concatenation_are_left_out() -> None:
    agree("""(%x: tensor<1xi32>, %e: tensor<0xi32>) -> (tensor<0xi32>, tensor<0xi32>) {
      %0 = stablehlo.concatenate %x, %e, %x, dim = 0 : (tensor<1xi32>, tensor<0xi32>, tensor<1xi32>) -> tensor<2xi32>
      %1 = stablehlo.slice %0 [1:1] : (tensor<2xi32>) -> tensor<0xi32>
      %2 = stablehlo.concatenate %e, %e, dim = 0 : (tensor<0xi32>, tensor<0xi32>) -> tensor<0xi32>
      return %1, %2 : tensor<0xi32>, tensor<0xi32>
    }""", np.array([1], np.int32), np.zeros(0, np.int32))  # fmt: skip


SLICES = {
    "slice": "stablehlo.dynamic_slice %{a}, %{i}, sizes = [{n}] : (tensor<{m}xf32>, tensor<{t}>) -> tensor<{n}xf32>",
    "gather": """"stablehlo.gather"(%{a}, %{i}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [0],
        start_index_map = [0]>, slice_sizes = array<i64: {n}>}}> : (tensor<{m}xf32>, tensor<{t}>) -> tensor<{n}xf32>""",
}


@pytest.mark.parametrize("first", SLICES)
@pytest.mark.parametrize("second", SLICES)
@pytest.mark.parametrize("text", ["i32", "i8", "ui64"])
def test_indices_of_slices_of_slices_are_clamped_one_by_one(first: str, second: str, text: str) -> None:
    lines = [
        SLICES[first].format(a="x", i="i", m=6, n=4, t=text),
        SLICES[second].format(a="a", i="j", m=4, n=2, t=text),
    ]
    function = f"""(%x: tensor<6xf32>, %i: tensor<{text}>, %j: tensor<{text}>) -> (tensor<2xf32>, tensor<6xf32>) {{
      %a = {lines[0]}
      %b = {lines[1]}
      %c = stablehlo.negate %b : tensor<2xf32>
      %d = stablehlo.dynamic_update_slice %a, %c, %j : (tensor<4xf32>, tensor<2xf32>, tensor<{text}>) -> tensor<4xf32>
      %e = stablehlo.dynamic_update_slice %x, %d, %i : (tensor<6xf32>, tensor<4xf32>, tensor<{text}>) -> tensor<6xf32>
      return %b, %e : tensor<2xf32>, tensor<6xf32>
    }}"""
    x, indices = np.arange(1, 7).astype(np.float32), ([0, 1, 3, 9] if text[0] == "u" else [-2, 0, 1, 3, 9])
    compiled = gcomp.compile(f"func.func @main{function}", target="xla:cpu", pipeline="")
    program = Program.parse(f"func.func @main{function}")
    for i in indices:
        for j in indices:
            inputs = [x, np.array(i).astype(dtype_of(text)), np.array(j).astype(dtype_of(text))]
            for old, new in zip(interpret(program, inputs), compiled(*inputs), strict=True):
                assert np.array_equal(old, np.asarray(new)), (i, j)


def test_indices_of_single_slices_stay_as_they_are() -> None:
    text = SLICES["slice"].format(a="x", i="i", m=6, n=4, t="i32")
    function = f"(%x: tensor<6xf32>, %i: tensor<i32>) -> tensor<4xf32> {{ %0 = {text} return %0 : tensor<4xf32> }}"
    assert "clamp" not in lower(Program.parse(f"func.func @main{function}")).texts["main.mlir"]


ADDED = """(%x: tensor<4x3xf32>, %y: tensor<1x3xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<4x3xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.dynamic_slice"(%x, %PLACE, %z) <{slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
  %1 = stablehlo.add %0, %y : tensor<1x3xf32>
  %2 = stablehlo.dynamic_update_slice %x, %1, %i, %z : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}"""  # noqa: E501


@pytest.mark.parametrize("place", ["i", "j"])
def test_what_adds_to_a_slice_in_its_own_place_may_be_fused(place: str) -> None:
    """As loops do that sum up cotangents: without fusion their steps took twice as long."""
    text = f"func.func @main{ADDED.replace('PLACE', place)}"
    compiled, program = gcomp.compile(text, target="xla:cpu", pipeline=""), Program.parse(text)
    (segment,) = compiled.plan.segments
    assert ("xla_disable_hlo_passes" in segment.options["always"]) == (place == "j")
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((1, 3), np.float32)
    for i in (-1, 0, 2, 9):
        inputs = [x, y, np.int32(i), np.int32(1)]
        assert np.array_equal(np.asarray(compiled(*inputs)[0]), interpret(program, inputs)[0])


def test_an_update_that_gathers_from_what_it_updates_is_right() -> None:
    """XLA's fusion made one loop in place of both, which read what it had written."""
    function = """(%x: tensor<2x2x1xi32>, %i: tensor<i32>, %j: tensor<1x2x2xi32>) -> tensor<1x2x1x2xi32> {
      %0 = stablehlo.reshape %x : (tensor<2x2x1xi32>) -> tensor<1x2x1x2xi32>
      %1 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x2x1xi32>) -> tensor<2x1x2xi32>
      %2 = "stablehlo.gather"(%1, %j) <{indices_are_sorted = false, dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x1x2xi32>, tensor<1x2x2xi32>) -> tensor<1x2x1x1xi32>
      %3 = stablehlo.dynamic_update_slice %0, %2, %i, %i, %i, %i : (tensor<1x2x1x2xi32>, tensor<1x2x1x1xi32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x1x2xi32>
      return %3 : tensor<1x2x1x2xi32>
    }"""  # noqa: E501
    text = f"func.func @main{function}"
    compiled, program = gcomp.compile(text, target="xla:cpu", pipeline=""), Program.parse(text)
    x = np.array([3, 1, 1, 1], np.int32).reshape(2, 2, 1)
    for places in ([0, 1, -2, 1], [1, 0, 0, 0], [0, 0, 1, 1]):
        for start in (0, 1, 3):
            inputs = [x, np.int32(start), np.array(places, np.int32).reshape(1, 2, 2)]
            assert np.array_equal(np.asarray(compiled(*inputs)[0]), interpret(program, inputs)[0])


TWO = "tensor<4xi2>"
_TWO_BITS = (
    *(
        f"stablehlo.{name} {{}} : {TWO}"
        for name in ("remainder", "divide", "maximum", "minimum", "shift_right_logical")
    ),
    *(f"stablehlo.compare {c}, {{}} : ({TWO}, {TWO}) -> tensor<4xi1>" for c in ("EQ", "NE", "LT", "LE", "GT", "GE")),
)


@pytest.mark.parametrize("constant", [-2, -1, 0, 1])
@pytest.mark.parametrize("op", _TWO_BITS)
def test_signed_integers_of_two_bits_beside_constants(op: str, constant: int) -> None:
    result = "tensor<4xi1>" if "compare" in op else TWO
    # One op at a time: several in one loop are compiled otherwise.
    for operands in ("%x, %c", "%c, %x"):
        agree(f"""(%x: tensor<4xi2>) -> {result} {{
          %c = stablehlo.constant dense<{constant}> : tensor<4xi2>
          %0 = {op.format(operands)}
          return %0 : {result}
        }}""", np.arange(-2, 2).astype(ml_dtypes.int2))  # fmt: skip


def test_bounds_of_two_bits() -> None:
    agree("""(%x: tensor<4xi2>) -> tensor<4xi2> {
      %a = stablehlo.constant dense<-1> : tensor<i2>
      %b = stablehlo.constant dense<1> : tensor<i2>
      %0 = stablehlo.clamp %a, %x, %b : (tensor<i2>, tensor<4xi2>, tensor<i2>) -> tensor<4xi2>
      return %0 : tensor<4xi2>
    }""", np.arange(-2, 2).astype(ml_dtypes.int2))  # fmt: skip


def test_minus_one_of_four_bits_shifted_as_bits() -> None:
    agree("""(%x: tensor<4xi4>) -> tensor<4xi4> {
      %c = stablehlo.constant dense<-1> : tensor<4xi4>
      %0 = stablehlo.shift_right_logical %c, %x : tensor<4xi4>
      return %0 : tensor<4xi4>
    }""", np.arange(4).astype(ml_dtypes.int4))  # fmt: skip


def test_the_logarithm_of_a_negative_power() -> None:
    agree("""(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.power %x, %y : tensor<3xf32>
      %1 = stablehlo.log %0 : tensor<3xf32>
      return %1 : tensor<3xf32>
    }""", np.array([-2, 1, -1], np.float32), np.array([1, 2, 3], np.float32))  # fmt: skip


def test_a_map_beside_a_constant_reversed() -> None:
    agree("""(%x: tensor<3xi32>) -> tensor<3xi32> {
      %c = stablehlo.constant dense<5> : tensor<3xi32>
      %0 = "stablehlo.map"(%x, %c) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %n = stablehlo.negate %a : tensor<i32>
        %m = stablehlo.maximum %n, %b : tensor<i32>
        stablehlo.return %m : tensor<i32>
      }) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
      %1 = stablehlo.reverse %0, dims = [0] : tensor<3xi32>
      return %1 : tensor<3xi32>
    }""", np.array([-9, 1, 2], np.int32))  # fmt: skip


def test_padding_that_takes_more_than_there_is_is_refused() -> None:
    program = Program.parse("""func.func @main(%x: tensor<1xf32>, %s: tensor<0xf32>, %i: tensor<f32>) -> tensor<1xf32> {
      %0 = "stablehlo.select_and_scatter"(%x, %s, %i) <{window_dimensions = array<i64: 2>,
          window_strides = array<i64: 1>, padding = dense<-1> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }, {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %p : tensor<f32>
      }) : (tensor<1xf32>, tensor<0xf32>, tensor<f32>) -> tensor<1xf32>
      return %0 : tensor<1xf32>
    }""")
    with pytest.raises(UnsupportedError, match="takes more than there is"):
        lower(program)


@pytest.mark.parametrize(("text", "nan"), [("f32", "0x7FC00000"), ("bf16", "0x7FC0"), ("f16", "0x7E00")])
def test_exponentials_of_what_is_known_to_be_no_number(text: str, nan: str) -> None:
    type = f"tensor<64x{text}>"
    names = ("stablehlo.exponential", "stablehlo.exponential_minus_one", "stablehlo.logistic", "chlo.sinh", "chlo.cosh")
    lines = [
        f"%{i} = {name} %s : {type}" + (f" -> {type}" if name.startswith("chlo") else "")
        for i, name in enumerate(names)
    ]
    agree(f"""(%x: {type}) -> ({", ".join([type] * len(names))}) {{
      %nan = stablehlo.constant dense<{nan}> : {type}
      %s = stablehlo.add %nan, %x : {type}
      {" ".join(lines)}
      return {", ".join(f"%{i}" for i in range(len(names)))} : {", ".join([type] * len(names))}
    }}""", np.ones(64).astype(dtype_of(text)))  # fmt: skip


def test_a_complex_exponential_of_what_is_known_to_be_no_number() -> None:
    type = "tensor<64xcomplex<f32>>"
    found = gcomp.compile(f"""func.func @main(%x: {type}) -> {type} {{
      %nan = stablehlo.constant dense<(0x7FC00000, 0.0)> : {type}
      %s = stablehlo.add %nan, %x : {type}
      %0 = stablehlo.exponential %s : {type}
      return %0 : {type}
    }}""", target="xla:cpu", pipeline="")(np.ones(64, np.complex64))  # fmt: skip
    assert np.isnan(np.asarray(found).real).all()


def test_programs_without_a_constant_nan_have_plain_exponentials() -> None:
    program = Program.parse("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.exponential %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    }""")
    assert "stablehlo.select" not in lower(program).texts["main.mlir"]


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [("3xf32", "3x2xui16", "3x2x2xui8"), ("3x2x2xui8", "3x2xui16", "3xui32"), ("3x2xui16", "3xui32", "3x4xui8"),
     ("3x2xui16", "3xui32", "3xf32"), ("3xui16", "3x2xui8", "3x2x2xui4")],
)  # fmt: skip
def test_bits_of_bits(first: str, second: str, third: str) -> None:
    a, b, c = (f"tensor<{text}>" for text in (first, second, third))
    *sizes, text = first.split("x")
    shape = [int(size) for size in sizes]
    agree(f"""(%x: {a}) -> {c} {{
      %0 = stablehlo.bitcast_convert %x : ({a}) -> {b}
      %1 = stablehlo.reshape %0 : ({b}) -> {b}
      %2 = stablehlo.bitcast_convert %1 : ({b}) -> {c}
      return %2 : {c}
    }}""", np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype_of(text)))  # fmt: skip


def test_bits_of_bits_beside_conversions_that_cancel() -> None:
    agree("""(%x: tensor<1xui64>) -> tensor<1x8x2xi4> {
      %0 = stablehlo.bitcast_convert %x : (tensor<1xui64>) -> tensor<1x8xf8E5M2>
      %1 = stablehlo.convert %0 : (tensor<1x8xf8E5M2>) -> tensor<1x8xf32>
      %2 = stablehlo.convert %1 : (tensor<1x8xf32>) -> tensor<1x8xf8E5M2>
      %3 = stablehlo.bitcast_convert %2 : (tensor<1x8xf8E5M2>) -> tensor<1x8x2xi4>
      return %3 : tensor<1x8x2xi4>
    }""", np.array([0x0123456701234567], np.uint64))  # fmt: skip


def test_the_imaginary_diagonal_of_a_factored_matrix_counts_as_zero() -> None:
    type = "tensor<2x2x2xcomplex<f64>>"
    x = np.array([[[2 + 2j, 9 - 9j], [0.5 + 0.25j, 3 - 1j]], [[1 + 5j, 0], [1j, 4]]])
    text = f"""func.func @main(%x: {type}) -> {type} {{
      %0 = stablehlo.cholesky %x, lower = true : {type}
      return %0 : {type}
    }}"""
    found = np.asarray(gcomp.compile(text, target="xla:cpu", pipeline="")(x))
    assert np.allclose(found, interpret(Program.parse(text), [x])[0], rtol=1e-15, atol=0)


def test_a_normalization_of_halves_whose_shift_overflows() -> None:
    agree("""(%x: tensor<1x1xf16>, %s: tensor<1xf16>, %o: tensor<1xf16>, %m: tensor<1xf16>, %v: tensor<1xf16>)
        -> tensor<1x1xf16> {
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
        : (tensor<1x1xf16>, tensor<1xf16>, tensor<1xf16>, tensor<1xf16>, tensor<1xf16>) -> tensor<1x1xf16>
      return %0 : tensor<1x1xf16>
    }""", np.full((1, 1), 2.5, np.float16), *(np.array([n], np.float16) for n in (65504, 0, 2.25, 4)))  # fmt: skip


@pytest.mark.parametrize("layout", ["bf0", "b0f", "fb0", "0fb", "f0b"])
@pytest.mark.parametrize(
    ("images", "groups", "features", "results", "text"),
    [(3, 3, 1, 9, "f32"), (6, 3, 2, 3, "f32"), (2, 2, 1, 2, "f64"), (3, 3, 2, 3, "complex<f32>"), (4, 2, 3, 4, "i32")],
)
def test_groups_of_a_batch(layout: str, images: int, groups: int, features: int, results: int, text: str) -> None:
    sizes = {"b": images, "f": features, "0": 4}
    given, out = [sizes[c] for c in layout], [{"b": images // groups, "f": results, "0": 3}[c] for c in layout]
    lhs, rhs, type = ("x".join(map(str, [*s, text])) for s in (given, (features, results, 2), out))
    x, w = (np.arange(1.0, 1 + np.prod(s)).reshape(s).astype(dtype_of(text)) for s in (given, (features, results, 2)))
    if text != "i32":
        w[:, 0] = np.nan
        x[tuple([0 if c == "b" else slice(None) for c in layout])] = np.inf
    names = ", ".join(layout)
    agree(f"""(%x: tensor<{lhs}>, %w: tensor<{rhs}>) -> tensor<{type}> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [{names}]x[i, o, 0]->[{names}],
        window = {{stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1]}}
        {{batch_group_count = {groups} : i64, feature_group_count = 1 : i64}}
        : (tensor<{lhs}>, tensor<{rhs}>) -> tensor<{type}>
      return %0 : tensor<{type}>
    }}""", x, w)  # fmt: skip


@pytest.mark.parametrize("view", ["", "reshape", "reverse"])
@pytest.mark.parametrize(("wide", "text"), [("i64", "i32"), ("i32", "i8"), ("ui64", "i16")])
@pytest.mark.parametrize("op", ["stablehlo.and", "stablehlo.or", "chlo.broadcast_or"])
def test_bits_of_what_was_made_narrower(op: str, wide: str, text: str, view: str) -> None:
    """XLA looks for a narrower type to compute these in, and ends the process over vectors."""
    seen = {
        "": "%v = stablehlo.convert %n : (tensor<4x4xT>) -> tensor<4x4xT>",
        "reshape": "%v = stablehlo.reshape %n : (tensor<4x4xT>) -> tensor<4x4xT>",
        "reverse": "%v = stablehlo.reverse %n, dims = [0, 1] : tensor<4x4xT>",
    }[view]
    type = "tensor<4x4xT>" if op[0] == "s" else "(tensor<4x4xT>, tensor<4x4xT>) -> tensor<4x4xT>"
    body = f"""%n = stablehlo.convert %x : (tensor<4x4x{wide}>) -> tensor<4x4xT>
  {seen}
  %0 = {op} %v, %y : {type}
  return %0 : tensor<4x4xT>""".replace("xT>", f"x{text}>")
    x = (np.arange(16).reshape(4, 4) * 77).astype(dtype_of(wide))
    y = (np.arange(16).reshape(4, 4) * 13).astype(dtype_of(text))
    agree(f"(%x: tensor<4x4x{wide}>, %y: tensor<4x4x{text}>) -> tensor<4x4x{text}> {{ {body} }}", x, y)


@pytest.mark.parametrize("text", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "GE"])
def test_total_orders_of_matrices_and_constants(direction: str, text: str) -> None:
    """XLA takes the bits of a constant that it lays out in columns in the order of rows."""
    agree(
        f"""(%x: tensor<2x2x{text}>) -> tensor<2x2xi1> {{
  %c = stablehlo.constant dense<[[2.0, -1.0], [3.0, -2.0]]> : tensor<2x2x{text}>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2x{text}>) -> tensor<2x2x{text}>
  %0 = stablehlo.compare {direction}, %t, %c, TOTALORDER : (tensor<2x2x{text}>, tensor<2x2x{text}>) -> tensor<2x2xi1>
  return %0 : tensor<2x2xi1> }}""",
        np.array([[2, 3], [-1, -2]]).astype(dtype_of(text)),
    )


@pytest.mark.parametrize("op", ["add", "maximum"])
def test_windows_with_padding_over_what_is_padded(op: str) -> None:
    """XLA makes a repetition of such windows over single elements, and ends the process over its sizes."""
    agree(
        f"""(%x: tensor<2x1xi32>, %y: tensor<i32>) -> tensor<6x2xi32> {{
  %0 = stablehlo.pad %x, %y, low = [0, 1], high = [0, 1], interior = [0, 0]
      : (tensor<2x1xi32>, tensor<i32>) -> tensor<2x3xi32>
  %1 = "stablehlo.reduce_window"(%0, %y) <{{window_dimensions = array<i64: 1, 2>,
      padding = dense<[[2, 2], [0, 0]]> : tensor<2x2xi64>}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.{op} %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }}) : (tensor<2x3xi32>, tensor<i32>) -> tensor<6x2xi32>
  return %1 : tensor<6x2xi32> }}""",
        np.array([[1], [2]], np.int32), np.array(0, np.int32),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["f16", "f32", "complex<f32>"])
@pytest.mark.parametrize("form", ["%q, %q", "%q, %z", "%z, %q"])
def test_quotients_of_quotients_do_not_overflow_in_between(text: str, form: str) -> None:
    """XLA makes (a / b) / (c / d) of one quotient of products."""
    type = f"tensor<3x{text}>"
    large = {"f16": 6e4, "f32": 3e38}.get(text, 1e30)
    values = [np.array(v).astype(dtype_of(text)) for v in ([large, large, 1], [large / 4, 2, 0.5], [5, 7, 0.25])]
    function = f"""(%x: {type}, %y: {type}, %z: {type}) -> {type} {{
      %q = stablehlo.divide %x, %y : {type}
      %0 = stablehlo.divide {form} : {type}
      return %0 : {type}
    }}"""
    expected = interpret(Program.parse(f"func.func @main{function}"), values)[0]
    found = np.asarray(gcomp.compile(f"func.func @main{function}", target="xla:cpu", pipeline="")(*values)[0])
    assert np.array_equal(np.isfinite(expected), np.isfinite(found)), (expected, found)
    np.testing.assert_allclose(found, expected, rtol=1e-2 if text == "f16" else 1e-5)


@pytest.mark.parametrize("text", ["f32", "f64", "complex<f32>"])
@pytest.mark.parametrize("lower", ["true", "false"])
def test_the_other_triangle_is_zero_where_there_is_no_factor(lower: str, text: str) -> None:
    type = f"tensor<2x3x3x{text}>"
    x = np.array([[[2, 1, 0], [1, -3, 1], [0, 1, 2]], [[4, 0, 0], [0, 9, 0], [0, 0, 1]]]).astype(dtype_of(text))
    agree(
        f"""(%x: {type}) -> tensor<2x3x3xi1> {{
      %0 = stablehlo.cholesky %x, lower = {lower} : {type}
      %1 = stablehlo.compare NE, %0, %0, FLOAT : ({type}, {type}) -> tensor<2x3x3xi1>
      return %1 : tensor<2x3x3xi1>
    }}""",
        x,
    )


@pytest.mark.parametrize("text", ["f8E5M2", "f8E4M3FN", "f8E3M4", "f4E2M1FN", "bf16"])
@pytest.mark.parametrize("name", ["erfc", "bessel_i1e"])
def test_functions_of_few_bits(name: str, text: str) -> None:
    x, type = np.array([0, 0.5, -1, 2]).astype(dtype_of(text)), f"tensor<4x{text}>"
    agree(f"(%x: {type}) -> {type} {{\n %0 = chlo.{name} %x : {type} -> {type}\n return %0 : {type} }}", x)
