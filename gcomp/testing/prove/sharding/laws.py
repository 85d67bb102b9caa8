"""What one element of each op's results is made of, beyond which elements it reads: the laws that proofs rest on.

An indexing map says which elements of the operands an element of a result reads: a family, numbered by the map's range
variables, with conditions under which a member is there. A law says that nothing else goes into it:

    result[i] = F(the family that i reads, i along `places`, the sizes of `places` and of the range variables)

with one function F for all indices i and all other sizes, whatever data are in the operands. Where `combine` is named,
F folds: it combines terms, one for each value of the range variables, each of the members at these values, by an
operation that may take them in any order. `tests/property/test_sharding_laws.py` holds laws to the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from xdsl.ir import Operation

from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import PLAIN, POINTWISE
from gcomp.ir.stablehlo.normalization import BatchNormOp
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import rank_of, shape_of
from gcomp.partitioning.derive import Slot

Law = Callable[[Any], "Element"]
L = TypeVar("L", bound=Law)


@dataclass(frozen=True)
class Element:
    """What the function of an element depends on besides what it reads."""

    places: frozenset[Slot] = frozenset()
    """Dimensions (results are counted after operands) whose index, or whose size, the function takes."""
    combine: str | None = None
    """The op of StableHLO that folds the terms, if the function is a fold."""
    together: tuple[frozenset[Slot], ...] = ()
    """Dimensions of operands along which terms are numbered alike. Empty: those that one range variable runs over."""
    counted: Slot | None = None
    """The dimension of a result whose index is the element itself."""
    looked_up: frozenset[Slot] = frozenset()
    """Dimensions of an operand along which an index that is data, clamped, says which element is taken."""
    put_at: frozenset[Slot] = frozenset()
    """Dimensions along which an index that is data says where something is put, or nowhere."""


LAWS: dict[type[Operation], Law] = {}
"""Op class -> what its elements are made of."""


def law(*ops: type[Operation]) -> Callable[[L], L]:
    """Register a function as the law of op classes."""

    def register(row: L) -> L:
        for op in ops:
            LAWS[op] = row
        return row

    return register


def placed(op: Any, dims: Iterable[int], results: Iterable[int] | None = None) -> Element:
    """The law of ops whose results' elements depend on their place along these dimensions."""
    count = len(op.operands)
    chosen = range(len(op.results)) if results is None else results
    return Element(frozenset((count + i, dim) for i in chosen for dim in dims))


@law(
    *(op for op in POINTWISE if op is not chlo.AsinAcosKernelOp), *PLAIN, hlo.MapOp, chlo.ConstantLikeOp,
    hlo.BroadcastOp, hlo.BroadcastInDimOp, hlo.TransposeOp, hlo.ReverseOp, hlo.SliceOp, hlo.PadOp, hlo.ConcatenateOp,
    hlo.ReshapeOp, hlo.OptimizationBarrierOp, hlo.DynamicSliceOp, hlo.ReduceWindowOp,
    hlo.BatchNormInferenceOp,
)  # fmt: skip
def anywhere(op: Operation) -> Element:
    """The same function everywhere."""
    return Element()


@law(hlo.IotaOp)
def iota(op: hlo.IotaOp) -> Element:
    """The index itself."""
    slot = (0, op.value("iota_dimension"))
    return Element(frozenset({slot}), counted=slot)


@law(hlo.GetDimensionSizeOp)
def get_dimension_size(op: hlo.GetDimensionSizeOp) -> Element:
    """A size."""
    return Element(frozenset({(0, op.value("dimension"))}))


@law(hlo.BitcastConvertOp)
def bitcast_convert(op: hlo.BitcastConvertOp) -> Element:
    """Which part of a wider element it is, where the result has a dimension of parts."""
    rank = rank_of(op.result)
    return placed(op, [rank - 1] if rank > rank_of(op.operand) else [])


@law(hlo.DynamicUpdateSliceOp)
def dynamic_update_slice(op: hlo.DynamicUpdateSliceOp) -> Element:
    """Where the update begins is data, to which an index is compared."""
    sizes = zip(shape_of(op.operand), shape_of(op.update), strict=True)
    return placed(op, [dim for dim, (size, width) in enumerate(sizes) if size != width])


@law(hlo.GatherOp)
def gather(op: hlo.GatherOp) -> Element:
    """The same function everywhere; along collapsed dimensions it takes the element that an index names."""
    n = op.dimensions
    return Element(looked_up=frozenset((0, dim) for dim in n.collapsed_slice_dims if dim in n.start_index_map))


@law(hlo.ScatterOp)
def scatter(op: hlo.ScatterOp) -> Element:
    """Where an update goes is data, to which an index is compared; updates are folded."""
    n, count = op.dimensions, len(op.inputs)
    found = placed(op, {*n.scatter_dims_to_operand_dims, *n.inserted_window_dims})
    put = {*n.scatter_dims_to_operand_dims} & {*n.inserted_window_dims}
    slots = [*range(count), *range(len(op.operands), len(op.operands) + count)]
    found = replace(found, put_at=frozenset((t, dim) for t in slots for dim in put))
    applied = applied_op(op.update_computation)
    if applied is None or count != 1:
        return found
    scattered = [k for k in range(rank_of(op.updates[0])) if k not in n.update_window_dims]
    axes = [j for j in range(rank_of(op.scatter_indices)) if j != n.index_vector_dim]
    together = tuple([frozenset({(1, j), (2, k)}) for j, k in zip(axes, scattered, strict=True)])
    return replace(found, combine=_name(applied), together=together)


@law(hlo.SortOp)
def sort(op: hlo.SortOp) -> Element:
    """Its place in the row that is sorted."""
    return placed(op, [op.value("dimension") % max(rank_of(op.operands[0]), 1)])


@law(chlo.TopKOp)
def top_k(op: chlo.TopKOp) -> Element:
    """Its place among the greatest."""
    return placed(op, [rank_of(op.operand) - 1])


@law(hlo.CholeskyOp)
def cholesky(op: hlo.CholeskyOp) -> Element:
    """Its place in the matrix."""
    return placed(op, [rank_of(op.a) - 2, rank_of(op.a) - 1])


@law(hlo.TriangularSolveOp)
def triangular_solve(op: hlo.TriangularSolveOp) -> Element:
    """Which unknown it is."""
    return placed(op, [rank_of(op.b) - (2 if op.value("left_side") else 1)])


@law(hlo.FftOp)
def fft(op: hlo.FftOp) -> Element:
    """Which frequency it is."""
    rank = rank_of(op.operand)
    return placed(op, range(rank - len(op.value("fft_length")), rank))


@law(hlo.BatchNormTrainingOp, hlo.BatchNormGradOp)
def batch_norm(op: BatchNormOp) -> Element:
    """Which of the elements of its feature it is."""
    axis: int = op.value("feature_index")
    return placed(op, [dim for dim in range(rank_of(op.operands[0])) if dim != axis], [0])


@law(hlo.SelectAndScatterOp)
def select_and_scatter(op: hlo.SelectAndScatterOp) -> Element:
    """Its place in each of the windows that hold it."""
    w = op.window()
    sides = zip(w["window_dimensions"], w["window_strides"], strict=True)
    return placed(op, [dim for dim, (width, stride) in enumerate(sides) if (width, stride) != (1, 1)])


@law(hlo.DotGeneralOp, hlo.DotOp, hlo.ConvolutionOp)
def product(op: Operation) -> Element:
    """A sum of products."""
    return Element(combine="add")


@law(chlo.RaggedDotOp)
def ragged_dot(op: chlo.RaggedDotOp) -> Element:
    """A sum of products, over the group that the place of a row says, or of all places in a group."""
    n = op.dimensions
    (ragged,) = n.lhs_ragged_dimensions
    pairs = zip(n.lhs_contracting_dimensions, n.rhs_contracting_dimensions, strict=True)
    together = tuple([frozenset({(0, k), (1, j)}) for k, j in pairs])
    if ragged in n.lhs_contracting_dimensions:
        at = n.rhs_contracting_dimensions[n.lhs_contracting_dimensions.index(ragged)]
        return Element(frozenset({(3, 0), (0, ragged), (1, at)}), "add", together)
    order = [*n.lhs_batching_dimensions, *_free(op)]
    return Element(frozenset({(3, order.index(ragged)), (0, ragged)}), "add", together)


def _free(op: chlo.RaggedDotOp) -> list[int]:
    n = op.dimensions
    taken = {*n.lhs_batching_dimensions, *n.lhs_contracting_dimensions}
    return [k for k in range(rank_of(op.lhs)) if k not in taken]


@law(hlo.ReduceOp)
def reduce(op: hlo.ReduceOp) -> Element:
    """A fold, beginning with the init value; of a body that is one op of which the order does not matter, any."""
    applied = applied_op(op.body)
    return Element(combine=None if applied is None else _name(applied))


def _name(op: type[Operation]) -> str:
    return op.name.partition(".")[2]
