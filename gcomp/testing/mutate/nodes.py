"""Mutations of small ONNX models that often stay models: what comes out is refused for a reason, or means something.

Where `models` breaks protobufs anywhere, these know what a node is: they leave out and exchange inputs, give attributes
values that other models give them, exchange operators for their siblings, change dtypes, dims and versions throughout,
and put nodes into functions and branches. They need no ONNX library: a `Pool` gathers what the samples use.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

Message = Any
"""A protobuf message: `onnx.ModelProto`, or any message inside of one."""

_INTS, _FLOATS, _INT, _FLOAT, _STRING, _TENSOR, _GRAPH = 7, 6, 2, 1, 3, 4, 5
_MODEL_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, 100.0, float("inf"), float("nan"))
_MODEL_INTS = (0, 1, -1, 2, 3, 4, 5, -2, 7, 64)
_SIZES = (0, 1, 1, 2, 2, 3, 4, 5, 6, 8)
_DTYPES = (1, 1, 10, 11, 16, 6, 7, 7, 9, 3, 2, 5, 4, 12, 13, 14, 17, 22)
_PACKED = {1: "f", 5: "h", 3: "b", 2: "B", 4: "H", 6: "i", 7: "q", 11: "d", 12: "I", 13: "Q"}
"""ONNX dtype -> the letter of its elements in `struct`."""

_SIBLINGS = (
    ("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Tan", "Cosh", "Atanh",
     "Erf", "Relu", "Sigmoid", "Tanh", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
     "Mish", "Gelu", "Celu", "ThresholdedRelu", "Identity", "Not", "BitwiseNot", "IsNaN", "IsInf", "NonZero", "Shape",
     "Size", "Flatten", "Transpose", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "Det", "Swish"),
    ("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "PRelu", "BitShift", "BitwiseAnd",
     "BitwiseXor", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "MatMul",
     "CastLike"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
     "ReduceLogSumExp", "ReduceSumSquare", "Squeeze", "Unsqueeze", "CumSum", "CumProd"),
    ("ArgMax", "ArgMin"),
    ("MaxPool", "AveragePool", "LpPool"), ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"),
    ("Conv", "ConvTranspose", "DeformConv", "Gemm"), ("ConvInteger", "MatMulInteger"), ("LSTM", "GRU", "RNN"),
    ("Reshape", "Expand", "Tile", "Gather", "Slice", "Split", "TopK", "OneHot", "Trilu", "Compress", "Unsqueeze"),
    ("Gather", "GatherElements", "GatherND", "Compress", "ReverseSequence"),
    ("ScatterElements", "ScatterND", "Scatter", "TensorScatter", "Where", "Clip", "OneHot", "Slice"),
    ("DepthToSpace", "SpaceToDepth"), ("QuantizeLinear", "DequantizeLinear"),
    ("Concat", "Sum", "Max", "Mean", "Einsum"),
    ("LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "BatchNormalization"),
    ("Pad", "CenterCropPad", "Slice"), ("HannWindow", "HammingWindow", "BlackmanWindow"),
    ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"), ("Clip", "Where", "Range"),
)  # fmt: skip
"""Operators of which one may stand where another stood, more or less."""

_EACH: dict[str, tuple[str, ...]] = {}
for _family in _SIBLINGS:
    for _name in _family:
        _EACH[_name] = tuple(dict.fromkeys((*_EACH.get(_name, ()), *_family)))


@dataclass
class Pool:
    """What samples use: the attributes by name, and nodes' operators."""

    attributes: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    by_operator: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @staticmethod
    def of(models: Iterable[Message]) -> Pool:
        """The pool of some models."""
        pool = Pool()
        for model in models:
            for node in model.graph.node:
                names = pool.by_operator.setdefault(node.op_type, [])
                for attribute in node.attribute:
                    if attribute.ByteSize() > 4096 or attribute.ref_attr_name:
                        continue
                    values = pool.attributes.setdefault(attribute.name, [])
                    if attribute not in values[-20:] and len(values) < 200:
                        values.append(attribute)
                    if attribute.name not in names:
                        names.append(attribute.name)
        return pool


Mutator = Callable[[Random, Message, Pool], None]


def mutate(chance: Random, model: Message, pool: Pool) -> tuple[Message, str]:
    """A mutated copy of a model, and the names of the mutators that made it."""
    copied = type(model)()
    copied.CopyFrom(model)
    chosen = [chance.choice(MUTATORS) for _ in range(chance.choice((1, 1, 1, 1, 2, 2, 3)))]
    for mutator in chosen:
        mutator(chance, copied, pool)
    return copied, "+".join(mutator.__name__ for mutator in chosen)


# ---- parts of models ----


def _nodes(model: Message) -> list[Message]:
    """All nodes, those of subgraphs and functions included."""
    pending, found = [*model.graph.node, *(n for f in model.functions for n in f.node)], list[Message]()
    while pending:
        node = pending.pop()
        found.append(node)
        for attribute in node.attribute:
            pending += attribute.g.node
    return found


def _node(chance: Random, model: Message) -> Message | None:
    nodes = _nodes(model)
    return chance.choice(nodes) if nodes else None


def _names(model: Message) -> list[str]:
    """The names of values that the graph defines."""
    graph = model.graph
    found = [*(v.name for v in graph.input), *(t.name for t in graph.initializer)]
    found += [name for node in graph.node for name in node.output]
    return [name for name in dict.fromkeys(found) if name]


def _typed(model: Message) -> list[Message]:
    """The types of the graph's inputs that are tensors."""
    return [v.type.tensor_type for v in model.graph.input if v.type.HasField("tensor_type")]


def _attribute(node: Message, name: str) -> Message | None:
    return next((a for a in node.attribute if a.name == name), None)


# ---- inputs and outputs of nodes ----


def drop_input(chance: Random, model: Message, pool: Pool) -> None:
    """Leave an input out, in its place or at the end."""
    node = _node(chance, model)
    if node is not None and len(node.input):
        if chance.random() < 0.5:
            del node.input[-1]
        else:
            node.input[chance.randrange(len(node.input))] = ""


def repeat_input(chance: Random, model: Message, pool: Pool) -> None:
    """Give one input twice, or one more."""
    node = _node(chance, model)
    if node is not None and len(node.input):
        name = chance.choice(list(node.input))
        if chance.random() < 0.5:
            node.input.append(name)
        else:
            node.input[chance.randrange(len(node.input))] = name


def exchange_inputs(chance: Random, model: Message, pool: Pool) -> None:
    """Exchange two inputs."""
    node = _node(chance, model)
    if node is not None and len(node.input) > 1:
        i, k = chance.sample(range(len(node.input)), 2)
        node.input[i], node.input[k] = node.input[k], node.input[i]


def rename_edge(chance: Random, model: Message, pool: Pool) -> None:
    """Let a node read another value, or name a result as another value."""
    node, names = _node(chance, model), [*_names(model), "nowhere"]
    if node is not None:
        edges = node.input if len(node.input) and chance.random() < 0.8 else node.output
        if len(edges):
            edges[chance.randrange(len(edges))] = chance.choice(names)


def change_results(chance: Random, model: Message, pool: Pool) -> None:
    """Ask for one result more or less; return an inner value."""
    node = _node(chance, model)
    if node is None:
        return
    if chance.random() < 0.5:
        node.output.append(f"more_{len(node.output)}")
        model.graph.output.add(name=node.output[-1])
    elif len(node.output) > 1:
        index = chance.randrange(len(node.output))
        name, node.output[index] = node.output[index], ""
        kept = [v for v in model.graph.output if v.name != name]
        if kept:
            copies = [_copy(v) for v in kept]
            del model.graph.output[:]
            model.graph.output.extend(copies)


def _copy(message: Message) -> Message:
    copied = type(message)()
    copied.CopyFrom(message)
    return copied


# ---- attributes ----


def change_value(chance: Random, model: Message, pool: Pool) -> None:
    """Give an attribute another value of its type, near the old one or as in another model."""
    nodes = [n for n in _nodes(model) if len(n.attribute)]
    if not nodes:
        return
    attribute = chance.choice(list(chance.choice(nodes).attribute))
    others = [a for a in pool.attributes.get(attribute.name, []) if a.type == attribute.type]
    if others and chance.random() < 0.4:
        attribute.CopyFrom(chance.choice(others))
    elif attribute.type == _INT:
        attribute.i = chance.choice((*_MODEL_INTS, attribute.i + 1, attribute.i - 1, -attribute.i))
    elif attribute.type == _FLOAT:
        attribute.f = chance.choice((*_MODEL_FLOATS, attribute.f * 2))
    elif attribute.type == _INTS:
        _change_list(chance, attribute.ints, _MODEL_INTS)
    elif attribute.type == _FLOATS:
        _change_list(chance, attribute.floats, _MODEL_FLOATS)
    elif attribute.type == _STRING:
        attribute.s = chance.choice((b"", attribute.s.lower(), attribute.s.upper(), attribute.s + b"x", b"\xff"))
    elif attribute.type == _TENSOR:
        _change_tensor(chance, attribute.t)


def _change_list(chance: Random, values: Any, choices: Sequence[Any]) -> None:
    match chance.randrange(4):
        case 0 if len(values):
            del values[chance.randrange(len(values))]
        case 1:
            values.append(chance.choice(choices))
        case 2 if len(values) > 1:
            shuffled = chance.sample(list(values), len(values))
            del values[:]
            values.extend(shuffled)
        case _ if len(values):
            index = chance.randrange(len(values))
            values[index] = chance.choice((*choices, values[index] + 1, -values[index]))
        case _:
            values.append(choices[0])


def give_attribute(chance: Random, model: Message, pool: Pool) -> None:
    """Give a node an attribute as other nodes of its operator have it, or an attribute of some other operator."""
    node = _node(chance, model)
    if node is None or not pool.attributes:
        return
    names = pool.by_operator.get(node.op_type) or list(pool.attributes)
    name = chance.choice(names if chance.random() < 0.85 else list(pool.attributes))
    if not pool.attributes.get(name):
        return
    if (old := _attribute(node, name)) is None:
        old = node.attribute.add()
    old.CopyFrom(chance.choice(pool.attributes[name]))


def drop_attribute(chance: Random, model: Message, pool: Pool) -> None:
    """Leave an attribute out."""
    nodes = [n for n in _nodes(model) if len(n.attribute)]
    if nodes:
        node = chance.choice(nodes)
        del node.attribute[chance.randrange(len(node.attribute))]


def retype_attribute(chance: Random, model: Message, pool: Pool) -> None:
    """Give an attribute a value of another type."""
    nodes = [n for n in _nodes(model) if len(n.attribute)]
    if not nodes:
        return
    attribute = chance.choice(list(chance.choice(nodes).attribute))
    name, kind = attribute.name, chance.choice((_INT, _FLOAT, _INTS, _FLOATS, _STRING))
    attribute.Clear()
    attribute.name, attribute.type = name, kind
    if kind == _INT:
        attribute.i = 1
    elif kind == _FLOAT:
        attribute.f = 1.0
    elif kind == _STRING:
        attribute.s = b"linear"
    elif kind == _INTS:
        attribute.ints.extend([1, 1])
    else:
        attribute.floats.extend([1.0, 1.0])


# ---- types, shapes, versions, data ----


def change_dim(chance: Random, model: Message, pool: Pool) -> None:
    """Give an input another size in one dim, or everywhere where it has this size; or a dim more or less."""
    types = [t for t in _typed(model) if len(t.shape.dim)]
    if not types:
        return
    kind = chance.choice(types)
    dim = chance.choice(list(kind.shape.dim))
    old, new = dim.dim_value, chance.choice(_SIZES)
    match chance.randrange(4):
        case 0:
            for other in (d for t in types for d in t.shape.dim if d.dim_value == old):
                other.dim_value = new
        case 1:
            del kind.shape.dim[chance.randrange(len(kind.shape.dim))]
        case 2:
            kind.shape.dim.add(dim_value=new)
        case _:
            dim.dim_value = new


def make_symbolic(chance: Random, model: Message, pool: Pool) -> None:
    """Give dims of inputs names: equal sizes one name, or each its own."""
    dims = [d for t in _typed(model) for d in t.shape.dim if d.WhichOneof("value") == "dim_value"]
    shared = chance.random() < 0.5
    for i, dim in enumerate(dims):
        if chance.random() < 0.5:
            dim.dim_param = f"n{dim.dim_value}" if shared else f"d{i}"


def change_dtype(chance: Random, model: Message, pool: Pool) -> None:
    """Give inputs another element type: one of them, or all of one type."""
    types = _typed(model)
    if not types:
        return
    old, new = chance.choice(types).elem_type, chance.choice(_DTYPES)
    if chance.random() < 0.3:
        chance.choice(types).elem_type = new
        return
    for kind in types:
        if kind.elem_type == old:
            kind.elem_type = new
    for tensor in model.graph.initializer:
        if tensor.data_type == old and old in _PACKED and new in _PACKED and tensor.raw_data:
            _convert(tensor, new)


def _values(tensor: Message) -> list[Any]:
    letter = _PACKED[tensor.data_type]
    return list(struct.unpack(f"<{len(tensor.raw_data) // struct.calcsize(letter)}{letter}", tensor.raw_data))


def _store(tensor: Message, values: Sequence[Any]) -> None:
    letter = _PACKED[tensor.data_type]
    if letter not in "fd":
        bits = 8 * struct.calcsize(letter)
        low = 0 if letter.isupper() else -(1 << (bits - 1))
        values = [low + (int(v if v == v and abs(v) < 2**62 else 0) - low) % (1 << bits) for v in values]
    tensor.raw_data = struct.pack(f"<{len(values)}{letter}", *values)


def _convert(tensor: Message, new: int) -> None:
    values = _values(tensor)
    tensor.data_type = new
    _store(tensor, values)


def _change_tensor(chance: Random, tensor: Message) -> None:
    """Change an element, all of them, or the shape along with them."""
    if tensor.data_type not in _PACKED or not tensor.raw_data:
        return
    values = _values(tensor)
    choices = _MODEL_FLOATS if _PACKED[tensor.data_type] in "fd" else _MODEL_INTS
    match chance.randrange(4):
        case 0:
            values = [chance.choice(choices) for _ in values]
        case 1 if len(tensor.dims) == 1 and len(values) > 1:
            del values[chance.randrange(len(values))]
            tensor.dims[0] -= 1
        case 2 if len(tensor.dims) == 1:
            values.append(chance.choice(choices))
            tensor.dims[0] += 1
        case _:
            index = chance.randrange(len(values))
            values[index] = chance.choice((*choices, values[index] + 1, -values[index]))
    _store(tensor, values)


def change_initializer(chance: Random, model: Message, pool: Pool) -> None:
    """Change the elements or the length of a constant."""
    if len(model.graph.initializer):
        _change_tensor(chance, chance.choice(list(model.graph.initializer)))


def reshape_initializer(chance: Random, model: Message, pool: Pool) -> None:
    """Make a scalar of a constant of one element, a vector of a scalar or of a matrix."""
    if not len(model.graph.initializer):
        return
    tensor, count = chance.choice(list(model.graph.initializer)), 1
    for dim in tensor.dims:
        count *= dim
    shape = chance.choice(((count,), (1, count), (count, 1), ()))
    if count == 1 or shape:
        del tensor.dims[:]
        tensor.dims.extend(shape)


def change_version(chance: Random, model: Message, pool: Pool) -> None:
    """Say that the model is written for another opset."""
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") or chance.random() < 0.3:
            opset.version = chance.choice((*range(7, 27), opset.version - 1, opset.version + 1))


# ---- operators and graphs ----


def exchange_operator(chance: Random, model: Message, pool: Pool) -> None:
    """Put a sibling in an operator's place."""
    node = _node(chance, model)
    if node is not None:
        family = _EACH.get(node.op_type)
        node.op_type = chance.choice(family or tuple(pool.by_operator) or ("Relu",))
        if chance.random() < 0.5:
            known = pool.by_operator.get(node.op_type, [])
            kept = [_copy(a) for a in node.attribute if a.name in known]
            del node.attribute[:]
            node.attribute.extend(kept)


def append_node(chance: Random, model: Message, pool: Pool) -> None:
    """Let one more operator of one or two inputs follow, and return its result."""
    names = _names(model)
    if not names:
        return
    read = chance.choice([v.name for v in model.graph.output if v.name] or names)
    unary = chance.random() < 0.6
    operator = chance.choice(_SIBLINGS[0 if unary else 1])
    model.graph.node.add(op_type=operator, input=[read] if unary else [read, chance.choice(names)], output=["appended"])
    model.graph.output.add(name="appended")


def into_branch(chance: Random, model: Message, pool: Pool) -> None:
    """Put a node into both branches of an If, whose condition is a constant or an input."""
    graph = model.graph
    if not len(graph.node):
        return
    index = chance.randrange(len(graph.node))
    node = graph.node[index]
    if any(v.name == "condition" for v in graph.input) or not all(node.output):
        return
    outer = type(node)(op_type="If", input=["condition"], output=list(node.output), name="branches")
    for name in ("then_branch", "else_branch"):
        inner = outer.attribute.add(name=name, type=_GRAPH).g
        inner.name = name
        inner.node.add().CopyFrom(node)
        for result in range(len(node.output)):
            inner.node[0].output[result] = f"{name}_{node.output[result]}"
            inner.output.add(name=inner.node[0].output[result])
    node.CopyFrom(outer)
    if chance.random() < 0.6:
        graph.initializer.add(name="condition", data_type=9, raw_data=bytes([chance.randrange(2)]))
    else:
        graph.input.add(name="condition").type.tensor_type.elem_type = 9
        graph.input[-1].type.tensor_type.shape.SetInParent()


def into_function(chance: Random, model: Message, pool: Pool) -> None:
    """Make a node a function of the model, now and then one that calls itself."""
    graph = model.graph
    if not len(graph.node) or len(model.functions):
        return
    node = graph.node[chance.randrange(len(graph.node))]
    if not all(node.input) or not all(node.output) or any(len(a.g.node) for a in node.attribute):
        return
    function = model.functions.add(name="made", domain="local")
    function.opset_import.extend([_copy(o) for o in model.opset_import])
    if not any(o.domain == "local" for o in model.opset_import):
        model.opset_import.add(domain="local", version=1)
        function.opset_import.add(domain="local", version=1)
    formals = list(dict.fromkeys(node.input))
    function.input.extend(formals)
    function.output.extend(list(node.output))
    function.node.add().CopyFrom(node)
    node.Clear()
    node.op_type, node.domain = "made", "local"
    node.input.extend(formals)
    node.output.extend(list(function.output))
    if chance.random() < 0.1:
        function.node[0].CopyFrom(node)
    model.ir_version = max(model.ir_version, 8)


def split_names(chance: Random, model: Message, pool: Pool) -> None:
    """Return an input, or a constant, as it is."""
    names = _names(model)
    if names:
        model.graph.output.add(name=chance.choice(names))


MUTATORS: tuple[Mutator, ...] = (
    drop_input, repeat_input, exchange_inputs, rename_edge, change_results, change_value, change_value, change_value,
    give_attribute, give_attribute, drop_attribute, retype_attribute, change_dim, change_dim, change_dim, make_symbolic,
    change_dtype, change_dtype, change_initializer, change_initializer, reshape_initializer, change_version,
    change_version, exchange_operator, exchange_operator, append_node, into_branch, into_function, split_names,
)  # fmt: skip
"""Every mutator: it changes the model in place. Those that reach furthest count more than once."""
