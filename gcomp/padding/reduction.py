"""Folds: over dimensions and over windows. Padding takes part as what changes nothing, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import dtype_of, has_zero, is_complex, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import highest, lowest
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import BOOL, dtype_text, shape_of, tensor
from gcomp.ir.walking import captures
from gcomp.padding.layouts import Layout
from gcomp.padding.sweep import Padded, Scalar, Sweep, refuse
from gcomp.padding.table import pads


def _zero(text: str) -> Any:
    """What addition leaves unchanged, bit by bit: -0 of floats, since +0 would turn -0 into +0; None without a zero."""
    if not has_zero(text):
        return None
    if is_complex(text):
        return complex(-0.0, -0.0)
    return -0.0 if is_float(text) and np.signbit(np.asarray(-0.0).astype(dtype_of(text)).astype(np.float64)) else 0


NEUTRAL: dict[type[GraphOp], Callable[[str], Any]] = {
    hlo.AddOp: _zero,
    hlo.MultiplyOp: lambda _: 1,
    hlo.MaximumOp: lowest,
    hlo.MinimumOp: highest,
    hlo.AndOp: lambda text: True if text == "i1" else (-1 if text[0] == "i" else highest(text)),
    hlo.OrOp: lambda _: 0,
    hlo.XorOp: lambda _: 0,
}
"""What a binary op leaves unchanged, bit by bit; None where the type has no such number."""


def neutral_of(op: Any) -> Scalar | None:
    """What changes nothing in a fold of one operand, where its body is a single op; None for any other."""
    found = op.applied()
    text = dtype_text(op.inputs[0].type)
    # A complex product with 1 makes NaN of what is infinite in one part.
    if found is None or (is_complex(text) and found is not hlo.AddOp):
        return None
    unit = NEUTRAL[found](text)
    return None if unit is None else np.asarray(unit).astype(dtype_of(text))


@pads("neutral", hlo.ReduceOp)
def reduce(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Padding is what the body leaves unchanged; for any other body, a mask goes along that says what to skip."""
    dimensions: tuple[int, ...] = op.value("dimensions")
    count = len(op.inputs)
    inputs, inits = sweep.unified(operands[:count]), operands[count:]
    layout = inputs[0].layout
    folded = [i for i in dimensions if sweep.sizes.is_padded(layout[i])]
    kept = tuple([f for i, f in enumerate(layout) if i not in dimensions])
    if not folded:
        values = sweep.around(op, [x.value for x in (*inputs, *inits)])
    elif (unit := neutral_of(op)) is not None:
        values = sweep.around(op, [sweep.neutral(inputs[0], folded, unit).value, inits[0].value])
    else:
        values = _mask(sweep, op, [x.value for x in inputs], [x.value for x in inits], layout, folded)
    return [Padded(v, kept) for v in values]


def _mask(
    sweep: Sweep, op: Any, inputs: Sequence[SSAValue], inits: Sequence[SSAValue], layout: Layout, folded: Sequence[int]
) -> Sequence[SSAValue]:
    """The fold of elements with the mask of the real ones beside them: the others leave what was folded as it is."""
    b = sweep.b
    mask = sweep.lengths.mask(layout, folded)
    assert mask is not None
    old: Block = op.body.block
    count, scalars = len(inputs), old.arg_types[: len(inputs)]
    flag = tensor((), BOOL)
    block = Block(arg_types=(*scalars, flag, *scalars, flag))
    left, before = list(block.args[:count]), block.args[count]
    right, real = list(block.args[count + 1 : -1]), block.args[-1]
    with b.inside(block):
        mapping: dict[SSAValue, SSAValue] = dict(zip(old.args, (*left, *right), strict=True))
        made = copy_block(sweep, old, mapping)
        # Parts may be folded by themselves and then together: the left one may be skipped as well.
        both = b.emit(hlo.AndOp, before, real)
        one = [b.select(before, x, y) for x, y in zip(left, right, strict=True)]
        chosen = [b.select(both, x, y) for x, y in zip(made, one, strict=True)]
        b.insert(hlo.ReturnOp.of(*chosen, b.emit(hlo.OrOp, before, real)))
    true = b.constant(True, "i1")
    return b.emit_all(
        hlo.ReduceOp, *inputs, mask, *inits, true, dimensions=op.value("dimensions"), regions=[Region(block)]
    )[:count]


def copy_block(sweep: Sweep, block: Block, mapping: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    """Copies of a body's ops where the builder inserts; what it returns."""
    for value in {v for op in block.ops for v in (*op.operands, *captures(op))}:
        if value in sweep.values:
            mapping.setdefault(value, sweep.values[value].value)  # from around the body
    for op in block.ops:
        if op is block.last_op:
            return [mapping[v] for v in op.operands]
        sweep.b.insert(op.clone(mapping))
    return []


@pads("neutral", hlo.ReduceWindowOp)
def reduce_window(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Behind the true elements there is the initial value, as there is around them."""
    w, count = op.window(), len(op.inputs)
    shape = shape_of(op.result[0])
    sides = list(zip(*(w[name] for name in _WINDOW), strict=True))
    slid = [i for i, side in enumerate(sides) if side != (1, 1, 1, 1, (0, 0))]
    inputs = sweep.unified([sweep.compact(x, slid) for x in operands[:count]])
    layout = inputs[0].layout
    # Windows reach behind the true elements only where there is padding to reach into.
    beyond = [i for i in slid if w["padding"][i][1] > 0]
    values = [
        sweep.lengths.kept(x.value, layout, beyond, init.value)
        for x, init in zip(inputs, operands[count:], strict=True)
    ]
    made = sweep.around(op, [*values, *(x.value for x in operands[count:])])
    after = tuple([(shape[i],) if i in slid else f for i, f in enumerate(layout)])
    return [Padded(v, after) for v in made]


_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")


@pads("neutral", hlo.SelectAndScatterOp)
def select_and_scatter(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """What would be scattered from padding is what the sum leaves unchanged."""
    x, source, init = operands
    w = op.window()
    x, source = sweep.compact(x), sweep.compact(source)
    touched = [i for i, f in enumerate(source.layout) if sweep.sizes.is_padded(f)]
    reaching = [i for i, f in enumerate(x.layout) if sweep.sizes.is_padded(f) and w["padding"][i][1] > 0]
    body = applied_op(op.scatter)
    text = dtype_text(source.value.type)
    unit = None if body not in NEUTRAL or is_complex(text) else NEUTRAL[body](text)
    if reaching or unit is None:
        refuse(sweep, op, "its windows reach into padding, which might be selected, or its body is not a single op")
    unit = np.asarray(unit).astype(dtype_of(text))
    value = sweep.around(op, [x.value, sweep.neutral(source, touched, unit).value, init.value])[0]
    return [Padded(value, x.layout)]
