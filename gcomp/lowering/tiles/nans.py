"""What arithmetic gives where there is no number is NaN of one form, wherever somebody may look at its bits.

Processors give such a NaN whatever sign they like; the graph level means the positive quiet one, and an order of all
numbers, or a conversion of bits, shows the difference. So what is stored, and what is looked at as an integer, is made
so behind the arithmetic. What was read from memory keeps its bits, and so does what only moves them or flips a sign.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dtypes import is_float
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.tile import KernelOp, element

_MOVES = (tile.BroadcastOp, tile.ReshapeOp, tile.TransposeOp)
_WIDE = ("f32", "f64")
_SIGNS = frozenset({"negate", "abs", "select"})
"""Functions of floats that give back the bits of an operand, but for the sign."""


def settle_nans(kernel: KernelOp) -> None:
    """Insert what makes NaN of one form: it is done once, and does nothing the second time."""
    settled: dict[SSAValue, SSAValue] = {}
    for op in list(kernel.body.walk()):
        if isinstance(op, tile.StoreOp):
            _settle(Use(op, op.operands.index(op.value)), settled)
        elif isinstance(op, tile.BitcastOp) and _is_float(op.operand) and not _is_float(op.result):
            _settle(Use(op, 0), settled)


def _settle(use: Use, settled: dict[SSAValue, SSAValue]) -> None:
    """Have an operand be of one form where it is NaN."""
    value = use.operation.operands[use.index]
    if not _is_float(value) or value in settled.values():
        return
    op = value.owner
    if isinstance(op, _MOVES) or (isinstance(op, tile.CastOp) and _is_narrowed_again(op)):
        _settle(Use(op, 0), settled)
    elif isinstance(op, tile.CastOp) and element(op.operand) in _WIDE and element(value) not in _WIDE:
        # A conversion: whatever sign NaN has there, the narrower number has none. No NaN of a narrow type is compared.
        _replace(Use(op, 0), settled)
    elif isinstance(op, tile.ElementwiseOp) and op.function_name in _SIGNS:
        if not _is_settling(op):
            for n in range(len(op.operands)):
                _settle(Use(op, n), settled)
    elif not isinstance(op, (tile.LoadOp, tile.ConstantOp, tile.BitcastOp)) and element(value) in _WIDE:
        _replace(use, settled)


def _replace(use: Use, settled: dict[SSAValue, SSAValue]) -> None:
    value = use.operation.operands[use.index]
    if value in settled.values():
        return
    if value not in settled:
        settled[value] = _canonical_nan(value)
    use.operation.operands[use.index] = settled[value]


def _is_narrowed_again(cast: tile.CastOp) -> bool:
    """Whether a narrow float was widened for what flips its sign, and becomes narrow again: no conversion is meant."""
    value = cast.operand
    while True:
        op = value.owner
        if isinstance(op, tile.CastOp):
            return element(op.operand) == element(cast.result)
        if isinstance(op, _MOVES):
            value = op.operands[0]
        elif isinstance(op, tile.ElementwiseOp) and op.function_name in _SIGNS and not _is_settling(op):
            value = op.operands[-1]
        else:
            return False


def _is_settling(op: tile.ElementwiseOp) -> bool:
    """Whether an op is what this module inserts."""
    if op.function_name != "select":
        return False
    test, nan, x = (operand for operand in op.operands)
    compared = test.owner
    return (
        isinstance(compared, tile.ElementwiseOp) and compared.function_name == "ne"
        and all(operand is x for operand in compared.operands) and isinstance(nan.owner, tile.ConstantOp)
    )  # fmt: skip


def _canonical_nan(value: SSAValue) -> SSAValue:
    """The value, NaN of the positive quiet form."""
    block = Block()
    b = TileBuilder(block)
    kind = element(value)
    b.location = value.owner.location if isinstance(value.owner, Operation) else b.location
    found = b.apply("select", b.apply("ne", value, value), b.constant(float("nan"), kind), value)
    ops = list(block.ops)
    for op in ops:
        op.detach()
    owner = value.owner
    where = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
    Rewriter.insert_op(ops, where)
    return found


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and is_float(element(value))


__all__ = ["settle_nans"]
