"""Programs that are hard for the memory planner: in-place updates, self-combinations, loops, donations."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Block, Region, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import FLOATS, INTEGERS, dtype_text, rank_of, shape_of, tensor, tensor_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.registry import parse_pipeline
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.growth import STEPS, Growth
from gcomp.testing.generate.passes import finishes, seeks
from gcomp.testing.generate.program import donate_inputs
from gcomp.testing.generate.regions import comparator

_I32, _BOOL = tensor((), "i32"), tensor((), "i1")


@seeks("plan-memory", weight=2)
def shifted(g: Growth) -> None:
    """A value combined with shifted elements of itself: it must not be written in place, although it is dead after."""
    x = g.emit(hlo.MaximumOp, *[g.pick(least=1)] * 2)
    _change_value(g, x)


@seeks("plan-memory", weight=3)
def changed_in_a_loop(g: Growth) -> None:
    """A loop of two turns that changes one or two values, and may pass each other's on."""
    choices, x = g.choices, g.pick(least=1)
    carried = [g.b.emit(hlo.MaximumOp, x, x), g.like(x)][: choices.integer(1, 2)]
    types = [_I32, *(tensor_of(v) for v in carried)]
    cond, body = Block(arg_types=types), Block(arg_types=types)
    start, bound = g.index(0), g.index(2)
    with g.b.inside(cond):
        g.b.emit_all(hlo.ReturnOp, g.b.emit(hlo.CompareOp, cond.args[0], bound, types=(_BOOL,),
                                            comparison_direction="LT"), types=())  # fmt: skip
    with g.within(body):
        counter = g.b.emit(hlo.AddOp, body.args[0], g.index(1), types=(_I32,))
        after = [_change_value(g, v) for v in body.args[1:]]
        if choices.flag(0.3):
            after.reverse()
        if choices.flag(0.3):
            after[0] = g.b.emit(hlo.MaximumOp, after[0], carried[0])
        g.b.emit_all(hlo.ReturnOp, counter, *after, types=())
    regions = (Region(cond), Region(body))
    for result in g.b.emit_all(hlo.WhileOp, start, *carried, types=types, regions=regions)[1:]:
        g.keep(result)


@seeks("plan-memory", weight=2)
def captured_by_a_body(g: Growth) -> None:
    """A scalar that was computed, which only the body of a map over something else reads."""
    x = g.pick(FLOATS | INTEGERS)
    scalar = tensor((), dtype_text(x.type))
    around = g.b.emit(hlo.MaximumOp, *[g.of_type(scalar)] * 2)
    block = Block(arg_types=[scalar])
    with g.b.inside(block):
        g.b.emit_all(hlo.ReturnOp, g.b.emit(hlo.MaximumOp, block.args[0], around), types=())
    wide = g.b.emit(hlo.MaximumOp, x, g.like(x))
    g.emit(hlo.MapOp, wide, types=(x.type,), regions=(Region(block),), dimensions=list(range(rank_of(x))))


@seeks("fuse", weight=2)
def constants_around(g: Growth) -> None:
    """Branches that read constants from around them, some of them repeated, each in an order of its own."""
    choices, x = g.choices, g.pick(FLOATS | INTEGERS)
    around = [g.splat(tensor_of(x), number, broadcast=choices.flag()) for number in (2, 3)]
    regions: list[Region] = []
    for _ in range(2):
        block = Block()
        with g.within(block):
            result = x
            for i in choices.permutation(2):
                result = g.b.emit(choices.chosen((hlo.AddOp, hlo.SubtractOp)), result, around[i], types=(x.type,))
            g.b.emit_all(hlo.ReturnOp, result, types=())
        regions.append(Region(block))
    g.keep(g.b.emit_all(hlo.IfOp, g.of_type(_BOOL), types=(x.type,), regions=regions)[0])


@seeks("rematerialize", weight=12)
def read_late(g: Growth) -> None:
    """What is cheap to make, alive while others come and go, and read again, itself or as another shape."""
    x = g.fresh(tensor_of(g.pick(least=1, most=2)))
    shape, element = shape_of(x), dtype_text(x.type)
    high = tensor((32, *shape), element)
    wide = g.b.emit(hlo.BroadcastInDimOp, x, types=(high,), broadcast_dimensions=[*range(1, len(shape) + 1)])
    kind = g.choices.integer(0, 3)
    if kind == 0:
        wide = _random_like(g, wide)
    elif kind == 1:
        wide = _sort_with_another(g, wide)
    late = g.b.emit(hlo.MinimumOp, wide, wide) if g.choices.flag(0.3) else wide
    # What needs more than an op of two results does, so that such an op may run again.
    tall = tensor((96, *shape), element)
    wide = g.b.emit(hlo.ConcatenateOp, wide, wide, wide, types=(tall,), dimension=0)
    for _ in range(g.choices.integer(2, 3)):
        wide = g.b.emit(hlo.ReverseOp, wide, types=(tall,), dimensions=[0])
    starts, limits = [0] * (1 + len(shape)), [32, *shape]
    wide = g.b.emit(hlo.SliceOp, wide, start_indices=starts, limit_indices=limits, strides=[1] * len(limits))
    wide = g.b.emit(hlo.MaximumOp, wide, late)
    limits = [1, *shape]
    g.emit(hlo.SliceOp, wide, start_indices=starts, limit_indices=limits, strides=[1] * len(limits))


def _random_like(g: Growth, x: SSAValue) -> SSAValue:
    """Random numbers of a value's type, where there are any: they may not be drawn again."""
    before = g.values[-1]
    STEPS["random-numbers"].grow(g)
    found = g.values[-1]
    return g.coerced(found, tensor_of(x)) if found is not before else x


def _sort_with_another(g: Growth, x: SSAValue) -> SSAValue:
    """A value in the order that sorting puts it, or another of its type beside it, into: two results of one type."""
    texts = [dtype_text(x.type)] * 2
    results = g.b.emit_all(hlo.SortOp, x, g.like(x), types=[x.type] * 2, regions=(comparator(g, texts),),
                           dimension=g.choices.integer(0, rank_of(x) - 1), is_stable=True)  # fmt: skip
    return g.choices.chosen(results)


def _change_value(g: Growth, x: SSAValue) -> SSAValue:
    """A value reversed, shifted by one, updated with a slice of its own, or changed element by element."""
    shape, way = shape_of(x), g.choices.integer(0, 3)
    first = shape[0]
    if way == 0:
        return g.emit(hlo.MaximumOp, x, g.like(x))
    if way == 1 or not isinstance(first, int) or first < 2:
        return g.emit(hlo.ReverseOp, x, types=(x.type,), dimensions=[g.choices.integer(0, rank_of(x) - 1)])
    zeros = [0] * len(shape)
    part = g.b.emit(
        hlo.SliceOp, x, start_indices=zeros, limit_indices=[first - 1, *shape[1:]], strides=[1] * len(shape)
    )
    if way == 2:
        part = g.b.emit(hlo.MaximumOp, part, part)
    at = [g.index(1), *(g.index(0) for _ in shape[1:])]
    return g.emit(hlo.DynamicUpdateSliceOp, x, part, *at, types=(x.type,))


@finishes("order-for-memory")
@finishes("plan-memory")
@finishes("rematerialize")
def given_away(program: Program, choices: Choices) -> Program:
    """The program with some inputs donated, as kernels or as ops by themselves."""
    program = donate_inputs(program, choices)
    if choices.flag(0.4):
        _fuse().run(program, PassContext())
    return program


@finishes("pack-convolution-weights")
def in_kernels(program: Program, choices: Choices) -> Program:
    """The program as kernels."""
    _fuse().run(program, PassContext())
    return program


@cache
def _fuse() -> Pass:
    (step,) = parse_pipeline("fuse")
    return step
