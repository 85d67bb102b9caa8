"""One change at an op, or of the whole program. Each is a function of a scene that says whether it changed anything.

An edit may leave types that do not fit, which are inferred anew, and a program that is not valid, which is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import dtype_of, is_complex
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode, sizes_attr, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.kernel import outermost
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import (
    dtype_text,
    is_tensor,
    retype,
    shape_of,
    static_shape,
    tensor,
    tensor_of,
    with_element,
    with_shape,
)
from gcomp.reference.values import edge_pool, small_pool
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.elementwise import BINARY, EXACT_UNARY, FUNCTIONS
from gcomp.testing.near.attributes import alter, elements
from gcomp.testing.reduce.signature import add_input, fresh_name, set_outputs


@dataclass
class Scene:
    """A program to change in place, the ops that matter (the more, the more often they are here), and choices."""

    program: Program
    ops: Sequence[Operation]
    choices: Choices

    def op(self, suits: Callable[[Operation], bool]) -> Operation | None:
        """An op that suits, or None."""
        found = [op for op in self.ops if suits(op)]
        return self.choices.chosen(found) if found else None


Edit = Callable[[Scene], bool]

_TRIED = 10

EDITS: list[tuple[Edit, float]] = []
"""Every edit, with how often it is taken."""


def edit(weight: float) -> Callable[[Edit], Edit]:
    """Register the function below."""

    def add(function: Edit) -> Edit:
        EDITS.append((function, weight))
        return function

    return add


# ---- properties and data --------------------------------------------------------------------------------------------


def _has_properties(op: Operation) -> bool:
    return bool(op.properties) and isinstance(op, GraphOp) and not isinstance(op, hlo.ConstantOp | WeightOp)


@edit(5)
def another_property(scene: Scene) -> bool:
    """A property of an op is another."""
    return _alter(scene, everywhere=False)


@edit(2.5)
def another_property_of_all(scene: Scene) -> bool:
    """A property is another wherever it is the same: the axes of both reductions of a norm."""
    return _alter(scene, everywhere=True)


def _alter(scene: Scene, *, everywhere: bool) -> bool:
    op = scene.op(_has_properties)
    if op is None:
        return False
    name = scene.choices.chosen(list(op.properties))
    old = op.properties[name]
    new = alter(old, scene.choices)
    if new is None:
        return False
    others = dict.fromkeys(scene.ops) if everywhere else [op]
    for other in others:
        if other.properties.get(name) == old:
            other.properties[name] = new
    return True


@edit(2.5)
def another_property_of_the_same_type(scene: Scene) -> bool:
    """A property is another that gives the same type, so that all around it stays as it is."""
    op = scene.op(_has_properties)
    if not isinstance(op, GraphOp) or not op.INFERS:
        return False
    before, types = dict(op.properties), list(op.result_types)
    for _ in range(_TRIED):
        for _ in range(scene.choices.integer(1, 2)):
            name = scene.choices.chosen(list(before))
            op.properties[name] = alter(op.properties[name], scene.choices) or op.properties[name]
        try:
            if op.properties != before and list(op.infer()) == types:
                return True
        except (VerifyException, ArithmeticError, LookupError, ValueError, TypeError):
            pass
        op.properties.update(before)
    return False


@edit(1)
def other_places(scene: Scene) -> bool:
    """A slice takes as many elements, from elsewhere or further apart; or a pad pads as much, otherwise."""
    op, choices = scene.op(lambda op: isinstance(op, hlo.SliceOp | hlo.PadOp)), scene.choices
    if isinstance(op, hlo.PadOp):
        low, high = list(sizes_of(op.edge_padding_low)), list(sizes_of(op.edge_padding_high))
        if not low:
            return False
        axis, by = choices.integer(0, len(low) - 1), choices.chosen((1, -1, 2))
        low[axis], high[axis] = low[axis] + by, high[axis] - by
        op.properties |= {"edge_padding_low": sizes_attr(low), "edge_padding_high": sizes_attr(high)}
        return True
    before = static_shape(op.operands[0]) if op is not None else None
    if not isinstance(op, hlo.SliceOp) or not before:
        return False
    axis, counts = choices.integer(0, len(before) - 1), shape_of(op.result)
    count, size = counts[axis], before[axis]
    if not isinstance(count, int) or count < 1:
        return False
    stride = choices.integer(1, max(1, (size - 1) // (count - 1))) if count > 1 else choices.integer(1, 3)
    start = choices.integer(0, size - (count - 1) * stride - 1)
    starts, limits = list(sizes_of(op.start_indices)), list(sizes_of(op.limit_indices))
    strides = list(op.value("strides"))
    starts[axis], limits[axis], strides[axis] = start, start + (count - 1) * stride + 1, stride
    op.properties |= {
        "start_indices": sizes_attr(starts), "limit_indices": sizes_attr(limits), "strides": encode("strides", strides),
    }  # fmt: skip
    return True


@edit(3.5)
def another_constant(scene: Scene) -> bool:
    """A constant holds other data."""
    op = scene.op(lambda op: isinstance(op, hlo.ConstantOp))
    if not isinstance(op, hlo.ConstantOp):
        return False
    new = elements(op.elements_attr, scene.choices)
    if new is None:
        return False
    op.properties["value"] = new
    return True


@edit(2.5)
def a_size_for_a_constant(scene: Scene) -> bool:
    """Fill an integer constant with a size of the program, or one off it: conditions of passes compare sizes."""
    choices = scene.choices
    op = scene.op(lambda op: isinstance(op, hlo.ConstantOp) and dtype_of(dtype_text(op.results[0].type)).kind in "iu")
    if not isinstance(op, hlo.ConstantOp) or (shape := static_shape(op.results[0])) is None:
        return False
    types = [result.type for one in scene.program.ops() for result in one.results if is_tensor(result.type)]
    sizes = sorted({size for type in types for size in shape_of(type) if isinstance(size, int)})
    if not sizes:
        return False
    number, text = choices.chosen(sizes) + choices.chosen((0, -1, 1)), dtype_text(op.results[0].type)
    if not np.iinfo(dtype_of(text)).min <= number <= np.iinfo(dtype_of(text)).max:
        return False
    op.properties["value"] = ElementsAttr.of(np.full(shape, number, dtype_of(text)), tensor(shape, text))
    return True


@edit(1)
def known_or_not(scene: Scene) -> bool:
    """A constant becomes an input, or a constant of that many different elements; or an operand becomes a constant."""
    choices, program = scene.choices, scene.program
    op = scene.op(lambda op: isinstance(op, hlo.ConstantOp | WeightOp) and op.parent is program.block)
    if op is not None and choices.flag():
        value = op.results[0]
        kind = choices.integer(0, 2)
        if kind == 0 or static_shape(value) is None:
            value.replace_all_uses_with(add_input(program, value.type, fresh_name(program, "known")))
            Rewriter.erase_op(op)
            return True
        shape, text = static_shape(value) or (), dtype_text(value.type)
        data = choices.fill(edge_pool(text) if kind == 1 else small_pool(text), int(np.prod(shape))).reshape(shape)
        b = Builder(program, InsertPoint.before(op))
        as_weight = choices.flag(0.3) and op.parent is program.block
        new = b.weight("w", data) if as_weight else b.constant(data, text)
        value.replace_all_uses_with(new)
        Rewriter.erase_op(op)
        return True
    found = _operand(scene)
    if found is None:
        return False
    op, i = found
    shape, text = static_shape(op.operands[i]), dtype_text(op.operands[i].type)
    if shape is None:
        return False
    op.operands[i] = _builder(scene, op).full(shape, choices.fill(edge_pool(text), 1)[0], text)
    return True


# ---- operands -------------------------------------------------------------------------------------------------------


def _operand(scene: Scene) -> tuple[Operation, int] | None:
    """An op and one of its operands that is a tensor."""
    op = scene.op(lambda op: any(is_tensor(v.type) for v in op.operands))
    if op is None:
        return None
    return op, scene.choices.chosen([i for i, v in enumerate(op.operands) if is_tensor(v.type)])


def _visible(op: Operation) -> Iterator[SSAValue]:
    """What an op may use, the nearest first."""
    around: Operation | None = op
    while around is not None and not isinstance(around, FuncOp):
        before = around.prev_op
        while before is not None:
            yield from before.results
            before = before.prev_op
        if around.parent is not None:
            yield from around.parent.args
        around = around.parent_op()


@edit(4)
def another_operand(scene: Scene) -> bool:
    """An operand is another value of its type that is there, another operand of the op, or a new input."""
    found = _operand(scene)
    if found is None:
        return False
    op, i = found
    old = op.operands[i]
    same = [v for v in dict.fromkeys([*op.operands, *_visible(op)]) if v.type == old.type and v is not old]
    if same and scene.choices.flag(0.75):
        op.operands[i] = scene.choices.chosen(same)
        return True
    if not _in_main(scene.program, op):
        return False
    op.operands[i] = add_input(scene.program, old.type, fresh_name(scene.program, "other"))
    return True


def _in_main(program: Program, op: Operation) -> bool:
    return outermost(op).parent_op() is program.main


@edit(1.5)
def exchanged_operands(scene: Scene) -> bool:
    """Two operands of one type change places."""
    op = scene.op(lambda op: len(op.operands) > 1)
    if op is None:
        return False
    pairs = [(i, j) for i in range(len(op.operands)) for j in range(i) if op.operands[i].type == op.operands[j].type]
    pairs = [(i, j) for i, j in pairs if op.operands[i] is not op.operands[j]]
    if not pairs:
        return False
    i, j = scene.choices.chosen(pairs)
    a, b = op.operands[i], op.operands[j]
    op.operands[i], op.operands[j] = b, a
    return True


def _builder(scene: Scene, op: Operation) -> Builder:
    return Builder(scene.program, InsertPoint.before(op))


@edit(3)
def through_another_op(scene: Scene) -> bool:
    """An operand goes through one op more, of its own type."""
    found = _operand(scene)
    if found is None:
        return False
    op, i = found
    made = pass_through(_builder(scene, op), op.operands[i], scene.choices)
    if made is None:
        return False
    if scene.choices.flag(0.3):
        old = op.operands[i]
        for use in list(old.uses):
            if use.operation.parent is op.parent and _comes_after(use.operation, op):
                use.operation.operands[use.index] = made
    op.operands[i] = made
    return True


def _comes_after(op: Operation, first: Operation) -> bool:
    current: Operation | None = first
    while current is not None and current is not op:
        current = current.next_op
    return current is op


def pass_through(b: Builder, x: SSAValue, choices: Choices) -> SSAValue | None:
    """A value put through an op, or two, that give its type (or, of a transpose, nearly); None where none suits."""
    shape, text, type = shape_of(x), dtype_text(x.type), tensor_of(x)
    kind, rank = choices.integer(0, 9), len(shape)
    if kind == 0:
        return b.emit(choices.chosen(EXACT_UNARY), x, types=(type,))
    if kind == 1 and rank:
        return b.emit(hlo.ReverseOp, x, types=(type,), dimensions=choices.some(range(rank)) or [rank - 1])
    if kind == 2 and rank > 1:
        return b.transpose(x, choices.permutation(rank))
    if kind == 3:
        other = choices.chosen(("f32", "f16", "bf16", "f64", "i32", "i8", "ui8", "i64", "i1"))
        return b.convert(b.convert(x, other), text) if other != text else None
    if kind == 4:
        return b.emit(hlo.OptimizationBarrierOp, x, types=(type,))
    if kind == 5 and rank and all(isinstance(s, int) for s in shape):
        flat = b.reshape(x, (int(np.prod([s for s in shape if isinstance(s, int)])),))
        return b.reshape(flat, shape)
    if kind == 6 and rank and static_shape(x) is not None:
        axis = choices.integer(0, rank - 1)
        one = b.slice_axis(x, axis, 0, min(1, static_shape(x)[axis]))  # type: ignore[index]
        return b.broadcast(one, shape, range(rank))
    if kind == 7:
        return b.emit(choices.chosen(BINARY), x, x, types=(type,))
    if kind == 8 and rank > 1:
        # Square ones keep their type.
        return b.transpose(b.transpose(x, choices.permutation(rank)), choices.permutation(rank))
    zero = b.full(shape, 0, text) if static_shape(x) is not None else None
    return None if zero is None else b.emit(choices.chosen((hlo.AddOp, hlo.MaximumOp)), x, zero, types=(type,))


@edit(1.5)
def repeated_operand(scene: Scene) -> bool:
    """An operand is a smaller input, repeated along a dimension that it lacks, or has once."""
    found = _operand(scene)
    if found is None or not _in_main(scene.program, found[0]):
        return False
    op, i = found
    new = repeat_value(scene, _builder(scene, op), op.operands[i])
    if new is None:
        return False
    op.operands[i] = new
    return True


def repeat_value(scene: Scene, b: Builder, like: SSAValue) -> SSAValue | None:
    """A value of a type that repeats a smaller, new input."""
    shape, choices = list(shape_of(like)), scene.choices
    if not shape:
        return None
    places = list(range(len(shape)))
    axis = choices.chosen(places)
    if choices.flag():
        places.remove(axis)
        smaller = [s for j, s in enumerate(shape) if j != axis]
    else:
        smaller = [1 if j == axis else s for j, s in enumerate(shape)]
    small = add_input(scene.program, with_shape(like, smaller), fresh_name(scene.program, "small"))
    return b.broadcast(small, shape, places)


# ---- ops ------------------------------------------------------------------------------------------------------------


@edit(2.5)
def another_op(scene: Scene) -> bool:
    """Replace an op by another one with the same operand and result types."""
    families: tuple[Sequence[type[GraphOp]], ...] = (BINARY, (*EXACT_UNARY, *FUNCTIONS))
    op = scene.op(lambda op: any(type(op) in family for family in families))
    if op is None:
        return False
    family = next(family for family in families if type(op) in family)
    kind = scene.choices.chosen([other for other in family if other is not type(op)])
    made = _builder(scene, op).emit(kind, *op.operands, types=op.result_types)
    op.results[0].replace_all_uses_with(made)
    Rewriter.erase_op(op)
    return True


@edit(1.5)
def left_out(scene: Scene) -> bool:
    """An op is left out: its operand of the same type stands for its result."""

    def has_same(op: Operation) -> bool:
        return len(op.results) == 1 and any(v.type == op.results[0].type for v in op.operands)

    op = scene.op(has_same)
    if op is None:
        return False
    op.results[0].replace_all_uses_with(scene.choices.chosen([v for v in op.operands if v.type == op.results[0].type]))
    Rewriter.erase_op(op)
    return True


@edit(2)
def nearly_the_same_again(scene: Scene) -> bool:
    """A copy of an op, with a property or an operand that is another, takes one of its uses or is an output."""
    op = scene.op(lambda op: isinstance(op, GraphOp) and bool(op.results) and is_tensor(op.results[0].type))
    if op is None:
        return False
    copy = op.clone()
    Rewriter.insert_op(copy, InsertPoint.after(op))
    if not scene.choices.flag(0.25):
        inner = Scene(scene.program, [copy, *(o for region in copy.regions for o in region.walk())], scene.choices)
        change = scene.choices.chosen((another_property, another_operand, exchanged_operands, another_constant))
        if not change(inner):
            return False
    uses = [use for use in op.results[0].uses if use.operation is not copy]
    if uses and scene.choices.flag(0.7):
        use = scene.choices.chosen(uses)
        use.operation.operands[use.index] = copy.results[0]
        return True
    return _is_returned(scene.program, copy)


def _is_returned(program: Program, op: Operation) -> bool:
    values = [r for r in op.results if is_tensor(r.type)]
    if op.parent is not program.block or not values:
        return False
    set_outputs(program, [*program.named_outputs(), *(("also", value) for value in values)])
    return True


@edit(2)
def another_user(scene: Scene) -> bool:
    """A value in the middle is used once more: returned, or by an op of its own."""
    op = scene.op(lambda op: op.parent is scene.program.block)
    if op is None:
        return False
    if scene.choices.flag(0.6):
        return _is_returned(scene.program, op)
    value = op.results[0]
    last = scene.program.block.last_op
    if not is_tensor(value.type) or last is None:
        return False
    made = _builder(scene, last).emit(scene.choices.chosen(EXACT_UNARY), value, types=(tensor_of(value),))
    set_outputs(scene.program, [*scene.program.named_outputs(), ("also", made)])
    return True


@edit(0.5)
def other_outputs(scene: Scene) -> bool:
    """An output less, an input as an output, or an output twice."""
    outputs, choices, program = scene.program.named_outputs(), scene.choices, scene.program
    kind = choices.integer(0, 2)
    if kind == 0 and len(outputs) > 1:
        outputs.pop(choices.integer(0, len(outputs) - 1))
    elif kind == 1 and program.block.args:
        outputs.append(("also", choices.chosen(list(program.block.args))))
    else:
        outputs.append(choices.chosen(outputs))
    set_outputs(program, outputs)
    return True


@edit(1.2)
def in_another_type(scene: Scene) -> bool:
    """An op works in another element type than those around it."""
    ops = (*BINARY, *EXACT_UNARY, *FUNCTIONS, hlo.DotGeneralOp, hlo.ReduceOp, hlo.ConvolutionOp)
    op = scene.op(lambda op: isinstance(op, ops) and len(op.results) == 1)
    if op is None or not all(is_tensor(v.type) for v in op.operands):
        return False
    text = dtype_text(op.results[0].type)
    other = scene.choices.chosen([t for t in ("f32", "f16", "bf16", "f64", "i32", "i8", "i64", "ui8") if t != text])
    if is_complex(text) or op.regions:
        return False
    b = _builder(scene, op)
    operands: list[Any] = [b.convert(v, other) if dtype_text(v.type) == text else v for v in op.operands]
    copy = op.clone()
    for i, value in enumerate(operands):
        copy.operands[i] = value
    retype(copy.results[0], with_element(copy.results[0], other))
    b.insert(copy)
    op.results[0].replace_all_uses_with(b.convert(copy.results[0], text))
    Rewriter.erase_op(op)
    return True


__all__ = ["EDITS", "Edit", "Scene", "edit", "pass_through", "repeat_value"]
