"""AffineGrid: the sample positions that affine maps make of a regular grid."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import dtype_text


@imports("AffineGrid", since=20)
def affine_grid(ctx: NodeContext) -> Results:
    """AffineGrid: theta (N, d, d + 1) at each place of `size` (N, C, spatial...): (N, spatial..., d); d is 2 or 3."""
    if ctx.rank() != 3 or ctx.rank(1) != 1:
        ctx.invalid(f"theta has rank {ctx.rank()} and size {ctx.rank(1)}", "ranks 3 and 1 are expected")
    count = ctx.static(ctx.shape(1)[0], "number of sizes")
    if count not in (4, 5):
        ctx.invalid(f"it has {count} sizes", "(N, C, H, W) or (N, C, D, H, W) is expected")
    batch, _, *spatial = operand_sizes(ctx, 1, "size")
    if any(isinstance(s, int) and s < 0 for s in spatial):
        ctx.invalid(f"its sizes are [{', '.join(map(str, spatial))}]", "sizes are not negative")
    theta = ctx.restate(ctx[0], {1: len(spatial), 2: len(spatial) + 1})
    theta = ctx.restate(theta, {0: batch})
    return [ctx.wide(theta, lambda maps: _map_positions(ctx, maps, spatial, corners=ctx.flag("align_corners")))]


def _map_positions(ctx: NodeContext, theta: SSAValue, spatial: list[Size], *, corners: bool) -> SSAValue:
    """The maps' values at homogeneous positions (spatial..., d + 1): the last dim first, then 1."""
    b, element, rank = ctx.b, dtype_text(theta.type), len(spatial)
    columns = [_positions(ctx, spatial, axis, element, corners=corners) for axis in reversed(range(rank))]
    columns.append(b.full(spatial, 1, element))
    base = b.concatenate([b.reshape(column, (*spatial, 1)) for column in columns], rank)
    grid = b.dot(theta, base, DotDimensions((), (), (2,), (rank,)))
    return b.transpose(grid, [0, *range(2, rank + 2), 1])


def _positions(ctx: NodeContext, spatial: list[Size], axis: int, element: str, *, corners: bool) -> SSAValue:
    """Where the pixels of an axis lie in -1..1, which are the centers of the outermost pixels or their edges.

    One pixel whose center is both -1 and 1 is at -1, as in ONNX's reference. (Its function body gives NaN for H and W
    and -1 for D, ONNX Runtime 1, PyTorch 0.)
    """
    b, size = ctx.b, spatial[axis]
    twice = b.multiply(b.iota(spatial, axis), b.constant(2, "i64"))
    length = size - 1 if corners else size
    centered = b.add(twice, b.dim(-length if corners else 1 - size))
    count = b.dim(length)
    if not corners:
        return b.divide(b.convert(centered, element), b.convert(count, element))
    alone = b.compare(count, b.constant(1, "i64"), "LT")
    one, minus = b.constant(1, "i64"), b.constant(-1, "i64")
    return b.divide(
        b.convert(b.select(alone, minus, centered), element), b.convert(b.select(alone, one, count), element)
    )
