"""Elementwise functions, and predicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Commutative, Pure

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import BOOL, COMPLEX, FLOATS, INTEGERS, compatible, with_element


class FunctionOp(GraphOp):
    """One operand; the result has its type."""

    ELEMENTS: ClassVar = FLOATS | COMPLEX
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)


class RealFunctionOp(FunctionOp):
    """A function of real numbers."""

    ELEMENTS: ClassVar = FLOATS


class PredicateOp(RealFunctionOp):
    """A predicate on real numbers."""

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.operand, BOOL),)


@irdl_op_definition
class AsinAcosKernelOp(FunctionOp):
    """What the complex inverse functions asin, acos, asinh and acosh have in common."""

    name = "chlo._asin_acos_kernel"
    ELEMENTS: ClassVar = COMPLEX


@irdl_op_definition
class AcosOp(FunctionOp):
    """Inverse cosine."""

    name = "chlo.acos"


@irdl_op_definition
class AcoshOp(FunctionOp):
    """Inverse hyperbolic cosine."""

    name = "chlo.acosh"


@irdl_op_definition
class AsinOp(FunctionOp):
    """Inverse sine."""

    name = "chlo.asin"


@irdl_op_definition
class AsinhOp(FunctionOp):
    """Inverse hyperbolic sine."""

    name = "chlo.asinh"


@irdl_op_definition
class AtanOp(FunctionOp):
    """Inverse tangent."""

    name = "chlo.atan"


@irdl_op_definition
class AtanhOp(FunctionOp):
    """Inverse hyperbolic tangent."""

    name = "chlo.atanh"


@irdl_op_definition
class BesselI1eOp(FunctionOp):
    """The exponentially scaled modified Bessel function of the first kind and order 1."""

    name = "chlo.bessel_i1e"


@irdl_op_definition
class ConjOp(FunctionOp):
    """The complex conjugate."""

    name = "chlo.conj"


@irdl_op_definition
class CoshOp(FunctionOp):
    """Hyperbolic cosine."""

    name = "chlo.cosh"


@irdl_op_definition
class SinhOp(FunctionOp):
    """Hyperbolic sine."""

    name = "chlo.sinh"


@irdl_op_definition
class SquareOp(FunctionOp):
    """`x * x`."""

    name = "chlo.square"


@irdl_op_definition
class TanOp(FunctionOp):
    """Tangent."""

    name = "chlo.tan"


@irdl_op_definition
class DigammaOp(RealFunctionOp):
    """The derivative of `lgamma`."""

    name = "chlo.digamma"


@irdl_op_definition
class ErfOp(RealFunctionOp):
    """The error function."""

    name = "chlo.erf"


@irdl_op_definition
class ErfInvOp(RealFunctionOp):
    """The inverse error function."""

    name = "chlo.erf_inv"


@irdl_op_definition
class ErfcOp(RealFunctionOp):
    """The complementary error function, `1 - erf(x)`."""

    name = "chlo.erfc"


@irdl_op_definition
class LgammaOp(RealFunctionOp):
    """The logarithm of the absolute value of the gamma function."""

    name = "chlo.lgamma"


@irdl_op_definition
class IsInfOp(PredicateOp):
    """Whether a float is infinite."""

    name = "chlo.is_inf"


@irdl_op_definition
class IsNegInfOp(PredicateOp):
    """Whether a float is negative infinity."""

    name = "chlo.is_neg_inf"


@irdl_op_definition
class IsPosInfOp(PredicateOp):
    """Whether a float is positive infinity."""

    name = "chlo.is_pos_inf"


class BinaryFunctionOp(GraphOp):
    """Two operands of one type, which is the result's (C1)."""

    ELEMENTS: ClassVar = FLOATS
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def infer(self) -> Sequence[Attribute]:
        if not compatible(self.lhs.type, self.rhs.type):
            self.fail("C1", f"operands have types {self.lhs.type} and {self.rhs.type}")
        return (self.lhs.type,)


@irdl_op_definition
class NextAfterOp(BinaryFunctionOp):
    """The float next to `lhs` in the direction of `rhs`."""

    name = "chlo.next_after"


@irdl_op_definition
class PolygammaOp(BinaryFunctionOp):
    """The `lhs`-th derivative of `digamma` at `rhs`."""

    name = "chlo.polygamma"


@irdl_op_definition
class ZetaOp(BinaryFunctionOp):
    """The Hurwitz zeta function: the sum of `(rhs + n) ** -lhs` over all n."""

    name = "chlo.zeta"


@irdl_op_definition
class MulhiOp(BinaryFunctionOp):
    """The upper half of the bits of an integer product."""

    name = "chlo.mulhi"
    ELEMENTS: ClassVar = INTEGERS
    traits = traits_def(Pure(), Commutative())
