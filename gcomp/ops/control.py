"""Control flow by functions: at once where the value that decides is known, else in the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from gcomp.dims import Size
from gcomp.errors import UsageError
from gcomp.ir import looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import Tensor as TensorType
from gcomp.ir.types import element_of, shape_of, tensor, tensor_of
from gcomp.ops.movement import stack
from gcomp.tensors import trees
from gcomp.tensors.branching import (
    Branch,
    as_type,
    carried_leaves,
    choose,
    loop,
    predicate,
    settle_types,
    values_of,
)
from gcomp.tensors.eager import Eager
from gcomp.tensors.lifting import builder_of, lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.site import users_code
from gcomp.tensors.tensor import ArrayLike, Tensor

Tree = Any
"""A tensor or number, or a nested structure of them."""


def _run(function: Callable[..., Tree], *args: Tree) -> Tree:
    with users_code():
        return function(*args)


def _leaves(trees_: Sequence[Tree]) -> list[Any]:
    return [leaf for tree in trees_ for leaf in trees.flatten(tree)[0]]


def _names(tree: Tree, root: str) -> list[str]:
    return [name for name, _ in trees.paths(tree, root)]


@operation
def cond(
    pred: ArrayLike, on_true: Callable[..., Tree], on_false: Callable[..., Tree], *operands: Tree
) -> Tree:  # fmt: skip
    """What `on_true(*operands)` gives where `pred` holds, else what `on_false(*operands)` does: equal types."""
    b = builder_of(pred, *_leaves(operands))
    if isinstance(b, Eager):
        return _run(on_true if predicate_known(pred) else on_false, *operands)
    return _branches(b, hlo.IfOp, predicate(b, pred), [on_true, on_false], operands)


def predicate_known(pred: ArrayLike) -> bool:
    """A truth that is known."""
    return bool(taken_tensor(pred))


def taken_tensor(x: ArrayLike) -> Tensor:
    """An operand as a tensor."""
    b, (value,) = lift_operands(x)
    return Tensor(b, value)


@operation
def switch(index: ArrayLike, branches: Sequence[Callable[..., Tree]], *operands: Tree) -> Tree:
    """What the branch of an index gives; the last one's where the index is out of range."""
    if not branches:
        raise UsageError("there are no branches")
    b = builder_of(index, *_leaves(operands))
    if isinstance(b, Eager):
        place = int(taken_tensor(index))
        return _run(branches[place if 0 <= place < len(branches) else -1], *operands)
    return _branches(b, hlo.CaseOp, b.convert(lift_operands(index, b=b)[1][0], "i32"), branches, operands)


def _branches(
    b: Builder, op: type[hlo.IfOp] | type[hlo.CaseOp], index: Any, functions: Sequence[Callable[..., Tree]],
    operands: Sequence[Tree],
) -> Tree:  # fmt: skip
    structures: list[Any] = []
    names: list[str] = []

    def leaves_of(function: Callable[..., Tree]) -> list[Any]:
        result = _run(function, *operands)
        leaves, structure = trees.flatten(result)
        structures.append(structure)
        names[:] = _names(result, "the result")
        return leaves

    branches = [Branch(b, lambda function=function: leaves_of(function)) for function in functions]
    if any(s != structures[0] for s in structures):
        raise UsageError("the branches give different structures", why=" and ".join(map(repr, structures)))
    return trees.unflatten(structures[0], choose(b, op, index, branches, names))


# ---- loops ----------------------------------------------------------------------------------------------------------


@operation
def while_loop(condition: Callable[[Tree], ArrayLike], body: Callable[[Tree], Tree], state: Tree) -> Tree:
    """The state after `state = body(state)` for as long as `condition(state)` holds. Its types do not change."""
    leaves, structure = trees.flatten(state)
    b = builder_of(*leaves)

    def iteration(values: list[Any]) -> list[Any]:
        result = _run(body, trees.unflatten(structure, values))
        after, own = trees.flatten(result)
        if own != structure:
            raise UsageError("the loop changes the structure of its state", why=f"{structure!r} becomes {own!r}")
        return after

    def test(values: list[Any]) -> ArrayLike:
        return _run(condition, trees.unflatten(structure, values))

    if not isinstance(b, Eager):
        return trees.unflatten(structure, loop(b, leaves, test, iteration, _names(state, "the state")))
    while predicate_known(test(leaves)):
        leaves = iteration(leaves)
    return trees.unflatten(structure, leaves)


@operation
def fori_loop(start: ArrayLike, stop: ArrayLike, body: Callable[[Any, Tree], Tree], state: Tree) -> Tree:
    """The state after `state = body(i, state)` for each i from start up to stop, which is not included."""
    _, found = while_loop(lambda s: s[0] < stop, lambda s: (s[0] + 1, body(s[0], s[1])), (start, state))
    return found


@operation
def scan(
    step: Callable[[Tree, Tree], tuple[Tree, Tree]], state: Tree, xs: Tree, *, length: Size | None = None,
    reverse: bool = False,
) -> tuple[Tree, Tree]:  # fmt: skip
    """The state after `state, y = step(state, x)` for each item x along the leading dimension of xs, and all y stacked.

    In reverse the last item comes first; what it gives stays in its place. Without xs (None), `length` says how often.
    """
    leaves, structure = trees.flatten(state)
    items, item_structure = trees.flatten(xs)
    b = builder_of(*leaves, *items)
    _, stacked = lift_operands(*items, b=b)
    sizes = {shape_of(v)[0] if shape_of(v) else None for v in stacked} | ({length} - {None})
    if len(sizes) != 1 or None in sizes:
        raise UsageError("the items of a scan have no common length", why=f"the lengths are {sizes}")
    count: Size = next(s for s in sizes if s is not None)
    made: list[Any] = []

    def iteration(values: Sequence[Any], parts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = trees.unflatten(structure, values), trees.unflatten(item_structure, parts)
        pair: Any = _run(step, *given)
        if not isinstance(pair, tuple) or len(cast("tuple[Any, ...]", pair)) != 2:
            raise UsageError("a step of a scan returns a pair: the state, and what to stack")
        (after, own), (ys, outputs) = (trees.flatten(part) for part in cast("tuple[Any, Any]", pair))
        if own != structure:
            raise UsageError("a scan changes the structure of its state", why=f"{structure!r} becomes {own!r}")
        made[:] = [outputs]
        return after, ys

    if isinstance(b, Eager):
        after, ys = _scan_at_once(leaves, [Tensor(b, v) for v in stacked], int(str(count)), iteration, reverse)
    else:
        after, ys = _scan_by_loop(b, leaves, stacked, count, iteration, _names(state, "the state"), reverse)
    if not made:
        raise UsageError("a scan of no items cannot tell what its step gives", fix="scan at least one item")
    return trees.unflatten(structure, after), trees.unflatten(made[0], ys)


Iteration = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


def _scan_at_once(
    leaves: list[Any], stacked: Sequence[Tensor], count: int, iteration: Iteration, reverse: bool
) -> tuple[list[Any], list[Any]]:
    """A scan at once."""
    rows: list[list[Any]] = []
    for i in reversed(range(count)) if reverse else range(count):
        leaves, ys = iteration(leaves, [x[i] for x in stacked])
        rows.append(ys)
    return leaves, [stack(column) for column in zip(*(rows[::-1] if reverse else rows), strict=True)]


def _scan_by_loop(
    b: Builder, leaves: list[Any], stacked: Sequence[Any], count: Size, iteration: Iteration, names: Sequence[str],
    reverse: bool,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """A scan as a loop of the program."""
    outputs: list[TensorType] = []
    sample = [Tensor(b, b.reshape(b.slice_axis(v, 0, 0, 1), shape_of(v)[1:])) for v in stacked]

    def body(values: Sequence[Any]) -> list[Any]:
        after, ys = iteration(values, sample)
        outputs[:] = [tensor_of(lift_operands(y, b=b)[1][0]) for y in ys]
        return after

    specs = settle_types(b, leaves, body, names).specs
    start = values_of(b, leaves, specs)

    def step(carried: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        after, ys = iteration(carried_leaves(b, leaves, specs, carried), [Tensor(b, p) for p in parts])
        return [*values_of(b, after, specs), *(as_type(b, y, t) for y, t in zip(ys, outputs, strict=True))]

    stacks = [tensor((count, *shape_of(t)), element_of(t)) for t in outputs]
    results = looping.scan(b, count, start, stacked, stacks, step, reverse=reverse)
    carried, ys = results[: len(start)], results[len(start) :]
    return carried_leaves(b, leaves, specs, carried), [Tensor(b, y) for y in ys]


__all__ = ["cond", "fori_loop", "scan", "switch", "while_loop"]
