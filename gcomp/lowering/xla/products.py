"""Products that XLA gets in other words: of few bits, and convolutions that it takes for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Attribute, Operation

from gcomp.dims import exact_div
from gcomp.dtypes import bit_width, is_complex, is_float, is_integer
from gcomp.ir.attributes import decode, encode
from gcomp.ir.stablehlo.contraction import ConvolutionOp, window_size
from gcomp.ir.types import Tensor, dtype_text, element_of, rank_of, shape_of, tensor, with_element, with_shape
from gcomp.lowering.xla.printer import Printer, Writer
from gcomp.lowering.xla.workarounds import barrier, convert_values


def product(writer: Writer) -> Writer:
    """Products of elements below 8 bits with a wider result, which XLA refuses: of operands as wide as the result."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        result = element_of(op.results[0])
        if bit_width(dtype_text(op.operands[0].type)) >= 8 or element_of(op.operands[0]) == result:
            return writer(p, op, indent)
        names, types = convert_values(p, op.operands, result, indent)
        return f'"{op.name}"({", ".join(names)}){p.properties(op.properties)} : ({p.types(types)}) -> {p.results(op)}'

    return write


def convolution(p: Printer, op: Operation, indent: str) -> str:
    """Convolutions: integers below 8 bits take 8, which XLA fails over in groups of one feature."""
    conv, result = cast(ConvolutionOp, op), cast(Tensor, op.results[0].type)
    text = dtype_text(result)
    if is_integer(text) and bit_width(text) < 8:
        result = with_element(result, "ui8" if text[0] == "u" else "i8")
    names, types = [p.values([value]) for value in op.operands], [cast(Tensor, value.type) for value in op.operands]
    narrow = result != op.results[0].type or bit_width(dtype_text(conv.lhs.type)) < 8
    if narrow and element_of(result) != element_of(conv.lhs):
        names, types = convert_values(p, op.operands, element_of(result), indent)
    written = _Written(conv, names, types, op.properties)
    for step in (_by_features, _apart, _spread, _hidden):
        step(p, written, indent)
    head = f'"{op.name}"({", ".join(written.names)}){p.properties(written.properties)}'
    found = f"{head} : ({p.types(written.types)}) -> {p.types([result])}"
    if result == op.results[0].type:
        return found
    return f"stablehlo.convert {p.line(found, indent)} : ({p.types([result])}) -> {p.results(op)}"


@dataclass
class _Written:
    """A convolution in the words that it gets: the names and types of its operands, and its properties."""

    op: ConvolutionOp
    names: list[str]
    types: list[Tensor]
    properties: Mapping[str, Attribute]


def _by_features(p: Printer, written: _Written, indent: str) -> None:
    """Put groups of features where those of a batch were, and write the input so that they say the same.

    XLA convolves groups of a batch as one, and multiplies what does not belong together by 0: a NaN comes out in other
    groups, too, and time goes with the square of their number. For groups of one image and one result it has something
    faster than groups of features.
    """
    groups, d, types = written.op.value("batch_group_count"), written.op.dimensions, written.types
    shape, batch, feature = shape_of(types[0]), d.input_batch_dimension, d.input_feature_dimension
    images, results = (
        exact_div(n, groups) for n in (shape[batch], shape_of(types[1])[d.kernel_output_feature_dimension])
    )
    own_way = images == results == 1 and dtype_text(types[0]) in ("f16", "bf16", "f32")
    if groups == 1 or images is None or own_way:
        return
    split = [*shape[:batch], groups, images, *shape[batch + 1 :]]
    order = [i for i in range(len(split)) if i != batch]
    order.insert(order.index(feature + (feature > batch)), batch)
    moved = [split[i] for i in order]
    joined = [images if i == batch else groups * n if i == feature else n for i, n in enumerate(shape)]
    name, before = written.names[0], p.types([types[0]])
    for op_name, sizes in (("reshape", split), ("transpose", moved), ("reshape", joined)):
        after = p.types([with_shape(types[0], sizes)])
        dims = f", dims = {order}" if op_name == "transpose" else ""
        name, before = p.line(f"stablehlo.{op_name} {name}{dims} : ({before}) -> {after}", indent), after
    written.names[0], types[0] = name, with_shape(types[0], joined)
    counts = {"batch_group_count": 1, "feature_group_count": groups}
    written.properties = {**written.properties, **{key: encode(key, count) for key, count in counts.items()}}


def _apart(p: Printer, written: _Written, indent: str) -> None:
    """Give each group of one feature a second one, of zeros.

    In types that it has no function for, XLA makes one group of these, and multiplies what does not belong together by
    0: a NaN in one group comes out in every other.
    """
    op, names, types = written.op, written.names, written.types
    text, d, groups = dtype_text(op.results[0].type), op.dimensions, decode(written.properties["feature_group_count"])
    single = shape_of(op.rhs)[d.kernel_input_feature_dimension] == 1 and groups > 1
    if not single or not (text == "f64" or is_complex(text)):
        return
    for i, dimension in enumerate((d.input_feature_dimension, d.kernel_input_feature_dimension)):
        names[i], types[i] = _pad(p, names[i], types[i], {dimension: (0, 1, 1)}, indent)


def _spread(p: Printer, written: _Written, indent: str) -> None:
    """Dilate the input apart where the convolution looks like groups that lie along a spatial dimension, and crop it
    apart where it is padded at its other end.

    XLA takes the kernel of the first for as large as the input, exchanges the two, and ends the process; over the
    second it reads beyond the input. The barrier keeps it from putting dilation and padding back.
    """
    op, names, types = written.op, written.names, written.types
    window, d = op.window(), op.dimensions
    gaps, pairs = window["lhs_dilation"], [(int(low), int(high)) for low, high in window["padding"]]
    sizes = [shape_of(op.rhs)[dimension] for dimension in d.kernel_spatial_dimensions]
    apart = [
        low < 0 < high
        or (size == gap and stride == gap - 1 and gap > 1 and (low, high) == (0, 0) and dilation == 1)
        for size, gap, stride, (low, high), dilation in zip(
            sizes, gaps, window["window_strides"], pairs, window["rhs_dilation"], strict=True
        )
    ]  # fmt: skip
    if not any(apart):
        return
    pads = {
        dimension: (min(pair[0], 0), 0, gap - 1)
        for dimension, gap, pair, yes in zip(d.input_spatial_dimensions, gaps, pairs, apart, strict=True)
        if yes
    }
    name, types[0] = _pad(p, names[0], types[0], pads, indent)
    names[0] = barrier(p, name, types[0], indent)
    left = {
        "lhs_dilation": [1 if yes else gap for gap, yes in zip(gaps, apart, strict=True)],
        "padding": [(max(low, 0) if yes else low, high) for (low, high), yes in zip(pairs, apart, strict=True)],
    }
    written.properties = {**written.properties, **{key: encode(key, value) for key, value in left.items()}}


def _hidden(p: Printer, written: _Written, indent: str) -> None:
    """Hide what integers are: XLA folds the convolution of two constants, and saturates where it must wrap."""
    text = dtype_text(written.op.results[0].type)
    if is_integer(text) and bit_width(text) <= 32:
        written.names[0] = barrier(p, written.names[0], written.types[0], indent)


def _pad(
    p: Printer, name: str, type: Tensor, pads: Mapping[int, tuple[int, int, int]], indent: str
) -> tuple[str, Tensor]:
    """The name and type of a value with zeros before, after, and between the elements of dimensions: how many of each
    (negative: elements taken away)."""
    scalar, text, rank = p.types([tensor((), element_of(type))]), dtype_text(type), rank_of(type)
    low, high, between = ([pads.get(d, (0, 0, 0))[i] for d in range(rank)] for i in range(3))
    shape = [
        window_size(size, 1, 1, (before, after), gap + 1, 1)
        for size, before, after, gap in zip(shape_of(type), low, high, between, strict=True)
    ]
    number = "(0.0,0.0)" if is_complex(text) else "0.0" if is_float(text) else "false" if text == "i1" else "0"
    zero, wide = p.line(f"stablehlo.constant dense<{number}> : {scalar}", indent), with_shape(type, shape)
    padded = f"stablehlo.pad {name}, {zero}, low = {low}, high = {high}, interior = {between}"
    return p.line(f"{padded} : ({p.types([type])}, {scalar}) -> {p.types([wide])}", indent), wide
