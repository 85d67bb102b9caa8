"""The verifiers of the tile dialect: what is well formed, and how the rest is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import StringAttr, f32, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.errors import InternalError
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder, integer
from gcomp.lowering.tiles.schedules.kernel import Binding, Step
from gcomp.lowering.triton.printing import print_kernel
from tests.unit.lowering.triton.tiles import kernel

Body = Callable[[TileBuilder, list[SSAValue]], None]


def _no_elements(b: TileBuilder, _: list[SSAValue]) -> None:
    b.insert(tile.IotaOp.create(result_types=[tile.tile((0,), i32)], properties={"dimension": integer(0)}))


def _odd_fold(b: TileBuilder, _: list[SSAValue]) -> None:
    b.reduce([b.iota(3, 0, 1)], 0, lambda a, c: [b.add(a[0], c[0])])


def _odd_rows(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.store(arguments[0], b.iota(3, 0, 1), b.constant(0.0, "f32", (3,)), None)


def _unknown_function(b: TileBuilder, _: list[SSAValue]) -> None:
    x = b.position(0)
    op = tile.ElementwiseOp.create(operands=[x], result_types=[x.type], properties={"function": StringAttr("fold")})
    b.insert(op)


def _wrong_operands(b: TileBuilder, _: list[SSAValue]) -> None:
    b.apply("add", b.position(0), b.constant(0.0, f32))


def _wrong_result(b: TileBuilder, _: list[SSAValue]) -> None:
    x = b.constant(0.0, f32, (4,))
    b.insert(
        tile.ElementwiseOp.create(
            operands=[x], result_types=[tile.tile((8,), f32)], properties={"function": StringAttr("sine")}
        )
    )


def _wrong_store(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.store(arguments[0], b.position(0), b.position(1), None)


def _wrong_mask(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.load(arguments[0], b.iota(4, 0, 1), b.position(1))


def _outer_value(b: TileBuilder, _: list[SSAValue]) -> None:
    x = b.constant(0.0, f32, (4,))
    outer = b.constant(1.0, f32)
    b.reduce([x], 0, lambda p, q: [b.add(p[0], outer)])


def _changing_types(b: TileBuilder, _: list[SSAValue]) -> None:
    start, zero = b.position(0), b.constant(0.0, f32)
    block = Block(arg_types=[start.type, zero.type])
    block.add_op(tile.YieldOp.create(operands=[block.args[0]]))
    b.insert(
        tile.ForOp.create(
            operands=[start, start, zero],
            result_types=[zero.type],
            properties={"step": integer(1)},
            regions=[Region(block)],
        )
    )


def _wide_box(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.describe(arguments[0], [b.position(8)], [b.position(1)], (2,))


def _deep_box(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.describe(arguments[0], [b.position(8)] * 6, [b.position(1)] * 6, (4,) * 6)


def _box_without_strides(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.describe(arguments[0], [b.position(8), b.position(8)], [b.position(1)], (4, 4))


def _box_of_tiles(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.describe(arguments[0], [b.iota(8, 0, 1)], [b.position(1)], (4,))


def _box_at_too_few(b: TileBuilder, arguments: list[SSAValue]) -> None:
    sizes = [b.position(8), b.position(8)]
    b.load_box(b.describe(arguments[0], sizes, [b.position(8), b.position(1)], (4, 4)), [b.position(0)])


def _box_at_lanes(b: TileBuilder, arguments: list[SSAValue]) -> None:
    b.load_box(b.describe(arguments[0], [b.position(8)], [b.position(1)], (4,)), [b.iota(4, 0, 1)])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (_no_elements, "a tile has elements"),
        (_odd_fold, "a power of two, not 3"),
        (_unknown_function, "there is no function 'fold'"),
        (_wrong_operands, "takes operands of one type"),
        (_wrong_result, "has a result of shape"),
        (_wrong_store, "writes i32 to a buffer of f32"),
        (_wrong_mask, "a mask is a tile of i1"),
        (_outer_value, "(?i)isolated|outside|defined"),
        (_changing_types, "yields what is carried"),
        (_wide_box, "rows of a box have 16 bytes or more"),
        (_deep_box, "one to five dimensions"),
        (_box_without_strides, "a size and a stride for each"),
        (_box_of_tiles, "sizes and strides are scalars"),
        (_box_at_too_few, "takes an index for each of the 2 dimensions, not 1"),
        (_box_at_lanes, "indices are scalars of i32"),
    ],
)
def test_what_is_not_well_formed_is_refused(body: Body, why: str) -> None:
    with pytest.raises(VerifyException, match=why):
        kernel(body, ["inout"], [f32]).verify()


def test_a_tile_of_any_size_has_a_meaning_and_is_no_kernel_of_triton() -> None:
    odd = kernel(_odd_rows, ["out"], [f32])
    odd.verify()
    with pytest.raises(InternalError, match="powers of two"):
        print_kernel(Step(odd, (Binding("output"),), (1,)))


def test_arguments_and_grids_are_checked() -> None:
    def nothing(b: TileBuilder, _: list[SSAValue]) -> None:
        return

    for roles, grid, why in ((["input"], (1,), "no role"), (["in"], (1, 1, 1, 1), "one to three axes")):
        with pytest.raises(VerifyException, match=why):
            kernel(nothing, roles, [f32], grid).verify()
    kernel(nothing, ["in", "size"], [f32, i32], (1, "n")).verify()
