"""Sort kernels: counted directly, and in chunks that are merged; stable, by any comparator."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import Array, compiled, interpreted, numbers


def sort(shape: tuple[int, ...], dtype: str, dimension: int, direction: str, kind: str) -> Program:
    """A sort of numbers together with others, which say what went where."""
    s = "x".join(map(str, shape))
    t, n, e = f"tensor<{s}x{dtype}>", f"tensor<{s}xi32>", f"tensor<{dtype}>"
    return Program.parse(f"""
    func.func @main(%x: {t}, %n: {n}) -> ({t}, {n}) {{
      %a, %b = "stablehlo.sort"(%x, %n) <{{dimension = {dimension} : i64}}> ({{
      ^bb0(%p: {e}, %q: {e}, %i: tensor<i32>, %j: tensor<i32>):
        %r = stablehlo.compare {direction}, %p, %q, {kind} : ({e}, {e}) -> tensor<i1>
        stablehlo.return %r : tensor<i1>
      }}) : ({t}, {n}) -> ({t}, {n})
      func.return %a, %b : {t}, {n}
    }}""")


def top_k(shape: tuple[int, ...], k: int, dtype: str = "f32") -> Program:
    """The k greatest of each row."""
    s, r = "x".join(map(str, shape)), "x".join(map(str, (*shape[:-1], k)))
    types = f"tensor<{r}x{dtype}>, tensor<{r}xi32>"
    return Program.parse(f"""
    func.func @main(%x: tensor<{s}x{dtype}>) -> ({types}) {{
      %a, %b = chlo.top_k(%x, k = {k}) : tensor<{s}x{dtype}> -> ({types})
      func.return %a, %b : {types}
    }}""")


def given(shape: tuple[int, ...], dtype: str) -> list[Array]:
    """Numbers with many equal ones, and where they were."""
    return [numbers(0, shape, dtype, 3).round().astype(numbers(0, (1,), dtype).dtype),
            np.arange(np.prod(shape), dtype=np.int32).reshape(shape)]  # fmt: skip


CHUNKED = {"direct": 4, "chunk": 8, "block": 4}
KINDS = {"f32": "FLOAT", "bf16": "FLOAT", "f64": "FLOAT", "i32": "SIGNED", "i8": "SIGNED", "ui16": "UNSIGNED"}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("direction", ["LT", "GT", "LE", "GE"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_rows_are_sorted_and_equals_keep_their_order(dtype: str, direction: str, dimension: int) -> None:
    program = sort((5, 37), dtype, dimension, direction, KINDS[dtype])
    for settings in ({}, {"block": 8}, CHUNKED):
        assert check_kernel(program, "sort", given((5, 37), dtype), Settings(settings)) == []


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_special_values_are_in_total_order(direction: str) -> None:
    x, n = given((3, 11), "f32")
    x[0, :6] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
    for settings in ({}, CHUNKED):
        assert check_kernel(sort((3, 11), "f32", 1, direction, "TOTALORDER"), "sort", [x, n], Settings(settings)) == []
        assert check_kernel(top_k((3, 11), 4), "sort", [x], Settings(settings)) == []


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE"])
def test_where_a_comparator_orders_no_nan_it_comes_last(direction: str) -> None:
    x, n = given((1, 40), "f32")
    x[0, ::3] = np.nan
    for settings in ({"block": 4}, CHUNKED):
        found, order = interpreted(sort((1, 40), "f32", 1, direction, "FLOAT"), "sort", [x, n], **settings)
        values = x[0][~np.isnan(x[0])]
        expected = np.sort(values) if direction in ("LT", "LE") else -np.sort(-values)
        assert (
            np.array_equal(found.reshape(-1)[: len(values)], expected)
            and np.isnan(found.reshape(-1)[len(values) :]).all()
        )
        assert sorted(order.reshape(-1)) == list(range(40))


@pytest.mark.parametrize("shape", [(1,), (0,), (3, 1), (0, 4), (1, 300), (2, 2500)])
def test_any_size_will_do(shape: tuple[int, ...]) -> None:
    program = sort(shape, "f32", len(shape) - 1, "LT", "FLOAT")
    assert check_kernel(program, "sort", given(shape, "f32")) == []


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui32"])
@pytest.mark.parametrize("k", [0, 1, 5, 37])
def test_the_greatest_come_first(dtype: str, k: int) -> None:
    for settings in ({}, CHUNKED):
        assert check_kernel(top_k((3, 37), k, dtype), "sort", given((3, 37), dtype)[:1], Settings(settings)) == []


def test_the_source_computes_in_tritons_interpreter() -> None:
    program, values = sort((2, 19), "f32", 1, "LT", "FLOAT"), given((2, 19), "f32")
    for settings in ({"block": 8}, CHUNKED):
        for found, expected in zip(
            interpreted(program, "sort", values, **settings), interpret(program, values), strict=True
        ):
            assert np.array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("length", [500, 5000])
def test_kernels_fit_the_registers(length: int) -> None:
    kernels = compiled(sort((4, length), "f32", 1, "LT", "FLOAT"), "sort")
    assert [kernel.stack for kernel in kernels] == [0] * len(kernels)
