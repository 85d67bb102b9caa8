"""What a left side leaves open: for each op, the types of its operands and the properties that it may have.

One row an op. `wants` says what the next operand may be, given those before it; `results` all properties and result
types. A row names every permutation, every list of dimensions and every kind of size; sizes are symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations, product
from typing import Any, TypeAlias

from xdsl.ir import Block, Region

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_float, real_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import ELEMENT_TYPES, tensor
from gcomp.testing.prove.unknown import WINDOW, pad_sizes, window_sizes

Shape = tuple[Size, ...]


@dataclass(frozen=True)
class Type:
    """A tensor type: sizes, and the text of the element type."""

    shape: Shape
    element: str

    def __str__(self) -> str:
        return f"{self.element}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Want:
    """What a term's type must be, as far as it is known."""

    shape: Shape | None = None
    element: str | None = None

    def allows(self, type: Type) -> bool:
        """Whether a type is as wanted."""
        return self.shape in (None, type.shape) and self.element in (None, type.element)


ANY = Want()


@dataclass(frozen=True)
class Scope:
    """What is enumerated: shapes of free values, one element type for them, and the highest rank of results."""

    shapes: tuple[Shape, ...]
    element: str
    max_rank: int = 4
    reads_types: bool = False
    """Whether the rule looks at types, so that sizes that happen to be equal matter."""
    want: Want = ANY
    """What the result at hand must be."""


Prior = Mapping[int, Type]
Wants = Callable[[int, Want, Prior], Iterator[Want]]
Results = Callable[[Sequence[Type], Scope, str], Iterator[tuple[dict[str, Any], Type]]]


Sampled = Callable[[Mapping[str, Any], Sequence[Type]], bool]


def _never(properties: Mapping[str, Any], types: Sequence[Type]) -> bool:
    return False


def _none(types: Sequence[Type]) -> Sequence[Region]:
    return ()


@dataclass(frozen=True)
class Row:
    """How an op's operands and results are enumerated.

    `sampled` says of properties that others like them exist, which are enumerated as unknown numbers only; `bound` is
    how far it goes without these. The types of the other operands follow from that of `first`. `regions` makes the op's
    regions for operands of some types.
    """

    wants: Wants
    results: Results
    sampled: Sampled = _never
    bound: str = ""
    first: int = 0
    regions: Callable[[Sequence[Type]], Sequence[Region]] = _none


def symbols(name: str, count: int) -> Shape:
    """`count` symbolic sizes: name0, name1, ..."""
    return tuple(dims.symbol(f"{name}{i}") for i in range(count))


# ---- elementwise -------------------------------------------------------------------------------------------------


def _like_first(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = next(iter(prior.values()), None)
    yield want if known is None else Want(known.shape, known.element)


def _same(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    yield {}, types[0]


def _real(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    yield {}, Type(types[0].shape, real_of(types[0].element))


def _part(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = next(iter(prior.values()), None)
    yield from [Want(want.shape, e) for e in _PARTS] if known is None else [Want(known.shape, known.element)]


_PARTS = ("f32", "f64")


def _complex(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    if types[0].element in _PARTS:
        yield {}, Type(types[0].shape, f"complex<{types[0].element}>")


def _any_element(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = next(iter(prior.values()), None)
    yield Want(want.shape) if known is None else Want(known.shape, known.element)


def _boolean(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    yield {}, Type(types[0].shape, "i1")


def _compare_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    element = types[0].element
    kinds = ["FLOAT", "TOTALORDER"] if is_float(element) else ["FLOAT"] if is_complex(element) else [None]
    for kind, direction in product(kinds, ("EQ", "NE", "GE", "GT", "LE", "LT")):
        yield {"comparison_direction": direction, "compare_type": kind}, Type(types[0].shape, "i1")


_FEW_ELEMENTS = ("f32", "bf16", "i32", "i1")


def _convert_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    """To every type at ranks 0 and 1, above that to few ones and its own."""
    shape, own = types[0].shape, types[0].element
    for element in ELEMENT_TYPES if len(shape) < 2 else dict.fromkeys((own, *_FEW_ELEMENTS)):
        yield {}, Type(shape, element)


def _select_wants(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    branch = next((t for i, t in prior.items() if i), None)
    if position:
        yield want if branch is None else Want(branch.shape, branch.element)
    elif branch is None:
        yield Want(want.shape, "i1")
    else:
        yield from dict.fromkeys((Want(branch.shape, "i1"), Want((), "i1")))


def _second(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    yield {}, types[1]


def _clamp_wants(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = prior.get(1)
    if known is None:
        yield want if position == 1 else ANY
    else:
        yield from dict.fromkeys((Want(known.shape, known.element), Want((), known.element)))


# ---- movement ----------------------------------------------------------------------------------------------------


def _free(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    yield Want(None, want.element)


def _permute_wants(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    if want.shape is None:
        yield want
    else:
        yield from (Want(shape, want.element) for shape in dict.fromkeys(permutations(want.shape)))


def _transpose_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    shape = types[0].shape
    for order in permutations(range(len(shape))):
        yield {"permutation": order}, Type(tuple(shape[i] for i in order), types[0].element)


def _reshape_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    shape = types[0].shape
    if scope.want.shape is not None:
        yield {}, Type(scope.want.shape, types[0].element)
        return
    targets: list[Shape] = [symbols(path, rank) for rank in range(scope.max_rank + 1)]
    targets += [shape, shape[::-1], (1, *shape), (*shape, 1), (dims.product(shape),)]
    if len(shape) > 1:
        targets.append((*shape[:-2], dims.product(shape[-2:])))
    for target in dict.fromkeys(targets):
        if len(target) <= scope.max_rank:
            yield {}, Type(target, types[0].element)


def _broadcast(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    shape = types[0].shape
    if scope.want.shape is not None:
        for where in permutations(range(len(scope.want.shape)), len(shape)):
            yield {"broadcast_dimensions": where}, Type(scope.want.shape, types[0].element)
        return
    for rank in range(len(shape), scope.max_rank + 1):
        for where in permutations(range(rank), len(shape)):
            fresh = list(symbols(path, rank))
            yield {"broadcast_dimensions": where}, Type(tuple(fresh), types[0].element)
            if scope.reads_types:
                for size, dimension in zip(shape, where, strict=True):
                    fresh[dimension] = size
                yield {"broadcast_dimensions": where}, Type(tuple(fresh), types[0].element)


def _reverse_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    rank = range(len(types[0].shape))
    for chosen in chain.from_iterable(combinations(rank, n) for n in range(len(rank) + 1)):
        yield {"dimensions": chosen}, types[0]
        if len(chosen) > 1:
            yield {"dimensions": chosen[::-1]}, types[0]


def _join_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    first = types[0].shape
    for axis in range(len(first)):
        rest = {(*t.shape[:axis], *t.shape[axis + 1 :]) for t in types}
        if all(len(t.shape) == len(first) for t in types) and len(rest) == 1:
            total: Size = 0
            for type in types:
                total = total + type.shape[axis]
            yield {"dimension": axis}, Type((*first[:axis], total, *first[axis + 1 :]), types[0].element)


def _joinable(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = next(iter(prior.values()), None)
    if known is None:
        yield Want(None, want.element)
        return
    for axis in range(len(known.shape)):
        size = symbols(f"c{position}_", 1)
        yield Want((*known.shape[:axis], *size, *known.shape[axis + 1 :]), known.element)


_Kind: TypeAlias = "tuple[Any, ...]"
"""What a property, or several, and the result's size are along one dimension."""


def _mix_kinds(kinds: Sequence[Sequence[_Kind]]) -> Iterator[tuple[_Kind, ...]]:
    """One kind for each dimension: every one at rank 1, else pairs of some, the same everywhere, and neighbours."""
    if len(kinds) <= 2:
        yield from product(*[k[:3] if len(kinds) == 2 else k for k in kinds])
    if len(kinds) < 2:
        return
    for start in range(max(map(len, kinds))):
        for step in (0, 1) if start % 2 else (0,):
            yield tuple(k[(start + step * i) % len(k)] for i, k in enumerate(kinds))


_STRIDES = (1, 2)


def _slice_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    """Along each dimension: everything, or a range with symbolic ends and a stride of which nothing is known either."""
    shape = types[0].shape
    for chosen in _mix_kinds([_slices(size, f"{path}s{i}") for i, size in enumerate(shape)]):
        starts, limits, strides, counts = (tuple(c[j] for c in chosen) for j in range(4))
        yield {"start_indices": starts, "limit_indices": limits, "strides": strides}, Type(counts, types[0].element)


def _slices(size: Size, name: str) -> list[_Kind]:
    """Start, limit, stride and number of elements.

    The first, second and third are all that there is: a stride of 1, no element, or `more + 1` of them, `over` before
    the limit. The rest are easily shown where a rule is wrong.
    """
    start, limit, more, over, rest = symbols(name, 5)
    stride = over + rest + 1
    found = [(start, limit, 1), (start, start + more * stride + 1 + over, stride, more + 1), (start, start, stride, 0)]
    found += [(0, size, 1), (start, limit, 2), (start, start + 3, 2), (start, start + 3, 1), (1, limit, 3)]
    if isinstance(size, int):
        found = [(a, z, step) for a in range(size + 1) for z in range(a, size + 1) for step in _STRIDES]
    return [(a, z, step, *(count or [dims.ceildiv(z - a, step)])) for a, z, step, *count in found]


def _is_strided(properties: Mapping[str, Any], types: Sequence[Type]) -> bool:
    """Strides other than 1, and numbers of elements that are named though the size is not."""
    parts = [properties[name] for name in ("start_indices", "limit_indices", "strides")]
    for size, start, limit, stride in zip(types[0].shape, *parts, strict=True):
        counted = isinstance(limit - start, int) and limit != start and not isinstance(size, int)
        if stride != 1 or counted:
            return True
    return False


def _pad_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    """Along each dimension: nothing, or symbolic edges of either sign with any number in between."""
    shape = types[0].shape
    for chosen in _mix_kinds([_pads(f"{path}p{i}") for i in range(len(shape))]):
        lows, highs, gaps = (tuple(c[j] for c in chosen) for j in range(3))
        properties = {"edge_padding_low": lows, "edge_padding_high": highs, "interior_padding": gaps}
        yield properties, Type(tuple(pad_sizes(shape, lows, highs, gaps)), types[0].element)


def _pads(name: str) -> list[_Kind]:
    low, high, less, gap = symbols(name, 4)
    return [(low, high - less, gap), (0, 0, 0), (low, high - less, 0), (low - less, high, gap), (low - less, high, 1),
            (0, 0, 1), (0, high, 2)]  # fmt: skip


def _is_gapped(properties: Mapping[str, Any], types: Sequence[Type]) -> bool:
    return any(gap != 0 for gap in properties["interior_padding"])


def _padding(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = prior.get(0)
    yield Want(None, want.element) if position == 0 else Want((), None if known is None else known.element)


# ---- folds -------------------------------------------------------------------------------------------------

_DOTS = 3
"""The highest rank of a dot's operands that is enumerated."""


def _dot_wants(position: int, want: Want, prior: Prior) -> Iterator[Want]:
    known = next(iter(prior.values()), None)
    if known is None:
        yield ANY
        return
    sizes = (*known.shape, *symbols(f"d{position}_", 2))
    if len(known.shape) <= _DOTS:
        for rank in range(1, _DOTS + 1):
            for shape in permutations(sizes, rank):
                if shape.index(sizes[-1]) > shape.index(sizes[-2]) if set(sizes[-2:]) <= {*shape} else True:
                    yield Want(shape, known.element)


def _dot(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    """Dimensions of one size in both operands are batch or contracting ones; one list for each way."""
    lhs, rhs = types[0].shape, types[1].shape
    shared = [(i, rhs.index(size)) for i, size in enumerate(lhs) if size in rhs]
    if len(set(lhs)) < len(lhs) or len(lhs) > _DOTS:
        return
    for roles in product((True, False), repeat=len(shared)):
        batch = [pair for pair, batched in zip(shared, roles, strict=True) if batched]
        contracted = [pair for pair, batched in zip(shared, roles, strict=True) if not batched]
        for order in permutations(contracted):
            numbers = DotDimensions(
                tuple(i for i, _ in batch), tuple(j for _, j in batch), tuple(i for i, _ in order),
                tuple(j for _, j in order),
            )  # fmt: skip
            used_l, used_r = {i for i, _ in shared}, {j for _, j in shared}
            shape: list[Size] = [lhs[i] for i, _ in batch]
            shape += [s for i, s in enumerate(lhs) if i not in used_l]
            shape += [s for j, s in enumerate(rhs) if j not in used_r]
            for precision in (None, ("HIGHEST", "HIGHEST")) if len(rhs) < _DOTS else (None,):
                yield (
                    {"dot_dimension_numbers": numbers, "precision_config": precision},
                    Type(tuple(shape), types[0].element),
                )


def _reduce_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    shape = types[0].shape
    for chosen in chain.from_iterable(combinations(range(len(shape)), n) for n in range(len(shape) + 1)):
        yield {"dimensions": chosen}, Type(tuple(s for i, s in enumerate(shape) if i not in chosen), types[0].element)


def _window_choices(types: Sequence[Type], scope: Scope, path: str) -> Iterator[tuple[dict[str, Any], Type]]:
    """Along each dimension: no window, or one of which nothing is known."""
    shape = types[0].shape
    for chosen in _mix_kinds([_windows(f"{path}w{i}") for i in range(len(shape))]):
        window = [tuple(c[j] for c in chosen) for j in range(len(WINDOW))]
        yield dict(zip(WINDOW, window, strict=True)), Type(tuple(window_sizes(shape, *window)), types[0].element)


def _windows(name: str) -> list[tuple[Any, ...]]:
    """Size, stride, padding, and both dilations."""
    size, stride, low, high, less, gap, step = symbols(name, 7)
    unknown = (size + 1, stride + 1, (low, high - less), gap + 1, step + 1)
    return [(1, 1, (0, 0), 1, 1), (3, 2, (1, 0), 2, 3), unknown, (2, 1, (1, 0), 1, 1), (3, 2, (0, 1), 1, 2)]


def _is_windowed(properties: Mapping[str, Any], types: Sequence[Type]) -> bool:
    return any(size != 1 for size in properties["window_dimensions"])


def _fold_regions(types: Sequence[Type]) -> Sequence[Region]:
    """A body that tells the order of what it folds, where the element type has a subtraction."""
    scalar = tensor((), types[0].element)
    block = Block(arg_types=(scalar, scalar))
    op = hlo.SubtractOp if scalar.element_type in hlo.SubtractOp.ELEMENTS else hlo.XorOp
    taken = op.of(block.args[1], block.args[0])
    block.add_ops((taken, hlo.ReturnOp.of(taken.results[0])))
    return (Region(block),)


ROWS: dict[type[GraphOp], Row] = {
    hlo.CompareOp: Row(_any_element, _compare_choices),
    hlo.IsFiniteOp: Row(_any_element, _boolean),
    hlo.ConvertOp: Row(_any_element, _convert_choices),
    hlo.SelectOp: Row(_select_wants, _second, first=1),
    hlo.ClampOp: Row(_clamp_wants, _second, first=1),
    hlo.AbsOp: Row(_any_element, _real),
    hlo.RealOp: Row(_any_element, _real),
    hlo.ImagOp: Row(_any_element, _real),
    hlo.ComplexOp: Row(_part, _complex),
    hlo.TransposeOp: Row(_permute_wants, _transpose_choices),
    hlo.ReshapeOp: Row(_free, _reshape_choices),
    hlo.BroadcastInDimOp: Row(_free, _broadcast),
    hlo.ReverseOp: Row(_like_first, _reverse_choices),
    hlo.ConcatenateOp: Row(_joinable, _join_choices),
    hlo.SliceOp: Row(_free, _slice_choices, _is_strided, "strides and numbers of elements to 3"),
    hlo.PadOp: Row(_padding, _pad_choices, _is_gapped, "at most 2 between elements"),
    hlo.DotGeneralOp: Row(_dot_wants, _dot),
    hlo.ReduceOp: Row(_padding, _reduce_choices, regions=_fold_regions),
    hlo.ReduceWindowOp: Row(_padding, _window_choices, _is_windowed, "windows to 3", regions=_fold_regions),
}
"""Op -> how its operands and results are enumerated; elementwise ops of one type need no row."""

_PLAIN = Row(_like_first, _same)


def row_of(op: type[GraphOp]) -> Row | None:
    """The op's row, or None where nothing says what it may look like."""
    return ROWS.get(op) or (_PLAIN if issubclass(op, UnaryOp | BinaryOp) else None)
