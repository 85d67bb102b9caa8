"""Triton's interpreter on NumPy arrays, without torch."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from gcomp.errors import UsageError
from gcomp.lowering.triton.aot import KernelError
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.source import Argument
from tests.unit.lowering.triton.kernels import ADD, SOFTMAX, O, X, kernel


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as found:
        yield found


def test_kernels_compute(interpreter: Interpreter) -> None:
    rng = np.random.default_rng(0)
    x, y, o = (rng.standard_normal(1500, np.float32) for _ in range(3))
    before = o.copy()
    result = interpreter.run(ADD, {"x": x, "y": y, "o": o, "n": 1400}, [2])
    assert list(result) == ["o"] and np.array_equal(o, before)
    assert np.array_equal(result["o"], np.where(np.arange(1500) < 1400, x + y, before))
    rows = rng.standard_normal((3, 96)).astype(np.float32)
    expected = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    np.testing.assert_allclose(interpreter.run(SOFTMAX, {"x": rows, "o": rows}, [3])["o"], expected, rtol=1e-5)


@pytest.mark.parametrize(("function", "fold"), [("max", np.maximum), ("min", np.minimum)])
def test_atomics_take_floats_of_both_signs(interpreter: Interpreter, function: str, fold: np.ufunc) -> None:
    text = f"""def folded(x, o):
    i = tl.arange(0, 16)
    tl.atomic_{function}(o + i % 4, tl.load(x + i), mask=i != 5, sem='relaxed')
"""
    source = kernel(text, X, Argument("o", "*fp32", "inout"))
    x = np.random.default_rng(0).standard_normal(16, np.float32)
    o = np.array([0.25, -0.25, 3.0, -3.0], np.float32)
    expected = o.copy()
    fold.at(expected, np.delete(np.arange(16), 5) % 4, np.delete(x, 5))
    assert interpreter.run(source, {"x": x, "o": o}, [1])["o"].tolist() == expected.tolist()


def test_loops_count_in_tensors_whose_comparisons_are_masks(interpreter: Interpreter) -> None:
    text = """def masked(x, o):
    i = tl.arange(0, 16)
    for j in tl.range(0, 4):
        m = (j < 2) & (i % 4 == j)
        tl.store(o + i, tl.load(x + i, mask=m, other=0.0) + j.to(tl.float32), mask=m)
"""
    x, o = np.arange(1, 17, dtype=np.float32), np.zeros(16, np.float32)
    expected = np.where(np.arange(16) % 4 < 2, x + np.arange(16) % 4, 0)
    assert interpreter.run(kernel(text, X, O), {"x": x, "o": o}, [1])["o"].tolist() == expected.tolist()


def test_types_are_those_of_the_arguments(interpreter: Interpreter) -> None:
    text = """def types(x, o, b, e, n, m):
    i = tl.arange(0, 16)
    v = tl.load(x + i).to(tl.float32)
    tl.store(o + i, (v * 2).to(tl.bfloat16))
    tl.store(b + i, v > 3.0)
    tl.store(e + i, n * 1000000 + m)
"""
    source = kernel(
        text, Argument("x", "*bf16", "in"), Argument("o", "*bf16", "out"), Argument("b", "*i1", "out"),
        Argument("e", "*i64", "out"), Argument("n", "i64", "size", 1), Argument("m", "i32", "size", 1),
    )  # fmt: skip
    x = np.arange(16).astype(ml_dtypes.bfloat16)
    values = {"x": x, "o": x, "b": np.zeros(16, bool), "e": np.zeros(16, np.int64), "n": 10_000, "m": -3}
    found = interpreter.run(source, values, [1])
    assert np.array_equal(found["o"], x + x) and np.array_equal(found["b"], x > 3)
    assert (found["e"] == 10_000 * 1_000_000 - 3).all()


def test_a_write_outside_is_an_error(interpreter: Interpreter) -> None:
    x = np.zeros(1500, np.float32)
    with pytest.raises(KernelError, match="fails") as caught:
        interpreter.run(ADD, {"x": x, "y": x, "o": x, "n": 1501}, [2])
    assert "outside of o" in str(caught.value)


def test_a_write_to_an_input_is_an_error(interpreter: Interpreter) -> None:
    source = kernel("def f(x, o):\n    tl.store(x + tl.arange(0, 4), 1.0)\n", X, O)
    with pytest.raises(KernelError, match="fails") as caught:
        interpreter.run(source, {"x": np.zeros(4, np.float32), "o": np.zeros(4, np.float32)}, [1])
    assert "writes" in str(caught.value) or "wrote to x" in str(caught.value)


def test_an_error_names_the_line(interpreter: Interpreter) -> None:
    source = kernel("def f(x, o):\n    i = tl.arange(0, 4)\n    tl.store(o + i, tl.load(x + i) + nothing)\n", X, O)
    with pytest.raises(KernelError) as caught:
        interpreter.run(source, {"x": np.zeros(4, np.float32), "o": np.zeros(4, np.float32)}, [1])
    assert "line 8: tl.store" in str(caught.value) and "'nothing' is not defined" in str(caught.value)


@pytest.mark.parametrize("x", [np.zeros(4, np.float64), 3])
def test_values_that_are_not_the_arguments_are_refused(x: object, interpreter: Interpreter) -> None:
    values = {"x": x, "o": np.zeros(4, np.float32)}
    with pytest.raises(UsageError, match=r"\*fp32"):
        interpreter.run(SOFTMAX, values, [1])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes"):
        interpreter.run(ADD, {"x": np.zeros(4, np.float32)}, [1])
