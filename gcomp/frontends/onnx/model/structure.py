"""Checks of a model's protobuf that must come before anything is built from it.

They cover what `onnx_ir` would otherwise drop, guess or crash on: names that nothing defines, sparse tensors, functions
that call themselves, subgraphs nested without end, tensors that claim more than they hold (see `stored_tensors`).
Nothing is opened and nothing large is allocated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.model.stored_tensors import check_tensor
from gcomp.records import record

MAX_NESTING = 32
"""Subgraphs in subgraphs; the protobuf parser itself gives up at 33."""

MAX_CALL_DEPTH = 64
MAX_EXPANDED_NODES = 10_000_000
FunctionId: TypeAlias = tuple[str, str, str]
"""Domain (`ai.onnx` written as the empty text), name, overload."""

_VALUE_FIELDS = {
    name: onnx.AttributeProto.AttributeType.Value(kind)
    for name, kind in (
        ("f", "FLOAT"), ("i", "INT"), ("s", "STRING"), ("t", "TENSOR"), ("g", "GRAPH"), ("tp", "TYPE_PROTO"),
        ("sparse_tensor", "SPARSE_TENSOR"), ("floats", "FLOATS"), ("ints", "INTS"), ("strings", "STRINGS"),
        ("tensors", "TENSORS"), ("graphs", "GRAPHS"), ("type_protos", "TYPE_PROTOS"),
        ("sparse_tensors", "SPARSE_TENSORS"),
    )
}  # fmt: skip
"""Field of AttributeProto -> the type of an attribute that has its value there."""

_TENSOR_TEXTS = ("name", "doc_string")


def check_structure(proto: onnx.ModelProto, where: str, cut: Mapping[int, int] | None = None) -> dict[str, str]:
    """Raises InvalidModelError or UnsupportedError for a model that must not be built.

    `cut` has the sizes of raw data that was cut out of the graph's initializers (see `wire`), by initializer's index.
    Returns the SHA-1 checksums, by location, that the model states for its files of external data.
    """
    _check_texts(proto, where)
    _check_header(proto, where)
    checker = _Checker({_identify(function, where) for function in proto.functions})
    if len(checker.functions) != len(proto.functions):
        raise InvalidModelError("Two functions of the model have the same name.", where=where)
    calls: dict[FunctionId, _Body] = {}
    for function in proto.functions:
        name = f"{where}: function `{function.name}`"
        calls[_identify(function, where)] = checker.check_function(function, name)
    main = checker.check_body(_Scope(proto.graph, f"{where}: graph `{proto.graph.name}`", (), cut or {}))
    _check_calls(main, calls, where)
    return checker.checksums


def _check_texts(proto: onnx.ModelProto, where: str) -> None:
    """Refuses texts that are not UTF-8: protobuf hands those out as `bytes`, which nothing behind expects."""
    pending: list[Any] = [proto]
    while pending:
        message = pending.pop()
        if isinstance(message, onnx.TensorProto):
            # Listing all its fields would copy its elements.
            fields: list[tuple[str, Any]] = [(name, getattr(message, name)) for name in _TENSOR_TEXTS]
            pending += [*message.external_data, *message.metadata_props]
        else:
            fields = []
            for field_, value in message.ListFields():
                if field_.type == field_.TYPE_STRING:
                    if type(value) is not str:
                        fields.append((field_.full_name, value))
                elif field_.type == field_.TYPE_MESSAGE:
                    pending += [value] if hasattr(value, "ListFields") else value
        for name, value in fields:
            if any(isinstance(text, bytes) for text in ([value] if isinstance(value, (str, bytes)) else value)):
                raise InvalidModelError("A text in the model is not UTF-8.", where=where, why=f"It is in {name}.")


def _check_header(proto: onnx.ModelProto, where: str) -> None:
    if not proto.HasField("graph") or proto.ir_version < 1:
        raise InvalidModelError(
            "This is not an ONNX model.",
            where=where,
            why="It has no graph." if not proto.HasField("graph") else "It states no IR version.",
            fix="Give a file that was saved as ONNX; check that it was copied whole.",
        )
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedError(
            f"The model has ONNX IR version {proto.ir_version}.",
            where=where,
            why=f"The installed onnx package knows versions up to {onnx.IR_VERSION}.",
            fix="Install a newer onnx package, or export the model for an older version.",
        )
    domains = [_domain(entry.domain) for entry in proto.opset_import]
    # Before IR version 3 there were no opset imports.
    if len(set(domains)) != len(domains) or (not domains and proto.ir_version >= 3):
        raise InvalidModelError(
            "The model does not say which versions of the op sets it uses.",
            where=where,
            why="`opset_import` is empty." if not domains else "`opset_import` names a domain twice.",
        )


def _domain(text: str) -> str:
    return "" if text == "ai.onnx" else text


def _identify(function: onnx.FunctionProto, where: str) -> FunctionId:
    if not function.name:
        raise InvalidModelError("A function of the model has no name.", where=where)
    return (_domain(function.domain), function.name, function.overload)


@record
class _Scope:
    """A graph to check, the names that the graphs around it define, innermost first, and what was cut out of it."""

    graph: onnx.GraphProto
    where: str
    outer: tuple[frozenset[str], ...]
    cut: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass
class _Body:
    """What a graph or function holds, subgraphs included: how many nodes, and which functions it calls how often."""

    nodes: int = 0
    calls: Counter[FunctionId] = field(default_factory=Counter[FunctionId])


@dataclass
class _Checker:
    functions: set[FunctionId]
    checksums: dict[str, str] = field(default_factory=dict[str, str])

    def check_body(self, scope: _Scope) -> _Body:
        """Checks a graph and all graphs in it, without recursion."""
        body = _Body()
        pending = [scope]
        while pending:
            pending += self._check_graph(pending.pop(), body)
        return body

    def check_function(self, function: onnx.FunctionProto, where: str) -> _Body:
        names = _defined_names(function.input, (), function.node, where)
        _check_used(function.output, (names,), f"{where}, outputs")
        body = _Body()
        pending = list(self._check_nodes(function.node, (names,), where, body))
        while pending:
            pending += self._check_graph(pending.pop(), body)
        return body

    def _check_graph(self, scope: _Scope, body: _Body) -> Iterator[_Scope]:
        graph, where = scope.graph, scope.where
        if len(scope.outer) > MAX_NESTING:
            raise UnsupportedError(f"Subgraphs are nested more than {MAX_NESTING} deep.", where=where)
        for index, tensor in enumerate(graph.initializer):
            check_tensor(tensor, f"{where}, initializer `{tensor.name}`", self.checksums, scope.cut.get(index))
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise _sparse(f"{where}, sparse initializer `{name}`")
        for value in (*graph.input, *graph.output, *graph.value_info):
            if _holds_map(value.type):
                raise _map(f"{where}, value `{value.name}`")
        inputs = [value.name for value in graph.input]
        names = _defined_names(inputs, [tensor.name for tensor in graph.initializer], graph.node, where)
        # A subgraph's results must be its own: `onnx_ir` would leave others undefined.
        _check_used([value.name for value in graph.output], (names,), f"{where}, outputs")
        yield from self._check_nodes(graph.node, (names, *scope.outer), where, body)

    def _check_nodes(
        self, nodes: Sequence[onnx.NodeProto], visible: tuple[frozenset[str], ...], where: str, body: _Body
    ) -> Iterator[_Scope]:
        """Checks nodes without their subgraphs, which it yields."""
        body.nodes += len(nodes)
        for index, node in enumerate(nodes):
            if not all(any(name in names for names in visible) for name in node.input):
                _check_used(node.input, visible, _node_text(where, index, node))
            callee = (_domain(node.domain), node.op_type, node.overload)
            if callee in self.functions:
                body.calls[callee] += 1
            if node.attribute:
                text = _node_text(where, index, node)
                if len({attribute.name for attribute in node.attribute}) != len(node.attribute):
                    raise InvalidModelError("A node has two attributes of one name.", where=text)
                for attribute in node.attribute:
                    yield from self._check_attribute(attribute, visible, text)

    def _check_attribute(
        self, attribute: onnx.AttributeProto, visible: tuple[frozenset[str], ...], node: str
    ) -> Iterator[_Scope]:
        where = f"{node}, attribute `{attribute.name}`"
        kind, kinds = attribute.type, onnx.AttributeProto
        if kind in (kinds.TENSOR, kinds.TENSORS):
            for tensor in [attribute.t] if kind == kinds.TENSOR else attribute.tensors:
                if not attribute.ref_attr_name:
                    check_tensor(tensor, where, self.checksums)
        elif kind in (kinds.GRAPH, kinds.GRAPHS):
            if attribute.ref_attr_name:
                raise UnsupportedError("A function takes a subgraph as an attribute.", where=where)
            graphs = [attribute.g] if kind == kinds.GRAPH else attribute.graphs
            yield from (_Scope(graph, f"{where}: graph `{graph.name}`", visible) for graph in graphs)
        elif kind in (kinds.SPARSE_TENSOR, kinds.SPARSE_TENSORS):
            raise _sparse(where)
        elif kind == kinds.UNDEFINED and not attribute.ref_attr_name:
            raise InvalidModelError("An attribute does not say its type.", where=where)
        for text in (attribute.s, *attribute.strings):
            if not _is_utf8(text):
                raise InvalidModelError("A text in the model is not UTF-8.", where=where)
        # Of each field that is there: absent ones have defaults, and looking costs.
        held = {found.name for found, _ in attribute.ListFields()} & _VALUE_FIELDS.keys()
        if wrong := [name for name in held if _VALUE_FIELDS[name] != kind]:
            raise InvalidModelError(
                "An attribute has a value that is not of its type.",
                where=where,
                why=f"Its type is {kinds.AttributeType.Name(kind)}, and it has a value in the field {wrong[0]!r}.",
            )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _node_text(where: str, index: int, node: onnx.NodeProto) -> str:
    return f"{where}, node {index} `{node.name}` ({node.op_type})"


def _holds_map(kind: onnx.TypeProto) -> bool:
    """Whether a type is a map, or a sequence or optional of maps, however deep."""
    while True:
        match kind.WhichOneof("value"):
            case "map_type":
                return True
            case "sequence_type":
                kind = kind.sequence_type.elem_type
            case "optional_type":
                kind = kind.optional_type.elem_type
            case _:
                return False


def _map(where: str) -> UnsupportedError:
    return UnsupportedError(
        "The model has a map.",
        where=where,
        why="gcomp computes on tensors; classifiers' maps of labels and scores come from ZipMap.",
        fix="Export with zipmap off (`options={'zipmap': False}` in skl2onnx): the scores are then a tensor.",
    )


def _sparse(where: str) -> UnsupportedError:
    return UnsupportedError(
        "The model has a sparse tensor.",
        where=where,
        why="gcomp reads dense tensors only.",
        fix="Convert the sparse tensors to dense ones before saving the model.",
    )


def _defined_names(
    inputs: Sequence[str], initializers: Sequence[str], nodes: Iterable[onnx.NodeProto], where: str
) -> frozenset[str]:
    """The names that a graph defines, and the empty name of a left-out operand. An initializer may default an input."""
    names = [name for node in nodes for name in node.output if name]
    known = {*inputs, *initializers}
    for group in (inputs, initializers, [*known, *names]):
        if "" in group or len(set(group)) != len(group):
            bad = next(name for name, count in Counter(group).items() if count > 1 or not name)
            raise InvalidModelError(
                "A name is defined twice, or is empty.", where=where, why=f"The name is {bad[:200]!r}."
            )
    return frozenset((*known, *names, ""))


def _check_used(used: Iterable[str], visible: tuple[frozenset[str], ...], where: str) -> None:
    for name in used:
        if not any(name in names for names in visible):
            raise InvalidModelError(
                "A name is used that nothing defines.",
                where=where,
                why=f"The name is {name[:200]!r}.",
                fix="If it is a result of a subgraph that comes from outside, pass it through an Identity node.",
            )


def _check_calls(main: _Body, bodies: dict[FunctionId, _Body], where: str) -> None:
    """Refuses functions that call themselves, and calls that would expand to absurdly many nodes."""
    expanded: dict[FunctionId, tuple[int, int]] = {}  # function -> nodes, depth of calls
    for root in bodies:
        # The functions whose calls are being followed, each with those of its callees that are still to come.
        path = {root: iter(bodies[root].calls)}
        while path:
            function, callees = next(reversed(path.items()))
            callee = next((callee for callee in callees if callee not in expanded), None)
            if callee is None:
                expanded[function] = _expand(bodies[function], expanded)
                del path[function]
            elif callee in path:
                raise InvalidModelError("A function calls itself.", where=f"{where}: function `{callee[1]}`")
            else:
                path[callee] = iter(bodies[callee].calls)
    nodes, depth = _expand(main, expanded)
    if nodes > MAX_EXPANDED_NODES or depth > MAX_CALL_DEPTH:
        raise UnsupportedError(
            "The model's functions call each other too often or too deeply.",
            where=where,
            why=f"Inlined they would make {min(nodes, 10**18)} nodes, in calls {depth} deep; "
            f"the limits are {MAX_EXPANDED_NODES} and {MAX_CALL_DEPTH}.",
        )


def _expand(body: _Body, expanded: dict[FunctionId, tuple[int, int]]) -> tuple[int, int]:
    nodes, depth = body.nodes, 0
    for callee, count in body.calls.items():
        inner_nodes, inner_depth = expanded[callee]
        nodes, depth = nodes + count * inner_nodes, max(depth, inner_depth + 1)
    # Chains of doubling calls make astronomic numbers; past the limit their exact size is of no interest.
    return min(nodes, 10**18), depth
