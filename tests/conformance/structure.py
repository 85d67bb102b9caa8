"""What values a model is about: tensors alone, or also strings, maps, or sequences of varying structure.

A sequence or optional varies when how many elements it has, whether it is there, or which of its elements is which
depends on the *values* of the model's inputs. Where it depends only on constants and on how the inputs are made up
(their shapes, and the number of elements of sequences among them), a compiler knows it before the model runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

ASKS_STRUCTURE = {"Shape", "Size", "SequenceLength", "OptionalHasElement"}
"""Their results depend on how their input is made up and not on its values."""

SELECTS = {"SequenceInsert": 2, "SequenceAt": 1, "SequenceErase": 1, "SplitToSequence": 1}
"""Sequence operators -> the operand that says where."""


def category(model: onnx.ModelProto) -> str:
    """`string`, `map`, `varying sequence` or `tensor`."""
    values = [value for graph in _graphs(model.graph) for value in (*graph.input, *graph.output)]
    types = [part for value in values for part in _parts(value.type)]
    if any(t.tensor_type.elem_type == onnx.TensorProto.STRING for t in types):
        return "string"
    if any(map(_string_data, _graphs(model.graph))):
        return "string"
    if any(t.WhichOneof("value") == "map_type" for t in types):
        return "map"
    known = {value.name: False for value in model.graph.input}
    known |= {v.name: True for v in model.graph.input if v.type.WhichOneof("value") == "tensor_type"}
    return "varying sequence" if any(_walk(model.graph, known)) else "tensor"


def _walk(graph: onnx.GraphProto, outer: dict[str, bool]) -> Iterator[bool]:
    """Whether each place where a sequence's structure is decided depends on values of inputs.

    `outer` maps each visible value to whether it does; the walk adds the graph's own. Sequences carry whether their
    structure depends on values, tensors whether their elements do.
    """
    outer |= {tensor.name: False for tensor in graph.initializer}
    for node in graph.node:
        inputs = [outer.get(name, False) for name in node.input]
        tainted = any(inputs) and node.op_type not in ASKS_STRUCTURE
        bodies = [a.g for a in node.attribute if a.HasField("g")]
        if node.op_type in SELECTS and len(inputs) > SELECTS[node.op_type]:
            yield inputs[SELECTS[node.op_type]]
        if bodies:
            if any(_makes_sequences(body) for body in bodies):
                # `If` reads a condition; `Loop` a trip count and a condition, which each turn computes again.
                yield any(inputs[:2] if node.op_type == "Loop" else inputs[:1])
            for body in bodies:
                formal = {value.name: tainted for value in body.input}
                yield from _walk(body, {**outer, **formal})
            tainted = tainted or node.op_type in ("If", "Loop", "Scan")
        outer |= dict.fromkeys(node.output, tainted)


def _makes_sequences(body: onnx.GraphProto) -> bool:
    return any(value.type.WhichOneof("value") in ("sequence_type", "optional_type") for value in body.output)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _string_data(graph: onnx.GraphProto) -> bool:
    tensors: Sequence[onnx.TensorProto] = [
        *graph.initializer,
        *(a.t for node in graph.node for a in node.attribute if a.HasField("t")),
    ]
    return any(tensor.data_type == onnx.TensorProto.STRING for tensor in tensors)


def _parts(kind: onnx.TypeProto) -> Iterator[onnx.TypeProto]:
    """A type, and the types of its elements."""
    yield kind
    match kind.WhichOneof("value"):
        case "sequence_type":
            yield from _parts(kind.sequence_type.elem_type)
        case "optional_type":
            yield from _parts(kind.optional_type.elem_type)
        case "map_type":
            yield from _parts(kind.map_type.value_type)
        case _:
            pass
