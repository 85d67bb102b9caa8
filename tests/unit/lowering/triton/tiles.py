"""Tile kernels written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder, integer


def kernel(
    body: Callable[[TileBuilder, list[SSAValue]], None],
    roles: Sequence[str],
    types: Sequence[Attribute],
    grid: Sequence[object] = (1,),
) -> tile.KernelOp:
    """The kernel of a body; an argument of role size is an i32, others are buffers of their types."""
    of = [tile.tile((), i32) if r == "size" else tile.BufferType(t) for r, t in zip(roles, types, strict=True)]
    block = Block(arg_types=of)
    b = TileBuilder(block)
    body(b, list(block.args))
    b.insert(tile.YieldOp.create())
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr("kernel"),
        "grid": ArrayAttr([StringAttr(str(size)) for size in grid]),
        "roles": ArrayAttr([StringAttr(role) for role in roles]),
        "num_warps": integer(1),
        "num_stages": integer(1),
    }
    return tile.KernelOp.create(properties=properties, regions=[Region(block)])
