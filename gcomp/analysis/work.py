"""How much work an op is: arithmetic per element of its result, and elements of memory, in nominal sizes.

Symbolic sizes count as what `Nominal` binds them to: a cost model compares programs, and must not depend on a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from xdsl.ir import Attribute, Operation, SSAValue

from gcomp import dims
from gcomp.analysis.windows import offsets_of
from gcomp.dims import Range, Ranges, Size, product, symbols_of
from gcomp.dtypes import bit_width
from gcomp.errors import InternalError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.families import APPROXIMATED, PLAIN, SIMPLE
from gcomp.ir.locations import where
from gcomp.ir.op import GraphOp
from gcomp.ir.roles import PER_ELEMENT, ROLES, Role, role_of
from gcomp.ir.types import COMPLEX, dtype_text, element_of, is_tensor, shape_of

T = TypeVar("T")

LARGEST_NOMINAL = 512
"""An open or wide range counts as at most this."""

TRANSCENDENTAL = 16
"""Flops that a transcendental function counts for: about what its polynomial takes."""

_WEIGHTS_OF_PLAIN: dict[type[Operation], int] = {
    **dict.fromkeys(SIMPLE, 1),
    **dict.fromkeys(APPROXIMATED, TRANSCENDENTAL),
    hlo.RemainderOp: TRANSCENDENTAL,
    **dict.fromkeys((hlo.DivideOp, hlo.SqrtOp, hlo.RsqrtOp), 4),
}
_WEIGHTS = _WEIGHTS_OF_PLAIN | {op: _WEIGHTS_OF_PLAIN[plain] for op, plain in PLAIN.items()}
"""Op of single elements -> flops for one of them; what broadcasts is as much work as what it applies."""

_FREE = frozenset({Role.GENERATOR, Role.VIEW, Role.MOVEMENT, Role.INDIRECT})
_OUTSIDE = frozenset({Role.SOURCE, Role.CONTROL, Role.HOST, Role.EFFECT, Role.REINTERPRETATION})
"""What no kernel holds: it is about as much work as it reads. What runs in its regions is counted by itself."""


@dataclass
class Nominal:
    """One size for each symbol: the top of its range, or `LARGEST_NOMINAL` where that is open or beyond."""

    ranges: Ranges
    _cache: dict[Size, int] = field(default_factory=dict[Size, int])

    def size(self, size: Size) -> int:
        """The nominal value of a size."""
        if isinstance(size, int):
            return size
        if size not in self._cache:
            self._cache[size] = max(0, dims.evaluate(size, {name: self._symbol(name) for name in symbols_of(size)}))
        return self._cache[size]

    def sizes(self, symbols: Iterable[str]) -> dict[str, int]:
        """The nominal sizes of some symbols."""
        return {name: self._symbol(name) for name in symbols}

    def closed(self, symbols: Iterable[str]) -> Ranges:
        """The ranges of some symbols, each of them up to its nominal size."""
        known = {name: self.ranges[name] for name in symbols}
        return Ranges({n: Range(r.lo, self._symbol(n), r.multiple_of) for n, r in known.items()})

    def _symbol(self, name: str) -> int:
        known = self.ranges[name]
        high = LARGEST_NOMINAL if known.hi is None else min(known.hi, LARGEST_NOMINAL)
        return max(known.lo, high // known.multiple_of * known.multiple_of)

    def elements(self, value: SSAValue | Attribute) -> int:
        """How many elements a tensor has."""
        return prod(self.size(s) for s in shape_of(value))

    def largest(self, values: Iterable[SSAValue]) -> int:
        """The elements of the largest of some values; 0 without tensors."""
        return max((self.elements(v) for v in values if is_tensor(v.type)), default=0)

    def bytes(self, value: SSAValue | Attribute) -> int:
        """How many bytes a tensor takes in memory; nothing for values that are not tensors."""
        type = value.type if isinstance(value, SSAValue) else value
        return element_bytes(type) * self.elements(type) if is_tensor(type) else 0


@dataclass(frozen=True)
class Formulas:
    """Sizes as they stand: work that a call's sizes decide."""

    nominal: Nominal
    """Which of several values is the largest."""

    def size(self, size: Size) -> Size:
        """The size itself."""
        return size

    def elements(self, value: SSAValue | Attribute) -> Size:
        """How many elements a tensor has."""
        return product(shape_of(value))

    def largest(self, values: Iterable[SSAValue]) -> Size:
        """The elements of the value that is the largest in nominal sizes; 0 without tensors."""
        tensors = [v for v in values if is_tensor(v.type)]
        return self.elements(max(tensors, key=self.nominal.elements)) if tensors else 0


Sizes = Nominal | Formulas
"""What sizes count as."""


def element_bytes(type: Attribute) -> int:
    """Bytes of one element as it lies in memory: at least one (i1, i4 and the like are not packed)."""
    return max(1, bit_width(dtype_text(type)) // 8)


def flops_per_element(op: Operation) -> int:
    """Arithmetic for one element of a result of an op of `PER_ELEMENT`'s roles."""
    if role_of(op) in _FREE:
        return 0
    weight = _row(_WEIGHTS, op)
    if op.results and is_tensor(op.results[0].type) and element_of(op.results[0]) in COMPLEX:
        return 4 * weight
    return weight


def anchor_flops(op: Operation, nominal: Nominal) -> int:
    """Arithmetic of a whole op that combines elements: the terms of its sums, twice where they are products."""
    return nominal.size(_anchor(op, nominal))


def _anchor(op: Operation, sizes: Sizes) -> Size:
    if not isinstance(op, GraphOp):
        return _by_operand(op, sizes)  # a call, or a launch: it is in no kernel
    return _row(_ANCHORS, op)(op, sizes)


def _row(table: Mapping[type[Operation], T], op: Operation) -> T:
    if type(op) not in table:
        raise InternalError(f"gcomp.analysis.work has no row for {op.name}", where=where(op))
    return table[type(op)]


def flops_of(op: Operation, nominal: Nominal) -> int:
    """Arithmetic of a whole op by itself; none of what has no results."""
    return nominal.size(_flops(op, nominal))


def flops_formula(op: Operation, nominal: Nominal) -> Size:
    """As `flops_of`, in the sizes of a call; nominal ones decide which operand is the largest."""
    return _flops(op, Formulas(nominal))


def _flops(op: Operation, sizes: Sizes) -> Size:
    if not op.results:
        return 0
    if role_of(op) in PER_ELEMENT:
        return flops_per_element(op) * sizes.elements(op.results[0])
    return _anchor(op, sizes)


def _contraction(op: hlo.DotGeneralOp, sizes: Sizes) -> Size:
    contracted = (shape_of(op.lhs)[i] for i in op.dimensions.lhs_contracting_dimensions)
    return 2 * sizes.elements(op.results[0]) * product(map(sizes.size, contracted))


def _convolution(op: hlo.ConvolutionOp | hlo.DynamicConvOp, sizes: Sizes) -> Size:
    features = op.dimension_numbers.data.kernel_output_feature_dimension
    terms = (size for i, size in enumerate(shape_of(op.rhs)) if i != features)
    return 2 * sizes.elements(op.results[0]) * product(map(sizes.size, terms))


def _window(op: hlo.ReduceWindowOp, sizes: Sizes) -> Size:
    return sizes.elements(op.results[0]) * product(map(sizes.size, offsets_of(op)))


def _sort(op: Operation, sizes: Sizes) -> Size:
    nominal = sizes if isinstance(sizes, Nominal) else sizes.nominal
    return sizes.largest(op.operands) * max(1, nominal.largest(op.operands).bit_length())


def _composite(op: hlo.CompositeOp, sizes: Sizes) -> Size:
    """What its decomposition does: an attention has two products, which none of its operands shows."""
    function = op.function()
    if function is None:
        return _by_operand(op, sizes)
    total: Size = 0
    for inner in function.body.block.ops:
        total = total + _flops(inner, sizes)
    return total


def _by_operand(op: Operation, sizes: Sizes) -> Size:
    return sizes.largest(op.operands)


_ANCHORS: Mapping[type[Operation], Callable[[Any, Sizes], Size]] = {
    hlo.CompositeOp: _composite,
    hlo.DotGeneralOp: _contraction,
    hlo.ConvolutionOp: _convolution,
    hlo.DynamicConvOp: _convolution,
    hlo.ReduceWindowOp: _window,
    hlo.SortOp: _sort,
    chlo.TopKOp: _sort,
    **dict.fromkeys(
        (
            hlo.ReduceOp, hlo.ScatterOp, hlo.DynamicUpdateSliceOp, hlo.SelectAndScatterOp, hlo.MapOp, chlo.ScanOp,
            hlo.DotOp, hlo.EinsumOp, hlo.UnaryEinsumOp, chlo.RaggedDotOp, hlo.CholeskyOp, hlo.TriangularSolveOp,
            hlo.FftOp, hlo.BatchNormInferenceOp, hlo.BatchNormTrainingOp, hlo.BatchNormGradOp, hlo.RngOp,
            hlo.RngBitGeneratorOp, hlo.SetDimensionSizeOp, hlo.CustomCallOp,
        ),
        _by_operand,
    ),
    **{op: _by_operand for op, role in ROLES.items() if role in _OUTSIDE},
}  # fmt: skip
"""Op that combines elements, or stands between kernels -> its arithmetic."""

COSTED = frozenset(_WEIGHTS) | frozenset(_ANCHORS) | {op for op, role in ROLES.items() if role in _FREE}
"""Every op class whose work is known."""
