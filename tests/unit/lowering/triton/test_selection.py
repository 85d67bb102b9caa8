"""select_and_scatter kernels: windows that overlap, padding, ties."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.ir.program import Program
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import compiled, interpreted, numbers

Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]

CASES: list[Case] = [
    ((2, 9, 11), (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (0, 2))),
    ((7,), (2,), (3,), ((0, 0),)),
    ((6, 5), (3, 2), (1, 1), ((0, 0), (2, 2))),
    ((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
    ((4, 3), (2, 3), (2, 1), ((5, 0), (0, 0))),
]


def select(
    shape: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
    dtype: str = "f32", direction: str = "GE", op: str = "add",
) -> tuple[Program, tuple[int, ...]]:  # fmt: skip
    counts = tuple([(n + sum(p) - w) // s + 1 for n, w, s, p in zip(shape, window, strides, padding, strict=True)])
    x, s = (f"tensor<{'x'.join(map(str, n))}x{dtype}>" for n in (shape, counts))
    e = f"tensor<{dtype}>"
    kind = "FLOAT" if dtype.startswith(("f", "b")) else "SIGNED"
    return Program.parse(f"""
    func.func @main(%x: {x}, %s: {s}, %c: {e}) -> {x} {{
      %r = "stablehlo.select_and_scatter"(%x, %s, %c) <{{window_dimensions = array<i64: {', '.join(map(str, window))}>,
          window_strides = array<i64: {', '.join(map(str, strides))}>,
          padding = dense<{[list(p) for p in padding]}> : tensor<{len(shape)}x2xi64>}}> ({{
      ^bb0(%a: {e}, %b: {e}):
        %p = stablehlo.compare {direction}, %a, %b, {kind} : ({e}, {e}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}, {{
      ^bb0(%a: {e}, %b: {e}):
        %q = stablehlo.{op} %a, %b : {e}
        stablehlo.return %q : {e}
      }}) : ({x}, {s}, {e}) -> {x}
      func.return %r : {x}
    }}"""), counts  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", [("f32", "GE", "add"), ("i8", "LT", "subtract"), ("bf16", "GT", "multiply")])
def test_windows_bring_what_they_have_to_what_they_select(case: Case, kind: tuple[str, str, str]) -> None:
    program, counts = select(*case, *kind)
    dtype, init = kind[0], numbers(2, (1,), kind[0], 2).reshape(())
    # Few different numbers, so that there are ties.
    values = [numbers(0, case[0], dtype, 2).round(), numbers(1, counts, dtype, 3), init]
    assert check_kernel(program, "window", values, Settings({"block": 16})) == []


def test_the_source_computes_in_tritons_interpreter() -> None:
    program, counts = select(*CASES[0])
    values = [numbers(0, CASES[0][0], "f32"), numbers(1, counts, "f32"), np.asarray(np.float32(0.5))]
    (found,) = interpreted(program, "window", values)
    np.testing.assert_allclose(found, interpret(program, values)[0], rtol=1e-6)


def test_kernels_fit_the_registers() -> None:
    program, _ = select((8, 64, 64), (1, 3, 3), (1, 2, 2), ((0, 0), (0, 1), (0, 1)))
    assert [kernel.stack for kernel in compiled(program, "window")] == [0, 0]
