"""A convolution by windows of 3x3 with many channels is computed by values at points (`gcomp.ir.winograd`), with a half
to a fourth of the products, where a model of the machine says that this is faster, and where its error against f64 is
at most twice that of plain sums: which is measured, with the layer's own weights, for tiles of 4x4 results and of 2x2.

Where an image holds an infinity or NaN, all results of a tile that reads it are NaN. Weights are transformed once, in
f64. Images are padded to whole tiles: by whoever pads them for the convolution anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Operation, SSAValue

from gcomp.analysis.constants import stored_array
from gcomp.analysis.machines import Machine, machine_named
from gcomp.analysis.winograd import Errors, Ways, errors, layers_of, ways_of
from gcomp.dims import DimLimitError, Size, ceildiv, product
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.composites import CONSIDERED, MEASURED, composite, trust
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.ir.winograd import PAIRS, WINDOW, transformed
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

Array = np.ndarray[Any, Any]
LEAST = 16
"""Channels, and features, of a layer, at least: they fill vectors."""


class ConvolutionToWinograd(Pattern):
    """A convolution with channels last, no padding and known weights becomes products at points."""

    name = "convolution-to-winograd"
    roots = (hlo.ConvolutionOp,)
    exactness = Exactness.E2

    def __init__(self, machine: Machine | None = None, factor: int = 2) -> None:
        self.machine, self.factor = machine or machine_named("x86-64-v4"), factor
        self.considered: dict[Operation, DictionaryAttr] = {}
        """What was said of each convolution that was asked about, and of the composite that it became."""

    def applies(self, op: hlo.ConvolutionOp) -> bool:
        return _is_plain(op) and {dtype_text(v.type) for v in (op.lhs, op.rhs, op.result)} == {"f32"}

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        (_, height, width, features), image = shape_of(op.result), shape_of(op.lhs)
        weights = stored_array(op.rhs, b.program)
        panel = next((c for c in self.machine.panels if isinstance(features, int) and features % c == 0), None)
        if weights is None or panel is None or (image[1] - 2, image[2] - 2) != (height, width):
            return None
        channels: int = weights.shape[2]
        if channels < LEAST or channels % LEAST or 0 in shape_of(op.result) or not _has_short_sizes(op):
            return None
        layers = layers_of(shape_of(op.result), channels, weights.shape[3], b.program.ranges)
        ways, inexact = ways_of(layers, self.machine), dict[int, float]()
        for m in ways.tiles:
            values = transformed(weights, m, panel)
            measured = errors(weights, values, m)
            if measured.ratio <= self.factor:
                found = _by_points(op, b, m, values, measured)
                assert isinstance(found.owner, Operation)
                self.considered[found.owner] = _said(ways, inexact)
                return [found]
            inexact[m] = measured.ratio
        self.considered[op] = _said(ways, inexact)
        return None


def _said(ways: Ways, inexact: Mapping[int, float]) -> DictionaryAttr:
    """The seconds of each way, and how many times the error of plain sums those have that are too inexact."""
    found = {"sums": ways.sums, **{f"winograd {m}x{m}": time for m, time in ways.points.items()}}
    found |= {f"error of winograd {m}x{m}": ratio for m, ratio in inexact.items()}
    return DictionaryAttr({name: FloatAttr(value, f64) for name, value in found.items()})


def _is_plain(op: hlo.ConvolutionOp) -> bool:
    """Channels last, windows of 3x3 at every position, no padding (which `conv-padding-apart` takes out), no groups."""
    window, ones = op.window(), ("window_strides", "lhs_dilation", "rhs_dilation")
    return (
        op.is_channels_last
        and shape_of(op.rhs)[:2] == (WINDOW, WINDOW)
        and len(shape_of(op.rhs)) == 4
        and op.value("feature_group_count") == op.value("batch_group_count") == 1
        and all(pair == (0, 0) for pair in window["padding"])
        and all(step == 1 for name in ones for step in window[name])
        and not any(window["window_reversal"])
    )


def _has_short_sizes(op: hlo.ConvolutionOp) -> bool:
    """Whether formulas are short enough to say how large all tiles together are."""
    images, height, width, features = shape_of(op.result)
    try:
        for m in PAIRS:
            product([images, m * ceildiv(height, m), m * ceildiv(width, m), features])
    except DimLimitError:
        return False
    return True


def _by_points(op: hlo.ConvolutionOp, b: Builder, m: int, values: Array, measured: Errors) -> SSAValue:
    """The same by products at points."""
    _, height, width, _ = shape_of(op.result)
    owner = op.rhs.owner
    name = owner.symbol if isinstance(owner, WeightOp) else "window"
    attributes = {"tile": m, "slice_sizes": (height, width)}
    (found,) = composite(b, "gcomp.winograd", [_in_tiles(op, b, m), b.weight(name, values)], attributes)
    assert isinstance(found.owner, hlo.CompositeOp)
    trust(found.owner)
    found.owner.attributes[MEASURED] = DictionaryAttr({
        "algorithm": StringAttr(f"winograd {m}x{m}"),
        "error": FloatAttr(measured.transformed, f64),
        "exact": FloatAttr(measured.exact, f64),
    })  # fmt: skip
    return found


def _in_tiles(op: hlo.ConvolutionOp, b: Builder, m: int) -> SSAValue:
    """The image, with as many rows and columns as whole tiles read."""
    _, height, width, _ = shape_of(op.result)
    missing: list[Size] = [0, m * ceildiv(height, m) - height, m * ceildiv(width, m) - width, 0]
    if all(n == 0 for n in missing):
        return op.lhs
    pad = op.lhs.owner
    if isinstance(pad, hlo.PadOp):
        low, high = sizes_of(pad.edge_padding_low), sizes_of(pad.edge_padding_high)
        high = [n + more for n, more in zip(high, missing, strict=True)]
        return b.pad(pad.operand, pad.padding_value, low, high, pad.value("interior_padding"))
    return b.pad(op.lhs, b.scalar_like(op.lhs, 0), [0] * 4, missing)


@dataclass(frozen=True)
class ChooseConvolutions(Pass):
    """Compute convolutions with fewer products where that pays on a machine (`target`), and is off by at most so many
    times (`factor`) what plain sums are."""

    name: ClassVar[str] = "choose-convolutions"
    exactness: ClassVar[Exactness] = Exactness.E2

    target: str = "cpu"
    factor: int = 2

    def run(self, program: Program, context: PassContext) -> bool:
        pattern = ConvolutionToWinograd(machine_named(self.target), self.factor)
        changed = apply_rewrites(program, (pattern,), context)
        for op, said in pattern.considered.items():
            op.attributes[CONSIDERED] = said
        return changed or bool(pattern.considered)


__all__ = ["ChooseConvolutions", "ConvolutionToWinograd"]
