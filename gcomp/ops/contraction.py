"""Products and sums: matmul and its relatives, and einsum, which is the general one."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, rank_of, same_size, shape_of
from gcomp.ops.reduction import axis_of
from gcomp.tensors.lifting import promote_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.tensor import ArrayLike, Tensor


@operation
def matmul(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Products of matrices in the last two dimensions, the others broadcast; vectors as in NumPy."""
    b, (left, right) = promote_operands(x, y)
    if not rank_of(left) or not rank_of(right):
        raise UsageError("matmul takes no tensors of rank 0", fix="multiply by them")
    _same(shape_of(left)[-1], shape_of(right)[-2 if rank_of(right) > 1 else -1], left, right)
    return Tensor(b, b.matmul(left, right))


def _same(size: object, other: object, left: SSAValue, right: SSAValue) -> None:
    """Refuse products over dimensions of different sizes."""
    if isinstance(size, int) and isinstance(other, int) and size != other:
        raise UsageError(
            f"tensors of shapes {shape_of(left)} and {shape_of(right)} have no product",
            why=f"the dimensions to sum over have the sizes {size} and {other}",
        )


@operation
def dot(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The sum over the last dimension of x and the last but one of y; of scalars, the product."""
    b, (left, right) = promote_operands(x, y)
    if not rank_of(left) or not rank_of(right):
        return Tensor(b, b.multiply(left, right))
    axis = max(rank_of(right) - 2, 0)
    _same(shape_of(left)[-1], shape_of(right)[axis], left, right)
    return Tensor(b, b.dot(left, right, DotDimensions((), (), (rank_of(left) - 1,), (axis,))))


@operation
def tensordot(x: ArrayLike, y: ArrayLike, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sum over the last dimensions of x and the first of y, or over pairs of dimensions."""
    b, (left, right) = promote_operands(x, y)
    if isinstance(axes, int):
        rank = rank_of(left)
        pairs = (tuple(range(rank - axes, rank)), tuple(range(axes)))
    else:
        pairs = (
            tuple(axis_of(a, rank_of(left)) for a in axes[0]),
            tuple(axis_of(a, rank_of(right)) for a in axes[1]),
        )
    for first, second in zip(*pairs, strict=True):
        _same(shape_of(left)[first], shape_of(right)[second], left, right)
    return Tensor(b, b.dot(left, right, DotDimensions((), (), *pairs)))


@operation
def outer(x: ArrayLike, y: ArrayLike) -> Tensor:
    """All products of an element of x and one of y, each raveled."""
    from gcomp.ops.movement import expand_dims, ravel

    return expand_dims(ravel(x), 1) * expand_dims(ravel(y), 0)


@operation
def inner(x: ArrayLike, y: ArrayLike) -> Tensor:
    """The sum of products over the last dimensions."""
    b, (left, right) = promote_operands(x, y)
    if not rank_of(left) or not rank_of(right):
        return Tensor(b, b.multiply(left, right))
    _same(shape_of(left)[-1], shape_of(right)[-1], left, right)
    return Tensor(b, b.dot(left, right, DotDimensions((), (), (rank_of(left) - 1,), (rank_of(right) - 1,))))


# ---- einsum ---------------------------------------------------------------------------------------------------------


@operation
def einsum(subscripts: str, *operands: ArrayLike) -> Tensor:
    """Einstein's summation as in NumPy, two operands at a time from the left; `...` stands for dimensions that
    broadcast."""
    terms, output = _terms(subscripts, len(operands))
    b, values = promote_operands(*operands)
    terms, output = _spell_labels(terms, output, values)
    pairs = [_Term(labels, value) for labels, value in zip(terms, values, strict=True)]
    for place, term in enumerate(pairs):
        others = {label for i, other in enumerate(pairs) if i != place for label in other.labels}
        pairs[place] = _reduce_term(b, term, {*others, *output})
    while len(pairs) > 1:
        left, right, *rest = pairs
        pairs = [_product(b, left, right, {label for t in rest for label in t.labels} | set(output)), *rest]
    found = _reduce_term(b, pairs[0], set(output))
    return Tensor(b, b.transpose(found.value, [found.labels.index(label) for label in output]))


class _Term:
    """A value and the labels of its dimensions."""

    def __init__(self, labels: Sequence[str], value: SSAValue) -> None:
        self.labels, self.value = list(labels), value


def _terms(subscripts: str, count: int) -> tuple[list[str], str | None]:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != count:
        raise UsageError(f"the subscripts {subscripts!r} are for {len(terms)} operands, not {count}")
    for term in (*terms, output):
        if not all(c.isalpha() for c in term.replace("...", "", 1)):
            raise UsageError(f"{term!r} is no term of letters and one `...`", why=f"the subscripts are {subscripts!r}")
    return terms, output if arrow else None


def _spell_labels(
    terms: Sequence[str], output: str | None, values: Sequence[SSAValue]
) -> tuple[list[list[str]], list[str]]:  # fmt: skip
    """Labels for every dimension, `...` as labels of its own, and the output's: in alphabetical order by default."""
    spelled: list[list[str]] = []
    most = 0
    for term, value in zip(terms, values, strict=True):
        extra = rank_of(value) - len(term.replace("...", ""))
        if extra < 0 or (extra and "..." not in term):
            raise UsageError(f"the term {term!r} is not for an operand of rank {rank_of(value)}")
        most = max(most, extra if "..." in term else 0)
        before, dots, after = term.partition("...")
        spelled.append([*before, *([f".{extra - i}" for i in range(extra)] if dots else []), *after])
    broad = [f".{most - i}" for i in range(most)]
    if output is None:
        count = [label for term in spelled for label in term]
        once = sorted(label for label in set(count) if count.count(label) == 1 and label[0] != ".")
        return spelled, [*broad, *once]
    before, dots, after = output.partition("...")
    labels = [*before, *(broad if dots else []), *after]
    if unknown := [label for label in labels if not any(label in term for term in spelled)]:
        raise UsageError(f"the output has the label {unknown[0]!r}, which no operand has")
    if len(set(labels)) != len(labels):
        raise UsageError(f"the output {output!r} has a label twice")
    return spelled, labels


def _reduce_term(b: Builder, term: _Term, kept: set[str]) -> _Term:
    """A term with repeated labels as diagonals, and without the labels that nothing else needs."""
    labels, value = list(term.labels), term.value
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            value = _diagonal(b, value, first, second)
            del labels[second]
    gone = [i for i, label in enumerate(labels) if label not in kept]
    if gone:
        value = b.reduce(_adding(value), value, gone)
    return _Term([label for label in labels if label in kept], value)


def _adding(value: SSAValue) -> type[hlo.AddOp] | type[hlo.OrOp]:
    return hlo.OrOp if dtype_text(value.type) == "i1" else hlo.AddOp


def _diagonal(b: Builder, value: SSAValue, first: int, second: int) -> SSAValue:
    shape = shape_of(value)
    if not same_size(shape[first], shape[second]):
        raise UsageError(f"a repeated label stands for dimensions of sizes {shape[first]} and {shape[second]}")
    own = b.compare(b.iota(shape, first), b.iota(shape, second), "EQ")
    return b.reduce(_adding(value), b.select(own, value, b.full_like(value, 0)), [second])


def _product(b: Builder, left: _Term, right: _Term, kept: set[str]) -> _Term:
    """The product of two terms, summed over the labels that nothing else needs."""
    left, right = _match_sizes(b, left, right), _match_sizes(b, right, left)
    shared = [label for label in left.labels if label in right.labels]
    for label in shared:
        first, second = (shape_of(t.value)[t.labels.index(label)] for t in (left, right))
        _same(first, second, left.value, right.value)
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    places = (tuple(t.labels.index(x) for x in part) for part in (batch, summed) for t in (left, right))
    value = b.dot(left.value, right.value, DotDimensions._make(places))
    free = [x for t in (left, right) for x in t.labels if x not in shared]
    return _reduce_term(b, _Term([*batch, *free], value), kept)


def _match_sizes(b: Builder, term: _Term, other: _Term) -> _Term:
    """A term without dimensions of size 1 that broadcast against the other's."""
    sizes = dict(zip(other.labels, shape_of(other.value), strict=True))
    own = shape_of(term.value)
    gone = [i for i, x in enumerate(term.labels) if own[i] == 1 and x in sizes and sizes[x] != 1]
    if not gone:
        return term
    shape = [s for i, s in enumerate(own) if i not in gone]
    return _Term([x for i, x in enumerate(term.labels) if i not in gone], b.reshape(term.value, shape))


__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot"]
