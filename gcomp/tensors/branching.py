"""Control flow in a trace: what branches and loops carry, and how their types are made to agree.

A leaf that all branches leave equal stays what it is for Python. Others become tensors; Python numbers take the type of
the tensor on the other side, by the rules of `promotion`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.dtypes import text_of
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.printing import PrintOp
from gcomp.ir.types import Tensor as TensorType
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor, tensor_of
from gcomp.tensors.lifting import array_of, cast_value, lift_operands, truth
from gcomp.tensors.promotion import check_scalar, common, default_of, name_of
from gcomp.tensors.tensor import Tensor

Leaf: TypeAlias = Any
"""A tensor, an array, a Python number, or anything else, which is static."""
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True)
class Filler:
    """A placeholder for a leaf that is assigned before it is read: zeros of its type in other branches."""

    type: TensorType
    weak: bool


def is_number(leaf: Leaf) -> bool:
    """Whether a leaf is a Python number."""
    return type(leaf) in _NUMBERS


def is_static(leaf: Leaf) -> bool:
    """Whether a leaf is neither a tensor, nor an array, nor a number."""
    return not (isinstance(leaf, Tensor | np.ndarray | np.generic | Filler) or is_number(leaf))


def predicate(b: Builder, test: Any) -> SSAValue:
    """A truth as one boolean. UsageError for a tensor of many elements."""
    _, (value,) = lift_operands(test, b=b)
    if rank_of(value):
        raise UsageError(
            f"a tensor of shape {shape_of(value)} decides", why="one truth is needed", fix="reduce it: `any`, `all`"
        )
    return truth(b, value)


# ---- branches -------------------------------------------------------------------------------------------------------


class Branch:
    """A block under construction, and the leaves that it gives; `close` ends it."""

    def __init__(self, b: Builder, leaves: Callable[[], Sequence[Leaf]]) -> None:
        self._b, self.block = b, Block()
        with b.inside(self.block):
            self.leaves = list(leaves())

    def close(self, types: Sequence[TensorType], kept: Sequence[int]) -> Region:
        """The region that returns the leaves at `kept` as values of these types."""
        with self._b.inside(self.block):
            values = [as_type(self._b, self.leaves[i], t) for i, t in zip(kept, types, strict=True)]
            self._b.insert(hlo.ReturnOp.of(*values))
        return Region(self.block)


def choose(
    b: Builder, op: type[hlo.IfOp] | type[hlo.CaseOp], index: SSAValue, branches: Sequence[Branch], names: Sequence[str]
) -> list[Leaf]:
    """The leaves of the branch that an index selects. UsageError, with a name, where branches give different types."""
    columns = list(zip(*(branch.leaves for branch in branches), strict=True))
    kept = [i for i, column in enumerate(columns) if not is_same(column)]
    specs = [join_leaves(b, columns[i], names[i]) for i in kept]
    regions = [branch.close([t for t, _ in specs], kept) for branch in branches]
    results = [column[0] for column in columns]
    if kept or any(isinstance(inner, PrintOp) for region in regions for inner in region.walk()):
        values = b.emit_all(op, index, types=[t for t, _ in specs], regions=regions)
        for i, value, (_, weak) in zip(kept, values, specs, strict=True):
            results[i] = Tensor(b, value, weak=weak)
    return results


def is_same(column: Sequence[Leaf]) -> bool:
    """Whether a leaf is the same in all branches: one object, or equal Python values."""
    first = column[0]
    return all(leaf is first or same_constant(first, leaf) for leaf in column)


def same_constant(a: Leaf, b: Leaf) -> bool:
    """Whether two leaves are one object, or Python values of one type that are equal to the bit."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Tensor | np.ndarray | Filler):
        return False
    if isinstance(a, float | complex):
        return repr(a) == repr(b)
    try:
        return bool(a == b)
    except Exception:  # of a user's own class
        return False


def join_leaves(b: Builder, column: Sequence[Leaf], name: str) -> tuple[TensorType, bool]:
    """The type that a leaf has after branches that give these, and whether it is weak."""
    if any(map(is_static, column)):
        shown = ", ".join(describe_leaf(leaf) for leaf in column)
        raise UsageError(
            f"the branches give {name} values that are no tensors and differ",
            why=shown,
            fix=f"give {name} a tensor or number in each branch",
        )
    types = [type_of(b, leaf) for leaf in column]
    strong = {dtype_text(t) for t, weak in types if not weak}
    text = common(tuple(strong)[:1], tuple(dtype_text(t) for t, weak in types if weak))
    shapes = {shape_of(t) for t, _ in types}
    if len(strong) > 1 or len(shapes) > 1 or (strong and text not in strong):
        raise UsageError(
            f"the branches give {name} different types",
            why=" and ".join(dict.fromkeys(describe_leaf(leaf) for leaf in column)),
            fix="make them equal: `astype`, `reshape`, or a number of the right kind",
        )
    return tensor(next(iter(shapes)), text), not strong


def type_of(b: Builder, leaf: Leaf) -> tuple[TensorType, bool]:
    """The tensor type of a leaf, and whether it is weak."""
    if is_number(leaf):
        return tensor((), default_of(leaf)), True
    if isinstance(leaf, Filler):
        return leaf.type, leaf.weak
    if isinstance(leaf, Tensor):
        return tensor_of(leaf.value), leaf.weak
    array = array_of(leaf)
    return tensor(array.shape, text_of(array.dtype)), False


def as_type(b: Builder, leaf: Leaf, type: TensorType) -> SSAValue:
    """A leaf as a value of a type that it can have."""
    if isinstance(leaf, Filler):
        return b.full(shape_of(type), 0, element_of(type))
    if is_number(leaf):
        return b.constant(check_scalar(leaf, dtype_text(type)))
    return cast_value(b, lift_operands(leaf, b=b)[1][0], dtype_text(type))


def describe_leaf(leaf: Leaf) -> str:
    """A leaf for an error message."""
    if isinstance(leaf, Tensor):
        return f"{name_of(leaf.element)}[{', '.join(map(str, leaf.shape))}]" + (" (a number)" if leaf.weak else "")
    if is_number(leaf):
        return f"the number {leaf!r}"
    return f"a {type(leaf).__name__}"


# ---- loops ----------------------------------------------------------------------------------------------------------


class Iteration(NamedTuple):
    """One iteration of a loop: the types of what it carries and whether they are weak (None: static), and its body."""

    specs: list[tuple[TensorType, bool] | None]
    block: Block
    after: list[Leaf]

    def region(self, b: Builder) -> Region:
        """The body as a region."""
        with b.inside(self.block):
            b.insert(hlo.ReturnOp.of(*values_of(b, self.after, self.specs)))
        return Region(self.block)


def values_of(b: Builder, leaves: Sequence[Leaf], specs: Sequence[tuple[TensorType, bool] | None]) -> list[SSAValue]:
    """Leaves as values of the types that a loop carries; static ones left out."""
    return [as_type(b, leaf, s[0]) for leaf, s in zip(leaves, specs, strict=True) if s is not None]


def settle_types(
    b: Builder, before: Sequence[Leaf], body: Callable[[list[Leaf]], Sequence[Leaf]], names: Sequence[str]
) -> Iteration:
    """The iteration of a loop whose types do not change: traced until Python numbers have taken their types."""
    specs = [None if is_static(leaf) else type_of(b, leaf) for leaf in before]
    while True:
        block = Block(arg_types=[s[0] for s in specs if s is not None])
        with b.inside(block):
            after = list(body(carried_leaves(b, before, specs, block.args)))
        wanted = [_next(b, old, new, spec, n) for old, new, spec, n in zip(before, after, specs, names, strict=True)]
        if wanted == specs:
            return Iteration(specs, block, after)
        specs = wanted


def carried_leaves(
    b: Builder, before: Sequence[Leaf], specs: Sequence[tuple[TensorType, bool] | None], args: Sequence[SSAValue]
) -> list[Leaf]:
    """The leaves inside a loop: its arguments, and what is static."""
    values = iter(args)
    return [leaf if s is None else Tensor(b, next(values), weak=s[1]) for leaf, s in zip(before, specs, strict=True)]


def _next(
    b: Builder, before: Leaf, after: Leaf, spec: tuple[TensorType, bool] | None, name: str
) -> tuple[TensorType, bool] | None:
    """The type of a carried leaf, now that one iteration made it `after`."""
    if spec is None or is_static(after):
        if spec is None and same_constant(before, after):
            return None
        raise UsageError(
            f"the loop changes {name}, which is no tensor",
            why=f"it is {describe_leaf(before)} before an iteration, and {describe_leaf(after)} after it",
            fix=f"make {name} a tensor before the loop",
        )
    (old, weak), (new, new_weak) = spec, type_of(b, after)
    if old == new and (weak or not new_weak):
        return old, weak and new_weak
    if shape_of(old) == shape_of(new):
        texts = dtype_text(old), dtype_text(new)
        if weak and not new_weak and common((texts[1],), (texts[0],)) == texts[1]:
            return new, False
        if new_weak and not weak and common((texts[0],), (texts[1],)) == texts[0]:
            return old, False
        if weak and new_weak:
            return tensor((), common((), texts)), True
    raise UsageError(
        f"the loop changes the type of {name}",
        why=f"it is {_type_text(old)} before an iteration, and {_type_text(new)} after it",
        fix=f"give {name} its final type and shape before the loop: `astype`, `reshape`",
    )


def _type_text(type: TensorType) -> str:
    return f"{name_of(dtype_text(type))}[{', '.join(map(str, shape_of(type)))}]"


def loop(
    b: Builder,
    before: Sequence[Leaf],
    test: Callable[[list[Leaf]], Any],
    body: Callable[[list[Leaf]], Sequence[Leaf]],
    names: Sequence[str],
) -> list[Leaf]:
    """The leaves after iterations of the body for as long as the test holds."""
    iteration = settle_types(b, before, body, names)
    specs = iteration.specs
    types = [s[0] for s in specs if s is not None]
    start = values_of(b, before, specs)

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [predicate(b, test(carried_leaves(b, before, specs, args)))]

    if not types:
        raise UsageError("nothing that the loop's condition depends on changes", fix="it would never end")
    regions = [b.region(types, condition), iteration.region(b)]
    return carried_leaves(b, before, specs, b.emit_all(hlo.WhileOp, *start, types=types, regions=regions))
