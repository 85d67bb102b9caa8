"""Which formula each function of complex numbers has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from gcomp.decompositions.real import Real
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import real_element
from gcomp.pairs import functions, inverse
from gcomp.pairs.functions import Number
from gcomp.pairs.parts import holds_complex, parts

FUNCTIONS: Mapping[type[GraphOp], Callable[..., Number | Real]] = {
    hlo.AbsOp: functions.modulus,
    chlo.ConjOp: functions.conj,
    chlo.SquareOp: functions.square,
    chlo.CoshOp: functions.cosh,
    chlo.SinhOp: functions.sinh,
    chlo.TanOp: functions.tan,
    chlo.AcosOp: inverse.acos,
    chlo.AcoshOp: inverse.acosh,
    chlo.AsinOp: inverse.asin,
    chlo.AsinhOp: inverse.asinh,
    chlo.AtanOp: inverse.atan,
    chlo.AtanhOp: inverse.atanh,
    hlo.Atan2Op: inverse.atan2,
    hlo.CbrtOp: functions.cbrt,
    hlo.CosineOp: functions.cosine,
    hlo.DivideOp: functions.quotient,
    hlo.ExponentialMinusOneOp: functions.exponential_minus_one,
    hlo.ExponentialOp: functions.exponential,
    hlo.LogOp: functions.log,
    hlo.LogPlusOneOp: functions.log_plus_one,
    hlo.LogisticOp: functions.logistic,
    hlo.PowerOp: functions.power,
    hlo.RsqrtOp: functions.rsqrt,
    hlo.SignOp: functions.sign,
    hlo.SineOp: functions.sine,
    hlo.SqrtOp: functions.sqrt,
    hlo.TanOp: functions.tan,
    hlo.TanhOp: functions.tanh,
}


def compute_parts(op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
    """The result of a function of complex numbers; None where its operands are others."""
    if not holds_complex(op.operands[0]):
        return None
    element = real_element(op.operands[0])

    def wide(value: SSAValue) -> Number:
        real, imag = (Real(b, b.convert(part, "f64")) for part in parts(b, value))
        return real, imag

    found = FUNCTIONS[type(op)](*map(wide, op.operands))
    narrow = [b.convert(v.value, element) for v in (found if isinstance(found, tuple) else (found,))]
    return narrow if len(narrow) == 1 else [b.emit(hlo.ComplexOp, *narrow)]
