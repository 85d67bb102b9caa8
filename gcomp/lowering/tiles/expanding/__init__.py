"""Elementary functions as tile programs of our own.

Results are then the same bits on every processor, and in the evaluator: what is left are basic functions, which IEEE
754 rounds correctly, and functions of integers. `table` holds the programs and their errors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.ir import Block

from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.expanding import angles, errors, exponentials, gamma, logarithms, roots, steps, trigonometry
from gcomp.lowering.tiles.expanding.numbers import Number
from gcomp.lowering.tiles.expanding.table import EXPANSIONS
from gcomp.lowering.tiles.nans import settle_nans
from gcomp.lowering.tiles.tile import KernelOp, element

__all__ = [
    "EXPANSIONS", "angles", "errors", "expand", "exponentials", "gamma", "logarithms", "roots", "steps", "trigonometry",
]  # fmt: skip


_PURE = (tile.ElementwiseOp, tile.ConstantOp, tile.CastOp, tile.BitcastOp)


EXPANDED = "expanded"
"""The attribute of a kernel whose functions are basic ones: expansions look at bits that nobody else sees."""


def expand(kernel: KernelOp) -> None:
    """Replace every function that is not basic by a program of basic ones, in regions too.

    NaN gets one form before, where its bits are seen: expansions look at bits of numbers only.
    """
    if EXPANDED in kernel.attributes:
        return
    settle_nans(kernel)
    _expand(TileBuilder(kernel.block, i32), kernel.block)
    kernel.attributes[EXPANDED] = UnitAttr()
    _drop_unused(kernel.block)


def _expand(b: TileBuilder, block: Block) -> None:
    """Build a block again: its ops one after the other, and in the place of some their expansions."""
    ops = list(block.ops)
    for op in ops:
        op.detach()
    for op in ops:
        for region in op.regions:
            with b.inside(region.block, isolated=isinstance(op, combining.Folding)):
                _expand(b, region.block)
        known = None
        if isinstance(op, tile.ElementwiseOp):
            known = EXPANSIONS.get((op.function_name, element(op.operands[-1])))
        if known is None:
            block.add_op(op)
            continue
        with b.at(op.location):
            found = known.compute(*(Number(b, v) for v in op.operands))
        op.results[0].replace_all_uses_with(found.value)
        op.erase()


def _drop_unused(block: Block) -> None:
    """Erase what nothing uses: expansions compute pairs of which some need one half only."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            _drop_unused(region.block)
        if isinstance(op, _PURE) and not op.results[0].first_use:
            block.erase_op(op)
