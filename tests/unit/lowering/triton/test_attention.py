"""Attention kernels, whole and split, held to the composite's decomposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from gcomp.dims import Range, Ranges, Size, symbol
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import composite
from gcomp.ir.program import Program
from gcomp.ir.types import tensor
from gcomp.lowering.tiles.schedules import Settings
from gcomp.reference.interpreter import interpret
from gcomp.testing.tiles import check_kernel
from tests.unit.lowering.triton.launches import compiled, interpreted, launched, numbers, program_of

INF = float("inf")


def attention(
    batch: Sequence[Size], queries: Size, keys: Size, features: int, outs: int, dtype: str,
    masks: Sequence[Any] = (), **attributes: float | int,
) -> Program:  # fmt: skip
    """An attention over inputs; more inputs are masks of these types."""
    types = [tensor((*batch, n, f), dtype) for n, f in ((queries, features), (keys, features), (keys, outs))]

    def build(b: Builder, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return composite(b, "gcomp.attention", values, {"scale": 0.3, **attributes})

    return program_of([*types, *masks], build)


def inputs(program: Program, sizes: Mapping[str, int] | None = None) -> list[Any]:
    from gcomp.dims import evaluate
    from gcomp.ir.types import dtype_text, shape_of

    found = []
    for n, argument in enumerate(program.block.args):
        shape, dtype = [evaluate(size, sizes or {}) for size in shape_of(argument)], dtype_text(argument.type)
        found.append(np.random.default_rng(n).random(shape) < 0.4 if dtype == "i1" else numbers(n, shape, dtype))
    return found


def causal(batch: int, queries: int, keys: int, shift: int, fill: float, dtype: str = "f32") -> Program:
    """Attention under a comparison of positions."""
    types = [tensor((batch, n, 8), dtype) for n in (queries, keys, keys)]

    def build(b: Builder, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        shape = (1, queries, keys)
        row, column = (b.iota(shape, k, "i32") for k in (1, 2))
        mask = b.compare(column, b.add(row, b.full(shape, shift, "i32")), "LE")
        return composite(b, "gcomp.attention", [*values, mask], {"scale": 0.3, "fill": fill})

    return program_of(types, build)


SMALL = {"queries": 16, "keys": 16}
TURNED = {"queries": 4, "keys": 16, "least": 2, "transposed": 1}
"""As processors have it: keys as rows of features, and those left over in a tile of their own."""


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
@pytest.mark.parametrize(
    "settings", [{}, SMALL, {**SMALL, "splits": 3}, TURNED], ids=["default", "small", "split", "turned"]
)
def test_results_are_the_decompositions(dtype: str, settings: dict[str, int]) -> None:
    program = attention((2, 3), 37, 50, 20, 24, dtype)
    assert check_kernel(program, "attention", inputs(program), Settings(settings)) == []


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_scale_above_one_multiplies_the_scores(dtype: str) -> None:
    program = attention((2,), 5, 7, 4, 4, dtype, scale=3.0)
    assert check_kernel(program, "attention", inputs(program)) == []
    large = [np.full_like(x, x.dtype.type(3e38) if i == 0 else 0) for i, x in enumerate(inputs(program))]
    assert check_kernel(program, "attention", large) == []


@pytest.mark.parametrize(
    ("batch", "queries", "keys", "features", "outs"),
    [((), 1, 1, 1, 1), ((2,), 5, 1, 3, 2), ((1,), 3, 0, 4, 2), ((1,), 3, 4, 0, 2), ((0,), 3, 4, 5, 6),
     ((1,), 0, 4, 5, 6), ((2,), 3, 4, 5, 0), ((1,), 17, 20, 300, 290), ((1, 2), 1, 700, 16, 16)],
)  # fmt: skip
def test_any_size_will_do(batch: tuple[int, ...], queries: int, keys: int, features: int, outs: int) -> None:
    program = attention(batch, queries, keys, features, outs, "f32")
    assert check_kernel(program, "attention", inputs(program)) == []


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("attributes", [{"fill": -1e9}, {"fill": -INF}, {"fill": -INF, "safe": 1}], ids=str)
def test_masks_add_and_keep_and_rows_without_a_key_are_as_decomposed(dtype: str, attributes: dict[str, float]) -> None:
    masks = [tensor((2, 1, 19, 40), dtype), tensor((1, 1, 19, 40), "i1")]
    program = attention((2, 3), 19, 40, 8, 8, dtype, masks, **attributes)
    values = inputs(program)
    values[4][..., 3, :] = False
    assert check_kernel(program, "attention", values, Settings(SMALL)) == []
    assert check_kernel(program, "attention", values, Settings({**SMALL, "splits": 2})) == []


@pytest.mark.parametrize("shift", [0, 13, -5, 100, -100])
@pytest.mark.parametrize("fill", [-INF, -3e38, -1.0])
def test_causal_masks_leave_out_only_what_has_no_weight(shift: int, fill: float) -> None:
    program = causal(2, 37, 50, shift, fill)
    for settings in (SMALL, {**SMALL, "splits": 2}, {}):
        assert check_kernel(program, "attention", inputs(program), Settings(settings)) == []


def test_a_causal_mask_shortens_the_loop() -> None:
    _, scheduled = launched(causal(1, 64, 64, 0, -INF), "attention", **SMALL)
    _, whole = launched(attention((1,), 64, 64, 8, 8, "f32"), "attention", **SMALL)
    loops = [[op for op in s.steps[0].kernel.walk() if op.name == "tile.for"] for s in (scheduled, whole)]
    assert [len(found) for found in loops] == [2, 1]


def test_sizes_may_be_symbols() -> None:
    n, m = symbol("n"), symbol("m")
    program = attention((symbol("b"), 2), n, m, 8, 8, "f32")
    program.ranges = Ranges({"n": Range(0), "m": Range(0), "b": Range(1)})
    for sizes in ({"b": 1, "n": 1, "m": 1}, {"b": 2, "n": 37, "m": 50}, {"b": 1, "n": 3, "m": 0}):
        assert check_kernel(program, "attention", inputs(program, sizes), Settings(SMALL)) == []


def test_heads_may_share_keys_and_elementwise_ops_follow() -> None:
    def build(b: Builder, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        query, *shared, bias = values
        key, value = (b.reshape(b.broadcast(v, (2, 2, 3, 21, 8), (0, 1, 3, 4)), (2, 6, 21, 8)) for v in shared)
        (found,) = composite(b, "gcomp.attention", [query, key, value], {"scale": 0.5})
        return [b.add(b.transpose(found, (0, 2, 1, 3)), b.broadcast(bias, (2, 10, 6, 8), (3,)))]

    shapes = [(2, 6, 10, 8), (2, 2, 21, 8), (2, 2, 21, 8), (8,)]
    program = program_of([tensor(shape, "f32") for shape in shapes], build)
    assert check_kernel(program, "attention", inputs(program)) == []
    assert check_kernel(program, "attention", inputs(program), Settings({**SMALL, "splits": 2})) == []


def test_a_name_with_another_meaning_is_refused() -> None:
    program = attention((1,), 4, 4, 4, 4, "f32")
    (op,) = [op for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    other = attention((1,), 4, 4, 4, 4, "f32", scale=0.7)
    text = program.text().replace("dense<0.3>", "dense<0.7>")
    assert text != other.text() and op.composite_name == "gcomp.attention"
    with pytest.raises(UnsupportedError, match="decomposed into something else"):
        check_kernel(Program.parse(text), "attention", inputs(program))


def test_the_source_computes_in_tritons_interpreter() -> None:
    program = causal(1, 20, 24, 0, -INF)
    for settings in (SMALL, {**SMALL, "splits": 2}):
        (found,) = interpreted(program, "attention", inputs(program), **settings)
        np.testing.assert_allclose(found, interpret(program, inputs(program))[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "features"),
    [
        ("bf16", 64),
        pytest.param("bf16", 128, marks=pytest.mark.slow),
        pytest.param("f16", 256, marks=pytest.mark.slow),
        pytest.param("f32", 128, marks=pytest.mark.slow),
    ],
)
def test_kernels_fit_the_registers(dtype: str, features: int) -> None:
    program = attention((8,), 512, 512, features, features, dtype)
    assert [kernel.stack for kernel in compiled(program, "attention", splits=1)] == [0]
