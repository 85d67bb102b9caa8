"""Operands that patterns are made of: values, weights, and windows that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of, is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.types import INTEGERS, shape_of, tensor
from gcomp.testing.generate.elementwise import EXACT_UNARY, taking
from gcomp.testing.generate.growth import Growth, element

NUMBERS = frozenset(element(t) for t in ("f32", "f64", "f16", "bf16")) | INTEGERS


def varying(g: Growth, sizes: Sequence[int], elements: Any = NUMBERS) -> SSAValue:
    """A value of these sizes that is no constant."""
    return g.keep(g.fresh(tensor(sizes, g.text_among(elements))))


def sizes_of(x: SSAValue) -> list[int]:
    """The shape of a value that has no symbolic sizes."""
    return [s for s in shape_of(x) if isinstance(s, int)]


def ordinary(g: Growth, shape: Sequence[int], text: str, *, weight: bool = False) -> SSAValue:
    """A constant of small whole numbers from 1 on, which nothing overflows with; or a weight of them."""
    array = np.array([g.choices.integer(1, 3) for _ in range(int(np.prod(shape)))]).reshape(tuple(shape))
    array = array.astype(dtype_of(text))
    if weight:
        return g.b.weight("w", array)
    return g.b.emit(hlo.ConstantOp, types=(tensor(shape, text),), value=ElementsAttr.of(array))


def same_type_unary(text: str) -> list[type[GraphOp]]:
    """The exact unary ops whose result is of their operand's type."""
    return [op for op in taking(EXACT_UNARY, text) if op is not hlo.AbsOp or not is_complex(text)]


def pooling_window(g: Growth, shape: Sequence[int], *, channels: bool = False) -> dict[str, list[Any]]:
    """A window over the dimensions from the third on (or any), its strides and its padding, even or not."""
    choices = g.choices
    w: dict[str, list[Any]] = {"window_dimensions": [], "window_strides": [], "padding": []}
    for i, size in enumerate(shape):
        moves = (i > 1 or channels) and choices.flag(0.8)
        width = choices.chosen((2, 3, 1)) if moves else 1
        low, high = (
            (choices.chosen((0, 1, 2, -1)), choices.chosen((0, 1, 2, -1))) if moves and choices.flag() else (0, 0)
        )
        if size + low + high < width:
            width, low, high = 1, 0, 0
        w["window_dimensions"].append(width)
        w["window_strides"].append(choices.chosen((1, 2, 3)) if moves else 1)
        w["padding"].append([low, high])
    return w
