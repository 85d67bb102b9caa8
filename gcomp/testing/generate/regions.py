"""Regions on rank 0 tensors: the bodies of folds, scatters and sorts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import tensor, with_element
from gcomp.testing.generate.elementwise import one_of
from gcomp.testing.generate.growth import Growth, splat

COMBINERS: tuple[type[GraphOp], ...] = (
    hlo.AddOp, hlo.MaximumOp, hlo.MinimumOp, hlo.MultiplyOp, hlo.AndOp, hlo.OrOp, hlo.XorOp,
)  # fmt: skip
OTHERS: tuple[type[GraphOp], ...] = (hlo.SubtractOp, hlo.DivideOp, hlo.AddOp, hlo.MaximumOp, hlo.PowerOp)
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64", "i8": "i32", "ui8": "ui32", "i32": "i64", "i16": "i32"}


def folding_body(g: Growth, texts: Sequence[str], *, replaces: float = 0.05, kind: int | None = None) -> Region:
    """A body that folds one or two scalars for each element type into one.

    It applies a binary op, mostly; else it swaps the arguments, keeps one of them, or computes a little more.
    """
    scalars = [tensor((), t) for t in texts]
    block = Block(arg_types=(*scalars, *scalars))
    count = len(texts)
    with g.b.inside(block):
        if count > 1:
            results = (
                _select(g, texts, block.args)
                if g.choices.flag(0.8)
                else [_combine(g, text, block.args[i], block.args[count + i]) for i, text in enumerate(texts)]
            )
        elif g.choices.flag(replaces):
            results = [block.args[1 if g.choices.flag(0.8) else 0]]
        else:
            results = [_combine(g, texts[0], *block.args)]
        g.b.emit_all(hlo.ReturnOp, *results, types=())
    return Region(block)


def _combine(g: Growth, text: str, x: SSAValue, y: SSAValue) -> SSAValue:
    choices = g.choices
    op = one_of(g, COMBINERS, text)
    if choices.flag(0.8):
        pair = (y, x) if choices.flag(0.1) else (x, y)
        return g.b.emit(op, *pair, types=(x.type,))
    other = one_of(g, OTHERS, text)
    if choices.flag() and text != "i1":
        two = g.b.emit(hlo.ConstantOp, types=(x.type,), value=splat(text, (), g.small(text, 2)))
        return g.b.emit(other, g.b.emit(op, x, two, types=(x.type,)), y, types=(x.type,))
    return g.b.emit(other, x, y, types=(x.type,))


def _select(g: Growth, texts: Sequence[str], args: Sequence[SSAValue]) -> list[SSAValue]:
    """As argmax is written: the pair whose first element wins, ties to the lower second one or to neither."""
    choices, count = g.choices, len(texts)
    x, y = args[0], args[count]
    direction = choices.chosen(("GT", "LT", "GE", "LE") if not is_complex(texts[0]) else ("EQ", "NE"))
    wins = compare(g, direction, x, y, texts[0])
    if is_float(texts[0]) and choices.flag():
        wins = g.b.emit(hlo.OrOp, wins, compare(g, "NE", x, x, texts[0]), types=(wins.type,))
    if choices.flag() and texts[1] == "i32":
        ties = g.b.emit(hlo.AndOp, compare(g, "EQ", x, y, texts[0]), compare(g, "LT", args[1], args[count + 1], "i32"))
        wins = g.b.emit(hlo.OrOp, wins, ties, types=(wins.type,))
    return [g.b.emit(hlo.SelectOp, wins, args[i], args[count + i], types=(args[i].type,)) for i in range(count)]


def compare(g: Growth, direction: str, x: SSAValue, y: SSAValue, text: str, kind: str | None = None) -> SSAValue:
    """A comparison; the type of comparison follows from the element type."""
    usual = (
        "FLOAT" if is_float(text) or is_complex(text) else "UNSIGNED" if text[0] == "u" or text == "i1" else "SIGNED"
    )
    return g.b.emit(hlo.CompareOp, x, y, types=(with_element(x, "i1"),), comparison_direction=direction,
                    compare_type=kind or usual)  # fmt: skip


def comparator(g: Growth, texts: Sequence[str]) -> Region:
    """A comparator: by the first input, and by the second where that ties; total order or not, strict or not."""
    choices = g.choices
    block = Block(arg_types=[tensor((), t) for t in texts for _ in range(2)])
    with g.b.inside(block):
        text = texts[0]
        direction = choices.chosen(("LT", "GT", "LE", "GE")) if not is_complex(text) else "NE"
        kind = "TOTALORDER" if is_float(text) and choices.flag(0.6) else None
        found = compare(g, direction, block.args[0], block.args[1], text, kind)
        if len(texts) > 1 and choices.flag() and not is_complex(texts[1]):
            ties = compare(g, "EQ", block.args[0], block.args[1], text)
            second = compare(g, choices.chosen(("LT", "GT")), block.args[2], block.args[3], texts[1])
            found = g.b.emit(hlo.OrOp, found, g.b.emit(hlo.AndOp, ties, second, types=(ties.type,)), types=(ties.type,))
        g.b.emit_all(hlo.ReturnOp, found, types=())
    return Region(block)
