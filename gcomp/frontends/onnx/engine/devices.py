"""Multi-device annotations of ONNX (IR version 11): how tensors of nodes lie on devices, as shardings on a mesh.

A specification lists shards of a tensor, row by row over the dimensions that are cut, and the device (or group of
devices) that has each. Devices are laid out on a mesh whose axes are the prime factors of their number; a dimension is
cut along the axes that its shards' numbers change with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NoReturn, cast

import onnx_ir
from xdsl.ir import SSAValue

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.model.values import Value
from gcomp.ir import sdy
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.sharding import Mesh, Sharding


class Devices:
    """The devices of a model's configuration, and what its nodes say of them."""

    def __init__(self, model: onnx_ir.Model, program: Program, where: str) -> None:
        """UnsupportedError where nodes are annotated for several configurations."""
        self.where = where
        nodes = [node for node in model.graph.all_nodes() if node.device_configurations]
        used = {said.configuration for node in nodes for said in node.device_configurations} - {None}
        if len(used) > 1:
            names = ", ".join(sorted(each.name for each in used if each is not None))
            raise UnsupportedError(
                f"The nodes are annotated for several configurations of devices: {names}.", where=where,
                fix="Keep the annotations of one.",
            )  # fmt: skip
        count = next((each.num_devices for each in used if each is not None), 1)
        self.mesh = Mesh.of((f"d{i}", size) for i, size in enumerate(_primes(count)))
        self.name = sdy.add_mesh(program.module, self.mesh) if count > 1 else ""

    def placed(self, node: onnx_ir.Node) -> Iterator[tuple[onnx_ir.Value, Sharding]]:
        """The tensors of a node of which it says how they lie.

        UnsupportedError for stages of a pipeline, and for shards that no sharding on the mesh is.
        """
        for said in node.device_configurations:
            if said.pipeline_stage:
                self._refuse(node, "it is in a later stage of a pipeline", "Leave the stages out.")
            for spec in said.sharding_specs:
                if self.name and spec.device and spec.value is not None:
                    yield spec.value, self._sharding(node, spec)

    def place(
        self, b: Builder, node: onnx_ir.Node, names: Sequence[onnx_ir.Value | None], values: Sequence[Any]
    ) -> list[Any]:
        """The values of a node's inputs or outputs, where the node says that they lie."""
        placed = dict(self.placed(node))
        found: list[Any] = []
        for name, value in zip(names, values, strict=False):
            sharding = None if name is None else placed.get(name)
            if sharding is None or value is None:
                found.append(value)
                continue
            if not isinstance(value, SSAValue | Value):
                self._refuse(node, "it places what is no tensor", "Place tensors alone.")
            read = value.read(b) if isinstance(value, Value) else cast(SSAValue, value)
            here = b.emit(sdy.ShardingConstraintOp, read, sharding=sdy.ShardingAttr(sharding))
            found.append(Value.of(here) if isinstance(value, Value) else here)
        return found

    def _sharding(self, node: onnx_ir.Node, spec: onnx_ir.ShardingSpec) -> Sharding:
        value = spec.value
        if value is None or value.shape is None:
            self._refuse(node, "a tensor has no shape", "Run shape inference on the model.")
        rank = len(value.shape)
        cuts = {dim.axis % rank if rank else 0: prod(s.num_shards for s in dim.simple_shardings)
                for dim in spec.sharded_dims}  # fmt: skip
        groups = {entry.key: entry.value for entry in spec.index_to_device_group_map}
        holders = [groups.get(device, (device,)) for device in spec.device]
        if len(holders) == 1 or not cuts:
            holders = [tuple(d for group in holders for d in group)]
        if len(holders) != prod(cuts.values()):
            raise InvalidModelError(
                f"A sharding of `{value.name}` has {prod(cuts.values())} shards, and names {len(holders)} devices.",
                where=f"{self.where}: {node.name or node.op_type}",
            )  # fmt: skip
        found: dict[int, dict[int, int]] = {}
        for number, group in enumerate(holders):
            for device in group:
                found[device] = _digits(number, cuts)
        if sorted(found) != list(range(self.mesh.size)):
            self._refuse(node, f"`{value.name}` lies on some of the devices alone", "Let it lie on all of them.")
        axes = self._axes(found, cuts)
        if axes is None:
            self._refuse(node, f"the devices of `{value.name}` are in an order that no mesh has", "Sort them.")
        return Sharding.of(self.name, [axes.get(dim, []) for dim in range(rank)])

    def _axes(self, found: dict[int, dict[int, int]], cuts: dict[int, int]) -> dict[int, list[str]] | None:
        """For each dimension the axes that cut it, the major one first; None where no axes give these shards."""
        chosen: dict[int, list[tuple[int, str]]] = {dim: [] for dim in cuts}
        origin, stride = found[0], self.mesh.size
        for axis in self.mesh.axes:
            stride //= axis.size
            moved = {dim: found[stride][dim] - origin[dim] for dim in cuts if found[stride][dim] != origin[dim]}
            if len(moved) > 1:
                return None
            for dim, step in moved.items():
                chosen[dim].append((step, axis.name))
        axes = {dim: [name for _, name in sorted(own, reverse=True)] for dim, own in chosen.items()}
        for device, at in found.items():
            lies = self.mesh.coordinates(device)
            for dim in cuts:
                number = 0
                for name in axes[dim]:
                    number = number * self.mesh.axis_size(name) + lies[name]
                if number != at[dim]:
                    return None
        return axes

    def _refuse(self, node: onnx_ir.Node, why: str, fix: str) -> NoReturn:
        raise UnsupportedError(
            "A node's annotation for several devices is not imported.",
            where=f"{self.where}: {node.name or node.op_type}", why=why, fix=fix,
        )  # fmt: skip


def _primes(number: int) -> list[int]:
    found: list[int] = []
    factor = 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


def _digits(number: int, cuts: dict[int, int]) -> dict[int, int]:
    """The shard of each dimension, of a number that counts them row by row."""
    found: dict[int, int] = {}
    for dim in sorted(cuts, reverse=True):
        number, found[dim] = divmod(number, cuts[dim])
    return found


__all__ = ["Devices"]
