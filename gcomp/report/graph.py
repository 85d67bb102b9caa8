"""The graph of a program on one level: nodes, groups that open, and a drawing for each kind of group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Block, Operation

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.report.drawing import draw
from gcomp.report.lines import Lines, title_of
from gcomp.report.origins import Origins, common_scope
from gcomp.report.tree import Group, tree_of

STUBS, COMMON = 8, 5
"""Values from outside that are drawn in a group; those that so many of its boxes read are named above the drawing."""

_QUIET = (Role.SOURCE, Role.GENERATOR)
"""Ops that stand in no drawing: weights, constants. They are found by search, and beside those that read them."""


@dataclass
class Node:
    """An op of a level, which has a number there."""

    number: int
    op: Operation
    title: str
    line: int
    shape: str
    kind: str
    origins: list[int]
    scope: tuple[str, ...]
    sources: list[int] = field(default_factory=list[int])
    inputs: list[str] = field(default_factory=list[str])
    """Arguments of the program among its operands."""
    is_quiet: bool = False


@dataclass
class Level:
    """A level's graph."""

    name: str
    nodes: list[Node]
    root: Group
    returned: set[int]

    def number(self) -> Mapping[Operation, int]:
        """The number of each op."""
        return {node.op: n for n, node in enumerate(self.nodes)}


def level_of(program: Program, name: str, lines: Lines, origins: Origins) -> Level:
    """The graph of a program as it is now; regions of loops and branches are groups beside what holds them."""
    gathering = _Gathering(lines, origins)
    gathering.block(program.block, (), ())
    nodes, numbers = gathering.nodes, gathering.numbers
    for node in nodes:
        for operand in dict.fromkeys(node.op.operands):
            owner = operand.owner if isinstance(operand.owner, Operation) else operand.owner.parent_op()
            if owner is not None and owner in numbers:  # what a region is given comes from the op that holds it
                node.sources.append(numbers[owner])
            elif operand.owner is program.block:
                node.inputs.append(lines.name(operand))
    last = program.block.last_op
    returned = {numbers[v.owner] for v in (last.operands if last else ()) if isinstance(v.owner, Operation)}
    drawn = [n for n, node in enumerate(nodes) if not node.is_quiet]
    scopes, tokens = [nodes[n].scope for n in drawn], [(nodes[n].title, nodes[n].shape) for n in drawn]
    root = tree_of(scopes, tokens, name)
    for group in root.groups():
        group.children = [child if isinstance(child, Group) else drawn[child] for child in group.children]
        group.first = drawn[group.first] if drawn else 0
    return Level(name, nodes, root, returned)


_REGIONS = {"stablehlo.while": ("condition", "body"), "stablehlo.if": ("then", "else")}
"""What the regions of control flow are called; those of others are numbered."""


class _Gathering:
    """The nodes of a program, in order."""

    def __init__(self, lines: Lines, origins: Origins) -> None:
        self.nodes: list[Node] = []
        self.numbers: dict[Operation, int] = {}
        self._lines, self._origins = lines, origins

    def block(self, block: Block, around: tuple[str, ...], module: tuple[str, ...]) -> None:
        """Nodes of a block, which lies in the groups `around` it, of which what is of a `module` need not be told.

        What comes from nowhere stands with what it was made for.
        """
        before = around
        for op in block.ops:
            found = self._origins.of(op.location)
            own = common_scope([self._origins.all[n] for n in found])
            scope = (*around, *(own[len(module) :] if own[: len(module)] == module else own)) if found else before
            before = scope
            role, number = role_of(op), len(self.nodes)
            kind = op.kind_name if isinstance(op, LaunchOp) else str(role)
            shape = self._lines.shape(op)
            self.numbers[op] = number
            self.nodes.append(
                Node(number, op, title_of(op), self._lines.line(op), shape, kind, found, scope,
                     is_quiet=role in _QUIET)
            )  # fmt: skip
            for n, region in enumerate(op.regions if role is Role.CONTROL else ()):
                names = _REGIONS.get(op.name, ())
                name = f"{title_of(op)} {number}: {names[n] if n < len(names) else f'region {n}'}"
                for inner in region.blocks:
                    self.block(inner, (*scope, name), own or module)


# ---- JSON ----


def level_to_json(level: Level, share: Callable[[Node], float], errors: Mapping[Operation, float]) -> dict[str, Any]:
    """As the page's script reads it.

    `share` is a node's part of the whole time, from 0 to 1; `errors` are those of ops' first results against float64.
    """
    groups = list(level.root.groups())
    number = {group: n for n, group in enumerate(groups)}
    boxes = _Boxes(level, groups)
    drawings: list[dict[str, Any]] = []
    known: dict[object, int] = {}
    rows: list[list[Any]] = []
    for group in groups:
        inside = boxes.of(group)
        marks = [int(boxes.leaves(group, child)) for child in inside.children]
        key = (len(inside.children), tuple(inside.edges), tuple(text for text, _ in inside.stubs), tuple(marks))
        if key not in known:
            known[key] = len(drawings)
            drawings.append({**draw(len(marks) + len(inside.stubs), inside.edges).to_json(), "m": marks})
        refs = [-1 - number[child] if isinstance(child, Group) else child for child in inside.children]
        parent = -1 if group.parent is None else number[group.parent]
        rows.append([group.title, group.count, parent, known[key], refs, inside.stubs, inside.common])
    nodes = [
        [
            n.title,
            n.line,
            n.shape,
            n.kind,
            n.origins,
            round(share(n), 5),
            n.sources,
            n.inputs,
            int(n.is_quiet),
            errors.get(n.op),
        ]
        for n in level.nodes
    ]
    return {"name": level.name, "nodes": nodes, "groups": rows, "drawings": drawings}


Stub = tuple[str, int]
"""A value from outside: what it is called, and the node that makes it, -1 for an argument of the program."""


@dataclass
class _Inside:
    """What is drawn of a group: stubs are numbered first, then the boxes. `common` is read by many, and not drawn."""

    children: list[Group | int]
    edges: list[tuple[int, int]]
    stubs: list[Stub]
    common: list[Stub]


class _Boxes:
    """For each group its boxes, the edges between them, and what they read from outside."""

    def __init__(self, level: Level, groups: Sequence[Group]) -> None:
        self._level = level
        self._homes: dict[int, list[Group]] = {}
        """For each node the groups around it, the outermost first."""
        for group in groups:
            path = [group]
            while path[0].parent is not None:
                path.insert(0, path[0].parent)
            for child in group.children:
                if isinstance(child, int):
                    self._homes[child] = path
        self._edges: dict[Group, dict[tuple[Group | int, Group | int], None]] = {}
        self._stubs: dict[Group, dict[int | str, set[Group | int]]] = {}
        self._leaving: set[tuple[Group, Group | int]] = set()
        for n, node in enumerate(level.nodes):
            if n in self._homes:
                for source in node.sources:
                    if source in self._homes:
                        self._connect(source, n)
                for name in node.inputs:
                    self._enter(name, n, 0)

    def _connect(self, source: int, target: int) -> None:
        """Put an edge into the innermost group around both, and what crosses into the groups within."""
        a, b = self._homes[source], self._homes[target]
        depth = 0
        while depth < min(len(a), len(b)) and a[depth] is b[depth]:
            depth += 1
        common = a[depth - 1]
        first: Group | int = a[depth] if depth < len(a) else source
        second: Group | int = b[depth] if depth < len(b) else target
        if first is not second:
            self._edges.setdefault(common, {})[first, second] = None
        self._enter(source, target, depth)
        for i in range(depth, len(a)):
            self._leaving.add((a[i], a[i + 1] if i + 1 < len(a) else source))

    def _enter(self, source: int | str, target: int, depth: int) -> None:
        path = self._homes[target]
        for i in range(depth, len(path)):
            inner: Group | int = path[i + 1] if i + 1 < len(path) else target
            self._stubs.setdefault(path[i], {}).setdefault(source, set()).add(inner)

    def leaves(self, group: Group, child: Group | int) -> bool:
        """Whether something outside of the group reads a child."""
        return (group, child) in self._leaving or child in self._level.returned

    def of(self, group: Group) -> _Inside:
        """What a drawing of a group shows."""
        children = sorted(group.children, key=lambda c: c.first if isinstance(c, Group) else c)
        found = self._stubs.get(group, {})
        drawn = [source for source, readers in found.items() if len(readers) < COMMON][:STUBS]
        place = {child: n + len(drawn) for n, child in enumerate(children)}
        edges = [(place[a], place[b]) for a, b in self._edges.get(group, ())]
        for number, source in enumerate(drawn):
            edges += sorted({(number, place[reader]) for reader in found[source]})
        common = [self._stub(source) for source in found if source not in drawn]
        return _Inside(children, edges, [self._stub(source) for source in drawn], common)

    def _stub(self, source: int | str) -> Stub:
        return (source, -1) if isinstance(source, str) else (self._level.nodes[source].title, source)


__all__ = ["Level", "Node", "level_of", "level_to_json"]
