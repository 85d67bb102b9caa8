"""Changes of the whole program: a size, an element type, a symbol for a size, a region around ops, donated inputs."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsTerminator

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_attr, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, is_tensor, shape_of, static_shape, tensor
from gcomp.testing.generate.growth import element
from gcomp.testing.near.edits import Scene, edit
from gcomp.testing.near.types import map_elements, map_sizes
from gcomp.testing.reduce.signature import add_input, fresh_name

_TEXTS = ("f32", "i32", "f16", "bf16", "f64", "i8", "i64", "ui8", "i1", "complex<f32>", "ui32", "i16", "f8E5M2")


@edit(3)
def another_size(scene: Scene) -> bool:
    """A size is another wherever it stands: 0, 1, one more, one less, the same as another's."""
    sizes = _sizes(scene)
    if not sizes:
        return False
    size = scene.choices.chosen(sizes)
    others = [n for n in dict.fromkeys((1, 0, size + 1, size - 1, 2, 2 * size)) if 0 <= n != size]
    same = [n for n in sizes if n != size]
    return resize_everywhere(
        scene.program, size, scene.choices.chosen(same if same and scene.choices.flag(0.3) else others)
    )


def _sizes(scene: Scene) -> list[int]:
    values = [v for op in scene.ops for v in (*op.operands, *op.results) if is_tensor(v.type)]
    return [s for v in values for s in shape_of(v) if isinstance(s, int)]


def resize_everywhere(program: Program, old: int, new: int) -> bool:
    """Make a size another wherever it stands; False where data stands in the way."""
    before = {v: shape_of(v) for op in program.ops() for v in op.operands if is_tensor(v.type)}
    if not map_sizes(program, {old: new}):
        return False
    for op in program.ops():
        if isinstance(op, GraphOp):
            _fit(op, before, old, new)
    return True


def _fit(op: GraphOp, before: dict[SSAValue, tuple[Size, ...]], old: int, new: Size) -> None:
    """Bring the properties that hold sizes along: what reached to the end of a dimension still does."""
    if isinstance(op, hlo.SliceOp):
        starts, limits = list(sizes_of(op.start_indices)), list(sizes_of(op.limit_indices))
        for i, size in enumerate(before.get(op.operand, ())):
            if size == old and limits[i] == old:
                limits[i] = new
            elif size == old and isinstance(new, int) and isinstance(limits[i], int):
                limits[i] = min(cast(int, limits[i]), new)
            if isinstance(new, int) and size == old and isinstance(starts[i], int):
                starts[i] = min(cast(int, starts[i]), cast(int, limits[i]))
        op.properties["start_indices"], op.properties["limit_indices"] = sizes_attr(starts), sizes_attr(limits)
        return
    for name in SIZE_PROPERTIES:
        if name in op.properties and name in ("slice_sizes", "broadcast_sizes"):
            sizes = [new if s == old else s for s in sizes_of(op.properties[name])]
            op.properties[name] = sizes_attr(sizes)


@edit(2)
def symbolic_size(scene: Scene) -> bool:
    """A size is a symbol wherever it stands, or of the inputs of one rank only."""
    program, choices = scene.program, scene.choices
    sizes = _sizes(scene)
    if not sizes:
        return False
    size = choices.chosen(sizes)
    taken = set(program.ranges)
    name = next(n for n in ("n", "m", "k", "p", "q") if n not in taken)
    symbol = dims.symbol(name)
    before = {v: shape_of(v) for op in program.ops() for v in op.operands if is_tensor(v.type)}
    if not map_sizes(program, {size: symbol}):
        return False
    for op in program.ops():
        if isinstance(op, GraphOp):
            _fit(op, before, size, symbol)
    low = choices.chosen((0, 1, max(size, 1), 2))
    program.ranges = dims.Ranges({**program.ranges, name: dims.Range(low, max(low, size) + choices.integer(0, 2))})
    bare = any(symbol in shape_of(arg) for arg in program.block.args if is_tensor(arg.type))
    if not bare:
        add_input(program, tensor((symbol,), "f32"), fresh_name(program, "sized"))
    return True


@edit(2.5)
def another_element_type(scene: Scene) -> bool:
    """An element type is another wherever it stands."""
    values = [v for op in scene.ops for v in (*op.operands, *op.results) if is_tensor(v.type)]
    if not values:
        return False
    old = element_of(scene.choices.chosen(values))
    new = element(scene.choices.chosen(_TEXTS))
    if old == new:
        return False
    map_elements(scene.program, old, new)
    return True


@edit(0.6)
def given_away(scene: Scene) -> bool:
    """Other inputs may be given away."""
    ports = scene.program.inputs()
    if not ports:
        return False
    scene.program.donate({port.name for port in ports if scene.choices.flag()})
    return True


# ---- regions --------------------------------------------------------------------------------------------------------


@edit(2)
def inside_a_region(scene: Scene) -> bool:
    """An op, with some of what leads to it, moves into a branch or a loop; its result comes out of it."""
    op = scene.op(
        lambda op: op.parent is scene.program.block and len(op.results) == 1 and is_tensor(op.results[0].type)
    )
    if op is None:
        return False
    inner = _leading_to(op, scene.choices.integer(1, 6), set(scene.ops))
    result, block = op.results[0], Block()
    mapping: dict[SSAValue, SSAValue] = {}
    for one in inner:
        block.add_op(one.clone(mapping))
    block.add_op(hlo.ReturnOp.of(mapping[result], types=()))
    b = Builder(scene.program, InsertPoint.after(op))
    users = [use for use in result.uses if use.operation not in inner]
    if scene.choices.flag(0.6):
        made = _branch(scene, b, block, result)
    else:
        made = _loop(scene, b, block, result)
    if made is None:
        return False
    for use in users:
        use.operation.operands[use.index] = made
    _drop_dead(inner)
    return True


def _leading_to(op: Operation, count: int, near: set[Operation]) -> list[Operation]:
    """An op and so many of the makers of its operands, near ones first, in order."""
    chosen = {op}
    waiting = [op]
    while waiting and len(chosen) < count:
        current = waiting.pop(0)
        makers = [v.op for v in current.operands if isinstance(v, OpResult) and v.op.parent is op.parent]
        for maker in sorted(dict.fromkeys(makers), key=lambda m: m not in near):
            if maker not in chosen and len(chosen) < count:
                chosen.add(maker)
                waiting.append(maker)
    assert op.parent is not None
    return [one for one in op.parent.ops if one in chosen]


def _other(b: Builder, value: SSAValue) -> SSAValue | None:
    """Another value of the type, for the other branch."""
    shape = static_shape(value)
    return b.full(shape, 1, element_of(value)) if shape is not None else None


def _branch(scene: Scene, b: Builder, block: Block, value: SSAValue) -> SSAValue | None:
    pred = add_input(scene.program, tensor((), "i1"), fresh_name(scene.program, "taken"))
    otherwise = Block()
    with b.inside(otherwise):
        other = _other(b, value)
        if other is None:
            return None
        b.emit_all(hlo.ReturnOp, other, types=())
    regions = [Region(block), Region(otherwise)]
    if scene.choices.flag():
        regions.reverse()
    return b.emit_all(hlo.IfOp, pred, types=[value.type], regions=regions)[0]


def _loop(scene: Scene, b: Builder, block: Block, value: SSAValue) -> SSAValue | None:
    """A loop of two iterations around the ops, which carries only the result."""
    start = _other(b, value)
    if start is None:
        return None
    counter = tensor((), "i32")
    cond = Block(arg_types=[counter, value.type])
    zero, two = b.full((), 0, "i32"), b.full((), 2, "i32")
    with b.inside(cond):
        b.emit_all(hlo.ReturnOp, b.compare(cond.args[0], two, "LT"), types=())
    block.insert_arg(counter, 0)
    carried = block.insert_arg(value.type, 1)
    returned = block.last_op
    assert returned is not None
    computed = returned.operands[0]
    inner = Builder(scene.program, InsertPoint.before(returned))
    more = inner.add(block.args[0], inner.full((), 1, "i32"))
    if scene.choices.flag(0.4):
        # What the loop carries stands for an operand of the type.
        for one in block.ops:
            if one.has_trait(IsTerminator):
                break
            for i, operand in enumerate(one.operands):
                if operand.type == value.type:
                    one.operands[i] = carried
                    break
    returned.operands = [more, computed]
    regions = [Region(cond), Region(block)]
    return b.emit_all(hlo.WhileOp, zero, start, types=[counter, value.type], regions=regions)[1]


def _drop_dead(ops: list[Operation]) -> None:
    for op in reversed(ops):
        if all(r.first_use is None for r in op.results) and not isinstance(op, FuncOp):
            op.detach()
            op.erase(safe_erase=False)


__all__ = ["another_element_type", "another_size", "inside_a_region", "resize_everywhere", "symbolic_size"]
