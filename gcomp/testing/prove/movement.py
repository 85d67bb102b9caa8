"""What ops that move data mean: each row is the function from a result's index to its element.

The specification's formulas, over tensors that are functions of indices. `facts.requires` gets what makes an op valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.testing.prove.theory import Index, Term, z3
from gcomp.testing.prove.unknown import WINDOW
from gcomp.testing.prove.views import Facts, View, number

Meaning = Callable[[Any, Sequence[View], Facts], Callable[[Index], Term]]


def transpose(op: hlo.TransposeOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = operand[i] with i[permutation[k]] = j[k]."""
    permutation: tuple[int, ...] = op.value("permutation")
    return lambda j: operands[0].at(tuple(j[permutation.index(k)] for k in range(len(j))))


def broadcast_in_dim(op: hlo.BroadcastInDimOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = operand[i] with i[k] = j[dimensions[k]], or 0 where dimension k has size 1."""
    dimensions: tuple[int, ...] = op.value("broadcast_dimensions")
    shape = shape_of(op.result)
    pairs = list(zip(operands[0].shape, dimensions, strict=True))
    facts.requires += [_stretches(n, shape[d]) for n, d in pairs]

    def source(j: Index) -> Term:
        return operands[0].at(tuple(_stretch(n, shape[d], j[d]) for n, d in pairs))

    return source


@cache
def _stretches(size: Size, target: Size) -> Term:
    return z3.Or(number(size) == 1, number(size) == number(target))


def _stretch(size: Size, target: Size, j: Term) -> Term:
    if size == target:
        return j
    return z3.IntVal(0) if size == 1 else z3.If(number(size) == 1, z3.IntVal(0), j)


def reverse(op: hlo.ReverseOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = operand[i] with i[k] = size - 1 - j[k] in the reversed dimensions."""
    turned, shape = op.value("dimensions"), operands[0].shape
    return lambda j: operands[0].at(tuple(number(shape[k]) - 1 - v if k in turned else v for k, v in enumerate(j)))


def slice_(op: hlo.SliceOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = operand[start + j * stride]."""
    starts, limits = sizes_of(op.start_indices), sizes_of(op.limit_indices)
    strides = [number(s) for s in op.value("strides")]
    for start, limit, size in zip(starts, limits, operands[0].shape, strict=True):
        facts.requires += [number(start) >= 0, number(start) <= number(limit), number(limit) <= number(size)]
    return lambda j: operands[0].at(tuple(number(a) + v * s for a, v, s in zip(starts, j, strides, strict=True)))


def pad(op: hlo.PadOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = operand[(j - low) / (interior + 1)] where that is an index of the operand, else the padding value."""
    lows, gaps = sizes_of(op.edge_padding_low), op.value("interior_padding")
    facts.requires += [number(s) >= 0 for s in shape_of(op.result)]
    lanes = list(zip(lows, gaps, operands[0].shape, strict=True))

    def element(j: Index) -> Term:
        index: list[Term] = []
        inside: list[Term] = []
        for v, (low, gap, size) in zip(j, lanes, strict=True):
            at = v - number(low)
            step = number(gap + 1)
            inside += [at >= 0] if gap == 0 else [at >= 0, at % step == 0]
            index.append(at if gap == 0 else at / step)
            inside.append(index[-1] < number(size))
        return z3.If(z3.And(*inside), operands[0].at(tuple(index)), operands[1].at(()))

    return element


def concatenate(op: hlo.ConcatenateOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] is the element of the operand in whose part of `dimension` j lies."""
    axis: int = op.value("dimension")

    def element(j: Index) -> Term:
        starts: list[Size] = [0]
        for operand in operands[:-1]:
            starts.append(starts[-1] + operand.shape[axis])
        parts = [o.at((*j[:axis], j[axis] - number(s), *j[axis + 1 :])) for o, s in zip(operands, starts, strict=True)]
        chosen = parts[-1]
        for start, part in zip(reversed(starts[1:]), reversed(parts[:-1]), strict=True):
            chosen = z3.If(j[axis] < number(start), part, chosen)
        return chosen

    return element


def reshape(op: hlo.ReshapeOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] is the operand's element at the same row-major position."""
    source, target = operands[0].shape, shape_of(op.result)
    before, after = dims.product(source), dims.product(target)
    if before != after:
        facts.requires.append(number(before) == number(after))
    # Dimensions of size 1 have index 0 and take no part in positions.
    inner, outer = [k for k, s in enumerate(source) if s != 1], [k for k, s in enumerate(target) if s != 1]

    def element(j: Index) -> Term:
        place = facts.position(tuple(j[k] for k in outer), [target[k] for k in outer])
        found = dict(zip(inner, facts.index(place, [source[k] for k in inner]), strict=True))
        return operands[0].at(tuple(found.get(k, z3.IntVal(0)) for k in range(len(source))))

    return element


def select(op: hlo.SelectOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] = on_true[j] where pred[j] (or pred, of rank 0), else on_false[j]."""
    pred, on_true, on_false = operands

    def element(j: Index) -> Term:
        return z3.If(pred.at(j if pred.shape else ()) == 1, on_true.at(j), on_false.at(j))

    return element


def dot_general(op: hlo.DotGeneralOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[b, l, r] is a fold over the contracting index k of lhs and rhs, of which only the terms are known.

    The fold is an uninterpreted function of the sizes folded over and of both operands' elements as functions of k: two
    dots are equal where these are, whatever the rounding.
    """
    d = op.dimensions
    lhs, rhs = operands
    free_l = [i for i in range(len(lhs.shape)) if i not in (*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions)]
    free_r = [i for i in range(len(rhs.shape)) if i not in (*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions)]
    folded = [number(lhs.shape[i]) for i in d.lhs_contracting_dimensions]
    batch = len(d.lhs_batching_dimensions)

    def element(j: Index) -> Term:
        k = tuple(z3.Int(f"k{n}") for n in range(max(len(folded), 1)))
        at_l = {**dict(zip(d.lhs_batching_dimensions, j, strict=False)), **dict(zip(free_l, j[batch:], strict=False)),
                **dict(zip(d.lhs_contracting_dimensions, k, strict=False))}  # fmt: skip
        at_r = {**dict(zip(d.rhs_batching_dimensions, j, strict=False)),
                **dict(zip(free_r, j[batch + len(free_l) :], strict=False)),
                **dict(zip(d.rhs_contracting_dimensions, k, strict=False))}  # fmt: skip
        left, right = lhs.at(_as_index(at_l)), rhs.at(_as_index(at_r))
        rows = z3.Lambda(list(k), left), z3.Lambda(list(k), right)
        settings = [str(op.properties.get(name)) for name in ("precision_config", "algorithm")]
        name = "_".join(["fold", str(len(folded)), dtype_text(op.result.type), *settings])
        sorts = [*(z3.IntSort() for _ in folded), *(r.sort() for r in rows), facts.sort(dtype_text(op.result.type))]
        return z3.Function(name, *sorts)(*folded, *rows)

    return element


def reduce(op: hlo.ReduceOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] is a fold over the indices k of the reduced dimensions, in their order, which only the body knows.

    As for dots, the fold is an uninterpreted function: of the sizes, the elements as a function of k, and the initial
    value.
    """
    if len(operands) != 2:
        raise UnsupportedError("the prover folds one tensor at a time")
    dimensions: tuple[int, ...] = op.value("dimensions")
    folded = sorted(dimensions)
    kept = [i for i in range(len(operands[0].shape)) if i not in folded]

    def element(j: Index) -> Term:
        k = tuple(z3.Int(f"k{n}") for n in range(max(len(folded), 1)))
        at = {**dict(zip(kept, j, strict=True)), **dict(zip(folded, k, strict=False))}
        sizes: list[Term] = [number(operands[0].shape[i]) for i in folded]
        return _fold(op, facts, k, sizes, operands[0].at(_as_index(at)), operands[1].at(()))

    return element


def reduce_window(op: hlo.ReduceWindowOp, operands: Sequence[View], facts: Facts) -> Callable[[Index], Term]:
    """result[j] is a fold over the positions k in its window, in order, of what is there: an element, or `init`."""
    if len(operands) != 2:
        raise UnsupportedError("the prover folds one tensor at a time")
    window = op.window()
    folded = [i for i, size in enumerate(window["window_dimensions"]) if size != 1]
    lanes = zip(operands[0].shape, *(window[name] for name in WINDOW[1:]), strict=True)
    facts.requires += [number(s) >= 0 for s in shape_of(op.results[0])]
    steps = [
        (number(stride), number(low), number(gap), number(step), number(size))
        for size, stride, (low, _), gap, step in lanes
    ]

    def element(j: Index) -> Term:
        k = tuple(z3.Int(f"k{n}") for n in range(max(len(folded), 1)))
        at: list[Term] = []
        inside: list[Term] = []
        for i, (stride, low, gap, step, size) in enumerate(steps):
            place = j[i] * stride - low + (k[folded.index(i)] * step if i in folded else 0)
            at.append(place / gap)
            inside += [place >= 0, place % gap == 0, at[-1] < size]
        start = operands[1].at(())
        # Both sides of a rule may list the dimensions in another order.
        there = z3.And(*sorted([z3.simplify(term) for term in inside], key=_identity))
        sizes = [number(window["window_dimensions"][i]) for i in folded]
        return _fold(op, facts, k, sizes, z3.If(there, operands[0].at(tuple(at)), start), start)

    return element


def _identity(term: Term) -> int:
    return term.get_id()


Folding: TypeAlias = "hlo.ReduceOp | hlo.ReduceWindowOp"


def _fold(op: Folding, facts: Facts, k: Index, sizes: Sequence[Term], element: Term, start: Term) -> Term:
    row = z3.Lambda(list(k), element)
    name = f"fold_{len(sizes)}_{dtype_text(op.results[0].type)}_{_body(op)}"
    sorts = [*(z3.IntSort() for _ in sizes), row.sort(), start.sort(), facts.sort(dtype_text(op.results[0].type))]
    return z3.Function(name, *sorts)(*sizes, row, start)


def _body(op: Folding) -> str:
    """A fold's body as text: its ops, and which values each of them takes."""
    values: dict[SSAValue, int] = {v: n for n, v in enumerate(op.body.block.args)}
    lines: list[str] = []
    for inner in op.body.walk():
        lines.append(f"{inner.name}{[values.get(v, v.name_hint) for v in inner.operands]}{dict(inner.properties)}")
        values |= {v: len(values) + n for n, v in enumerate(inner.results)}
    return ";".join(lines)


def _as_index(index: dict[int, Term]) -> Index:
    return tuple(index[i] for i in range(len(index)))


MOVEMENT: dict[type[GraphOp], Meaning] = {
    hlo.TransposeOp: transpose,
    hlo.BroadcastInDimOp: broadcast_in_dim,
    hlo.ReverseOp: reverse,
    hlo.SliceOp: slice_,
    hlo.PadOp: pad,
    hlo.ConcatenateOp: concatenate,
    hlo.ReshapeOp: reshape,
    hlo.SelectOp: select,
    hlo.DotGeneralOp: dot_general,
    hlo.ReduceOp: reduce,
    hlo.ReduceWindowOp: reduce_window,
}
"""Op -> what a result's element is, as a function of its index."""

FOLDS = (hlo.DotGeneralOp, hlo.ReduceOp, hlo.ReduceWindowOp)
"""Ops of which only equal operands are known to give equal results."""
