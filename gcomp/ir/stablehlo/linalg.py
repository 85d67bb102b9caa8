"""Linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, BoolAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect

from gcomp import dims
from gcomp.ir.assembly import EnumWord, OptionalLower, SameOperandsAndResultType, Sizes
from gcomp.ir.attributes import sizes_of
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.enums import FftTypeAttr, TransposeAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.types import (
    COMPLEX,
    ELEMENT_TYPES,
    FLOATS,
    dtype_text,
    element_of,
    rank_of,
    real_element,
    same_shape,
    same_size,
    shape_of,
    tensor,
    with_shape,
)


def _check_square(op: GraphOp, a: Attribute, rank: str, size: str) -> None:
    if rank_of(a) < 2:
        op.fail(rank, f"{a} has a rank below 2")
    if not same_size(shape_of(a)[-2], shape_of(a)[-1]):
        op.fail(size, f"{a} does not hold square matrices")


@irdl_op_definition
class CholeskyOp(GraphOp):
    """The triangular factor of each Hermitian positive definite matrix; only one triangle of it is read."""

    name = "stablehlo.cholesky"
    ELEMENTS: ClassVar = FLOATS | COMPLEX
    a = operand_def(AnyTensorTypeConstr)
    lower = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (OptionalLower, SameOperandsAndResultType)
    assembly_format = (
        "$a custom<OptionalLower>($lower) attr-dict `:` custom<SameOperandsAndResultType>(type($a), type($result))"
    )

    def infer(self) -> Sequence[Attribute]:
        return (self.a.type,)

    def check(self) -> None:
        _check_square(self, self.a.type, "C2", "C3")


@irdl_op_definition
class TriangularSolveOp(GraphOp):
    """Solve `a @ x = b` (or `x @ a = b`) for triangular matrices `a`, of which only one triangle is read."""

    name = "stablehlo.triangular_solve"
    ELEMENTS: ClassVar = FLOATS | COMPLEX
    a = operand_def(AnyTensorTypeConstr)
    b = operand_def(AnyTensorTypeConstr)
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        return (self.b.type,)

    def check(self) -> None:
        if element_of(self.a) != element_of(self.b):
            self.fail("C1", "operands have different element types")
        if rank_of(self.a) != rank_of(self.b):
            self.fail("C2", "operands have different ranks")
        _check_square(self, self.a.type, "C2", "C3")
        a, b = shape_of(self.a), shape_of(self.b)
        if not same_shape(a[:-2], b[:-2]) or not same_size(a[-1], b[-2 if self.value("left_side") else -1]):
            self.fail("C3", f"{self.a.type} does not multiply {self.b.type}")


@irdl_op_definition
class FftOp(GraphOp):
    """Discrete Fourier transform over the last `size(fft_length)` dimensions."""

    name = "stablehlo.fft"
    ELEMENTS: ClassVar = frozenset(ELEMENT_TYPES[t] for t in ("f32", "f64")) | COMPLEX
    operand = operand_def(AnyTensorTypeConstr)
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(Attribute)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (EnumWord, Sizes)
    assembly_format = (
        "$operand `,` `type` `=` custom<EnumWord>($fft_type) `,` `length` `=` custom<Sizes>($fft_length) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        kind, lengths = self.value("fft_type"), sizes_of(self.fft_length)
        shape, element = shape_of(self.operand), element_of(self.operand)
        if not 1 <= len(lengths) <= 3:
            self.fail("C3", f"{len(lengths)} dimensions are transformed, expected one to three")
        if len(lengths) > len(shape):
            self.fail("C1", f"{len(lengths)} dimensions are transformed of rank {len(shape)}")
        if (element in COMPLEX) == (kind == "RFFT"):
            self.fail("C2", f"{kind} does not take {dtype_text(element)}")
        if kind in ("FFT", "IFFT"):
            return (self.operand.type,)
        if kind == "RFFT":
            if not same_shape(shape[-len(lengths) :], lengths):
                self.fail("C4", f"fft_length {list(lengths)} is not the shape of the real operand")
            last = dims.floordiv(lengths[-1], 2) + 1 if lengths[-1] != 0 else 0
            return (tensor((*shape[:-1], last), f"complex<{dtype_text(element)}>"),)
        return (with_shape(tensor((), real_element(self.operand)), (*shape[:-1], lengths[-1])),)

    def check(self) -> None:
        lengths = sizes_of(self.fft_length)
        shape = shape_of(self.operand)
        if self.value("fft_type") != "IRFFT":
            return
        if not same_shape(shape[-len(lengths) : -1], lengths[:-1]):
            self.fail("C4", f"fft_length {list(lengths)} is not the shape of the real result")
        expected = dims.floordiv(lengths[-1], 2) + 1 if lengths[-1] != 0 else 0
        if not same_size(shape[-1], expected):
            self.fail("C5", f"the operand's last size is {shape[-1]}, expected {expected}")
