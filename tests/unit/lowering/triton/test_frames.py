"""Frames: formulas of coordinates as tiles of positions, and conditions as masks, against their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import Condition, d
from gcomp.dims import Range, Ranges, Size, dmax, dmin, evaluate, floordiv, mod, symbol
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.evaluate import Memory, run
from gcomp.lowering.tiles.frames import Frame, delinearize, linear
from tests.unit.lowering.triton.tiles import kernel

ROWS, COLUMNS = 3, 5


def frame_of(b: TileBuilder, ranges: Ranges | None = None) -> Frame:
    """Three rows and five columns, in a tile of four and eight; symbols are 7."""
    frame = Frame(b, ranges or Ranges({}), lambda name: b.position(7))
    frame.coordinate(ROWS, b.iota(4, 0, 2), partial=True)
    frame.coordinate(COLUMNS, b.iota(8, 1, 2), partial=True)
    return frame


def positions(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """The values of a formula in the frame, and where the coordinates are within their extents."""

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        frame = frame_of(b)
        at = b.add(b.multiply(b.iota(4, 0, 2), b.position(8)), b.iota(8, 1, 2))
        b.store(arguments[0], at, b.broadcast(frame.position(size), (4, 8)), None)
        inside = frame.full_mask()
        assert inside is not None
        b.store(arguments[1], at, b.broadcast(b.cast(inside, i32), (4, 8)), None)

    found = kernel(body, ["out", "out"], [i32, i32])
    found.verify()
    memory = [Memory.empty(32, "i32") for _ in range(2)]
    run(found, (1,), memory)
    return memory[0].data.reshape(4, 8)[:ROWS, :COLUMNS], memory[1].data.reshape(4, 8)


def formulas() -> st.SearchStrategy[Size]:
    """Formulas of two coordinates and a symbol."""
    leaves: st.SearchStrategy[Size] = st.sampled_from([d(0), d(1)]) | st.integers(-4, 6)

    def larger(inner: st.SearchStrategy[Size]) -> st.SearchStrategy[Size]:
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a * b, inner, st.integers(-3, 3)),
            st.builds(floordiv, inner, st.integers(1, 4)),
            st.builds(mod, inner, st.integers(1, 4)),
            st.builds(dmin, inner, inner),
            st.builds(dmax, inner, inner),
        )

    return st.recursive(leaves, larger, max_leaves=6)


@settings(max_examples=60, deadline=None)
@given(size=formulas())
def test_positions_are_the_values_of_formulas(size: Size) -> None:
    found, inside = positions(size)
    for i in range(ROWS):
        for j in range(COLUMNS):
            assert found[i, j] == evaluate(size, {"$d0": i, "$d1": j}), (size, i, j)
    assert (inside == (np.arange(4) < ROWS)[:, None] * (np.arange(8) < COLUMNS)).all()


@pytest.mark.parametrize("low", [0, 4], ids=["of a sign that is left open", "below 0"])
@pytest.mark.parametrize("number", [d(0), d(0) - 2, 2 * d(0) - d(1)], ids=str)
def test_divisors_below_0_are_turned(number: Size, low: int) -> None:
    """Simplest forms turn signs, as of `f(n) - n` for `n - f(n)`; what divides sees none."""
    n = symbol("n")

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        frame = frame_of(b, Ranges({"n": Range(low, 64)}))
        at = b.add(b.multiply(b.iota(4, 0, 2), b.position(8)), b.iota(8, 1, 2))
        for argument, divide in zip(arguments, (floordiv, mod), strict=True):
            b.store(argument, at, b.broadcast(frame.position(divide(number, floordiv(n, 4) - n)), (4, 8)), None)

    found = kernel(body, ["out", "out"], [i32, i32])
    memory = [Memory.empty(32, "i32") for _ in range(2)]
    run(found, (1,), memory)
    for i, j in np.ndindex(ROWS, COLUMNS):
        value = evaluate(number, {"$d0": i, "$d1": j})
        assert [m.data[i * 8 + j] for m in memory] == [value // -6, value % -6]


def test_conditions_that_always_hold_are_no_masks() -> None:
    def masks(*conditions: Condition) -> object:
        found: list[object] = []

        def body(b: TileBuilder, _: list[SSAValue]) -> None:
            found.append(frame_of(b).mask(conditions, ()))

        kernel(body, [], [])
        return found[0]

    assert masks(Condition(d(0), 0, ROWS), Condition(d(1) + 2, 1, COLUMNS + 2)) is None
    assert masks(Condition(d(0), 1, ROWS)) is not None and masks(Condition(d(1), 0, COLUMNS - 1)) is not None


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 5), (4, 1), (1, 1), (6,), (), (2, 0, 3)])
def test_places_in_row_major_order(shape: tuple[int, ...]) -> None:
    for place, index in enumerate(np.ndindex(shape)):
        assert delinearize(place, shape) == index and linear(shape, index) == place
    assert delinearize(d(0), (2, 0, 3)) == (0, 0, 0)
