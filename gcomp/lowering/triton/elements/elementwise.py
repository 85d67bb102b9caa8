"""Elementwise ops, and the functions on scalars that regions of reductions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.dtypes import bit_width, dtype_of, is_float, is_integer
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import dtype_text
from gcomp.lowering.triton.build import TileBuilder
from gcomp.lowering.triton.elements.table import Elements, elements_of, refusal
from gcomp.lowering.triton.functions import FUNCTIONS, kind_of
from gcomp.lowering.triton.tile import element, static_shape

NARROW = frozenset({"f16", "bf16", "f8E4M3FN", "f8E5M2"})
"""Floats that are computed in f32, and rounded after each op, as the graph does."""

_PLAIN: tuple[type[Operation], ...] = (
    hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.DivideOp, hlo.RemainderOp, hlo.NegateOp, hlo.AbsOp, hlo.SignOp,
    hlo.MaximumOp, hlo.MinimumOp, hlo.PowerOp, hlo.AndOp, hlo.OrOp, hlo.XorOp, hlo.NotOp, hlo.ShiftLeftOp,
    hlo.ShiftRightLogicalOp, hlo.ShiftRightArithmeticOp, hlo.IsFiniteOp, hlo.FloorOp, hlo.CeilOp,
    hlo.RoundNearestEvenOp, hlo.RoundNearestAfzOp, hlo.SqrtOp, hlo.RsqrtOp, hlo.CbrtOp, hlo.ExponentialOp,
    hlo.ExponentialMinusOneOp, hlo.LogOp, hlo.LogPlusOneOp, hlo.LogisticOp, hlo.TanhOp, hlo.SineOp, hlo.CosineOp,
    hlo.TanOp, hlo.Atan2Op, chlo.AcosOp, chlo.AcoshOp, chlo.AsinOp, chlo.AsinhOp, chlo.AtanOp, chlo.AtanhOp,
    chlo.CoshOp, chlo.SinhOp, chlo.ErfOp, chlo.ErfcOp, chlo.ErfInvOp, chlo.LgammaOp, chlo.NextAfterOp, chlo.SquareOp,
    chlo.IsInfOp, chlo.IsPosInfOp, chlo.IsNegInfOp,
)  # fmt: skip
"""Ops whose function has the op's name."""

Compute = Callable[[TileBuilder, Any, Sequence[SSAValue]], SSAValue]

_OTHERS: dict[type[Operation], Compute] = {}


def _computes(*ops: type[Operation]) -> Callable[[Compute], Compute]:
    def register(function: Compute) -> Compute:
        for op in ops:
            _OTHERS[op] = function
        return function

    return register


@elements_of(*_PLAIN, hlo.CompareOp, hlo.SelectOp, hlo.ClampOp, hlo.ConvertOp)
def elementwise(elements: Elements, op: Operation, result: int, access: IndexingMap) -> SSAValue:
    """The op's function of the operands' elements."""
    return compute(elements.b, op, elements.operands(op, result, access))


def compute(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """An elementwise op on tiles of its operands' elements."""
    if type(op) in _OTHERS:
        return _OTHERS[type(op)](b, op, operands)
    return rounded(b, op, op.name.partition(".")[2], operands)


def rounded(b: TileBuilder, op: Operation, function: str, operands: Sequence[SSAValue]) -> SSAValue:
    """A function of tiles; of narrow floats in f32, rounded to the operands' type."""
    kinds = [element(v) for v in operands]
    if why := FUNCTIONS[function].refuses(["f32" if k in NARROW else k for k in kinds]):
        raise refusal(op, why)
    found = b.apply(function, *[b.cast(v, "f32") if k in NARROW else v for v, k in zip(operands, kinds, strict=True)])
    return b.cast(found, kinds[-1]) if kinds[-1] in NARROW and element(found) == "f32" else found


@_computes(hlo.SelectOp)
def _select(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return b.apply("select", *operands)


@_computes(hlo.ClampOp)
def _clamp(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    least, x, most = operands
    return rounded(b, op, "minimum", [rounded(b, op, "maximum", [x, least]), most])


@_computes(hlo.CompareOp)
def _compare(b: TileBuilder, op: Any, operands: Sequence[SSAValue]) -> SSAValue:
    kind = element(operands[0])
    if kind_of(kind) == "complex":
        raise refusal(op, "it compares complex numbers")
    if op.value("compare_type") == "TOTALORDER" and kind_of(kind) in ("f32", "f64", "narrow"):
        operands = [_total_order(b, x) for x in operands]
    elif kind == "i1":
        operands = [b.cast(x, "i32") for x in operands]
    return rounded(b, op, str(op.value("comparison_direction")).lower(), operands)


def _total_order(b: TileBuilder, x: SSAValue) -> SSAValue:
    """Integers in the order of floats, -NaN < -inf < ... < -0 < 0 < ... < NaN."""
    width = bit_width(element(x))
    bits = b.bitcast(x, f"i{width}")
    flipped = b.apply("xor", bits, b.constant((1 << (width - 1)) - 1, f"i{width}"))
    return b.apply("select", b.apply("lt", bits, b.constant(0, f"i{width}")), flipped, bits)


@_computes(hlo.ConvertOp)
def _convert(b: TileBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return convert(b, op, operands[0], dtype_text(op.results[0].type))


def convert(b: TileBuilder, op: Operation, x: SSAValue, to: str) -> SSAValue:
    """Elements in another type, as `stablehlo.convert` does it (docs/semantics.md)."""
    source = element(x)
    if source == to:
        return x
    if kind_of(to) == "complex" or kind_of(source) == "complex":
        raise refusal(op, "it converts complex numbers")
    if (kind_of(to) == "narrow" and to not in NARROW) or (kind_of(source) == "narrow" and source not in NARROW):
        raise refusal(op, f"there is no {to if to not in NARROW else source} on the GPU")
    if source in NARROW and to != "f32":
        x, source = b.cast(x, "f32"), "f32"
    if to == "i1":
        return b.apply("ne", x, b.constant(0, source))
    if is_float(source) and is_integer(to):
        return _to_integer(b, x, to)
    if source == "i1" and to in NARROW:
        x = b.cast(x, "f32")
    elif to in NARROW and is_integer(source):
        # An integer is rounded once: f64 holds those of up to 53 bits, and narrower ones fit f32.
        x = b.cast(x, "f32" if bit_width(source) <= 16 else "f64")
    return b.cast(x, to)


def _to_integer(b: TileBuilder, x: SSAValue, to: str) -> SSAValue:
    """Towards zero; NaN is 0, and what is too large or too small is the greatest or least integer."""
    limits = np.iinfo(dtype_of(to))
    source = element(x)
    low, high = b.constant(float(limits.min), source), b.constant(float(int(limits.max) + 1), source)
    above, below = b.apply("ge", x, high), b.apply("lt", x, low)
    inside = b.apply("and", b.apply("lt", x, high), b.apply("ge", x, low))
    found = b.cast(b.apply("select", inside, x, b.constant(0.0, source)), to)
    found = b.apply("select", above, b.constant(int(limits.max), to), found)
    return b.apply("select", below, b.constant(int(limits.min), to), found)


# ---- regions ------------------------------------------------------------------------------------------------------


def apply_region(b: TileBuilder, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """A region on rank-0 tensors, as a function on tiles."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        if isinstance(op, hlo.ConstantOp):
            values[op.results[0]] = b.constant(op.elements_attr.splat(), dtype_text(op.results[0].type))
            continue
        if (type(op) not in _OTHERS and type(op) not in _PLAIN) or any(v not in values for v in op.operands):
            raise refusal(op, "the region of a reduction holds elementwise ops only")
        values[op.results[0]] = compute(b, op, [values[v] for v in op.operands])
    return []


WIDENED = frozenset({"stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum"})


def accumulator(block: Block, dtype: str) -> str:
    """The type in which a region's results are accumulated: f32 for sums and products of narrow floats."""
    plain = all(op.name in WIDENED or isinstance(op, ReturnOp) for op in block.ops)
    return "f32" if dtype in NARROW and plain else dtype


__all__ = ["NARROW", "accumulator", "apply_region", "compute", "convert", "static_shape"]
