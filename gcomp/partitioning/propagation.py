"""Propagation: from what a program says of some values to shardings of all, and why each axis is where it is.

Priorities that users give go first, and within one the stages of `Step.direction`. Within a stage each step is taken
again whenever one of its values was cut further, until nothing changes: an axis is only ever added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from gcomp.ir import sdy
from gcomp.partitioning.axes import Lying, Part, parts_of
from gcomp.partitioning.network import STAGES, Network, Node, Step, identity_rule
from gcomp.partitioning.spreading import spread
from gcomp.sharding import DimensionSharding, Mesh, Sharding


@dataclass(frozen=True)
class Origin:
    """Why an axis cuts a dimension of a value: the op through which it came, and the value it came from; None of both
    where the program says so."""

    dim: int
    part: Part
    op: Operation | None = None
    source: Node | None = None


class Propagation:
    """Shardings of all values of a program. `run` adds what follows from what is said."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.meshes = sdy.meshes_of(network.program.module)
        self.origins: dict[Node, list[Origin]] = {}
        self._identities: list[Step] = []
        for value, said in network.returned:
            end = network.program.block.last_op
            assert end is not None
            rule = identity_rule(said.value, 1)
            self._identities.append(Step(end, rule, (value,), (said,), is_edge=True))

    def run(self) -> None:
        """Propagate until nothing changes."""
        for node in self.network.all_nodes():
            if node.sharding is not None:
                self._note(node, None, node.sharding)
        later = self._hold_back()
        self._stages()
        for priority in sorted(later):
            for node, said in later[priority]:
                node.sharding = _released(node.sharding, said, priority)
            self._stages()

    # ---- priorities ----

    def _hold_back(self) -> dict[int, list[tuple[Node, Sharding]]]:
        """Take away what users gave a priority after 0; (node, what was said) by priority."""
        later: dict[int, list[tuple[Node, Sharding]]] = {}
        for node in self.network.all_nodes():
            if (said := node.sharding) is None:
                continue
            for priority in {d.priority or 0 for d in said.dimensions} - {0}:
                later.setdefault(priority, []).append((node, said))
            held = [a for d in said.dimensions if d.priority for a in d.axes]
            dims = [DimensionSharding() if d.priority else d._replace(priority=None) for d in said.dimensions]
            node.sharding = said._replace(dimensions=tuple(dims), replicated=(*said.replicated, *held))
        return later

    # ---- stages ----

    def _stages(self) -> None:
        for stage in range(STAGES):
            self._returned()
            self._sweep(stage)
            self._returned()

    def _returned(self) -> None:
        for step in self._identities:
            self._take(step, STAGES)

    def _sweep(self, stage: int) -> None:
        """Take every step, and again those of values that changed, the latest first."""
        stack = dict.fromkeys(reversed(self.network.steps))
        while stack:
            step, _ = stack.popitem()
            for node in self._take(step, stage):
                stack.update(dict.fromkeys(other for other in node.steps if other is not step and other not in stack))

    def _take(self, step: Step, stage: int) -> list[Node]:
        """Take one step; the nodes that were cut further."""
        nodes = step.nodes
        named = {node.sharding.mesh for node in nodes if node.sharding is not None}
        if len(named) != 1:
            return []
        (name,) = named
        mesh, sizes = self.mesh_of(Sharding(name, ())), [f.size for f in step.rule.factors]
        if mesh.is_maximal:
            return []
        before = [
            Lying.of(dims, node.sharding, sizes, mesh) for dims, node in zip(step.rule.tensors, nodes, strict=True)
        ]
        count = len(step.operands)
        directions = [step.direction(stage, f) for f in range(len(sizes))]
        changed: list[Node] = []
        for t in spread(before[:count], before[count:], sizes, directions, elementwise=step.is_elementwise):
            new = before[t].sharding(step.rule.tensors[t], sizes, mesh, name)
            old = nodes[t].sharding
            if new == old or (old is None and not new.cuts):
                continue
            nodes[t].sharding = new
            self._note(nodes[t], step, new)
            changed.append(nodes[t])
        return changed

    def mesh_of(self, sharding: Sharding) -> Mesh:
        """The mesh that a sharding is on."""
        return sdy.mesh_of(sharding, self.meshes)

    # ---- reasons ----

    def _note(self, node: Node, step: Step | None, sharding: Sharding) -> None:
        """Keep why the axes that are new are there."""
        known = self.origins.setdefault(node, [])
        mesh = self.mesh_of(sharding)
        for dim, said in enumerate(sharding.dimensions):
            for part in parts_of(said.axes, mesh):
                if not any(o.dim == dim and o.part.contains(part) for o in known):
                    source = None if step is None else self._source(step, node, part)
                    known.append(Origin(dim, part, None if step is None else step.op, source))

    def _source(self, step: Step, node: Node, part: Part) -> Node | None:
        """A value of a step that had an axis before."""
        others = (other for other in step.nodes if other is not node and other in self.origins)
        return next((o for o in others if any(k.part.overlaps(part) for k in self.origins[o])), None)

    def chain(self, node: Node, origin: Origin) -> Iterator[tuple[Node, Origin]]:
        """From a value back to the one of which the program says an axis, with what brought it to each."""
        seen: set[Node] = set()
        while node not in seen:
            yield node, origin
            seen.add(node)
            source = origin.source
            if source is None:
                return
            node, found = source, [o for o in self.origins[source] if o.part.overlaps(origin.part)]
            if not found:
                return
            origin = found[0]


def _released(now: Sharding | None, said: Sharding, priority: int) -> Sharding | None:
    """A sharding with the dimensions of a priority as they were said."""
    if now is None:
        return None
    freed = {a for d in said.dimensions if d.priority == priority for a in d.axes}
    dims = [
        old._replace(priority=None) if old.priority == priority else new
        for new, old in zip(now.dimensions, said.dimensions, strict=True)
    ]
    return now._replace(dimensions=tuple(dims), replicated=tuple([a for a in now.replicated if a not in freed]))


def propagate(network: Network) -> Propagation:
    """Propagate through a network."""
    found = Propagation(network)
    found.run()
    return found
