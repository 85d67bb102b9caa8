"""What devices of a mesh do together, stated in a program that is written for one of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import COMMUTATIVE, scalar_region
from gcomp.ir.structures import ChannelHandle
from gcomp.ir.types import element_of, rank_of, shape_of
from gcomp.partitioning.cuts import Cut, Move, Step, counts, steps
from gcomp.sharding import Mesh, Sharding, places_of

_CHANNEL = ChannelHandle(1, 1)
"""Groups are of partitions, which ops know by their having a channel."""


class Exchange:
    """States collectives along axes of a mesh, where a builder stands inside of a manual computation."""

    def __init__(self, b: Builder, mesh: Mesh) -> None:
        self.b, self.mesh = b, mesh
        self._coordinates: dict[str, SSAValue] = {}
        self._moved: dict[tuple[SSAValue, Step], SSAValue] = {}
        """What a step makes of a part: where ways to two cuts begin alike, it is taken once."""

    # ---- where a device is ----

    def coordinate(self, axis: str) -> SSAValue:
        """Where the device lies along an axis (i64), which the computation asks for once."""
        if axis not in self._coordinates:
            b, minor = self.b, 1
            for other in reversed(self.mesh.axes):
                if other.name == axis:
                    break
                minor *= other.size
            number = b.convert(b.emit(hlo.PartitionIdOp), "i64")
            along = b.emit(hlo.DivideOp, number, b.constant(minor, "i64"))
            size = b.constant(self.mesh.axis_size(axis), "i64")
            self._coordinates[axis] = b.emit(hlo.RemainderOp, along, size)
        return self._coordinates[axis]

    def place(self, axes: Sequence[str]) -> SSAValue:
        """Which part of a dimension that is cut along axes, the major one first, the device has (i64)."""
        b, found = self.b, self.coordinate(axes[0])
        for axis in axes[1:]:
            size = b.constant(self.mesh.axis_size(axis), "i64")
            found = b.add(b.multiply(found, size), self.coordinate(axis))
        return found

    # ---- from one cut to another ----

    def move(self, value: SSAValue, old: Cut, new: Cut) -> SSAValue:
        """The device's part of a tensor in another cut than it lies in."""
        cut, parts = old, counts(old, self.mesh)
        shape = tuple([s if n == 1 else int(str(s)) * n for s, n in zip(shape_of(value), parts, strict=True)])
        for step in steps(old, new, shape, self.mesh):
            if (value, step) not in self._moved:
                self._moved[value, step] = self._step(value, step, cut)
            value, cut = self._moved[value, step], step.cut
        return value

    def _step(self, value: SSAValue, step: Step, before: Cut) -> SSAValue:
        if step.move is Move.SLICE:
            assert step.target is not None
            return self.own(value, step.target, (step.axis,))
        if step.move is Move.PERMUTE:
            return self._permute(value, before, step.cut)
        groups = self.mesh.groups((step.axis,))
        if step.move is Move.ALL_GATHER:
            return self.b.emit(
                hlo.AllGatherOp, value, all_gather_dim=step.source, replica_groups=groups, channel_handle=_CHANNEL,
                use_global_device_ids=True,
            )  # fmt: skip
        return self.b.emit(
            hlo.AllToAllOp, value, split_dimension=step.target, concat_dimension=step.source,
            split_count=self.mesh.axis_size(step.axis), replica_groups=groups, channel_handle=_CHANNEL,
        )  # fmt: skip

    def own(self, value: SSAValue, dim: int, axes: Sequence[str]) -> SSAValue:
        """The device's part of a dimension of what all along these axes have."""
        sizes, b = list(shape_of(value)), self.b
        for axis in axes:
            size = sizes[dim]
            assert isinstance(size, int), "only numbers are cut"
            sizes[dim] = size // self.mesh.axis_size(axis)
        zero = b.constant(0, "i64")
        starts = [zero] * rank_of(value)
        starts[dim] = b.multiply(self.place(axes), b.constant(sizes[dim], "i64"))
        return b.emit(hlo.DynamicSliceOp, value, *starts, slice_sizes=sizes)

    def _permute(self, value: SSAValue, before: Cut, after: Cut) -> SSAValue:
        """Whole parts, moved to the devices that have them when the axes stand in another order."""
        mesh, used = self.mesh, [axis for axes in before for axis in axes]
        old, new = (Sharding.of("mesh", cut) for cut in (before, after))
        pairs: list[tuple[int, int]] = []
        for group in mesh.groups(used):
            targets = {places_of(new, mesh, device): device for device in group}
            pairs += [(device, targets[places_of(old, mesh, device)]) for device in group]
        return self.b.emit(
            hlo.CollectivePermuteOp, value, source_target_pairs=sorted(pairs), channel_handle=_CHANNEL
        )  # fmt: skip

    # ---- sums ----

    def all_reduce(self, value: SSAValue, combine: str, axis: str) -> SSAValue:
        """What devices along an axis have, combined, on all of them."""
        return self.b.emit(
            hlo.AllReduceOp, value, regions=(scalar_region(_op(combine), element_of(value)),),
            replica_groups=self.mesh.groups((axis,)), channel_handle=_CHANNEL, use_global_device_ids=True,
        )  # fmt: skip

    def reduce_scatter(self, value: SSAValue, combine: str, axis: str, dim: int) -> SSAValue:
        """What devices along an axis have, combined, and cut along a dimension."""
        return self.b.emit(
            hlo.ReduceScatterOp, value, regions=(scalar_region(_op(combine), element_of(value)),),
            scatter_dimension=dim, replica_groups=self.mesh.groups((axis,)), channel_handle=_CHANNEL,
            use_global_device_ids=True,
        )  # fmt: skip


def _op(combine: str) -> type[GraphOp]:
    return COMMUTATIVE[f"stablehlo.{combine}"]


__all__ = ["Exchange"]
