"""Elementwise ops. Constraint numbers are the StableHLO specification's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from gcomp.ir import types
from gcomp.ir.assembly import (
    ComplexOpType,
    EnumWord,
    OptionalComparisonType,
    SameOperandsAndResultType,
    SelectOpType,
)
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.enums import ComparisonDirectionAttr, ComparisonTypeAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.structures import ResultAccuracyAttr
from gcomp.ir.types import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    SIGNED,
    element_of,
    rank_of,
    real_element,
    same_shape,
    shape_of,
    tensor_of,
    with_element,
)

_BITS = INTEGERS | {BOOL}
_NUMBERS = INTEGERS | FLOATS | COMPLEX


class UnaryOp(GraphOp):
    """One operand; the result has its type."""

    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SameOperandsAndResultType,)
    assembly_format = "$operand attr-dict `:` custom<SameOperandsAndResultType>(type($operand), type($result))"

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)


class TranscendentalOp(UnaryOp):
    """A unary op on floats or complex numbers, with the specification's optional accuracy request."""

    ELEMENTS: ClassVar = FLOATS | COMPLEX
    result_accuracy = opt_prop_def(ResultAccuracyAttr)


class BinaryOp(GraphOp):
    """Two operands of one type, which is the result's (C1)."""

    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SameOperandsAndResultType,)
    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"

    def infer(self) -> Sequence[Attribute]:
        lhs, rhs = self.lhs.type, self.rhs.type
        if lhs != rhs and not types.compatible(lhs, rhs):
            self.fail("C1", f"operands have types {lhs} and {rhs}")
        return (lhs,)


@irdl_op_definition
class AbsOp(UnaryOp):
    """`|x|`; of a complex number, its modulus."""

    name = "stablehlo.abs"
    ELEMENTS: ClassVar = SIGNED | FLOATS | COMPLEX

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.operand, real_element(self.operand)),)


@irdl_op_definition
class CbrtOp(TranscendentalOp):
    """Cube root."""

    name = "stablehlo.cbrt"


@irdl_op_definition
class CeilOp(UnaryOp):
    """Round towards positive infinity."""

    name = "stablehlo.ceil"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class CosineOp(TranscendentalOp):
    """Cosine."""

    name = "stablehlo.cosine"


@irdl_op_definition
class CountLeadingZerosOp(UnaryOp):
    """The number of leading zero bits."""

    name = "stablehlo.count_leading_zeros"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class ExponentialOp(TranscendentalOp):
    """`e**x`."""

    name = "stablehlo.exponential"


@irdl_op_definition
class ExponentialMinusOneOp(TranscendentalOp):
    """`e**x - 1`."""

    name = "stablehlo.exponential_minus_one"


@irdl_op_definition
class FloorOp(UnaryOp):
    """Round towards negative infinity."""

    name = "stablehlo.floor"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class ImagOp(UnaryOp):
    """The imaginary part; zero for a real number."""

    name = "stablehlo.imag"
    ELEMENTS: ClassVar = FLOATS | COMPLEX

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.operand, real_element(self.operand)),)


@irdl_op_definition
class IsFiniteOp(GraphOp):
    """Whether a float is neither infinite nor NaN."""

    name = "stablehlo.is_finite"
    ELEMENTS: ClassVar = FLOATS
    x = operand_def(AnyTensorTypeConstr)
    y = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.x, BOOL),)


@irdl_op_definition
class LogOp(TranscendentalOp):
    """Natural logarithm."""

    name = "stablehlo.log"


@irdl_op_definition
class LogPlusOneOp(TranscendentalOp):
    """`log(1 + x)`."""

    name = "stablehlo.log_plus_one"


@irdl_op_definition
class LogisticOp(TranscendentalOp):
    """`1 / (1 + e**-x)`."""

    name = "stablehlo.logistic"


@irdl_op_definition
class NegateOp(UnaryOp):
    """`-x`; integers wrap."""

    name = "stablehlo.negate"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class NotOp(UnaryOp):
    """Logical or bitwise complement."""

    name = "stablehlo.not"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class PopcntOp(UnaryOp):
    """The number of one bits."""

    name = "stablehlo.popcnt"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class RealOp(UnaryOp):
    """The real part."""

    name = "stablehlo.real"
    ELEMENTS: ClassVar = FLOATS | COMPLEX

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.operand, real_element(self.operand)),)


@irdl_op_definition
class RoundNearestAfzOp(UnaryOp):
    """Round to the nearest integer, ties away from zero."""

    name = "stablehlo.round_nearest_afz"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class RoundNearestEvenOp(UnaryOp):
    """Round to the nearest integer, ties to even."""

    name = "stablehlo.round_nearest_even"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class RsqrtOp(TranscendentalOp):
    """`1 / sqrt(x)`."""

    name = "stablehlo.rsqrt"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1 (`x / |x|` of a complex number); keeps NaN and signed zero."""

    name = "stablehlo.sign"
    ELEMENTS: ClassVar = SIGNED | FLOATS | COMPLEX


@irdl_op_definition
class SineOp(TranscendentalOp):
    """Sine."""

    name = "stablehlo.sine"


@irdl_op_definition
class SqrtOp(TranscendentalOp):
    """Square root."""

    name = "stablehlo.sqrt"


@irdl_op_definition
class TanOp(TranscendentalOp):
    """Tangent."""

    name = "stablehlo.tan"


@irdl_op_definition
class TanhOp(TranscendentalOp):
    """Hyperbolic tangent."""

    name = "stablehlo.tanh"


@irdl_op_definition
class AddOp(BinaryOp):
    """`x + y`; logical or for booleans; integers wrap."""

    name = "stablehlo.add"


@irdl_op_definition
class AndOp(BinaryOp):
    """Logical or bitwise and."""

    name = "stablehlo.and"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class Atan2Op(BinaryOp):
    """The angle of the point (rhs, lhs)."""

    name = "stablehlo.atan2"
    ELEMENTS: ClassVar = FLOATS | COMPLEX


@irdl_op_definition
class ComplexOp(GraphOp):
    """A complex number from its real and imaginary part."""

    name = "stablehlo.complex"
    ELEMENTS: ClassVar = frozenset({types.element_type("f32"), types.element_type("f64")})
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (ComplexOpType,)
    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<ComplexOpType>(type(operands), type($result))"

    def infer(self) -> Sequence[Attribute]:
        if not types.compatible(self.lhs.type, self.rhs.type):
            self.fail("C1", f"operands have types {self.lhs.type} and {self.rhs.type}")
        return (with_element(self.lhs, f"complex<{types.dtype_text(tensor_of(self.lhs))}>"),)


@irdl_op_definition
class DivideOp(BinaryOp):
    """`x / y`; integers truncate towards zero."""

    name = "stablehlo.divide"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The larger; NaN wins; logical or for booleans; lexicographic for complex numbers."""

    name = "stablehlo.maximum"


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller; NaN wins; logical and for booleans; lexicographic for complex numbers."""

    name = "stablehlo.minimum"


@irdl_op_definition
class MultiplyOp(BinaryOp):
    """`x * y`; logical and for booleans; integers wrap."""

    name = "stablehlo.multiply"


@irdl_op_definition
class OrOp(BinaryOp):
    """Logical or bitwise or."""

    name = "stablehlo.or"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class PowerOp(BinaryOp):
    """`x ** y`."""

    name = "stablehlo.power"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class RemainderOp(BinaryOp):
    """The remainder of a division that truncates: it has the dividend's sign."""

    name = "stablehlo.remainder"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class ShiftLeftOp(BinaryOp):
    """`x << y`; zero past the width."""

    name = "stablehlo.shift_left"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class ShiftRightArithmeticOp(BinaryOp):
    """`x >> y`, filling with the sign bit."""

    name = "stablehlo.shift_right_arithmetic"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class ShiftRightLogicalOp(BinaryOp):
    """`x >> y`, filling with zeros."""

    name = "stablehlo.shift_right_logical"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class SubtractOp(BinaryOp):
    """`x - y`; integers wrap."""

    name = "stablehlo.subtract"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class XorOp(BinaryOp):
    """Logical or bitwise exclusive or."""

    name = "stablehlo.xor"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class CompareOp(GraphOp):
    """A comparison; floats compare as IEEE 754 does, or in total order with TOTALORDER."""

    name = "stablehlo.compare"
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (EnumWord, OptionalComparisonType)
    assembly_format = (
        "custom<EnumWord>($comparison_direction) `,` $lhs `,` $rhs "
        "custom<OptionalComparisonType>($compare_type) attr-dict `:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        if not types.compatible(self.lhs.type, self.rhs.type):
            self.fail("C1", f"operands have types {self.lhs.type} and {self.rhs.type}")
        return (with_element(self.lhs, BOOL),)

    KINDS: ClassVar[dict[str, frozenset[Attribute]]] = {
        "FLOAT": FLOATS | COMPLEX,
        "TOTALORDER": FLOATS,
        "SIGNED": SIGNED,
        "UNSIGNED": _BITS,
    }

    def check(self) -> None:
        kind, element = self.value("compare_type"), element_of(self.lhs)
        if kind in self.KINDS and element not in self.KINDS[kind]:
            self.fail("C3", f"{kind} does not compare {types.dtype_text(element)}")
        if element in COMPLEX and self.value("comparison_direction") not in ("EQ", "NE"):
            self.fail("C4", "complex numbers compare with EQ and NE only")


@irdl_op_definition
class SelectOp(GraphOp):
    """`pred ? on_true : on_false`, with one predicate or one per element."""

    name = "stablehlo.select"
    pred = operand_def(AnyTensorTypeConstr)
    on_true = operand_def(AnyTensorTypeConstr)
    on_false = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SelectOpType,)
    assembly_format = "operands attr-dict `:` custom<SelectOpType>(type(operands), type($result))"

    def infer(self) -> Sequence[Attribute]:
        if not types.compatible(self.on_true.type, self.on_false.type):
            self.fail("C2", f"branches have types {self.on_true.type} and {self.on_false.type}")
        return (self.on_true.type,)

    def check(self) -> None:
        if element_of(self.pred) != BOOL:
            self.fail("I1", "the predicate is not boolean")
        if rank_of(self.pred) and not same_shape(shape_of(self.pred), shape_of(self.on_true)):
            self.fail("C1", "the predicate has neither rank 0 nor the branches' shape")


@irdl_op_definition
class ClampOp(GraphOp):
    """`minimum(maximum(operand, min), max)`; the bounds may be of rank 0."""

    name = "stablehlo.clamp"
    min = operand_def(AnyTensorTypeConstr)
    operand = operand_def(AnyTensorTypeConstr)
    max = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SameOperandsAndResultType,)
    assembly_format = (
        "$min `,` $operand `,` $max attr-dict `:` custom<SameOperandsAndResultType>(type(operands), type($result))"
    )

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        for constraint, bound in (("C1", self.min), ("C2", self.max)):
            if rank_of(bound) and not same_shape(shape_of(bound), shape_of(self.operand)):
                self.fail(constraint, "a bound has neither rank 0 nor the operand's shape")
            if element_of(bound) != element_of(self.operand):
                self.fail("C3", "a bound has another element type than the operand")
