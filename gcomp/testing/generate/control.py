"""Steps of control flow: if, case, while with captured values and carried swaps, nested; calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Region, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import Tensor, tensor, tensor_of
from gcomp.testing.generate.growth import Growth, step

_DEEPEST, _GOES_ON = 3, 0.7
_I32, _BOOL = tensor((), "i32"), tensor((), "i1")


def grow_inside(g: Growth, most: int = 3) -> None:
    """A few steps inside a region."""
    for _ in range(most):
        if not g.choices.span(lambda: g.choices.flag(_GOES_ON) and g.take(nested=g.depth < _DEEPEST)):
            break


def return_values(g: Growth, wanted: Sequence[Tensor]) -> list[SSAValue]:
    """A value of each type for a region to return, mostly made of the latest ones."""
    results: list[SSAValue] = []
    for position, type in enumerate(wanted):
        source = g.values[-1 - min(position, len(g.values) - 1)] if g.values else None
        use_latest = source is not None and g.choices.flag(0.7)
        results.append(g.coerced(source, type) if use_latest and source is not None else g.of_type(type))
    return results


def branch(g: Growth, wanted: Sequence[Tensor], first: SSAValue) -> Region:
    """A branch that goes on from `first` with what it captures."""
    block = Block()
    with g.within(block):
        g.values.append(first)
        grow_inside(g)
        g.b.emit_all(hlo.ReturnOp, *return_values(g, wanted), types=())
    return Region(block)


def _wanted_types(g: Growth, x: SSAValue) -> list[Tensor]:
    types = [tensor_of(x)]
    if g.choices.flag(0.3):
        types.append(tensor_of(g.pick()))
    return types


def _keep_results(g: Growth, results: Sequence[SSAValue]) -> None:
    for result in reversed(results):
        g.keep(result)


@step("if", hlo.IfOp, weight=1.4, nests=True)
def if_(g: Growth) -> None:
    """One or two results; the branches capture what is around them."""
    x = g.pick()
    wanted = _wanted_types(g, x)
    pred = g.of_type(_BOOL)
    regions = [branch(g, wanted, x) for _ in range(2)]
    _keep_results(g, g.b.emit_all(hlo.IfOp, pred, types=wanted, regions=regions))


@step("case", hlo.CaseOp, weight=0.9, nests=True)
def case(g: Growth) -> None:
    """One to three branches; the index may be out of bounds."""
    x = g.pick()
    wanted = _wanted_types(g, x)
    index = g.numbers(_I32) if g.choices.flag(0.3) else g.of_type(_I32)
    regions = [branch(g, wanted, x) for _ in range(g.choices.chosen((2, 1, 3)))]
    _keep_results(g, g.b.emit_all(hlo.CaseOp, index, types=wanted, regions=regions))


@step("while", hlo.WhileOp, weight=1.6, nests=True)
def while_(g: Growth) -> None:
    """A counted loop of at most three turns, which another carried value may end: it carries, swaps, and captures."""
    choices, x = g.choices, g.pick()
    carried = [x, *(g.like(x) for _ in range(choices.integer(0, 2)))]
    if choices.flag(0.2):
        carried.append(g.pick())
    if choices.flag(0.3):
        carried.append(g.of_type(_BOOL))
    limit = choices.integer(0, 3)
    bound = g.index(limit)
    if choices.flag(0.3):
        bound = g.b.emit(hlo.MinimumOp, g.of_type(_I32), bound, types=(_I32,))
    start = g.index(0)
    types = [_I32, *(tensor_of(v) for v in carried)]
    cond = Block(arg_types=types)
    with g.b.inside(cond):
        go_on = g.b.emit(hlo.CompareOp, cond.args[0], bound, types=(_BOOL,), comparison_direction="LT")
        if carried[-1].type is _BOOL and choices.flag(0.7):
            go_on = g.b.emit(hlo.AndOp, go_on, cond.args[-1], types=(_BOOL,))
        g.b.emit_all(hlo.ReturnOp, go_on, types=())
    body = _loop_body(g, types)
    results = g.b.emit_all(hlo.WhileOp, start, *carried, types=types, regions=(Region(cond), body))
    _keep_results(g, results if choices.flag(0.3) else results[1:])


def _loop_body(g: Growth, types: Sequence[Tensor]) -> Region:
    choices = g.choices
    body = Block(arg_types=types)
    with g.within(body):
        counter = g.b.emit(hlo.AddOp, body.args[0], g.index(1), types=(_I32,))
        passed: list[SSAValue] = list(body.args[1:])
        same = [i for i, v in enumerate(passed) if v.type is passed[0].type]
        order = choices.permutation(len(same)) if choices.flag(0.6) else list(range(len(same)))
        swapped: list[SSAValue] = list(passed)
        for i, j in zip(same, order, strict=True):
            swapped[i] = passed[same[j]]
        if choices.flag(0.7):
            at = choices.integer(0, len(passed) - 1)
            g.values.append(passed[choices.chosen(same) if at in same else at])
            grow_inside(g, 2)
            latest = g.values[-1]
            swapped[at] = g.coerced(latest, tensor_of(passed[at]))
        g.b.emit_all(hlo.ReturnOp, counter, *swapped, types=())
    return Region(body)


def function_of(g: Growth, inputs: Sequence[SSAValue], wanted: Sequence[Tensor] | None = None) -> FuncOp:
    """A private function of these inputs, grown inside; it returns its latest value, or values of the wanted types."""

    def body(args: list[SSAValue]) -> Sequence[SSAValue]:
        grow_inside(g)
        return return_values(g, wanted) if wanted is not None else [g.values[-1]]

    return function_with(g, inputs, body)


def function_with(
    g: Growth, inputs: Sequence[SSAValue], body: Callable[[list[SSAValue]], Sequence[SSAValue]]
) -> FuncOp:
    """A private function of these inputs' types, which returns what `body` makes of its arguments."""
    taken = sum(1 for _ in g.program.functions())
    function = FuncOp(f"f{taken}", ([v.type for v in inputs], []), visibility="private")
    block = function.body.block
    g.program.module.body.block.add_op(function)
    with g.within(block, sealed=True):
        g.b.insert(FuncReturnOp(*body(list(block.args))))
    function.update_function_type()
    return function


@step("call", CallOp, weight=0.4, nests=True)
def call(g: Growth) -> None:
    """A call of a private function, once or twice."""
    x = g.pick()
    inputs = [x, g.pick()] if g.choices.flag() else [x]
    function = function_of(g, inputs)
    result = None
    for _ in range(g.choices.chosen((1, 2))):
        made = CallOp(function.sym_name.data, inputs, function.function_type.outputs.data)
        g.b.insert(made)
        result = g.keep(made.results[0])
        if result.type is x.type:
            inputs = [result, *inputs[1:]]
