"""Sharding rules held to what they promise: an op is run part by part, and the parts make the whole result.

    check_rule(op, rule_of(op), Seeded(0))       # what breaks the promise, or None

Each factor along which parts need nothing else is cut, and each two of them together. The parts of the operands are
given to the op, in types of their own, on the reference; its results are put side by side where a factor passes
through, and combined where it is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from typing import Any, cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import bit_width, dtype_of, is_float
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import COMMUTATIVE, applied_op
from gcomp.ir.structures import GatherDimensions, ScatterDimensions
from gcomp.ir.types import dtype_text, static_shape, with_shape
from gcomp.ir.walking import captures
from gcomp.padding.reduction import NEUTRAL
from gcomp.partitioning import LOCAL, Kind, ShardingRule
from gcomp.partitioning.part import Part
from gcomp.partitioning.rule import Mapped
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import evaluate_op
from gcomp.testing.generate.choices import Choices
from gcomp.testing.generate.inputs import value_for

Array = np.ndarray[Any, Any]
Cut = Mapping[int, int]
"""Factor -> into how many parts."""

MADE = (hlo.ConstantOp, chlo.ConstantOp, WeightOp, DimOp)
"""Ops of which a part is what it says: a part of a file or of a text."""


@dataclass
class Checked:
    """What was run, and what was not."""

    programs: int = 0
    """Programs: an op with its operands, cut in one way."""
    wrong: list[str] = field(default_factory=list[str])


def ways(rule: ShardingRule, most: int = 12) -> Iterator[Cut]:
    """The ways to cut an op in parts that need nothing of each other: one factor, and two of them together."""
    options: dict[int, list[int]] = {}
    for i, factor in enumerate(rule.factors):
        if factor.kind in LOCAL and isinstance(size := factor.size, int) and size > 1:
            least = next(p for p in range(2, size + 1) if size % p == 0)
            options[i] = [least] if least == size or size > most else [least, size]
    yield from ({i: n} for i, counts in options.items() for n in counts)
    yield from ({i: options[i][0], j: options[j][0]} for i, j in combinations(options, 2))


def check_rule(op: Operation, rule: ShardingRule, choices: Choices, found: Checked | None = None) -> Checked:
    """Run an op cut in all ways that its rule allows, on operands of small whole numbers, with which sums are exact in
    every order, and (where nothing is summed) at the edges of their types too.

    Ops of symbolic sizes, those whose regions use values from outside, and reducers of several values are not run.
    """
    found = Checked() if found is None else found
    values = (*op.operands, *op.results)
    if isinstance(op, MADE) or captures(op) or any(static_shape(v) is None for v in values):
        return found
    for cut in ways(rule):
        summed = any(rule.factors[f].kind is Kind.REDUCTION for f in cut)
        if any(rule.factors[f].combine == "body" for f in cut):
            continue  # what its init values must be is not known
        if summed and any(_is_coarse(v) for v in op.results):
            continue  # sums of whole numbers are rounded, and so depend on their order
        for mode in ("whole",) if summed or isinstance(op, _SUMS) else ("whole", "edges"):
            args = [value_for(dtype_text(v.type), static_shape(v) or (), choices, mode) for v in op.operands]
            args = _with_neutral(op, args)
            found.programs += 1
            if why := difference(op, rule, cut, args):
                found.wrong.append(f"{op.name} {rule} cut {named(rule, cut)}: {why}")
    return found


_SUMS = (hlo.DotGeneralOp, hlo.DotOp, hlo.ConvolutionOp, hlo.ReduceOp, hlo.ReduceWindowOp, hlo.FftOp, chlo.RaggedDotOp,
         hlo.BatchNormTrainingOp, hlo.BatchNormGradOp, hlo.SelectAndScatterOp, hlo.ScatterOp, hlo.TriangularSolveOp,
         hlo.CholeskyOp)  # fmt: skip
"""Ops that add: the order in which they do may depend on sizes."""


def named(rule: ShardingRule, cut: Cut) -> str:
    """A way to cut in words."""
    return ", ".join(f"factor {f} of size {rule.factors[f].size} in {n}" for f, n in cut.items())


def difference(op: Operation, rule: ShardingRule, cut: Cut, args: Sequence[Array]) -> str | None:
    """How the parts' results differ from the whole result; None if they do not."""
    whole = evaluate_op(op, args)
    try:
        parts = {tuple(at.values()): _Part(op, rule, cut, at).run(args) for at in _places(cut)}
        kept, parts = _combined(op, rule, cut, args, parts)
        made = [_joined(rule, cut, kept, i, {at: found[i] for at, found in parts.items()}) for i in range(len(whole))]
    except (GcompError, VerifyException, ValueError) as error:
        return f"parts cannot be run: {error}"
    except _Disagreement as error:
        return str(error)
    for expected, actual in zip(whole, made, strict=True):
        if wrong := _mismatch(op, np.asarray(expected), np.asarray(actual)):
            return wrong
    return None


def _mismatch(op: Operation, expected: Array, actual: Array) -> str | None:
    found = compare(expected, actual, Exactness.E1, limit=1)
    # Vectorized functions may round an element in another way at another place of an array.
    return str(found[0]) if found and (found[0].ulps is None or found[0].ulps > 4) else None


def _places(cut: Cut) -> Iterator[dict[int, int]]:
    for at in product(*map(range, cut.values())):
        yield dict(zip(cut, at, strict=True))


class _Disagreement(Exception):
    """Devices that should hold the same hold different values."""


# ---- parts of arrays ------------------------------------------------------------------------------------------------


def part_of(array: Array, dims: Mapped, rule: ShardingRule, cut: Cut, at: Mapping[int, int]) -> Array:
    """One part of an array whose dimensions have these factors."""
    digits, index, shape = _digits(array.shape, dims, rule), list[slice](), list[int]()
    for factors, sizes in zip(dims, digits, strict=True):
        length = 1
        for f, size in zip(factors, sizes, strict=True):
            step = size // cut.get(f, 1)
            index.append(slice(at.get(f, 0) * step, (at.get(f, 0) + 1) * step))
            length *= step
        shape.append(length)
    return array.reshape([size for sizes in digits for size in sizes])[tuple(index)].reshape(shape)


def _digits(shape: Sequence[int], dims: Mapped, rule: ShardingRule) -> list[list[int]]:
    """The sizes of the factors of each dimension: in a dimension with one factor, the size that it has."""
    found: list[list[int]] = []
    for size, factors in zip(shape, dims, strict=True):
        sizes = [int(str(rule.factors[f].size)) for f in factors] if len(factors) > 1 else [size]
        if math.prod(sizes) != size:
            raise ValueError(f"factors of sizes {sizes} in a dimension of size {size}")
        found.append(sizes)
    return found


# ---- making the whole of parts --------------------------------------------------------------------------------------

Parts = Mapping[tuple[int, ...], list[Any]]
"""Where a device lies along the factors that are cut -> its results."""


def _combined(
    op: Operation, rule: ShardingRule, cut: Cut, args: Sequence[Array], parts: Parts
) -> tuple[list[int], Parts]:
    """The factors that are left where those of sums are combined, and the results then."""
    order = [*cut]
    summed = [f for f in order if rule.factors[f].kind is Kind.REDUCTION]
    if not summed:
        return order, parts
    kept = [f for f in order if f not in summed]
    groups: dict[tuple[int, ...], list[list[Any]]] = {}
    for at, found in parts.items():
        groups.setdefault(tuple(k for f, k in zip(order, at, strict=True) if f in kept), []).append(found)
    combine = rule.factors[summed[0]].combine
    if combine == "body":
        return kept, {at: _by_body(op, args, terms) for at, terms in groups.items()}
    return kept, {
        at: [_fold(op, combine, i, t) for i, t in enumerate(zip(*g, strict=True))] for at, g in groups.items()
    }


def _fold(op: Operation, combine: str | None, i: int, terms: Sequence[Array]) -> Array:
    applied, total = COMMUTATIVE[f"stablehlo.{combine}"], terms[0]
    kind = with_shape(op.results[i].type, total.shape)
    for term in terms[1:]:
        (total,) = evaluate_op(applied.of(*Block(arg_types=(kind, kind)).args), [total, term])
    return np.asarray(total)


def _by_body(op: Any, args: Sequence[Array], terms: Sequence[Sequence[Array]]) -> list[Any]:
    """Results put together by the reducer of the op itself, which folds them as it folds elements."""
    stacked = [np.stack(of_all) for of_all in zip(*terms, strict=True)]
    types = [with_shape(v.type, a.shape) for v, a in zip(op.inputs, stacked, strict=True)]
    operands = Block(arg_types=(*types, *[v.type for v in op.init_values])).args
    fold = hlo.ReduceOp.of(*operands, dimensions=(0,), regions=[op.body.clone()])
    return list(evaluate_op(fold, [*stacked, *args[len(types) :]]))


def _joined(rule: ShardingRule, cut: Cut, kept: Sequence[int], i: int, parts: Mapping[tuple[int, ...], Any]) -> Any:
    """A result of all devices: side by side along the factors that it has, and the same along the others."""
    dims = rule.results[i]
    own = [f for f in kept if any(f in factors for factors in dims)]
    found: dict[tuple[int, ...], Any] = {}
    for at, value in parts.items():
        key = tuple(k for f, k in zip(kept, at, strict=True) if f in own)
        if key in found and compare(found[key], value, Exactness.E1, limit=1):
            raise _Disagreement(f"result {i} is not the same on devices that should have the same part")
        found.setdefault(key, value)
    if not own:
        return next(iter(found.values()))
    first = next(iter(found.values()))
    sizes = [
        int(str(rule.factors[f].size)) if len(factors) > 1 else size * cut.get(f, 1)
        for factors, size in zip(dims, first.shape, strict=True)
        for f in factors
    ]
    factors = [f for each in dims for f in each]
    whole = np.empty(sizes, first.dtype)
    for at, value in found.items():
        places, steps = (
            dict(zip(own, at, strict=True)),
            [s // cut.get(f, 1) for f, s in zip(factors, sizes, strict=True)],
        )
        index = [slice(places.get(f, 0) * n, (places.get(f, 0) + 1) * n) for f, n in zip(factors, steps, strict=True)]
        whole[tuple(index)] = value.reshape(steps)
    rest = iter(sizes)
    return whole.reshape([math.prod(next(rest) for _ in each) for each in dims])


def _is_coarse(value: SSAValue) -> bool:
    text = dtype_text(value.type)
    return is_float(text) and bit_width(text) < 16


def _with_neutral(op: Operation, args: list[Array]) -> list[Array]:
    """Init values that change nothing, as the specification demands of them."""
    if not isinstance(op, hlo.ReduceOp) or (applied := applied_op(op.body)) is None:
        return args
    text = dtype_text(op.init_values[0].type)
    unit = NEUTRAL[applied](text)
    return args if unit is None else [args[0], np.asarray(unit).astype(dtype_of(text))]


# ---- one part -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """An op on the parts of its operands at one place."""

    op: Any
    rule: ShardingRule
    cut: Cut
    at: Mapping[int, int]

    @property
    def part(self) -> Part:
        """The op's part, whichever it is."""
        return Part(self.op, self.rule, self.cut)

    def shape(self, tensor: int) -> list[int]:
        """The shape of a tensor's part; results are counted after operands."""
        return [int(str(size)) for size in self.part.shape(tensor)]

    def offset(self, tensor: int, dim: int) -> int:
        """The index of a part's first element."""
        (factor,) = self.rule.tensors[tensor][dim]
        return self.at.get(factor, 0) * self.shape(tensor)[dim]

    def count(self, tensor: int, dim: int) -> int:
        """Into how many parts the major factor of a dimension is cut."""
        return self.cut.get(self.rule.tensors[tensor][dim][0], 1)

    def is_cut(self, tensor: int, dim: int) -> bool:
        """Whether a dimension is cut."""
        return any(f in self.cut for f in self.rule.tensors[tensor][dim])

    def run(self, args: Sequence[Array]) -> list[Any]:
        """The results for the parts of these operands."""
        op, rule = cast(GraphOp, self.op), self.rule
        own = [part_of(a, dims, rule, self.cut, self.at) for a, dims in zip(args, rule.operands, strict=True)]
        after = PREPARE.get(type(op), _unchanged)(self, own)
        types = [with_shape(v.type, self.shape(t)) for t, v in enumerate(op.operands)]
        part = self.part.made(Block(arg_types=types).args, [region.clone() for region in op.regions])
        part.verify_()
        results = evaluate_op(part, own)
        return [after(r) for r in results]


Prepared = Callable[[Any], Any]
"""What is done with the results."""


def _same(result: Any) -> Any:
    return result


def _unchanged(part: _Part, args: list[Array]) -> Prepared:
    return _same


def _iota(part: _Part, args: list[Array]) -> Prepared:
    offset = part.offset(0, part.op.value("iota_dimension"))
    return lambda result: (result + np.asarray(offset).astype(result.dtype)).astype(result.dtype)


def _gather(part: _Part, args: list[Array]) -> Prepared:
    n: GatherDimensions = part.op.dimensions
    inside: Array | None = None
    for k in (k for k in n.collapsed_slice_dims if part.is_cut(0, k)):
        own = part.shape(0)[k]
        count = own * part.count(0, k)
        index, view = _component(args[1], n.index_vector_dim, n.start_index_map.index(k))
        local = np.clip(index.astype(object), 0, count - 1) - part.offset(0, k)
        here = np.asarray((local >= 0) & (local < own), np.bool_)
        args[1] = view(np.clip(local, 0, own - 1).astype(args[1].dtype))
        inside = here if inside is None else inside & here
    return _same if inside is None else partial(_masked, inside, n.offset_dims)


def _masked(inside: Array, offsets: Sequence[int], result: Array) -> Array:
    """0 in the slices that lie on another device."""
    sides = iter(inside.shape)
    mask = inside.reshape([1 if dim in offsets else next(sides) for dim in range(result.ndim)])
    return np.where(mask, result, np.zeros((), result.dtype))


def _component(indices: Array, vector: int, at: int) -> tuple[Array, Callable[[Array], Array]]:
    """One number of each index, and a function that puts others in its place."""
    if vector == indices.ndim:
        return indices, _same
    place = (slice(None),) * vector + (at,)

    def put(values: Array) -> Array:
        changed = indices.copy()
        changed[place] = values
        return changed

    return indices[place], put


def _scatter(part: _Part, args: list[Array]) -> Prepared:
    op, count = part.op, len(part.op.inputs)
    n: ScatterDimensions = op.dimensions
    for k in (k for k in n.scatter_dims_to_operand_dims if part.is_cut(0, k)):
        index, view = _component(args[count], n.index_vector_dim, n.scatter_dims_to_operand_dims.index(k))
        local = index.astype(object) - part.offset(0, k)
        outside = part.shape(0)[k]
        # An index that no part of the type can say is outside in any way.
        args[count] = view(np.where((local >= 0) & (local < outside), local, outside).astype(args[count].dtype))
    summed = [f for f in part.cut if part.rule.factors[f].kind is Kind.REDUCTION]
    if any(part.at[f] for f in summed):
        text = dtype_text(op.inputs[0].type)
        unit = NEUTRAL[COMMUTATIVE[f"stablehlo.{part.rule.factors[summed[0]].combine}"]](text)
        args[0] = np.full_like(args[0], np.asarray(unit).astype(dtype_of(text)))
    return _same


PREPARE: dict[type[Operation], Callable[[_Part, list[Array]], Prepared]] = {
    hlo.IotaOp: _iota,
    hlo.GatherOp: _gather,
    hlo.ScatterOp: _scatter,
}
"""Op class -> what is done with a part's operands and results: indices count from its beginning."""
