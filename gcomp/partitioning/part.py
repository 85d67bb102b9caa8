"""A part of an op: the same op on parts of its operands, with the properties that parts have of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Operation, Region, SSAValue

from gcomp.dims import Size, exact_div, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode
from gcomp.ir.op import GraphOp
from gcomp.ir.sdy import SHARDING
from gcomp.ir.structures import ConvDimensions, GatherDimensions
from gcomp.ir.types import shape_of, with_shape
from gcomp.partitioning.rule import ShardingRule


@dataclass(frozen=True)
class Part:
    """An op whose rule's factors are cut in so many parts each (those that are not named: in one). Numbers of parts may
    be symbolic, as sizes are: the part then is that of all of them."""

    op: Any
    rule: ShardingRule
    counts: Mapping[int, Size]

    def count(self, tensor: int, dim: int) -> Size:
        """Into how many parts a dimension is cut; results are counted after operands."""
        return product(self.counts.get(f, 1) for f in self.rule.tensors[tensor][dim])

    def is_cut(self, tensor: int, dim: int) -> bool:
        """Whether a dimension is cut."""
        return self.count(tensor, dim) != 1

    def shape(self, tensor: int) -> list[Size]:
        """The shape of a tensor's part. ValueError where parts are not of one size."""
        found: list[Size] = []
        op = cast(Operation, self.op)
        for dim, size in enumerate(shape_of((*op.operands, *op.results)[tensor])):
            part = exact_div(size, count) if (count := self.count(tensor, dim)) != 1 else size
            if part is None:
                raise ValueError(f"a dimension of size {size} is not cut into {count} equal parts")
            found.append(part)
        return found

    def properties(self) -> dict[str, Any]:
        """The properties that are not those of the whole op."""
        row = _PROPERTIES.get(type(cast(Operation, self.op)))
        return {} if row is None else row(self)

    def made(self, operands: Sequence[SSAValue], regions: Sequence[Region]) -> GraphOp:
        """The part itself, of these operands."""
        op = cast(GraphOp, self.op)
        count = len(op.operands)
        return type(op).create(
            operands=operands,
            result_types=[with_shape(v.type, self.shape(count + i)) for i, v in enumerate(op.results)],
            properties=dict(op.properties) | {k: encode(k, v) for k, v in self.properties().items()},
            attributes={k: v for k, v in op.attributes.items() if k != SHARDING},
            regions=regions,
        )


def _slice(part: Part) -> dict[str, Any]:
    limits: list[Size] = list(part.op.value("limit_indices"))
    own = part.shape(0)
    return {"limit_indices": tuple([own[k] if part.is_cut(0, k) else n for k, n in enumerate(limits)])}


def _dynamic_slice(part: Part) -> dict[str, Any]:
    return {"slice_sizes": tuple(part.shape(len(part.op.operands)))}


def _broadcast(part: Part) -> dict[str, Any]:
    return {"broadcast_sizes": tuple(part.shape(1)[: len(part.op.value("broadcast_sizes"))])}


def _convolution(part: Part) -> dict[str, Any]:
    n: ConvDimensions = part.op.dimensions
    changed: dict[str, int] = {}
    for name, dim in (
        ("feature_group_count", n.input_feature_dimension),
        ("batch_group_count", n.input_batch_dimension),
    ):
        groups: int = part.op.value(name)
        if groups > 1:
            count = part.counts.get(part.rule.operands[0][dim][0], 1)
            if not isinstance(count, int):
                raise ValueError(f"{groups} groups are not cut into {count}")
            changed[name] = groups // count
    return changed


def _gather(part: Part) -> dict[str, Any]:
    n: GatherDimensions = part.op.dimensions
    sizes: list[Size] = list(part.op.value("slice_sizes"))
    kept = [k for k in range(len(sizes)) if k not in (*n.collapsed_slice_dims, *n.operand_batching_dims)]
    for offset, k in zip(n.offset_dims, kept, strict=True):
        sizes[k] = part.shape(2)[offset]
    return {"slice_sizes": tuple(sizes)}


_PROPERTIES: dict[type[Operation], Callable[[Part], dict[str, Any]]] = {
    hlo.SliceOp: _slice,
    hlo.DynamicSliceOp: _dynamic_slice,
    hlo.BroadcastOp: _broadcast,
    hlo.ConvolutionOp: _convolution,
    hlo.GatherOp: _gather,
}
"""Op class -> sizes among its properties, as parts have them."""

__all__ = ["Part"]
