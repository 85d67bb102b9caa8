"""Steps of the ops that few programs still have: StableHLO's older forms, and CHLO's structural ops.

What has no reference meaning any more (einsum, torch_index_select) is left out.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Block, Region

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import FLOATS, INTEGERS, dtype_text, element_of, rank_of, shape_of, tensor, with_shape
from gcomp.testing.generate.control import grow_inside
from gcomp.testing.generate.growth import Growth, step


@step("legacy-broadcast", hlo.BroadcastOp, weight=0.2)
def broadcast(g: Growth) -> None:
    """Sizes put before the others."""
    x = g.pick(most=4)
    size = g.choices.chosen((2, 1, 3))
    g.emit(hlo.BroadcastOp, x, broadcast_sizes=(size,) if g.fits((size, *shape_of(x))) else ())


@step("legacy-dot", hlo.DotOp, weight=0.2)
def dot(g: Growth) -> None:
    """A product of vectors and matrices."""
    x = g.pick(FLOATS | INTEGERS, least=1, most=2)
    columns = g.choices.chosen(((), (2,), (1,)))
    y = g.of_type(tensor((shape_of(x)[-1], *columns), dtype_text(x.type)))
    g.emit(hlo.DotOp, x, y, types=(with_shape(x, [*shape_of(x)[:-1], *columns]),))


@step("high-product", chlo.MulhiOp, weight=0.2)
def high_product(g: Growth) -> None:
    """The upper half of a product of integers."""
    x = g.pick(INTEGERS)
    g.emit(chlo.MulhiOp, x, g.like(x))


@step("constant-like", chlo.ConstantLikeOp, weight=0.2)
def constant_like(g: Growth) -> None:
    """A number in the shape of a value."""
    x = g.pick(frozenset({tensor((), t).element_type for t in ("f32", "f64", "f16", "bf16")}))
    number = g.choices.chosen((0.0, 1.0, -0.5))
    g.emit(chlo.ConstantLikeOp, x, value=FloatAttr(number, element_of(x)))  # pyright: ignore


@step("scan", chlo.ScanOp, weight=0.4, nests=True)
def scan(g: Growth) -> None:
    """A running fold along a dimension, forward or backward, that returns what it carries after each slice."""
    choices, x = g.choices, g.pick(least=1, static=True)
    axis = choices.integer(0, rank_of(x) - 1)
    type = with_shape(x, [s for i, s in enumerate(shape_of(x)) if i != axis])
    init = g.of_type(type)
    block = Block(arg_types=(type, type))
    with g.within(block):
        grow_inside(g, 1)
        op = hlo.MaximumOp if dtype_text(x.type) == "i1" or choices.flag() else hlo.AddOp
        carried = g.b.emit(op, *block.args, types=(type,))
        given = g.coerced(g.values[-1], type) if choices.flag(0.4) else carried
        g.b.emit_all(hlo.ReturnOp, given, carried, types=())
    results = g.b.emit_all(chlo.ScanOp, x, init, types=(x.type, type), regions=(Region(block),), dimension=axis,
                           is_reverse=choices.flag(0.3), operandSegmentSizes=chlo.ScanOp.encode_property(
                               "operandSegmentSizes", (1, 1)),
                           resultSegmentSizes=chlo.ScanOp.encode_property("resultSegmentSizes", (1, 1)))  # fmt: skip
    for result in results[::-1]:
        g.keep(result)


@step("token", hlo.CreateTokenOp, hlo.AfterAllOp, weight=0.15)
def token(g: Growth) -> None:
    """Tokens that order nothing."""
    first = g.b.emit(hlo.CreateTokenOp)
    g.b.emit(hlo.AfterAllOp, first, first)
    if not g.values:
        g.pick()
