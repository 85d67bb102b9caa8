"""The order in which a graph's nodes are imported: each after those whose results it reads."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir

from gcomp.errors import InvalidModelError
from gcomp.frontends.onnx.engine.context import label


def sort_nodes(graph: onnx_ir.Graph, where: str) -> Iterator[onnx_ir.Node]:
    """The nodes of a graph, each after those whose results it reads. Raises InvalidModelError for a cycle."""
    nodes = list(graph)
    seen: set[onnx_ir.Value] = set()
    for node in nodes:
        for value in reads(node):
            if not _outside(value, graph) and value not in seen:
                return iter(_sort_nodes(graph, where))
        seen.update(node.outputs)
    return iter(nodes)


def reads(node: onnx_ir.Node) -> Iterator[onnx_ir.Value]:
    """The values that a node reads, in its graphs too."""
    yield from (v for v in node.inputs if v is not None)
    for attr in node.attributes.values():
        if not attr.is_ref() and attr.type == onnx_ir.AttributeType.GRAPH:
            for inner in attr.as_graph().all_nodes():
                yield from (v for v in inner.inputs if v is not None)


def _sort_nodes(graph: onnx_ir.Graph, where: str) -> list[onnx_ir.Node]:
    try:
        graph.sort()
    except ValueError:
        raise InvalidModelError(
            "The graph is cyclic: a node reads a result that depends on its own.",
            where=f"{where}, around {_cycle(graph)}",
            fix="Export the model again; ONNX graphs have no cycles.",
        ) from None
    return list(graph)


def _cycle(graph: onnx_ir.Graph) -> str:
    """The nodes that cannot be ordered, some of them."""
    done: set[onnx_ir.Value] = set()
    waiting = list(graph)
    while True:
        ready = [n for n in waiting if all(_outside(v, graph) or v in done for v in reads(n))]
        if not ready:
            return ", ".join(describe(n) for n in waiting[:4])
        done.update(o for n in ready for o in n.outputs)
        waiting = [n for n in waiting if n not in ready]


def _outside(value: onnx_ir.Value, graph: onnx_ir.Graph) -> bool:
    """Whether a value is not computed by a node of the graph."""
    producer = value.producer()
    return producer is None or producer.graph is not graph


def describe(node: onnx_ir.Node) -> str:
    """A node for an error message."""
    return f"node `{label(node)}` ({f'{node.domain}.' if node.domain else ''}{node.op_type})"
