"""Scans, ops that are sized at run time, and what has no derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import SSAValue

from gcomp.autodiff.sweeps import Row, differentiable
from gcomp.autodiff.table import Expanded, Nothing, Refused, chooses, expands, nothing, refuses
from gcomp.decompositions.scan import scan_by_loop
from gcomp.dims import Size
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.host import HostOp
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.types import UNKNOWN, shape_of, static_shape, tensor_of

# ---- scan ----


@expands(chlo.ScanOp)
def scan(b: Builder, op: chlo.ScanOp) -> Sequence[SSAValue]:
    """A loop over the slices along the dimension."""
    return scan_by_loop(b, op, op.operands)


# ---- ops that are sized at run time ----


def _numbers(value: SSAValue) -> list[int] | None:
    source = value.owner
    if isinstance(source, hlo.ConstantOp):
        return [int(n) for n in source.elements_attr.array().reshape(-1)]
    return None


_UNSIZED = Refused("its sizes are known at run time only", "run the pass infer-shapes first, or give the inputs sizes")
_INTEGERS = Nothing("it reads a shape only")


def _has_size(op: Any) -> bool:
    return UNKNOWN not in shape_of(op.result)


def _broadcast(b: Builder, op: Any) -> Sequence[SSAValue]:
    return [b.broadcast(op.operand, shape_of(op.result), op.value("broadcast_dimensions"))]


def _reshape(b: Builder, op: Any) -> Sequence[SSAValue]:
    return [b.emit(hlo.ReshapeOp, op.operand, types=(tensor_of(op.result),))]


def _pad(b: Builder, op: Any) -> Sequence[SSAValue]:
    low, high, interior = (_numbers(v) or [] for v in op.operands[2:])
    return [b.pad(op.operand, op.padding_value, low, high, interior)]


def _slice(b: Builder, op: Any) -> Sequence[SSAValue]:
    starts, limits, strides = (_numbers(v) or [] for v in op.operands[1:])
    # A slice that would reach beyond the operand ends there.
    bounds: list[Size] = list(limits)
    return [b.slice(op.operand, starts, bounds, strides)]


def _gather(b: Builder, op: Any) -> Sequence[SSAValue]:
    sizes = _numbers(op.slice_sizes) or []
    return [b.emit(hlo.GatherOp, op.operand, op.start_indices, dimension_numbers=op.dimensions, slice_sizes=sizes)]


def _convolution(b: Builder, op: Any) -> Sequence[SSAValue]:
    amounts = _numbers(op.padding) or []
    names = ("window_strides", "lhs_dilation", "rhs_dilation", "window_reversal", "dimension_numbers",
             "feature_group_count", "batch_group_count", "precision_config")  # fmt: skip
    properties = {name: op.properties[name] for name in names if name in op.properties}
    padding = list(zip(amounts[::2], amounts[1::2], strict=True))
    return [b.emit(hlo.ConvolutionOp, op.lhs, op.rhs, types=(tensor_of(op.result),), padding=padding, **properties)]


_BY_RESULT: dict[Any, Row] = {
    hlo.DynamicBroadcastInDimOp: Expanded(_broadcast),
    hlo.DynamicReshapeOp: Expanded(_reshape),
}
_BY_CONSTANTS: dict[Any, tuple[Row, slice]] = {
    hlo.DynamicPadOp: (Expanded(_pad), slice(2, None)),
    hlo.RealDynamicSliceOp: (Expanded(_slice), slice(1, None)),
    hlo.DynamicGatherOp: (Expanded(_gather), slice(2, None)),
    hlo.DynamicConvOp: (Expanded(_convolution), slice(2, None)),
}


@chooses(*_BY_RESULT)
def by_result(op: Any) -> Row:
    """The static op, where the result's type says the sizes."""
    return _BY_RESULT[type(op)] if _has_size(op) else _UNSIZED


@chooses(*_BY_CONSTANTS)
def by_constants(op: Any) -> Row:
    """The static op, where the amounts are constants."""
    row, amounts = _BY_CONSTANTS[type(op)]
    known = all(_numbers(v) is not None for v in op.operands[amounts])
    return row if known and static_shape(op.result) is not None else _UNSIZED


# ---- what has no derivative ----

nothing("it has no operand with a derivative", hlo.ConstantOp, hlo.IotaOp, hlo.DynamicIotaOp, WeightOp, DimOp)
nothing("it reads a shape only", hlo.GetDimensionSizeOp)
nothing("it ends a function", FuncReturnOp)
nothing("random bits have no derivative in the generator's state", hlo.RngBitGeneratorOp)


@chooses(HostOp)
def host(op: Any) -> Row:
    """Host functions give positions; some give values too."""
    return _HOST if any(differentiable(r) for r in op.results) else _INTEGERS


_HOST = Refused("the host computes which of the elements its results are", "take the elements by gather at its indices")
refuses("it overlaps a computation on several devices with others", hlo.AsyncStartOp, hlo.AsyncDoneOp,
        fix="write the op in its body by itself")  # fmt: skip
refuses("gcomp reads it only", hlo.CrossReplicaSumOp, fix="write it as all_reduce")
refuses("it exchanges data with the host or another device", hlo.SendOp, hlo.RecvOp, hlo.InfeedOp, hlo.OutfeedOp)
refuses(
    "random numbers from hidden state do not say how they depend on the distribution's parameters", hlo.RngOp,
    fix="draw from a fixed distribution, and scale and shift what was drawn",
)  # fmt: skip
refuses("its rounding is part of its meaning", hlo.UniformQuantizeOp, hlo.UniformDequantizeOp)
refuses("its size is data", hlo.SetDimensionSizeOp, fix="use a mask in place of a size that is data")
refuses(
    "gcomp reads it only",
    hlo.EinsumOp,
    hlo.UnaryEinsumOp,
    hlo.TorchIndexSelectOp,
    fix="write it as dot_general or gather",
)
