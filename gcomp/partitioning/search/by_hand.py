"""Plans as people make them: data parallelism, Megatron's tensor parallelism, and fully sharded data parallelism.

Each says which choices are left to a search, which finds the best plan of that kind. Which inputs are weights has to be
said: those that the program reads (`gcomp.weight`), and any of its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import WeightOp
from gcomp.ir.types import is_tensor, rank_of, shape_of
from gcomp.partitioning.search.classes import Allowed
from gcomp.partitioning.search.layouts import WHOLE, Layout, divides, pieces
from gcomp.partitioning.search.problem import Node, Problem
from gcomp.partitioning.search.solving import Kind
from gcomp.partitioning.search.strategies import Strategy


def data_parallel(problem: Problem, weights: Collection[SSAValue]) -> Allowed:
    """Each device has all weights, and its part of the data."""
    return _allowed(problem, weights, {w: _whole(problem) for w in _weights(problem, weights)}, used_whole=True)


def fully_sharded(problem: Problem, weights: Collection[SSAValue]) -> Allowed:
    """Each device has its part of the data and of all weights, which are gathered where they are used."""
    return _allowed(problem, weights, {w: _cut(problem, w) for w in _weights(problem, weights)}, used_whole=True)


def megatron(problem: Problem, weights: Collection[SSAValue]) -> Allowed:
    """Along the last axis weights of products are cut: columns, and rows where the result is added to what went around;
    along the others, the data."""
    found = {w: _whole(problem) for w in _weights(problem, weights)}
    for edge in problem.edges:
        op, place = edge.target.op, edge.source
        if isinstance(op, hlo.DotGeneralOp) and edge.operand == 1 and place.node.value in found:
            summed = set(op.dimensions.rhs_contracting_dimensions)
            rows = _is_added(problem, edge.target)
            dims = [d for d in range(rank_of(edge.value)) if (d in summed) == rows]
            layout = (*_whole(problem)[1:], place.dims[dims[-1]]) if dims else _whole(problem)
            if divides(_sizes(place.node.value), layout, problem.network.mesh):
                found[place.node.value] = layout
    return _allowed(problem, weights, found, used_whole=False, data=len(problem.network.mesh.axes) - 1)


BY_HAND: Mapping[str, Kind] = {
    "data parallel": data_parallel, "Megatron": megatron, "fully sharded": fully_sharded,
}  # fmt: skip
"""Kinds of plans by name."""


def _allowed(
    problem: Problem, weights: Collection[SSAValue], layouts: Mapping[SSAValue, Layout], *, used_whole: bool,
    data: int | None = None,
) -> Allowed:  # fmt: skip
    """Weights lie so, and products take them so, or whole; data are cut along their first dimension by the first axes
    of the mesh (None: all), where these divide it."""
    mesh = problem.network.mesh
    axes = len(mesh.axes) if data is None else data
    used: dict[Node, list[tuple[int, Layout]]] = {}
    for edge in problem.edges:
        place = edge.source
        if isinstance(edge.operand, int) and place.node.value in layouts and not edge.target.is_input:
            own = tuple([place.dims.index(d) if d in place.dims else WHOLE for d in layouts[place.node.value]])
            used.setdefault(edge.target, []).append((edge.operand, _whole(problem) if used_whole else own))

    def allowed(node: Node, choice: Strategy) -> bool:
        if node.value in layouts:
            return choice.results[0] == layouts[node.value]
        if node.is_input:
            cut = (*(0,) * axes, *(WHOLE,) * (len(mesh.axes) - axes))
            fits = rank_of(node.value) > 0 and divides(_sizes(node.value), cut, mesh)
            return choice.results[0] == (cut if fits else _whole(problem))
        return all(choice.operands[k] == layout for k, layout in used.get(node, ()))

    return allowed


def _weights(problem: Problem, weights: Collection[SSAValue]) -> list[SSAValue]:
    return [n.value for n in problem.nodes if n.is_input and (isinstance(n.op, WeightOp) or n.value in weights)]


def _whole(problem: Problem) -> Layout:
    return (WHOLE,) * len(problem.network.mesh.axes)


def _cut(problem: Problem, weight: SSAValue) -> Layout:
    """The layout that cuts a weight by as many axes as divide one of its dimensions."""
    mesh, whole = problem.network.mesh, _whole(problem)
    if not is_tensor(weight.type):
        return whole
    options = [tuple([d if k < n else WHOLE for k in range(len(whole))]) for n in range(len(whole), 0, -1)
               for d in range(rank_of(weight))]  # fmt: skip
    fitting = [layout for layout in options if divides(_sizes(weight), layout, mesh)]
    return max(fitting, key=lambda layout: pieces(layout, mesh), default=whole)


def _is_added(problem: Problem, product: Node) -> bool:
    """Whether what a product gives is added to something else than a bias."""
    return any(
        isinstance(edge.user, hlo.AddOp)
        and ((edge.target is product) != (edge.source.node is product))
        and not isinstance(edge.source.node.op, hlo.BroadcastInDimOp)
        for edge in problem.edges
    )


def _sizes(value: SSAValue) -> list[int]:
    return [size if isinstance(size, int) else 1 for size in shape_of(value)]
