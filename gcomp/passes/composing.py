"""What patterns that make composites have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from gcomp.analysis.spreads import Read
from gcomp.dtypes import is_float, is_narrow_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.composites import CANONICAL, match_composite
from gcomp.ir.types import dtype_text, element_of
from gcomp.passes.rewriting import Pattern


class Raising(Pattern):
    """A pattern that leaves decompositions alone: they are written with what it looks for."""

    def applies(self, op: Any) -> bool:
        around: Operation | None = op.parent_op()
        while around is not None and not isinstance(around, FuncOp):
            around = around.parent_op()
        return around is None or around.sym_name.data.rpartition(".")[0] not in CANONICAL


def skip_conversions(read: Read) -> Read:
    """What conversions between element types of floats lead to: those to integers and back cut off."""
    while (inner := read.operand(hlo.ConvertOp)) is not None and is_float(inner.element):
        read = inner
    return read


def widened_source(value: SSAValue) -> SSAValue | None:
    """The narrow float of which a value is the conversion to f32, if it is one."""
    op = value.owner
    if not isinstance(op, hlo.ConvertOp) or dtype_text(value.type) != "f32":
        return None
    return op.operand if is_narrow_float(dtype_text(op.operand.type)) else None


def narrow_composite(
    op: hlo.ConvertOp, b: Builder, *names: str
) -> tuple[hlo.CompositeOp, SSAValue, dict[str, Any]] | None:
    """The composite in f32 of a widened narrow float that a conversion takes back to that type.

    With what was widened, and the composite's attributes. Such composites compute in f32 by themselves.
    """
    found = match_composite(b.program, op.operand, *names)
    if found is None or op.operand is not found[0].results[0]:
        return None
    source = widened_source(found[0].operands[0])
    if source is None or element_of(source) != element_of(op.result):
        return None
    return found[0], source, found[1]


def compact(reads: Sequence[Read], b: Builder) -> list[SSAValue] | None:
    """Values with the result's rank and size 1 where they do not vary, as NumPy's broadcasting takes them.

    None, and nothing is built, where the dimensions of one lie in another order.
    """
    bare = [read.bare() for read in reads]
    if not all(read.ordered for read in bare):
        return None
    return [b.reshape(r.value, [size if p in r.places else 1 for p, size in enumerate(r.shape)]) for r in bare]
