"""A pooling window becomes an elementwise fold of shifted slices: the maximum (or sum) of what each window point reads.
One that reads everything becomes a reduction.

XLA's CPU backend vectorizes the slices, and not the window (docs/guides/benchmarks.md). A sum may round in another
order: E2; a maximum or minimum is the same to the bit. Exporters write pooling over the whole image as one window,
which may be far larger than what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Ranges, Size, narrowed, symbols_of
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value

MAX_POINTS = 16
"""Larger windows stay windows: each point is an op."""
MIN_ROW = 8
"""Results along the last dimension, at least, of windows that `rows` keeps."""

_FOLDS = (hlo.MaximumOp, hlo.MinimumOp, hlo.AddOp)


class WindowToReduction(Pattern):
    """reduce_window of one tensor whose only window reads all elements, and around them the identity at most."""

    name = "window-to-reduction"
    roots = (hlo.ReduceWindowOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ReduceWindowOp, b: Builder) -> Sequence[SSAValue] | None:
        fold, x, init = applied_op(op.body), *op.operands[:2]
        shape, out = shape_of(x), shape_of(op.results[0])
        window = op.window()
        axes = [axis for axis, size in enumerate(window["window_dimensions"]) if size > 1]
        sizes = {axis: size for axis in axes if isinstance(size := shape[axis], int)}
        if fold is None or len(op.operands) != 2 or len(sizes) != len(axes):
            return None
        for axis, (size, (low, high)) in enumerate(zip(window["window_dimensions"], window["padding"], strict=True)):
            dilated = window["base_dilations"][axis] != 1 or window["window_dilations"][axis] != 1
            is_whole = axis in sizes and out[axis] == 1 and low >= 0 and size - low >= sizes[axis] and not dilated
            is_kept = (window["window_strides"][axis], low, high) == (1, 0, 0) and not dilated
            if not (is_whole if axis in axes else is_kept):
                return None
        around = prod(window["window_dimensions"]) > prod(sizes.values())
        if not axes or (around and not starts_neutral(op, fold)):
            return None
        return [b.reshape(b.insert(hlo.ReduceOp.apply(fold, x, init, axes)).results[0], out)]


def starts_neutral(op: hlo.ReduceWindowOp, fold: type[GraphOp]) -> bool:
    """Whether the initial value is the fold's identity, so that leaving it out changes nothing."""
    init = constant_value(op.operands[1])
    return init is not None and bool(init == identity(fold, dtype_text(op.operands[1].type)))


@dataclass(frozen=True)
class WindowToArithmetic(Pattern):
    """reduce_window of one tensor by maximum, minimum or sum, from the identity, over small undilated windows.

    Not of those along rows of memory, with `rows`.
    """

    rows: bool = False
    name = "window-to-arithmetic"
    roots = (hlo.ReduceWindowOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ReduceWindowOp, b: Builder) -> Sequence[SSAValue] | None:
        fold = applied_op(op.body)
        if fold not in _FOLDS or len(op.operands) != 2:
            return None
        window, out = op.window(), shape_of(op.results[0])
        dilated = any(d != 1 for d in (*window["base_dilations"], *window["window_dilations"]))
        points = list(product(*map(range, window["window_dimensions"])))
        if dilated or not 1 < len(points) <= MAX_POINTS or not starts_neutral(op, fold):
            return None
        if self.rows and _lies_along_rows(op):
            return None
        ranges = narrowed(b.program.ranges, b.program.constraints)
        if not all(_has_some(n, step, ranges) for n, step in zip(out, window["window_strides"], strict=True)):
            return None
        low, high = ([p[side] for p in window["padding"]] for side in (0, 1))
        padded = b.pad(op.operands[0], op.operands[1], low, high)
        total: SSAValue | None = None
        for point in points:
            slice = b.take(padded, point, out, window["window_strides"])
            total = slice if total is None else b.emit(fold, total, slice)
        return None if total is None else [total]


def _lies_along_rows(op: hlo.ReduceWindowOp) -> bool:
    """Whether a window goes along rows of memory, of known lengths, that are worth vectors."""
    *_, size = shape_of(op.operands[0])
    *_, count = shape_of(op.results[0])
    *_, window = op.window()["window_dimensions"]
    return window > 1 and isinstance(size, int) and isinstance(count, int) and count >= MIN_ROW


def _has_some(count: Size, step: int, ranges: Ranges) -> bool:
    """Whether a strided slice of so many elements is valid: an empty one only with stride 1."""
    if "_" in symbols_of(count):
        return False  # not known at all
    return ranges.less_equal(0 if step == 1 and isinstance(count, Dim) else 1, count) is True


@dataclass(frozen=True)
class WindowToArithmeticPass(Pass):
    """Turn small pooling windows into elementwise folds, and those that read everything into reductions.

    With `rows`, windows along rows of memory (channels first) stay windows, which processors have kernels for.
    """

    rows: bool = False
    name: ClassVar[str] = "window-to-arithmetic"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (WindowToReduction(), WindowToArithmetic(self.rows)), context)
