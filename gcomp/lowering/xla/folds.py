"""Ops that fold, sort or index, as XLA gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, Operation, SSAValue

from gcomp.dtypes import bit_width, dtype_of
from gcomp.ir.attributes import encode
from gcomp.ir.builder import identity as identity_of
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.stablehlo.conversion import ConvertOp
from gcomp.ir.stablehlo.indexing import ScatterOp
from gcomp.ir.stablehlo.movement import PadOp
from gcomp.ir.stablehlo.reduction import ReduceOp, ReduceWindowOp
from gcomp.ir.stablehlo.sorting import SortOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor, with_element, with_shape
from gcomp.lowering.xla.indices import keep_in_range
from gcomp.lowering.xla.printer import Printer
from gcomp.lowering.xla.workarounds import applied_name, barrier, constant_of


def start_fold(
    p: Printer, op: ReduceOp, applied: type[GraphOp], indent: str, write: Callable[[str], str], init: str
) -> str:
    """A fold by one op, which `write` writes with an initial value. XLA leaves that out where it folds one element.

    So a fold that does not start from the op's identity does here, and what it would start from comes after it.
    """
    start, type = op.init_values[0], tensor((), element_of(op.results[0]))
    identity = ElementsAttr.of(np.asarray(identity_of(applied, dtype_text(type)), dtype_of(dtype_text(type))))
    known = constant_of(start)
    narrow = element_of(start) != element_of(type)
    if known is not None and not narrow and known.array().tobytes() == identity.array().tobytes():
        return write(init)
    result = p.types(op.result_types)
    folded = p.line(write(p.line(f"stablehlo.constant {identity}", indent)), indent)
    repeated = f"stablehlo.broadcast_in_dim {init}, dims = [] : ({p.types([type])}) -> {result}"
    return f"{applied_name(applied, dtype_text(type))} {p.line(repeated, indent)}, {folded} : {result}"


def operands(
    p: Printer, op: Operation, indent: str
) -> tuple[Sequence[str], Sequence[Attribute], Mapping[str, Attribute]]:
    """The names and types of the operands of an op that folds or indexes, and its properties.

    What is folded is converted before to the type that the body computes in: of a fold over no dimension XLA returns
    the operand in its own type. Indices become signed: XLA reads unsigned constants as signed.
    """
    names, types = [p.values([v]) for v in op.operands], [v.type for v in op.operands]
    for i, arg in _folded_operands(op):
        wide = with_element(types[i], element_of(arg))
        if wide != types[i]:
            names[i] = p.line(f"stablehlo.convert {names[i]} : ({p.types([types[i]])}) -> {p.types([wide])}", indent)
            types[i] = wide
    for i in _indices(op):
        if (text := dtype_text(types[i]))[0] != "u":
            continue
        if bit_width(text) == 64:
            most = p.line(f"stablehlo.constant dense<{2**63 - 1}> : {p.types([types[i]])}", indent)
            names[i] = p.line(f"stablehlo.minimum {names[i]}, {most} : {p.types([types[i]])}", indent)
        wide = with_element(types[i], "i64" if bit_width(text) > 16 else "i32")
        names[i] = p.line(f"stablehlo.convert {names[i]} : ({p.types([types[i]])}) -> {p.types([wide])}", indent)
        types[i] = wide
    keep_in_range(p, op, names, types, indent)
    if isinstance(op, ReduceWindowOp):
        if any(map(any, op.window()["padding"])):
            # Of padding and windows with a padding of their own, XLA makes a repetition whose sizes it gets wrong.
            padded = [i for i, v in enumerate(op.inputs) if isinstance(_skip_conversions(v).owner, PadOp)]
            names = [barrier(p, n, types[i], indent) if i in padded else n for i, n in enumerate(names)]
        return names, types, _cut(p, op, names, types, indent)
    if isinstance(op, SortOp):
        # Sorting that need not be stable ends the process over comparators that are no strict order.
        return names, types, {**op.properties, "is_stable": BoolAttr.from_bool(True)}
    if not isinstance(op, ScatterOp) or (free := unindexed_dimension(op)) is None:
        return names, types, op.properties
    # Of several updates at one place without an index XLA applies the last one only: so there is one, and it is 0.
    i, numbers = len(op.inputs), op.value("scatter_dimension_numbers")
    sizes = list(shape_of(types[i]))
    sizes[numbers.index_vector_dim] = 1
    types[i] = with_shape(types[i], sizes)
    names[i] = p.line(f"stablehlo.constant dense<0> : {p.types([types[i]])}", indent)
    indexed = encode("scatter_dimension_numbers", numbers._replace(scatter_dims_to_operand_dims=(free,)))
    return names, types, {**op.properties, "scatter_dimension_numbers": indexed}


def _skip_conversions(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ConvertOp):
        value = value.owner.operands[0]
    return value


def unindexed_dimension(op: ScatterOp) -> int | None:
    """The first dimension, none of which a scatter indexes, that is no batching dimension; -1 where there is none."""
    numbers = op.value("scatter_dimension_numbers")
    if numbers.scatter_dims_to_operand_dims:
        return None
    return next((d for d in range(rank_of(op.inputs[0])) if d not in numbers.input_batching_dims), -1)


def print_adjusted(p: Printer, op: Operation, indent: str) -> str:
    """MLIR's generic form of an op that indexes."""
    names, types, properties = operands(p, op, indent)
    return f'"{op.name}"({", ".join(names)}){p.properties(properties)} : ({p.types(types)}) -> {p.results(op)}'


def _indices(op: Operation) -> range:
    """The numbers of the operands that are indices."""
    count = len(op.operands)
    first = {"stablehlo.gather": 1, "stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2}.get(
        op.name, count
    )
    return range(len(op.inputs), len(op.inputs) + 1) if isinstance(op, ScatterOp) else range(first, count)


def _folded_operands(op: Operation) -> Iterator[tuple[int, SSAValue]]:
    """The numbers of the operands that the body of an op folds, each with an argument of the type it computes in."""
    if isinstance(op, ReduceOp | ReduceWindowOp):
        yield from enumerate(op.body.block.args)
    elif isinstance(op, ScatterOp):
        count = len(op.inputs)
        for i, arg in enumerate(op.update_computation.block.args):
            yield i + (i >= count), arg


def _cut(
    p: Printer, op: ReduceWindowOp, names: list[str], types: list[Attribute], indent: str
) -> Mapping[str, Attribute]:
    """Pad the operands where padding is negative, and change their names and types; the properties of what is left.

    XLA ends the process over windows of one element, and over elements below 8 bits. What is empty may stay as it is.
    """
    window = op.window()
    padding, gaps = window["padding"], window["base_dilations"]
    negative = [min(pair) < 0 for pair in padding]
    taken = [
        window_size(size, 1, 1, pair, gap, 1) for size, pair, gap in zip(shape_of(types[0]), padding, gaps, strict=True)
    ]
    single = all(size == 1 for size in window["window_dimensions"]) or bit_width(dtype_text(types[0])) < 8
    if not any(negative) or not single or 0 in taken:
        return op.properties
    pads = [pair if apart else (0, 0) for pair, apart in zip(padding, negative, strict=True)]
    interior = [gap if apart else 1 for gap, apart in zip(gaps, negative, strict=True)]
    low, high, between = [lo for lo, _ in pads], [hi for _, hi in pads], [gap - 1 for gap in interior]
    for i in range(count := len(op.inputs)):
        given, start = types[i], types[count + i]
        sizes = zip(shape_of(given), pads, interior, strict=True)
        types[i] = with_shape(given, [window_size(size, 1, 1, pair, gap, 1) for size, pair, gap in sizes])
        pad = f"stablehlo.pad {names[i]}, {names[count + i]}, low = {low}, high = {high}, interior = {between}"
        names[i] = p.line(f"{pad} : ({p.types([given, start])}) -> {p.types([types[i]])}", indent)
    left = {
        "padding": [(0, 0) if apart else pair for pair, apart in zip(padding, negative, strict=True)],
        "base_dilations": [1 if apart else gap for gap, apart in zip(gaps, negative, strict=True)],
    }
    return {**op.properties, **{name: encode(name, value) for name, value in left.items()}}
