"""What is decomposed for targets without a library: ops that broadcast to places that are said, normalized batches."""

from __future__ import annotations

from typing import Any

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import FLOATS, rank_of, shape_of, tensor
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.passes import seeks

_BROADCASTING: tuple[type[GraphOp], ...] = (
    chlo.BroadcastAddOp, chlo.BroadcastSubtractOp, chlo.BroadcastMultiplyOp, chlo.BroadcastMaximumOp,
)  # fmt: skip


@seeks("decompose", weight=4)
def placed_operand(g: Growth) -> None:
    """Two operands, the smaller of which stands at dimensions that are said."""
    choices = g.choices
    sizes = [choices.chosen((2, 3, 2, 1)) for _ in range(choices.integer(2, 3))]
    text = choices.chosen(("i32", "f32", "i8", "f64"))
    places = [d for d in range(len(sizes)) if choices.flag(0.4)][: len(sizes) - 1]
    small = [1 if choices.flag(0.2) else sizes[d] for d in places]
    pair = [g.of_type(tensor(sizes, text)), g.of_type(tensor(small, text))]
    pair = pair[::-1] if choices.flag(0.3) else pair
    g.emit(choices.chosen(_BROADCASTING), *pair, broadcast_dimensions=places)


@seeks("decompose", weight=8)
def normalized_batch(g: Growth) -> None:
    """A normalization of a batch whose values differ, of elements of any width, by one op or another."""
    choices = g.choices
    text = choices.chosen(("f32", "f16", "f8E4M3FN", "f8E5M2", "f8E4M3FN", "bf16", "f64"))
    x = g.b.emit(hlo.IotaOp, types=(tensor((4, choices.chosen((2, 1, 3))), text),), iota_dimension=0)
    x = g.b.add(x, g.of_type(tensor(shape_of(x), text))) if choices.flag(0.5) else x
    vector = tensor((shape_of(x)[-1],), text)
    more: dict[str, Any] = {"epsilon": choices.chosen((1e-5, 1e-3, 1e-5)), "feature_index": rank_of(x) - 1}
    ones = g.b.full(shape_of(x)[-1:], 1, text)
    match choices.integer(0, 2):
        case 0:
            results = g.b.emit_all(hlo.BatchNormTrainingOp, x, ones, g.of_type(vector), **more)
        case 1:
            results = g.b.emit_all(hlo.BatchNormInferenceOp, x, ones, *(g.of_type(vector) for _ in range(2)),
                                   g.b.full(shape_of(x)[-1:], choices.chosen((0, 1)), text), **more)  # fmt: skip
        case _:
            results = g.b.emit_all(hlo.BatchNormGradOp, x, ones, g.of_type(vector), ones, x, **more)
    for result in results[::-1]:
        g.keep(result)


_ORDERS = (0, 1, 2, 3, 5, 7, 8, 9, 12, 20, 33, 80, 169, 170, 171)
"""Powers and factorials of each range of them are computed in another way."""


@seeks("decompose", weight=6)
def function_of_orders(g: Growth) -> None:
    """A function of a whole order, which each element has of its own, or all."""
    choices = g.choices
    rows, text = choices.integer(2, 4), choices.chosen(("f64", "f32", "f64"))
    x = g.of_type(tensor((rows, 3), text))
    if choices.flag():
        order = g.b.full_like(x, choices.chosen(_ORDERS))
    else:
        orders = [choices.chosen(_ORDERS) for _ in range(rows)]
        order = g.b.broadcast(g.b.constant(orders, text), (rows, 3), (0,))
    g.emit(choices.chosen((chlo.PolygammaOp, chlo.PolygammaOp, chlo.ZetaOp)), order, x)


@seeks("decompose", weight=2)
def part_of_a_real(g: Growth) -> None:
    """A part, or the conjugate, of a real number."""
    g.emit(g.choices.chosen((hlo.ImagOp, hlo.RealOp, chlo.ConjOp)), g.pick(frozenset(FLOATS)))
