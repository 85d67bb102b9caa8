"""Ops that move data: the same elements at other indices, from the ops' indexing maps."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.elements.elementwise import convert
from gcomp.lowering.tiles.elements.table import Elements, elements_of, refusal


@elements_of(
    hlo.BroadcastInDimOp, hlo.BroadcastOp, hlo.TransposeOp, hlo.ReverseOp, hlo.SliceOp, hlo.ReshapeOp,
    hlo.DynamicBroadcastInDimOp, hlo.DynamicReshapeOp,
)  # fmt: skip
def move(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The operand's elements at other indices."""
    return elements.operand(op, result, 0, access)


@elements_of(hlo.PadOp)
def pad(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The operand's element where there is one, and the padding elsewhere."""
    read = elements.reads(op, result, 0, access)
    padding = elements.operand(op, result, 1, access)
    return _choose(elements, access, read, elements(op.operands[0], read), padding)


@elements_of(hlo.ConcatenateOp)
def concatenate(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The piece in which the index falls."""
    found: SSAValue | None = None
    for n in reversed(range(len(op.operands))):
        read = elements.reads(op, result, n, access)
        if any(c.lo == 1 and c.hi == 1 for c in read.conditions):
            continue
        tile = elements(op.operands[n], read)
        found = tile if found is None else _choose(elements, access, read, tile, found)
    return elements.b.constant(0, dtype_text(op.results[0].type)) if found is None else found


def _choose(
    elements: Elements, access: IndexingMap, read: IndexingMap, inside: SSAValue, outside: SSAValue
) -> SSAValue:
    """Select `inside` under the conditions of `read` that the access does not already imply."""
    own: list[Condition] = [c for c in read.conditions if c not in access.conditions]
    mask = elements.frame.mask(own, ())
    return inside if mask is None else elements.b.apply("select", mask, inside, outside)


# ---- values from positions ----------------------------------------------------------------------------------------


@elements_of(hlo.ConstantOp, chlo.ConstantOp)
def constant(elements: Elements, op: hlo.ConstantOp, result: int, access: IndexingMap) -> SSAValue:
    """The one value."""
    if not op.elements_attr.is_splat:
        raise refusal(op, "a constant with data lies in memory, and is an input of kernels")
    return elements.b.constant(op.elements_attr.splat(), dtype_text(op.results[0].type))


@elements_of(chlo.ConstantLikeOp)
def constant_like(elements: Elements, op: chlo.ConstantLikeOp, result: int, access: IndexingMap) -> SSAValue:
    """The one value."""
    return elements.b.constant(op.value("value"), dtype_text(op.results[0].type))


@elements_of(hlo.GetDimensionSizeOp)
def dimension_size(elements: Elements, op: hlo.GetDimensionSizeOp, result: int, access: IndexingMap) -> SSAValue:
    """The size."""
    dimension: int = op.value("dimension")
    size = shape_of(op.operand)[dimension]
    return convert(elements.b, op, elements.frame.position(size), dtype_text(op.results[0].type))


@elements_of(hlo.IotaOp, hlo.DynamicIotaOp)
def iota(elements: Elements, op: hlo.IotaOp, result: int, access: IndexingMap) -> SSAValue:
    """The index itself."""
    dimension: int = op.value("iota_dimension")
    place = elements.frame.position(access.indices[dimension])
    return convert(elements.b, op, place, dtype_text(op.results[0].type))


@elements_of(DimOp)
def dim(elements: Elements, op: DimOp, result: int, access: IndexingMap) -> SSAValue:
    """The size."""
    return convert(elements.b, op, elements.frame.position(op.formula), dtype_text(op.results[0].type))
