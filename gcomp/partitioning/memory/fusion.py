"""Which nodes XLA computes where they are read, and which lie in memory: its instruction fusion on processors.

A node that is computed element by element becomes part of all kernels that read it, and is computed again in each.
Costly ones become part of one kernel alone, and only where it takes each element once. What is made of several values
of its size, and has several readers, becomes part of all that they compute, or of none: reading it once takes less than
reading these again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.partitioning.memory.graph import Form, Graph, Node, Value, origin, readers

_FUSED = (Form.LOOP, Form.VIEW)
_FUSING = (Form.LOOP, Form.VIEW, Form.STORED)


class Fusion:
    """What lies in memory, and what each kernel reads of it."""

    def __init__(self, graph: Graph) -> None:
        self.kernels: list[Node] = []
        """The nodes whose results lie in memory."""
        self._inside: set[tuple[Node, Node]] = set()
        """(Node, reader): it is computed in the reader's kernel."""
        self._roots: dict[Node, dict[Node, bool]] = {}
        """Node -> the kernels that it is computed in, and whether their elements take one of its elements again."""
        self._returned = {origin(v) for v in graph.returned}
        self._paths = _Paths(graph.nodes)
        for node in reversed(graph.nodes):
            if node.form is not Form.VIEW:
                self._place(node)
        self.kernels.reverse()

    def _place(self, node: Node) -> None:
        users = {user for value in node.results for user in readers(value)}
        fusing = [u for u in users if u.form in _FUSING] if self._is_fusible(node, users) else []
        roots: dict[Node, bool] = {}
        for user in fusing:
            for root, again in self._roots[user].items():
                roots[root] = roots.get(root, False) or again or user.spreads
        is_returned = any(v in self._returned for v in node.results)
        is_stored = len(fusing) < len(users) or not users or is_returned
        if node.costly and (is_stored or len(roots) > 1 or any(roots.values())):
            fusing, roots = [], {}
        if is_stored or not fusing:
            self.kernels.append(node)
            roots = roots | {node: False}
        self._roots[node] = roots
        self._inside |= {(node, user) for user in fusing}

    def _is_fusible(self, node: Node, users: set[Node]) -> bool:
        """Whether a node may be computed by its readers that compute element by element."""
        if node.form is not Form.LOOP or len(users) < 2:
            return node.form is Form.LOOP
        return not node.joins and node not in self._paths.apart

    def reads(self, kernel: Node) -> dict[Value, bool]:
        """What a kernel reads from memory, in order, and whether it may write over it."""
        found: dict[Value, bool] = {}
        is_in_place = kernel.pointwise or bool(kernel.order) or kernel.rewrites
        # What is read under another shape alone is computed so.
        is_viewed = all(user.form is Form.VIEW for value in kernel.results for user in value.users)
        self._read(kernel, is_in_place and not (is_viewed and any(v.users for v in kernel.results)), "", found)
        return found

    def _read(self, node: Node, in_place: bool, order: str, found: dict[Value, bool]) -> None:
        """What a node reads; `in_place` says whether its elements are those of the kernel's result at the same places,
        in an order of elements of which a copy has the name."""
        if node.order:
            in_place = in_place and order == (node.order if node.back else "")
            order = "" if node.back else node.order
        for k, value in enumerate(node.reads):
            source = origin(value)
            straight = in_place and source is value and not (node.rewrites and k)
            if source.node is not None and (source.node, node) in self._inside:
                goes_on = source.node.pointwise or bool(source.node.order)
                self._read(source.node, straight and goes_on, order, found)
            else:
                found[source] = found.get(source, True) and straight and not order


class _Paths:
    """What may not be computed again, for the paths on which it would have to be."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._number = {node: k for k, node in enumerate(nodes)}
        self._before: list[int] = []
        """Node -> the nodes that it depends on, itself among them, as bits."""
        for k, node in enumerate(nodes):
            bits = 1 << k
            for value in node.reads:
                if value.node in self._number:
                    bits |= self._before[self._number[value.node]]
            self._before.append(bits)
        self.apart: set[Node] = set()
        """Nodes that lie in memory, as they would not be computed in all that is made of them."""
        for node in nodes:
            users = {u for value in node.results for u in readers(value)} if node.form is Form.LOOP else set[Node]()
            if len(users) > 1 and not _is_narrow(node):
                known: dict[Node, bool] = {node: True}
                if not all(self._reaches(node, u, known) for u in users if u.form is not Form.ALONE):
                    self.apart.add(node)

    def _reaches(self, node: Node, user: Node, known: dict[Node, bool]) -> bool:
        """Whether all between a node and a user of it may be computed in that user's kernel."""
        pending = [user]
        while pending:
            top = pending[-1]
            if top in known:
                pending.pop()
                continue
            between = [v.node for v in top.reads if v.node is not None and self._depends(v.node, node)]
            waiting = [n for n in between if n not in known]
            if top.form in _FUSING and all(self._is_inside(n, top) for n in between) and waiting:
                pending += waiting
                continue
            known[top] = top.form in _FUSING and all(self._is_inside(n, top) and known[n] for n in between)
        return known[user]

    def _depends(self, later: Node, node: Node) -> bool:
        return bool(self._before[self._number[later]] >> self._number[node] & 1)

    def _is_inside(self, node: Node, user: Node) -> bool:
        return node.form in _FUSED and not (node.costly and user.spreads) and node not in self.apart


def _is_narrow(node: Node) -> bool:
    """Whether a node is made of one value of its rank at most (others are spread out), or of no more bytes."""
    (result,) = node.results
    wide = [v for v in node.reads if v.bytes and v.rank >= result.rank and not (v.node is not None and v.node.is_made)]
    return len(wide) <= 1 or sum(v.bytes for v in node.reads) <= result.bytes


__all__ = ["Fusion"]
