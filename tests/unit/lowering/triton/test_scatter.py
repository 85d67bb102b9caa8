"""Scatter kernels: updates that meet, windows that overlap or leave the result, every way to combine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import compiled, interpreted, launched, numbers

ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
WINDOWS = "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
FIRST = "update_window_dims = [0, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"


def scatter(
    x: str, indices: str, updates: str, op: str | None, dtype: str, numbers: str = ROWS, index: str = "i32",
    more: str = "",
) -> Program:  # fmt: skip
    """A scatter; `op` combines what is there with an update, None replaces it."""
    e, t, i, u = f"tensor<{dtype}>", f"tensor<{x}x{dtype}>", f"tensor<{indices}x{index}>", f"tensor<{updates}x{dtype}>"
    line, name = ("", "%b") if op is None else (f"%c = stablehlo.{op} %a, %b : {e}", "%c")
    return Program.parse(f"""
    func.func @main(%x: {t}, %i: {i}, %u: {u}) -> {t} {{
      %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>{more}}}> ({{
      ^bb0(%a: {e}, %b: {e}):
        {line}
        stablehlo.return {name} : {e}
      }}) : ({t}, {i}, {u}) -> {t}
      func.return %r : {t}
    }}""")


INDICES = np.array([[1], [4], [1], [-1], [17], [4], [1]], np.int32)
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")


@pytest.mark.parametrize("op", [None, "add", "maximum", "minimum", "multiply", "subtract"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64", *INTEGERS])
def test_updates_that_meet_are_combined(op: str | None, dtype: str) -> None:
    program = scatter("6x8", "7x1", "7x8", op, dtype)
    values = [numbers(0, (6, 8), dtype, 9), INDICES, numbers(1, (7, 8), dtype, 9)]
    assert check_kernel(program, "scatter", values, Settings({"block": 16})) == []


@pytest.mark.parametrize("op", [None, "and", "or", "xor", "add", "maximum", "multiply"])
@pytest.mark.parametrize("dtype", ["i1", "i32", "ui8"])
def test_bits_are_combined(op: str | None, dtype: str) -> None:
    program = scatter("6x8", "7x1", "7x8", op, dtype)
    random = np.random.default_rng(0)
    kind = {"i1": np.bool_, "i32": np.int32, "ui8": np.uint8}[dtype]
    values = [random.integers(0, 2 if dtype == "i1" else 200, shape).astype(kind) for shape in ((6, 8), (7, 8))]
    assert check_kernel(program, "scatter", [values[0], INDICES, values[1]]) == []


@pytest.mark.parametrize("op", ["maximum", "minimum", "add"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
def test_special_values_are_combined(op: str, dtype: str) -> None:
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
    there = np.repeat(special[:, None], 8, 1)
    program = scatter("8x8", "8x1", "8x8", op, dtype)
    kind = numbers(0, (1,), dtype).dtype
    values = [there.astype(kind), np.arange(8, dtype=np.int32)[:, None], np.tile(special, (8, 1)).astype(kind)]
    assert check_kernel(program, "scatter", values) == []


@pytest.mark.parametrize("op", [None, "add", "multiply", "maximum"])
@pytest.mark.parametrize(("dims", "updates"), [(WINDOWS, (5, 3, 2)), (FIRST, (3, 5, 2))])
def test_windows_overlap_and_lose_what_is_outside(op: str | None, dims: str, updates: tuple[int, ...]) -> None:
    indices = np.array([[0, 0], [1, 2], [-1, 3], [4, 6], [5, 7]], np.int32)
    program = scatter("6x8", "5x2", "x".join(map(str, updates)), op, "f32", dims)
    values = [numbers(0, (6, 8), "f32"), indices, numbers(1, updates, "f32")]
    assert check_kernel(program, "scatter", values, Settings({"block": 8})) == []


@pytest.mark.parametrize("index", INTEGERS)
@pytest.mark.parametrize("op", [None, "add"])
def test_indices_of_any_type_are_outside_on_their_own_side(index: str, op: str | None) -> None:
    kind = np.dtype(index.replace("ui", "uint") if index.startswith("u") else index.replace("i", "int"))
    limits = np.iinfo(kind)
    indices = np.array([[2], [limits.max], [limits.min], [limits.max - 1], [5]], kind)
    program = scatter("6x8", "5x1", "5x8", op, "f32", index=index)
    assert check_kernel(program, "scatter", [numbers(0, (6, 8), "f32"), indices, numbers(1, (5, 8), "f32")]) == []


@pytest.mark.parametrize("op", [None, "add", "multiply"])
@pytest.mark.parametrize(("x", "count", "width"), [((6, 8), 0, 8), ((1, 1), 1, 1), ((6, 0), 2, 0), ((0, 3), 2, 3)])
def test_any_size_will_do(op: str | None, x: tuple[int, int], count: int, width: int) -> None:
    program = scatter(f"{x[0]}x{x[1]}", f"{count}x1", f"{count}x{width}", op, "f32")
    values = [numbers(0, x, "f32"), np.zeros((count, 1), np.int32), numbers(1, (count, width), "f32")]
    assert check_kernel(program, "scatter", values) == []


@pytest.mark.parametrize("op", [None, "add", "maximum", "subtract"])
def test_updates_without_an_index_all_go_to_one_place(op: str | None) -> None:
    """Places, and here values too, are then the same in all lanes of a block, and each lane still counts."""
    text = scatter("1", "2x2x0", "1x2x2", op, "f32", "update_window_dims = [0], index_vector_dim = 2").text()
    program = Program.parse(
        text.replace("%u: tensor<1x2x2xf32>", "%one: tensor<1xf32>").replace(
            '%r = "', '%u = stablehlo.broadcast_in_dim %one, dims = [2] : (tensor<1xf32>) -> tensor<1x2x2xf32>\n%r = "'
        )
    )
    values = [np.float32([-1]), np.zeros((2, 2, 0), np.int32), np.float32([3])]
    assert check_kernel(program, "scatter", values) == []


@pytest.mark.parametrize("op", [None, "multiply"])
def test_a_promise_of_unique_indices_saves_the_search(op: str | None) -> None:
    program = scatter("6x8", "3x1", "3x8", op, "f32", more=", unique_indices = true")
    values = [numbers(0, (6, 8), "f32"), np.array([[1], [5], [9]], np.int32), numbers(1, (3, 8), "f32")]
    assert check_kernel(program, "scatter", values) == []
    assert len(launched(program, "scatter")[1].steps) == 2


def test_batches_keep_to_themselves() -> None:
    dims = ("update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
            "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
            "index_vector_dim = 2")  # fmt: skip
    indices = np.random.default_rng(0).integers(-1, 7, (4, 5, 1)).astype(np.int32)
    for op in (None, "add", "multiply"):
        program = scatter("4x6x3", "4x5x1", "4x5x3", op, "f32", dims)
        values = [numbers(0, (4, 6, 3), "f32"), indices, numbers(1, (4, 5, 3), "f32")]
        assert check_kernel(program, "scatter", values) == []


def test_two_operands_are_scattered_together() -> None:
    program = Program.parse("""
    func.func @main(%x: tensor<6xf32>, %y: tensor<6xi32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>, %v: tensor<5xi32>)
        -> (tensor<6xf32>, tensor<6xi32>) {
      %r:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %n: tensor<i32>, %b: tensor<f32>, %m: tensor<i32>):
        %less = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %c = stablehlo.select %less, %b, %a : tensor<i1>, tensor<f32>
        %k = stablehlo.select %less, %m, %n : tensor<i1>, tensor<i32>
        stablehlo.return %c, %k : tensor<f32>, tensor<i32>
      }) : (tensor<6xf32>, tensor<6xi32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xi32>)
         -> (tensor<6xf32>, tensor<6xi32>)
      func.return %r#0, %r#1 : tensor<6xf32>, tensor<6xi32>
    }""")
    values: list[Any] = [numbers(0, (6,), "f32"), np.arange(6, dtype=np.int32), INDICES[:5], numbers(1, (5,), "f32"),
                         np.arange(10, 15, dtype=np.int32)]  # fmt: skip
    assert check_kernel(program, "scatter", values) == []


@pytest.mark.parametrize("op", [None, "add", "minimum", "subtract"])
def test_the_source_computes_in_tritons_interpreter(op: str | None) -> None:
    program = scatter("6x8", "7x1", "7x8", op, "f32")
    values = [numbers(0, (6, 8), "f32"), INDICES, numbers(1, (7, 8), "f32")]
    (found,) = interpreted(program, "scatter", values, block=32)
    np.testing.assert_allclose(found, interpret(program, values)[0], rtol=1e-6)


@pytest.mark.parametrize(("op", "dtype"), [(None, "bf16"), ("add", "f32"), ("maximum", "f64"), ("add", "ui64")])
def test_kernels_fit_the_registers(op: str | None, dtype: str) -> None:
    kernels = compiled(scatter("6x8", "7x1", "7x8", op, dtype), "scatter")
    assert [kernel.stack for kernel in kernels] == [0] * len(kernels)
