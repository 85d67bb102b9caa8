"""Ops in all forms up to a rank, in symbolic sizes: what rules are proved on, besides the ops of programs.

Ops that are not here have forms in the sample programs and in random ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Any

from xdsl.dialects.builtin import f32, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gcomp import dims
from gcomp.dims import Size, symbol
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import COMMUTATIVE, scalar_region
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import shape_of, tensor, with_shape

MAX_RANK = 4
"""Results of most ops are enumerated to this rank; where a form has many settings in each dimension, to one less."""
SIZES = tuple(symbol(f"n{k}") for k in range(8))


def values(*shapes: Sequence[Size], element: Attribute = f32) -> Sequence[SSAValue]:
    """Operands of these shapes."""
    return Block(arg_types=[tensor(shape, element) for shape in shapes]).args


def subsets(rank: int) -> Iterator[tuple[int, ...]]:
    """All sets of dimensions."""
    for count in range(rank + 1):
        yield from combinations(range(rank), count)


def ranked(least: int = 0, most: int = MAX_RANK) -> Iterator[tuple[int, tuple[Size, ...]]]:
    """Ranks, with a shape of each."""
    yield from ((rank, SIZES[:rank]) for rank in range(least, most + 1))


# ---- elementwise ----------------------------------------------------------------------------------------------------


def like(op: Operation) -> Iterator[Operation]:
    """An elementwise op of a program at all ranks; operands that are scalars stay so."""
    if not isinstance(op, (*POINTWISE, hlo.MapOp, chlo.ConstantLikeOp, *PLAIN)):
        return
    for _, shape in ranked():
        for shapes in _operand_shapes(op, shape):
            types = [with_shape(v.type, own) for v, own in zip(op.operands, shapes, strict=True)]
            properties = {k: v for k, v in op.properties.items() if k != "broadcast_dimensions"}
            if isinstance(op, hlo.MapOp):
                properties["dimensions"] = op.encode_property("dimensions", range(len(shape)))
            yield type(op).create(
                operands=Block(arg_types=types).args, properties=properties,
                result_types=[with_shape(op.results[0].type, shape)], regions=[r.clone() for r in op.regions],
            )  # fmt: skip


def _operand_shapes(op: GraphOp, shape: Sequence[Size]) -> Iterator[Sequence[Sequence[Size]]]:
    if not isinstance(op, tuple(PLAIN)):
        whole = shape_of(op.results[0])
        yield [shape if shape_of(v) == whole else () for v in op.operands]
        return
    count = len(op.operands)
    if len(shape) == MAX_RANK:
        yield [shape] * count
        return
    # In each dimension all operands have the size, or one of them repeats its only element.
    for ways in product(range(count + 1), repeat=len(shape)):
        yield [[1 if way == k else size for way, size in zip(ways, shape, strict=True)] for k in range(count)]
    for k, start in product(range(count), range(1, len(shape) + 1)):
        yield [shape[start:] if k == j else shape for j in range(count)]


# ---- data movement --------------------------------------------------------------------------------------------------


def moved() -> Iterator[Operation]:
    """Transposes, reversals, broadcasts, concatenations, and reshapes that merge and split."""
    for rank, shape in ranked():
        yield from (hlo.TransposeOp.of(*values(shape), permutation=p) for p in permutations(range(rank)))
        yield from (hlo.ReverseOp.of(*values(shape), dimensions=d) for d in subsets(rank))
        for dim in range(rank if rank < MAX_RANK else 0):
            for count in (1, 2, 3):
                shapes = [(*shape[:dim], SIZES[4 + k], *shape[dim + 1 :]) for k in range(count)]
                yield hlo.ConcatenateOp.of(*values(*shapes), dimension=dim)
        yield from broadcasts(rank, shape)
    yield from reshapes()


def broadcasts(rank: int, shape: tuple[Size, ...]) -> Iterator[Operation]:
    """Operands along any dimensions of the result; up to a lower rank, with one element along any of them."""
    for count in range(rank + 1):
        for at in permutations(range(rank), count):
            for ones in subsets(count) if rank < MAX_RANK else ((),):
                own = [1 if k in ones else shape[d] for k, d in enumerate(at)]
                yield hlo.BroadcastInDimOp.of(*values(own), broadcast_dimensions=at, types=[tensor(shape, f32)])
        yield hlo.BroadcastOp.of(*values(shape[count:]), broadcast_sizes=shape[:count])


def reshapes() -> Iterator[Operation]:
    """Up to four factors in order, put together in any two ways."""
    for count in range(1, MAX_RANK + 1):
        ways = [[0, *cuts, count] for n in range(count) for cuts in combinations(range(1, count), n)]
        for old, new in product(ways, repeat=2):
            before, after = ([dims.product(SIZES[a:b]) for a, b in pairwise(w)] for w in (old, new))
            yield hlo.ReshapeOp.of(*values(before), types=[tensor(after, f32)])


def parts() -> Iterator[Operation]:
    """Slices and paddings, each dimension in one of several forms; and slices that begin where data say."""
    for rank, shape in ranked(1, MAX_RANK - 1):
        for forms in product(((0, None, 1), (1, 5, 1), (0, 7, 3)), repeat=rank):
            sizes = [n if stop is None else 8 for n, (_, stop, _) in zip(shape, forms, strict=True)]
            stops = [n if stop is None else stop for n, (_, stop, _) in zip(sizes, forms, strict=True)]
            starts, strides = [f[0] for f in forms], [f[2] for f in forms]
            yield hlo.SliceOp.of(*values(sizes), start_indices=starts, limit_indices=stops, strides=strides)
        for pads in product(((0, 0, 0), (1, 2, 0), (-1, 1, 0), (0, 1, 2)), repeat=rank):
            low, high, gap = zip(*pads, strict=True)
            sizes = [n if pad == (0, 0, 0) else 6 for n, pad in zip(shape, pads, strict=True)]
            yield hlo.PadOp.of(*values(sizes, ()), edge_padding_low=low, edge_padding_high=high, interior_padding=gap)
        for narrow in subsets(rank):
            widths = [3 if k in narrow else n for k, n in enumerate(shape)]
            starts = values(*[()] * rank, element=i32)
            whole = [8 if k in narrow else n for k, n in enumerate(shape)]
            yield hlo.DynamicSliceOp.of(*values(whole), *starts, slice_sizes=widths)
            yield hlo.DynamicUpdateSliceOp.of(*values(whole, widths), *starts)


# ---- folds ----------------------------------------------------------------------------------------------------------


def folds() -> Iterator[Operation]:
    """Reductions along any dimensions, by each op; windows; and what counts."""
    for rank, shape in ranked():
        for along in subsets(rank):
            yield reduction(hlo.AddOp, shape, along, f32)
        for along in subsets(rank) if rank < MAX_RANK else ():
            width = [2 if k in along else 1 for k in range(rank)]
            pads = [(1, 0) if k in along else (0, 0) for k in range(rank)]
            sizes = [6 if k in along else n for k, n in enumerate(shape)]
            yield hlo.ReduceWindowOp.of(
                *values(sizes, ()), window_dimensions=width, padding=pads, regions=[scalar_region(hlo.AddOp, f32)]
            )
        yield from (hlo.GetDimensionSizeOp.of(*values(shape), dimension=d) for d in range(rank))
        yield from (hlo.IotaOp.of(iota_dimension=d, types=[tensor(shape, i32)]) for d in range(rank))
    for kind in COMMUTATIVE.values():
        element = i1 if kind in (hlo.AndOp, hlo.OrOp, hlo.XorOp) else f32
        yield reduction(kind, SIZES[:2], (1,), element)


def reduction(kind: type[GraphOp], shape: Sequence[Size], along: Sequence[int], element: Attribute) -> Operation:
    """A reduction by one op."""
    region = scalar_region(kind, element)
    return hlo.ReduceOp.of(*values(shape, (), element=element), dimensions=along, regions=[region])


def products() -> Iterator[Operation]:
    """Products of up to three dimensions each: any number of batches and sums, in any order on one side."""
    for batch, summed, left, right in product(range(3), repeat=4):
        counts = batch + summed + left, batch + summed + right
        if max(counts) > MAX_RANK - 1:
            continue
        own = [[*range(batch + summed), *range(4, 4 + left)], [*range(batch + summed), *range(6, 6 + right)]]
        plain = [tuple(range(count)) for count in counts]
        orders = [(p, plain[1]) for p in permutations(plain[0])] + [(plain[0], p) for p in permutations(plain[1])]
        for order in dict.fromkeys(orders):
            at = [[o.index(k) for k in range(batch + summed)] for o in order]
            shapes = [[SIZES[names[k]] for k in o] for names, o in zip(own, order, strict=True)]
            n = DotDimensions(tuple(at[0][:batch]), tuple(at[1][:batch]), tuple(at[0][batch:]), tuple(at[1][batch:]))
            result = [SIZES[k] for k in (*range(batch), *(k for names, o in zip(own, order, strict=True)
                      for k in (names[i] for i in o) if k >= 4))]  # fmt: skip
            yield hlo.DotGeneralOp.of(*values(*shapes), dot_dimension_numbers=n, types=[tensor(result, f32)])


# ---- rows and matrices ----------------------------------------------------------------------------------------------


def rows() -> Iterator[Operation]:
    """Sorts, greatest elements, matrices, and normalizations of any feature."""
    for rank, shape in ranked(1):
        yield from (_sort(shape, dim) for dim in range(rank))
        yield chlo.TopKOp.of(*values((*shape[:-1], 9)), k=2)
        square = (*shape[:-1], shape[-1], shape[-1])
        if rank < MAX_RANK:
            yield hlo.CholeskyOp.of(*values(square), lower=True)
        for axis in range(rank if rank > 1 else 0):
            n = [shape[axis]]
            settings: dict[str, Any] = {"epsilon": 1e-3, "feature_index": axis}
            yield hlo.BatchNormInferenceOp.of(*values(shape, n, n, n, n), **settings)
            yield hlo.BatchNormTrainingOp.of(*values(shape, n, n), **settings)
            yield hlo.BatchNormGradOp.of(*values(shape, n, n, n, shape), **settings)


def _sort(shape: Sequence[Size], dim: int) -> Operation:
    block = Block(arg_types=[tensor((), f32)] * 2)
    less = hlo.CompareOp.of(*block.args, comparison_direction="LT")
    block.add_ops((less, hlo.ReturnOp.of(less.results[0])))
    return hlo.SortOp.of(*values(shape), dimension=dim, regions=[Region(block)])


def forms() -> Iterable[Operation]:
    """All of them, but those of elementwise ops."""
    for family in (moved, parts, folds, products, rows):
        yield from family()


__all__ = ["MAX_RANK", "forms", "like"]
