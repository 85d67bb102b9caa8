"""Why each axis cuts each value: what propagation noted, in words.

%4 dim 0 by "data": from argument 0 (the program says so), through stablehlo.dot_general at layer.py:12
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from gcomp.ir.locations import where
from gcomp.partitioning.axes import axes_of
from gcomp.partitioning.network import Node
from gcomp.partitioning.propagation import Origin, Propagation


def reasons(found: Propagation) -> Iterator[str]:
    """A line for each axis that cuts a dimension of a value, in the order of the program."""
    numbers: dict[SSAValue, str] = {}
    for op in found.network.program.main.walk():
        for result in op.results:
            numbers[result] = f"%{len(numbers)}"
    for node in found.network.all_nodes():
        for origin in found.origins.get(node, ()):
            yield f"{_named(node.value, numbers)} dim {origin.dim} {_reason(found, node, origin, numbers)}"


def _named(value: SSAValue, numbers: dict[SSAValue, str]) -> str:
    if isinstance(value, BlockArgument):
        return f"argument {value.index}"
    return f"{numbers[value]} ({where(value.owner)})" if isinstance(value.owner, Operation) else "a value"


def _reason(found: Propagation, node: Node, origin: Origin, numbers: dict[SSAValue, str]) -> str:
    sharding = node.sharding
    assert sharding is not None, "a value that is cut has a sharding"
    (axis,) = axes_of([origin.part], found.mesh_of(sharding))
    chain = [*found.chain(node, origin)]
    ops = [where(o.op) for _, o in chain if o.op is not None and not isinstance(o.op, ReturnOp)]
    through = f", through {', '.join(ops[:4])}{f' and {len(ops) - 4} more' if len(ops) > 4 else ''}" if ops else ""
    first = chain[-1][0]
    came = "" if first is node else f"from {_named(first.value, numbers)}, of which "
    return f"by {axis.text()}: {came}the program says so{through}"
