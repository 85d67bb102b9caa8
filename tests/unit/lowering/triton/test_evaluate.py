"""The evaluator of tile programs: what ops mean, and the misuse of memory that it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from gcomp.errors import VerificationError
from gcomp.lowering.tiles import functions
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.evaluate import Memory, run
from tests.unit.lowering.triton.tiles import kernel

Body = Callable[[TileBuilder, list[SSAValue]], None]


def ran(body: Body, *arguments: Memory | int, grid: tuple[int, ...] = (1,)) -> None:
    types = [f32 if isinstance(a, Memory) else i32 for a in arguments]
    found = kernel(body, ["inout" if isinstance(a, Memory) else "size" for a in arguments], types, grid)
    found.verify()
    run(found, grid, arguments)


def numbers(*values: float) -> Memory:
    return Memory.of(np.array(values, np.float32))


def test_a_grid_covers_a_buffer() -> None:
    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        source, target, count = arguments
        at = b.add(b.multiply(b.program_id(0), b.position(4)), b.iota(4, 0, 1))
        mask = b.apply("lt", at, count)
        b.store(target, at, b.add(b.load(source, at, mask), b.constant(1.0, f32)), mask)

    target = Memory.empty(10, "f32")
    ran(body, Memory.of(np.arange(10, dtype=np.float32)), target, 10, grid=(3,))
    assert target.data.tolist() == [*range(1, 11)] and target.written.all()


def box(sizes: tuple[int, int], strides: tuple[int, int], first: tuple[int, int]) -> Body:
    """Of a described tensor, the box of 2 x 4 elements from some index on."""

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        layout = [[b.position(n) for n in numbers] for numbers in (sizes, strides)]
        found = b.load_box(b.describe(arguments[0], *layout, (2, 4)), [b.position(n) for n in first])
        at = b.add(b.multiply(b.iota(2, 0, 2), b.position(4)), b.iota(4, 1, 2))
        b.store(arguments[1], at, found, None)

    return body


@pytest.mark.parametrize("first", [(0, 0), (1, 2), (2, 4), (-1, -3), (5, 9)])
def test_boxes_hold_0_beyond_a_tensor(first: tuple[int, int]) -> None:
    source, target = Memory.of(np.arange(1, 25, dtype=np.float32)), Memory.empty(8, "f32")
    ran(box((3, 6), (8, 1), first), source, target)
    whole = np.zeros((24, 24), np.float32)
    whole[8:11, 8:14] = np.arange(1, 25, dtype=np.float32).reshape(3, 8)[:, :6]
    row, column = first[0] + 8, first[1] + 8
    assert target.data.reshape(2, 4).tolist() == whole[row : row + 2, column : column + 4].tolist()


@pytest.mark.parametrize(
    ("sizes", "strides", "why"),
    [
        ((3, 6), (6, 1), "multiples of 16 bytes"),
        ((3, 6), (8, 2), "the last is 1"),
        ((4, 8), (8, 1), "leaves its buffer"),
    ],
)
def test_boxes_of_what_the_copy_unit_does_not_take_are_refused(
    sizes: tuple[int, int], strides: tuple[int, int], why: str
) -> None:
    with pytest.raises(VerificationError, match=why):
        ran(box(sizes, strides, (2, 4)), Memory.of(np.zeros(24, np.float32)), Memory.empty(8, "f32"))


def test_boxes_of_what_nothing_wrote_are_refused() -> None:
    with pytest.raises(VerificationError, match="reads what nothing wrote"):
        ran(box((3, 6), (8, 1), (0, 0)), Memory.empty(24, "f32"), Memory.empty(8, "f32"))


def test_the_first_axis_of_a_grid_runs_fastest() -> None:
    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        x, y = b.program_id(0), b.program_id(1)
        b.store(arguments[0], b.add(b.multiply(y, b.position(3)), x), b.cast(x, f32), None)

    target = Memory.empty(6, "f32")
    ran(body, target, grid=(3, 2))
    assert target.data.tolist() == [0, 1, 2, 0, 1, 2]


def test_loops_carry_and_programs_leave_them_alone() -> None:
    """Each program counts as far as its own number."""

    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        which = b.program_id(0)
        (found,) = b.loop(b.position(0), which, 1, [b.constant(0.0, f32)], lambda i, v: [b.add(v[0], b.cast(i, f32))])
        b.store(arguments[0], which, found, None)

    target = Memory.empty(5, "f32")
    ran(body, target, grid=(5,))
    assert target.data.tolist() == [0, 0, 1, 3, 6]


def test_folds_and_scans() -> None:
    def body(b: TileBuilder, arguments: list[SSAValue]) -> None:
        row, column = b.iota(2, 0, 2), b.iota(4, 1, 2)
        at = b.add(b.multiply(row, b.position(4)), column)
        x = b.load(arguments[0], at, None)
        (most,) = b.reduce([x], 1, lambda p, q: [b.apply("maximum", p[0], q[0])])
        (sums,) = b.scan([x], 1, lambda p, q: [b.add(p[0], q[0])], reverse=False)
        (back,) = b.scan([x], 1, lambda p, q: [b.add(p[0], q[0])], reverse=True)
        for n, value in enumerate((b.broadcast(most, (2, 4)), sums, back)):
            b.store(arguments[1], b.add(at, b.position(8 * n)), value, None)

    x = np.array([[1, 5, 2, 3], [4, 0, 7, 1]], np.float32)
    target = Memory.empty(24, "f32")
    ran(body, Memory.of(x), target)
    most, sums, back = target.data.reshape(3, 2, 4)
    assert (most == x.max(1, keepdims=True)).all() and (sums == x.cumsum(1)).all()
    assert (back == x[:, ::-1].cumsum(1)[:, ::-1]).all()


def _out_of_bounds(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.load(arguments[0], b.iota(8, 0, 1), None)


def _negative(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.load(arguments[0], b.position(-1), None)


def _poison(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.load(arguments[1], b.iota(4, 0, 1), None)


def _twice(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.store(arguments[1], b.broadcast(b.position(0), (4,)), b.constant(0.0, f32, (4,)), None)


def _twice_by_programs(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.store(arguments[1], b.iota(4, 0, 1), b.constant(0.0, f32, (4,)), None)


def _race(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.store(arguments[0], b.program_id(0), b.constant(0.0, f32), None)
    b.load(arguments[0], b.position(0), None)


@pytest.mark.parametrize(
    ("body", "grid", "why"),
    [
        (_out_of_bounds, (1,), "tile.load leaves its buffer"),
        (_negative, (1,), "element -1 of 6"),
        (_poison, (1,), "reads what nothing wrote"),
        (_twice, (1,), "two lanes write one element"),
        (_twice_by_programs, (2,), "two lanes write one element"),
        (_race, (2,), "another program of the same launch writes"),
    ],
)
def test_misuse_of_memory_is_refused(body: Body, grid: tuple[int, ...], why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        ran(body, numbers(*range(6)), Memory.empty(6, "f32"), grid=grid)


def test_positions_are_divided_as_the_language_divides_them() -> None:
    x, y = np.array([7, -7, 6, -6], np.int32), np.full(4, 3, np.int32)
    meaning = {name: functions.FUNCTIONS[name].meaning(x, y).tolist() for name in (
        "divide_positive", "modulo_positive", "divide_floor", "modulo_floor")}  # fmt: skip
    assert meaning == {
        "divide_positive": [2, -2, 2, -2],
        "modulo_positive": [1, -1, 0, 0],
        "divide_floor": [2, -3, 2, -2],
        "modulo_floor": [1, 2, 0, 0],
    }
