"""Mutations of ONNX models: of the protobuf's structure, of what only ONNX gives a meaning, and of the bytes.

Works on any ONNX protobuf through its descriptor, so this file needs no ONNX library. A mutant is a protobuf, or bytes
where no protobuf can say it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from gcomp.testing.mutate.harness import Case

Message = Any
"""A protobuf message: `onnx.ModelProto`, or any message inside of one."""

_INTEGERS = (0, 1, -1, 2, 3, 7, 64, 255, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
_STRINGS = (
    "", " ", "x", "batch", "2*batch", "batch + ", "a/b.c:0", "é\U0001f600", "\x00", "\\", "-1", "0", "n" * 10_000, "1x",
    "SAME_UPPER", "VALID", "NOTSET", "constant", "reflect", "linear", "cubic", "half_pixel", "tanh", "ij,jk->ik", "_",
    "...i->i", "ab->", "../w.bin", "/etc/passwd", "%", "{}", "(" * 5000, "__proto__", "w.bin", "floordiv", "min(a, b)",
)  # fmt: skip
_OPERATORS = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "MatMul", "Gemm", "Conv", "ConvTranspose", "ConvInteger", "Relu",
    "Softmax", "LogSoftmax", "BatchNormalization", "LayerNormalization", "InstanceNormalization", "MaxPool",
    "AveragePool", "LpPool", "GlobalAveragePool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Concat",
    "Split", "Slice", "Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "Pad",
    "Tile", "Expand", "Where", "Cast", "CastLike", "Shape", "Size", "Range", "ConstantOfShape", "Constant",
    "Identity", "If", "Loop", "Scan", "NonZero", "TopK", "ArgMax", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2",
    "CumSum", "Einsum", "Resize", "Upsample", "LSTM", "GRU", "RNN", "OneHot", "Clip", "Dropout", "QuantizeLinear",
    "DequantizeLinear", "DepthToSpace", "SpaceToDepth", "EyeLike", "Trilu", "Compress", "Unique", "Attention",
    "RandomNormal", "StringNormalizer", "SequenceEmpty", "Optional", "NonMaxSuppression", "RoiAlign", "GridSample",
    "Hardmax", "Sum", "Max", "Mean", "Not", "IsNaN", "BitShift", "STFT", "Bernoulli", "Frobnicate", "f", "",
)  # fmt: skip
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "local", "pkg.torch", "unknown")
_DIMS = (
    (),
    (0,),
    (1,),
    (-1,),
    (2, 3),
    (3, 2),
    (1 << 40,),
    ((1 << 63) - 1,),
    (1 << 32, 1 << 32),
    (0, 1 << 62),
    (1,) * 70,
    (6, 1, 1),
    (-2, -3),
)
_LOCATIONS = (
    "w.bin", "../secret.bin", "/etc/passwd", "", ".", "..", "a/../w.bin", "link.bin", "hard.bin", "folder", "pipe",
    "missing.bin", "C:\\w.bin", "w.bin/", "./w.bin", "folder/w.bin", "\x00", "w.bin\x00.png", "file:///etc/passwd",
    "/dev/zero", "x" * 5000,
)  # fmt: skip

_MESSAGE, _STRING, _BYTES, _FLOAT_TYPES = 11, 9, 12, (1, 2)


def cases(samples: Sequence[Message], count: int, seed: int = 0) -> Iterator[Case[Message | bytes]]:
    """`count` mutants: each sample in turn, each from a seed of its own."""
    for i in range(count):
        mutant, mutator = mutate(Random(f"model {seed} {i}"), samples[i % len(samples)])
        yield Case(f"model {seed} {i}", mutator, mutant)


def mutate(chance: Random, model: Message) -> tuple[Message | bytes, str]:
    """A mutated copy of a model, and the names of the mutators that made it."""
    copied, names = type(model)(), list[str]()
    copied.CopyFrom(model)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        mutator = chance.choice(MUTATORS)
        mutator(chance, copied)
        names.append(mutator.__name__)
    name = names[0] if len(names) == 1 else "several"
    if chance.random() < 0.1:
        change = chance.choice(BYTE_MUTATORS)
        return change(chance, copied.SerializeToString()), change.__name__
    return copied, name


# ---- walking ----


def _messages(message: Message) -> Iterator[Message]:
    """A message and all inside of it."""
    yield message
    for field, value in message.ListFields():
        if field.type == _MESSAGE:
            for inner in value if _repeats(value) else (value,):
                yield from _messages(inner)


def _repeats(value: Any) -> bool:
    return hasattr(value, "append") or hasattr(value, "add")


def _all(model: Message, kind: str) -> list[Message]:
    """All messages of a kind: `NodeProto`, `TensorProto`, ..."""
    return [m for m in _messages(model) if m.DESCRIPTOR.name == kind]


def _pick(chance: Random, model: Message, kind: str) -> Message | None:
    found = _all(model, kind)
    return chance.choice(found) if found else None


def _lists(model: Message, least: int = 1) -> list[Any]:
    """All repeated fields with at least so many elements."""
    return [v for m in _messages(model) for _, v in m.ListFields() if _repeats(v) and len(v) >= least]


def _names(model: Message) -> list[str]:
    """The names of values in the model."""
    return sorted({n for node in _all(model, "NodeProto") for n in (*node.input, *node.output)})


# ---- structure ----


def drop_element(chance: Random, model: Message) -> None:
    """Leave out a node, an input, an attribute, a dim: any element of any list."""
    if lists := _lists(model):
        elements = chance.choice(lists)
        del elements[chance.randrange(len(elements))]


def duplicate_element(chance: Random, model: Message) -> None:
    """Repeat an element of a list."""
    if lists := _lists(model):
        elements = chance.choice(lists)
        elements.extend([elements[chance.randrange(len(elements))]])


def swap_elements(chance: Random, model: Message) -> None:
    """Exchange two elements of a list, or reverse it."""
    if lists := _lists(model, 2):
        elements = chance.choice(lists)
        values = list(elements)
        if chance.random() < 0.3:
            values.reverse()
        else:
            i, k = chance.sample(range(len(values)), 2)
            values[i], values[k] = values[k], values[i]
        copies = [_copy(v) for v in values]
        del elements[:]
        elements.extend(copies)


def _copy(value: Any) -> Any:
    if not hasattr(value, "CopyFrom"):
        return value
    copied = type(value)()
    copied.CopyFrom(value)
    return copied


def clear_field(chance: Random, model: Message) -> None:
    """Leave a field out."""
    message = chance.choice([m for m in _messages(model) if m.ListFields()])
    message.ClearField(chance.choice(message.ListFields())[0].name)


def change_scalar(chance: Random, model: Message) -> None:
    """Give a number, text or bytes anywhere another value, often an extreme one."""
    places = [(m, f) for m in _messages(model) for f, _ in m.ListFields() if f.type != _MESSAGE]
    if not places:
        return
    message, field = chance.choice(places)
    old = getattr(message, field.name)
    if _repeats(old):
        old[chance.randrange(len(old))] = _scalar(chance, field, model)
    else:
        setattr(message, field.name, _scalar(chance, field, model))


def _scalar(chance: Random, field: Any, model: Message) -> Any:
    if field.type == _STRING:
        return chance.choice((*_STRINGS, *_names(model)))
    if field.type == _BYTES:
        return chance.choice(
            (b"", b"\0", b"\xff\xfe", bytes(24), b"\x7f" * 12, chance.randbytes(24), b"SAME_LOWER", b"ij->ji")
        )
    if field.type in _FLOAT_TYPES:
        return chance.choice(_FLOATS)
    values = [v for v in _INTEGERS if field.cpp_type == 2 or -(1 << 31) <= v < 1 << 31]
    if field.enum_type is not None:
        values = [v.number for v in field.enum_type.values]
    return chance.choice(values) if field.cpp_type not in (3, 4) else abs(chance.choice(values))


def transplant(chance: Random, model: Message) -> None:
    """Copy a message over another of its kind: a node, a graph into itself, a type, a tensor."""
    target = chance.choice(list(_messages(model)))
    source = _copy(chance.choice(_all(model, target.DESCRIPTOR.name)))
    if source.ByteSize() < 1 << 20:
        target.CopyFrom(source)


# ---- meaning ----


def change_operator(chance: Random, model: Message) -> None:
    """Make a node another operator, or put it into another domain."""
    if (node := _pick(chance, model, "NodeProto")) is not None:
        if chance.random() < 0.8:
            node.op_type = chance.choice(_OPERATORS)
        else:
            node.domain = chance.choice(_DOMAINS)


def change_opset(chance: Random, model: Message) -> None:
    """Change the versions that the model, or a function, is written for."""
    if (opset := _pick(chance, model, "OperatorSetIdProto")) is not None:
        opset.version = chance.choice((*range(6, 28), 0, -1, 1000, (1 << 63) - 1))
        if chance.random() < 0.2:
            opset.domain = chance.choice(_DOMAINS)
    if chance.random() < 0.2:
        model.ir_version = chance.choice((0, 1, 3, 7, 8, 10, 13, 99, (1 << 63) - 1, -1))


def change_edge(chance: Random, model: Message) -> None:
    """Let a node read, or make, another value: a later one (a cycle), none, one of another type, one twice."""
    names = ["", "undefined", *_names(model)]
    if (node := _pick(chance, model, "NodeProto")) is not None:
        edges = chance.choice([e for e in (node.input, node.output) if len(e)] or [node.input])
        if len(edges) and chance.random() < 0.8:
            edges[chance.randrange(len(edges))] = chance.choice(names)
        else:
            edges.extend([chance.choice(names)] * chance.choice((1, 1, 2, 2000)))


def change_output(chance: Random, model: Message) -> None:
    """Return or take another value: one inside, an input itself, one twice, one that does not exist."""
    if (graph := _pick(chance, model, "GraphProto")) is not None:
        ports = chance.choice([p for p in (graph.input, graph.output) if len(p)] or [graph.output])
        if not len(ports) or chance.random() < 0.3:
            ports.add()
        ports[chance.randrange(len(ports))].name = chance.choice(["", "undefined", *_names(model)])


def change_dtype(chance: Random, model: Message) -> None:
    """Give a tensor or an input another element type, known or not."""
    kinds = [m for m in _messages(model) if m.DESCRIPTOR.full_name in ("onnx.TensorProto", "onnx.TypeProto.Tensor")]
    if kinds:
        message = chance.choice(kinds)
        field = "data_type" if message.DESCRIPTOR.name == "TensorProto" else "elem_type"
        setattr(message, field, chance.choice((*range(27), -1, 99, (1 << 31) - 1)))


def change_dims(chance: Random, model: Message) -> None:
    """Give a tensor or an input another shape: huge, negative, zero, symbolic, of another rank, or none."""
    tensor, shape = _pick(chance, model, "TensorProto"), _pick(chance, model, "TensorShapeProto")
    if tensor is not None and (shape is None or chance.random() < 0.5):
        del tensor.dims[:]
        tensor.dims.extend(chance.choice(_DIMS))
    elif shape is not None:
        if not len(shape.dim) or chance.random() < 0.2:
            shape.dim.add()
        dim = shape.dim[chance.randrange(len(shape.dim))]
        if chance.random() < 0.5:
            dim.dim_value = chance.choice(_INTEGERS)
        else:
            dim.dim_param = chance.choice(_STRINGS)


def change_attribute(chance: Random, model: Message) -> None:
    """Change an attribute: its value, length, type, name; or let it refer to one of a function."""
    attribute = _pick(chance, model, "AttributeProto")
    if attribute is None:
        return
    match chance.randrange(6):
        case 0:
            attribute.type = chance.randrange(15)
        case 1:
            attribute.name = chance.choice(
                ("axis", "axes", "perm", "to", "value", "body", "kernel_shape", "pads", "", "x", "keepdims")
            )
        case 2:
            attribute.ref_attr_name = chance.choice(("alpha", "undefined", attribute.name))
        case 3:
            attribute.ints.extend(chance.choices(_INTEGERS, k=chance.choice((1, 1, 2, 70, 5000))))
        case 4 if len(attribute.ints):
            attribute.ints[chance.randrange(len(attribute.ints))] = chance.choice(_INTEGERS)
        case _:
            attribute.i, attribute.f = chance.choice(_INTEGERS), chance.choice(_FLOATS)


def add_attribute(chance: Random, model: Message) -> None:
    """Give a node an attribute that other operators have."""
    node, attribute = _pick(chance, model, "NodeProto"), _pick(chance, model, "AttributeProto")
    if node is not None and attribute is not None and attribute.ByteSize() < 1 << 16:
        node.attribute.append(_copy(attribute))
        name = chance.choice(("axis", "axes", "perm", "to", "pads", "group", "ceil_mode", "allowzero", attribute.name))
        node.attribute[-1].name = name


def change_data(chance: Random, model: Message) -> None:
    """Let a tensor have more, less, other or differently stored data than its shape and dtype say."""
    if (tensor := _pick(chance, model, "TensorProto")) is None:
        return
    match chance.randrange(5):
        case 0:
            tensor.raw_data = tensor.raw_data[: -chance.choice((1, 4, 8))]
        case 1:
            tensor.raw_data = tensor.raw_data + bytes(chance.choice((1, 4, 1 << 16)))
        case 2:
            tensor.raw_data = chance.randbytes(len(tensor.raw_data)) if tensor.raw_data else bytes(8)
        case 3:
            tensor.int32_data.extend(v for v in _INTEGERS if -(1 << 31) <= v < 1 << 31)
        case _:
            values = chance.choices(_INTEGERS, k=max(len(tensor.raw_data) // 8, 1))
            tensor.raw_data = b"".join(v.to_bytes(8, "little", signed=True) for v in values)[
                : len(tensor.raw_data) or 8
            ]


def make_external(chance: Random, model: Message) -> None:
    """Move a tensor's data to a file, by every kind of path, offset, length and checksum."""
    if (tensor := _pick(chance, model, "TensorProto")) is None:
        return
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    entries = {"location": chance.choice(_LOCATIONS)}
    if chance.random() < 0.5:
        entries["offset"] = chance.choice(
            ("0", "8", "-1", "1e3", "99999999999999999999", "x", "9223372036854775807", "4096", "")
        )
    if chance.random() < 0.5:
        entries["length"] = chance.choice(("0", "24", "-1", "9223372036854775807", "18446744073709551616", "x", " 24"))
    if chance.random() < 0.2:
        entries["checksum"] = chance.choice(("0" * 40, "x", ""))
    if chance.random() < 0.2:
        entries["basepath"] = "/etc"
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def make_sparse(chance: Random, model: Message) -> None:
    """Give a graph, or a node, a sparse tensor made of others."""
    values, indices = _pick(chance, model, "TensorProto"), _pick(chance, model, "TensorProto")
    graph, attribute = _pick(chance, model, "GraphProto"), _pick(chance, model, "AttributeProto")
    if values is None or indices is None or graph is None or values.ByteSize() + indices.ByteSize() > 1 << 16:
        return
    sparse = graph.sparse_initializer.add()
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(indices)
    sparse.dims.extend(chance.choice(_DIMS))
    if attribute is not None and chance.random() < 0.3:
        attribute.sparse_tensor.CopyFrom(sparse)
        attribute.type = 11
        del graph.sparse_initializer[:]


def nest_graph(chance: Random, model: Message) -> None:
    """Put a graph inside a branch of a node of itself, once or very often."""
    graph, node = _pick(chance, model, "GraphProto"), _pick(chance, model, "NodeProto")
    if graph is None or node is None or graph.ByteSize() > 1 << 16:
        return
    inner = _copy(graph)
    for _ in range(chance.choice((1, 1, 2, 40))):
        outer = type(graph)(name="nested")
        outer.node.add(
            op_type=chance.choice(("If", "Loop", "Scan")),
            input=[chance.choice(_names(model) or [""])],
            output=["nested_y"],
        )
        for name in ("then_branch", "else_branch")[: chance.randint(1, 2)]:
            outer.node[0].attribute.add(name=name, type=5).g.CopyFrom(inner)
            if inner.ByteSize() > 1 << 16:
                break
        inner = outer
    node.attribute.add(name=chance.choice(("then_branch", "else_branch", "body")), type=5).g.CopyFrom(inner)


def call_function(chance: Random, model: Message) -> None:
    """Let a node, maybe one inside a function, call a function: maybe the one that it is in."""
    node = _pick(chance, model, "NodeProto")
    if node is not None and len(model.functions):
        function = chance.choice(list(model.functions))
        node.op_type, node.domain = function.name, function.domain
        if chance.random() < 0.3:
            function.name, function.domain = chance.choice(
                (("Relu", ""), ("Add", "ai.onnx"), ("", ""), ("f", "com.microsoft"))
            )


def add_many(chance: Random, model: Message) -> None:
    """Add a long chain, or a wide fan, of nodes."""
    names = _names(model)
    if not names:
        return
    value = chance.choice(names)
    for i in range(chance.choice((10, 300))):
        model.graph.node.add(
            op_type=chance.choice(("Relu", "Add", "Identity")), input=[value, value], output=[f"many_{i}"]
        )
        value = f"many_{i}"
    if len(model.graph.output):
        model.graph.output[0].name = value


Mutator = Callable[[Random, Message], None]

MUTATORS: tuple[Mutator, ...] = (
    drop_element, duplicate_element, swap_elements, clear_field, change_scalar, change_scalar, transplant,
    change_operator, change_operator, change_opset, change_edge, change_edge, change_output, change_dtype, change_dims,
    change_attribute, change_attribute, add_attribute, change_data, make_external, make_sparse, nest_graph,
    call_function, add_many,
)  # fmt: skip
"""Every mutator of protobufs: it changes the model in place. Those that reach furthest count twice."""


# ---- bytes ----


def flip_bytes(chance: Random, data: bytes) -> bytes:
    """Flip a few bits of the serialized model."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4) if changed else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def truncate_bytes(chance: Random, data: bytes) -> bytes:
    """Stop somewhere."""
    return data[: chance.randrange(len(data) + 1)]


def break_text(chance: Random, data: bytes) -> bytes:
    """Make a text in the model invalid UTF-8, in all its places."""
    for word in chance.sample(
        (b"batch", b"Relu", b"Conv", b"main", b"axis", b"images", b"Add", b"If", b"body", b"w.bin"), 10
    ):
        if word in data:
            return data.replace(word, b"\xff\xfe"[: len(word)] + word[2:])
    return flip_bytes(chance, data)


BYTE_MUTATORS: tuple[Callable[[Random, bytes], bytes], ...] = (flip_bytes, truncate_bytes, break_text)
"""Mutators of a serialized model."""
