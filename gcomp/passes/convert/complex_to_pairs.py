"""Complex numbers become pairs of real ones, for targets that have no complex type.

What a program takes and returns stays complex: `real` and `imag` of inputs, and `complex` of results, are all that is
left. How each op computes the parts of its results is in `gcomp.pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.pairs.arithmetic import RULES
from gcomp.pairs.structure import (
    bits_of_parts,
    clamp_parts,
    constant,
    extremum,
    move_parts,
    number_parts,
    product,
    real_part,
    spread_op,
)
from gcomp.pairs.table import FUNCTIONS, compute_parts
from gcomp.pairs.transforms import transform_parts
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, Rewrite, apply_rewrites


class PairsOfConstant(Pattern):
    """A constant, or a weight, as two."""

    name = "pairs-of-constant"
    roots = (hlo.ConstantOp, WeightOp)

    def rewrite(self, op: hlo.ConstantOp | WeightOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := constant(op, b)) is None else [found]


class PairsOfMovement(Pattern):
    """Other ops that move elements move the parts in the same way."""

    name = "pairs-of-movement"
    roots = (
        hlo.ConcatenateOp, hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp, hlo.GatherOp, hlo.DynamicBroadcastInDimOp,
        hlo.DynamicReshapeOp, hlo.PadOp, hlo.SliceOp,
    )  # fmt: skip

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := move_parts(op, b)) is None else [found]


class PairsOfRegions(Pattern):
    """What is carried, folded or sorted is both parts, one after the other, of every complex value."""

    name = "pairs-of-regions"
    roots = (
        hlo.IfOp, hlo.CaseOp, hlo.WhileOp, hlo.ReduceOp, hlo.ReduceWindowOp, hlo.ScatterOp, hlo.SortOp,
        hlo.OptimizationBarrierOp,
    )  # fmt: skip

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return spread_op(op, b)


class PairsOfExtremum(Pattern):
    """The greater or the lesser number, in the order of real parts and then of imaginary ones."""

    name = "pairs-of-extremum"
    roots = (hlo.MaximumOp, hlo.MinimumOp)

    def rewrite(self, op: hlo.MaximumOp | hlo.MinimumOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := extremum(op, b)) is None else [found]


class PairsOfClamp(Pattern):
    """A number between others, in the order of real parts and then of imaginary ones."""

    name = "pairs-of-clamp"
    roots = (hlo.ClampOp,)

    def rewrite(self, op: hlo.ClampOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := clamp_parts(op, b)) is None else [found]


class PairsOfIota(Pattern):
    """Indices are real."""

    name = "pairs-of-iota"
    roots = (hlo.IotaOp,)

    def rewrite(self, op: hlo.IotaOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := number_parts(op, b)) is None else [found]


class PairsMadeReal(Pattern):
    """A conversion of complex numbers to others is one of their real parts."""

    name = "pairs-made-real"
    roots = (hlo.ConvertOp,)

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := real_part(op, b)) is None else [found]


class PairsOfBits(Pattern):
    """The bits of complex numbers are those of their parts."""

    name = "pairs-of-bits"
    roots = (hlo.BitcastConvertOp,)

    def rewrite(self, op: hlo.BitcastConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := bits_of_parts(op, b)) is None else [found]


class PairsOfProducts(Pattern):
    """A sum of products, as four of parts."""

    name = "pairs-of-products"
    roots = (hlo.DotGeneralOp, hlo.ConvolutionOp)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.ConvolutionOp, b: Builder) -> Sequence[SSAValue] | None:
        return None if (found := product(op, b)) is None else [found]


class PairsOfFunction(Pattern):
    """A function of complex numbers, as a formula of their parts."""

    name = "pairs-of-function"
    roots = tuple(FUNCTIONS)
    exactness = Exactness.E2

    def rewrite(self, op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
        return compute_parts(op, b)


class PairsOfTransform(Pattern):
    """A Fourier transform, as products with matrices of roots of unity."""

    name = "pairs-of-fft"
    roots = (hlo.FftOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.FftOp, b: Builder) -> Sequence[SSAValue] | None:
        return [transform_parts(op, b)]


PATTERNS: tuple[Rewrite, ...] = (
    *RULES,
    PairsOfConstant(),
    PairsOfMovement(),
    PairsOfRegions(),
    PairsOfExtremum(),
    PairsOfClamp(),
    PairsOfIota(),
    PairsMadeReal(),
    PairsOfBits(),
    PairsOfProducts(),
    PairsOfFunction(),
    PairsOfTransform(),
)


@dataclass(frozen=True)
class ComplexToPairs(Pass):
    """Compute with the parts of complex numbers."""

    name: ClassVar[str] = "complex-to-pairs"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, PATTERNS, context)
