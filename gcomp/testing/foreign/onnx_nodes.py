# pyright: basic
"""Small ONNX models of one node, with attributes and inputs at random where importers go wrong, for ONNX Runtime too.

Numbers are small and mostly whole, so that every difference is a mistake and no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


class Known(NamedTuple):
    """An input that is an initializer."""

    array: Array


@dataclass(frozen=True)
class Model:
    """A model, the operator it is about, and inputs by name."""

    operator: str
    proto: onnx.ModelProto
    inputs: dict[str, Array]

    @property
    def text(self) -> str:
        """The node and the inputs' shapes, for people."""
        node = self.proto.graph.node[0]
        given = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute)
        return f"{node.op_type}({given}) of {[list(x.shape) for x in self.inputs.values()]}"


Maker = Callable[[Rng], "Model | None"]
MAKERS: list[tuple[int, Maker]] = []
"""How many models of each kind there are, and how one is made (None where the draw is not valid)."""


def maker(count: int) -> Callable[[Maker], Maker]:
    """Register a kind of models."""

    def add(function: Maker) -> Maker:
        MAKERS.append((count, function))
        return function

    return add


@cache
def makers() -> list[tuple[int, Maker]]:
    """All kinds of models, those in files of their own too."""
    for name in ("onnx_control", "onnx_microsoft"):
        import_module(f"gcomp.testing.foreign.{name}")
    return MAKERS


def model_of(number: int) -> Model:
    """The model of a number: of all kinds by turns."""
    turn, kind = divmod(number, len(makers()))
    rng = np.random.default_rng([turn, kind])
    while (model := makers()[kind][1](rng)) is None:
        pass
    return model


def models(seed: int) -> Iterator[Model]:
    """All models of a seed."""
    for number, (count, make) in enumerate(makers()):
        rng = np.random.default_rng([seed, number])
        for _ in range(count):
            if (model := make(rng)) is not None:
                yield model


def one(
    operator: str, *inputs: Array | Known | None, opset: int = 21, outputs: int = 1, domain: str = "", **attributes: Any
) -> Model:
    """A model of one node."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(operator, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    pairs = [(n, x) for n, x in zip(names, inputs, strict=True) if x is not None]
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in pairs if not isinstance(x, Known)]  # fmt: skip
    fixed = [numpy_helper.from_array(x.array, n) for n, x in pairs if isinstance(x, Known)]
    results = [onnx.ValueInfoProto(name=n) for n in node.output]
    graph = helper.make_graph([node], "g", given, results, fixed)
    domains = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    proto = helper.make_model(graph, opset_imports=domains, ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    return Model(operator, inferred, {n: x for n, x in pairs if not isinstance(x, Known)})


def with_symbols(model: Model, rng: Rng) -> onnx.ModelProto:
    """The model with symbols for some sizes of its inputs: equal sizes have one symbol, or each its own."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    shared = bool(rng.integers(2))
    for value in proto.graph.input:
        kind = value.type.tensor_type
        if len(kind.shape.dim) < 2 and kind.elem_type == TensorProto.INT64:
            continue  # sizes, axes: how many there are is no size of the data
        for i, dim in enumerate(kind.shape.dim):
            if dim.dim_value and rng.random() < _SYMBOLIC:
                dim.dim_param = f"n{dim.dim_value}" if shared else f"{value.name}_{i}"
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


_SYMBOLIC = 0.6
"""How many sizes become symbols."""


# ---- drawing -----------------------------------------------------------------------------------------------------


def whole(rng: Rng, shape: Any, dtype: Any = np.float32) -> Array:
    """Small whole numbers."""
    return np.asarray(rng.integers(0 if np.dtype(dtype).kind == "u" else -4, 5, shape)).astype(dtype)


def edge_values(rng: Rng, shape: Any) -> Array:
    """Small numbers, fractions, zeros of both signs, NaN and infinities."""
    return rng.choice(np.array([-3, -1, -0.5, -0.0, 0.0, 0.3, 0.5, 1, 2, np.nan, np.inf, -np.inf], np.float32), shape)


def sizes(rng: Rng, rank: int, low: int = 1, high: int = 5) -> list[int]:
    """A shape."""
    return rng.integers(low, high, rank).tolist()


def ints(rng: Rng, low: int, high: int, count: int) -> list[int]:
    """Numbers from low to below high."""
    return rng.integers(low, high, count).tolist()


def flip(rng: Rng) -> int:
    """0 or 1."""
    return int(rng.integers(0, 2))


# ---- windows -----------------------------------------------------------------------------------------------------


def _window(rng: Rng, spatial: list[int], kernel: list[int], *, dilated: bool = True) -> dict[str, Any]:
    n = len(spatial)
    attributes: dict[str, Any] = {"strides": ints(rng, 1, 4, n)}
    mode = rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if dilated and flip(rng):
        attributes["dilations"] = ints(rng, 1, 3, n)
    if mode == "NOTSET":
        attributes["pads"] = [int(rng.integers(0, kernel[i % n])) for i in range(2 * n)]
    else:
        attributes["auto_pad"] = str(mode)
        # Where windows leave gaps, ONNX Runtime refuses SAME padding, and onnx's evaluator crops.
        attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel, strict=True)]
    return attributes


def _fits(spatial: list[int], kernel: list[int], attributes: dict[str, Any]) -> bool:
    dilations = attributes.get("dilations", [1] * len(kernel))
    return all((k - 1) * d + 1 <= n for n, k, d in zip(spatial, kernel, dilations, strict=True))


@maker(24)
def conv(rng: Rng) -> Model | None:
    """Groups, dilations, uneven and automatic padding."""
    n, group = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    spatial, kernel = sizes(rng, n, 4, 9), sizes(rng, n, 1, 4)
    attributes = _window(rng, spatial, kernel)
    if not _fits(spatial, kernel, attributes):
        return None
    x, w = whole(rng, [2, 2 * group, *spatial]), whole(rng, [2 * group, 2, *kernel])
    return one("Conv", x, w, whole(rng, 2 * group), group=group, **attributes)


@maker(8)
def same_dilated(rng: Rng) -> Model:
    """SAME padding for dilated kernels."""
    x, w = whole(rng, [1, 1, *sizes(rng, 2, 6, 10)]), whole(rng, [1, 1, 3, 2])
    return one("Conv", x, w, auto_pad=str(rng.choice(["SAME_UPPER", "SAME_LOWER"])), dilations=[2, 3],
               strides=ints(rng, 1, 3, 2))  # fmt: skip


@maker(20)
def conv_transpose(rng: Rng) -> Model | None:
    """Groups, output padding, dilations."""
    n, group = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    kernel, strides = sizes(rng, n, 1, 4), ints(rng, 1, 4, n)
    x, w = whole(rng, [1, 2 * group, *sizes(rng, n, 3, 5)]), whole(rng, [2 * group, 3, *kernel])
    extra = [int(rng.integers(0, s)) for s in strides]
    pads = [int(rng.integers(0, k)) for k in kernel * 2]
    return one("ConvTranspose", x, w, strides=strides, output_padding=extra, pads=pads, group=group)


@maker(36)
def pools(rng: Rng) -> Model | None:
    """Rounding up, padding that counts, places of maxima."""
    n = int(rng.integers(1, 3))
    spatial, kernel = sizes(rng, n, 3, 9), sizes(rng, n, 2, 4)
    operator = str(rng.choice(["MaxPool", "AveragePool"]))
    attributes = _window(rng, spatial, kernel, dilated=False)
    if "pads" in attributes:
        attributes["ceil_mode"] = flip(rng)
        if attributes["ceil_mode"]:  # the wider the stride, the more of a last window lies in the padding
            attributes["strides"] = ints(rng, 1, 6, n)
    if not _fits(spatial, kernel, attributes):
        return None
    if operator == "AveragePool":
        return one(operator, whole(rng, [1, 2, *spatial]), kernel_shape=kernel, count_include_pad=flip(rng),
                   **attributes)  # fmt: skip
    x = whole(rng, [1, 2, *spatial]) - np.float32(9 * flip(rng))
    return one(operator, x, kernel_shape=kernel, outputs=1 + flip(rng), **attributes)


@maker(12)
def means_of_cut_windows(rng: Rng) -> Model | None:
    """Means in windows of which the last lies beyond the input, within the padding or beyond that too."""
    n = int(rng.integers(1, 3))
    kernel = sizes(rng, n, 2, 5)
    strides = [int(rng.integers(2, k + 2)) for k in kernel]
    low, high = ([int(rng.integers(0, k)) * padded for k in kernel] for padded in (flip(rng), flip(rng)))
    # What whole windows cover, and a little more: that is where rounding up differs from rounding down.
    spatial = [k + s * int(rng.integers(0, 3)) + int(rng.integers(1, s)) - before - after
               for k, s, before, after in zip(kernel, strides, low, high, strict=True)]  # fmt: skip
    attributes = {"pads": [*low, *high], "strides": strides, "ceil_mode": 1}
    if not _fits(spatial, kernel, attributes):
        return None
    return one("AveragePool", whole(rng, [1, 2, *spatial]), kernel_shape=kernel, count_include_pad=flip(rng),
               **attributes)  # fmt: skip


# ---- elementwise -------------------------------------------------------------------------------------------------


@maker(12)
def broadcasting(rng: Rng) -> Model | None:
    """Operands of other ranks, with dims that would fit at both ends."""
    operator = str(rng.choice(["Add", "Sub", "Mul", "Div", "Where", "PRelu", "Max", "Less"]))
    rank = int(rng.integers(1, 4))
    shape = [int(rng.choice([1, 3])) for _ in range(rank)]
    other = [3] * int(rng.integers(0, 3))
    x, y = whole(rng, shape), np.asarray(whole(rng, other) + np.float32(7))
    if operator == "Where":
        return one(operator, whole(rng, [3]) > 0, x, y)
    if operator == "PRelu" and len(other) > rank:
        return None
    if operator == "PRelu":
        return one(operator, whole(rng, [3] * rank), y)
    return one(operator, x, y)


@maker(10)
def modulo(rng: Rng) -> Model:
    """Operands of both signs."""
    dtype = rng.choice(["int32", "int64", "int8", "float32"])
    y = rng.choice(np.array([-3, -2, 2, 3, 4]), 8).astype(dtype)
    return one("Mod", whole(rng, 8, dtype), y, fmod=1 if dtype == "float32" else flip(rng))


@maker(8)
def clip(rng: Rng) -> Model:
    """Bounds that cross."""
    low, high = (np.array(v, np.float32) for v in ints(rng, -3, 4, 2))
    return one("Clip", whole(rng, 12), low if flip(rng) else None, high)


@maker(20)
def activations(rng: Rng) -> Model:
    """Zeros, infinities, and NaN."""
    return one(str(rng.choice(["Relu", "LeakyRelu", "Elu", "Abs", "Floor", "Round"])), edge_values(rng, 24))


@maker(10)
def casts(rng: Rng) -> Model:
    """Fractions to booleans and integers, integers to narrower ones."""
    target = rng.choice([TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16])
    source = np.array([0.0, -0.0, 0.3, -0.7, 1.5, -2.5, 3.999, 100.25], np.float32)
    if target != TensorProto.BOOL and flip(rng):
        source = np.array([-1, 0, 1, 127, 128, 255, 256, -129, 70000], np.int32)
        target = rng.choice([TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL, TensorProto.INT16])
    return one("Cast", rng.permutation(source), to=int(target))


@maker(20)
def powers(rng: Rng) -> Model:
    """Integers to fractional powers."""
    base = rng.choice(np.array([1, 4, 9, 16, 25]), 6).astype(rng.choice(["int32", "int64", "float32"]))
    exponent = rng.choice(np.array([0.5, 1, 2, 1.5]), 6).astype("float32")
    return one("Pow", base, exponent if flip(rng) else exponent[:1])


@maker(6)
def infinities(rng: Rng) -> Model:
    """Of the signs asked for."""
    return one("IsInf", edge_values(rng, 16), detect_positive=flip(rng), detect_negative=flip(rng))


# ---- places ------------------------------------------------------------------------------------------------------


def _indices(rng: Rng, size: int, shape: Any, dtype: Any = np.int64) -> Array:
    return rng.integers(-size, size, shape).astype(dtype)


@maker(60)
def slices(rng: Rng) -> Model:
    """Bounds of both signs, out of range, and steps of both signs."""
    rank = int(rng.integers(1, 4))
    shape = sizes(rng, rank, 1, 7)
    count = int(rng.integers(1, rank + 1))
    axes = rng.permutation(rank)[:count]
    axes = np.where(rng.random(count) < 0.5, axes, axes - rank)
    steps = rng.choice(np.array([1, 1, 2, 3, -1, -1, -2]), count)
    bounds = (rng.integers(-8, 9, count), rng.integers(-8, 9, count))
    return one("Slice", whole(rng, shape), *(Known(np.asarray(v, np.int64)) for v in (*bounds, axes, steps)))


@maker(20)
def pads(rng: Rng) -> Model | None:
    """Pads of both signs, of some axes, in all modes."""
    rank = int(rng.integers(1, 4))
    shape, mode = sizes(rng, rank, 3, 6), str(rng.choice(["constant", "reflect", "edge", "wrap"]))
    count = int(rng.integers(1, rank + 1))
    axes = rng.permutation(rank)[:count].astype(np.int64)
    amounts = rng.integers(-1 if mode != "wrap" else 0, 3, 2 * count).astype(np.int64)
    value = np.array(7, np.float32) if mode == "constant" and flip(rng) else None
    return one("Pad", whole(rng, shape), Known(amounts), value, Known(axes), mode=mode)


@maker(20)
def gathers(rng: Rng) -> Model:
    """Negative indices, known and not."""
    rank = int(rng.integers(1, 4))
    shape = sizes(rng, rank, 2, 5)
    axis = int(rng.integers(-rank, rank))
    indices = _indices(rng, shape[axis], sizes(rng, int(rng.integers(0, 3)), 1, 4))
    return one("Gather", whole(rng, shape), Known(indices) if flip(rng) else indices, axis=axis)


@maker(12)
def gathers_of_elements(rng: Rng) -> Model:
    """An index for each element of the result, some negative, known and not."""
    rank = int(rng.integers(1, 4))
    shape = sizes(rng, rank, 2, 5)
    axis = int(rng.integers(0, rank))
    indices = _indices(rng, shape[axis], [*shape[:axis], 3, *shape[axis + 1 :]])
    given = Known(indices) if flip(rng) else indices
    return one("GatherElements", whole(rng, shape), given, axis=axis - rank * flip(rng))


@maker(12)
def gathers_of_slices(rng: Rng) -> Model:
    """Vectors of indices, some negative, known and not, of slices and of elements, batched or not."""
    rank = int(rng.integers(1, 4))
    shape = sizes(rng, rank, 2, 5)
    batch = int(rng.integers(0, rank)) * flip(rng)
    depth = int(rng.integers(1, rank - batch + 1))
    columns = [_indices(rng, s, [*shape[:batch], 2]) for s in shape[batch : batch + depth]]
    indices = np.stack(columns, -1)
    return one("GatherND", whole(rng, shape), Known(indices) if flip(rng) else indices, batch_dims=batch)


@maker(16)
def scatters(rng: Rng) -> Model:
    """Negative indices, and duplicates where a reduction combines them."""
    size = int(rng.integers(3, 6))
    reduction = str(rng.choice(["none", "add", "mul", "max", "min"]))
    rows = rng.permutation(size)[:3] if reduction == "none" else rng.integers(0, size, 3)
    rows = np.where(rng.random(3) < 0.5, rows, rows - size).astype(np.int64)
    if flip(rng):
        return one("ScatterND", whole(rng, [size, 2]), rows[:, None], whole(rng, [3, 2]), reduction=reduction)
    indices = np.repeat(rows[:, None], 2, 1)
    return one("ScatterElements", whole(rng, [size, 2]), indices, whole(rng, [3, 2]), reduction=reduction)


@maker(6)
def one_hots(rng: Rng) -> Model:
    """Indices of both signs, and out of range."""
    depth, values = Known(np.array(4, np.int64)), np.array([2, 5], np.float32)
    return one("OneHot", rng.integers(-5, 6, 8).astype(np.int64), depth, values, axis=int(rng.integers(-2, 2)))


# ---- shapes ------------------------------------------------------------------------------------------------------


@maker(24)
def movements(rng: Rng) -> Model | None:
    """Flatten, Split, Tile, DepthToSpace, Trilu, Concat and others."""
    shape = sizes(rng, 3, 2, 5)
    x = whole(rng, shape)
    match int(rng.integers(0, 7)):
        case 0:
            return one("Flatten", x, axis=int(rng.integers(-3, 4)))
        case 1:
            count = min(3, shape[0])
            return None if shape[0] <= (count - 1) * -(-shape[0] // count) else one(
                "Split", x, outputs=count, num_outputs=count)  # fmt: skip
        case 2:
            return one("Tile", x, Known(np.asarray(ints(rng, 0, 3, 3), np.int64)))
        case 3:
            return one("DepthToSpace", whole(rng, [1, 8, 2, 3]), blocksize=2, mode=str(rng.choice(["DCR", "CRD"])))
        case 4:
            return one("Trilu", x, Known(np.array(rng.integers(-3, 4), np.int64)), upper=flip(rng))
        case 5:
            return one("Concat", x, x, x[:, :1], axis=1)
        case _:
            return one("Reshape", whole(rng, [0, 3]), Known(np.array([3, 0], np.int64)), allowzero=1)


# ---- reductions and order ----------------------------------------------------------------------------------------

_REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp"]  # fmt: skip


@maker(24)
def reductions(rng: Rng) -> Model:
    """All axes, some, none; large numbers for logarithms of sums."""
    operator, rank = str(rng.choice(_REDUCTIONS)), int(rng.integers(1, 4))
    x = whole(rng, sizes(rng, rank, 1, 4)) * np.float32(50 if operator == "ReduceLogSumExp" else 1)
    count = int(rng.integers(0, rank + 1))
    axes = (rng.permutation(rank)[:count] - rank * flip(rng)).astype(np.int64)
    noop: dict[str, Any] = {"noop_with_empty_axes": flip(rng)} if count else {}
    given = Known(axes) if flip(rng) or not count else None
    return one(operator, x, given, keepdims=flip(rng), **noop)


@maker(16)
def orders(rng: Rng) -> Model:
    """ArgMax, TopK and CumSum with many ties."""
    x, axis = rng.integers(0, 3, [3, 5]).astype(np.float32), int(rng.integers(-2, 2))
    match int(rng.integers(0, 3)):
        case 0:
            return one(str(rng.choice(["ArgMax", "ArgMin"])), x, axis=axis, keepdims=flip(rng),
                       select_last_index=flip(rng))  # fmt: skip
        case 1:
            return one("TopK", x, Known(np.array([3], np.int64)), axis=axis, largest=flip(rng), outputs=2)
        case _:
            return one("CumSum", x, Known(np.array(axis, np.int64)), exclusive=flip(rng), reverse=flip(rng))


# ---- products, normalization, networks ---------------------------------------------------------------------------


@maker(16)
def products(rng: Rng) -> Model:
    """Gemm of square matrices, Einsum with diagonals."""
    x, y = whole(rng, [3, 3]), whole(rng, [3, 3])
    if flip(rng):
        bias = whole(rng, [[], [3], [1, 3], [3, 1], [3, 3]][int(rng.integers(0, 5))])
        return one("Gemm", x, y, bias, alpha=float(rng.choice([1, 0.5])), beta=float(rng.choice([1, 2, 0])),
                   transA=flip(rng), transB=flip(rng))  # fmt: skip
    equation = str(rng.choice(["ii->i", "ij,jk->ki", "ij,ij->i", "ii", "ij->ji", "ij,kj->ik"]))
    return one("Einsum", *([x, y] if "," in equation else [x]), equation=equation)


@maker(6)
def old_softmax(rng: Rng) -> Model:
    """Before opset 13 all dims from the axis on are one."""
    operator = str(rng.choice(["Softmax", "LogSoftmax"]))
    return one(operator, whole(rng, [2, 3, 4]), opset=11, axis=int(rng.integers(-3, 3)))


@maker(6)
def neighbours(rng: Rng) -> Model:
    """LRN over odd and even numbers of channels; as many samples as channels, which onnx's evaluator mixes up."""
    return one("LRN", whole(rng, [4, 4, 2, 2]), size=int(rng.integers(1, 5)), alpha=1.0, beta=0.5, bias=1.0)


@maker(12)
def recurrences(rng: Rng) -> Model:
    """All directions, initial states, lengths."""
    operator = str(rng.choice(["LSTM", "GRU", "RNN"]))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    n, hidden, features = 2 if direction == "bidirectional" else 1, 2, 3

    def small(*shape: int) -> Array:
        return (rng.integers(-4, 5, shape) / 8).astype(np.float32)

    extra: dict[str, Any] = {"linear_before_reset": flip(rng)} if operator == "GRU" else {}
    states = [small(n, 2, hidden)] * (2 if operator == "LSTM" else 1)
    lengths = np.array([3, 2], np.int32) if flip(rng) else None
    return one(operator, small(3, 2, features), small(n, gates * hidden, features), small(n, gates * hidden, hidden),
               small(n, 2 * gates * hidden), lengths, *states, outputs=2, hidden_size=hidden, direction=direction,
               **extra)  # fmt: skip


@maker(10)
def quantizations(rng: Rng) -> Model:
    """Ties, and zero points at the ends."""
    dtype = rng.choice(["int8", "uint8"])
    scale, zero = np.array(2, np.float32), np.array(rng.choice([0, 100, 127]), dtype)
    if flip(rng):
        return one("QuantizeLinear", rng.integers(-9, 10, 12).astype(np.float32), scale, zero)
    info = np.iinfo(dtype)
    return one("DequantizeLinear", np.array([info.min, 0, 1, info.max], dtype), scale, zero)


_TRANSFORMS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


@maker(40)
def resizes(rng: Rng) -> Model:
    """All modes, up and down, by scales."""
    mode = str(rng.choice(["nearest", "nearest", "linear", "cubic"]))
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": str(rng.choice(_TRANSFORMS))}
    if mode == "nearest":
        nearest = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = str(rng.choice(nearest))
    if mode == "cubic":
        attributes["exclude_outside"] = flip(rng)
    scales = np.array([1, 1, *rng.choice([0.5, 2, 3, 1.5], 2)], np.float32)
    if mode != "nearest" and flip(rng):
        attributes["antialias"] = 1
    return one("Resize", whole(rng, [1, 1, 4, 6]), None, Known(scales), **attributes)
