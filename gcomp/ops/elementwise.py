"""Functions of each element. Where NumPy computes in floats, integers become the float type that NumPy would take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text
from gcomp.tensors.lifting import cast_value, is_weak, lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import element_text, floating, kind_of, require
from gcomp.tensors.tensor import ArrayLike, Tensor

Unary = Callable[[ArrayLike], Tensor]


def _function(name: str, op: type[GraphOp], doc: str) -> Unary:
    """An operation that is one op on floats or complex numbers."""

    def run(x: ArrayLike) -> Tensor:
        b, (value,) = lift_operands(x)
        return Tensor(b, b.emit(op, as_float(b, value)))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


def as_float(b: Builder, value: SSAValue) -> SSAValue:
    """A value of floats or complex numbers; integers are converted as NumPy does."""
    return cast_value(b, value, floating(dtype_text(value.type)))


exp = _function("exp", hlo.ExponentialOp, "e ** x.")
expm1 = _function("expm1", hlo.ExponentialMinusOneOp, "e ** x - 1, accurate near 0.")
log = _function("log", hlo.LogOp, "The natural logarithm.")
log1p = _function("log1p", hlo.LogPlusOneOp, "log(1 + x), accurate near 0.")
sqrt = _function("sqrt", hlo.SqrtOp, "The square root.")
cbrt = _function("cbrt", hlo.CbrtOp, "The cube root.")
rsqrt = _function("rsqrt", hlo.RsqrtOp, "1 / sqrt(x).")
sin = _function("sin", hlo.SineOp, "The sine.")
cos = _function("cos", hlo.CosineOp, "The cosine.")
tan = _function("tan", hlo.TanOp, "The tangent.")
tanh = _function("tanh", hlo.TanhOp, "The hyperbolic tangent.")
sinh = _function("sinh", chlo.SinhOp, "The hyperbolic sine.")
cosh = _function("cosh", chlo.CoshOp, "The hyperbolic cosine.")
arcsin = _function("arcsin", chlo.AsinOp, "The inverse sine.")
arccos = _function("arccos", chlo.AcosOp, "The inverse cosine.")
arctan = _function("arctan", chlo.AtanOp, "The inverse tangent.")
arcsinh = _function("arcsinh", chlo.AsinhOp, "The inverse hyperbolic sine.")
arccosh = _function("arccosh", chlo.AcoshOp, "The inverse hyperbolic cosine.")
arctanh = _function("arctanh", chlo.AtanhOp, "The inverse hyperbolic tangent.")
erf = _function("erf", chlo.ErfOp, "The error function.")
erfc = _function("erfc", chlo.ErfcOp, "1 - erf(x), accurate for large x.")
erfinv = _function("erfinv", chlo.ErfInvOp, "The inverse of the error function.")
lgamma = _function("lgamma", chlo.LgammaOp, "The logarithm of the absolute value of the gamma function.")
digamma = _function("digamma", chlo.DigammaOp, "The derivative of lgamma.")
sigmoid = _function("sigmoid", hlo.LogisticOp, "1 / (1 + e ** -x).")


@operation
def exp2(x: ArrayLike) -> Tensor:
    """2 ** x."""
    b, (value,) = lift_operands(x)
    value = as_float(b, value)
    return Tensor(b, b.emit(hlo.PowerOp, b.full_like(value, 2), value))


def _scaled_log(name: str, base: float) -> Unary:
    def run(x: ArrayLike) -> Tensor:
        b, (value,) = lift_operands(x)
        value = as_float(b, value)
        return Tensor(b, b.divide(b.emit(hlo.LogOp, value), b.full_like(value, np.log(base))))

    run.__name__, run.__doc__ = name, f"The logarithm to base {base:g}: log(x) / log({base:g})."
    return operation(run)


log2 = _scaled_log("log2", 2.0)
log10 = _scaled_log("log10", 10.0)


# ---- numbers of any kind --------------------------------------------------------------------------------------------


@operation
def negative(x: ArrayLike) -> Tensor:
    """-x; integers wrap."""
    b, (value,) = lift_operands(x)
    require("negative", dtype_text(value.type), 1, 2, 3)
    return Tensor(b, b.emit(hlo.NegateOp, value), weak=is_weak(x))


@operation
def abs(x: ArrayLike) -> Tensor:
    """|x|; of a complex number, its modulus."""
    b, (value,) = lift_operands(x)
    text = dtype_text(value.type)
    if text == "i1" or text.startswith("ui"):
        return Tensor(b, value)
    return Tensor(b, b.emit(hlo.AbsOp, value), weak=is_weak(x))


@operation
def sign(x: ArrayLike) -> Tensor:
    """-1, 0 or 1; x / |x| of a complex number."""
    b, (value,) = lift_operands(x)
    text = dtype_text(value.type)
    require("sign", text, 1, 2, 3)
    if text.startswith("ui"):
        return Tensor(b, b.convert(b.compare(value, b.full_like(value, 0), "NE"), text))
    return Tensor(b, b.emit(hlo.SignOp, value))


@operation
def square(x: ArrayLike) -> Tensor:
    """x * x."""
    b, (value,) = lift_operands(x)
    if dtype_text(value.type) == "i1":
        value = b.convert(value, "i8")
    return Tensor(b, b.multiply(value, value))


@operation
def reciprocal(x: ArrayLike) -> Tensor:
    """1 / x; of an integer, truncated."""
    b, (value,) = lift_operands(x)
    require("reciprocal", dtype_text(value.type), 1, 2, 3)
    return Tensor(b, b.divide(b.full_like(value, 1), value))


# ---- rounding -------------------------------------------------------------------------------------------------------


def _rounding(name: str, round_: Callable[[Builder, SSAValue], SSAValue], doc: str) -> Unary:
    def run(x: ArrayLike) -> Tensor:
        b, (value,) = lift_operands(x)
        require(name, dtype_text(value.type), 0, 1, 2)
        return Tensor(b, round_(b, value) if is_float(dtype_text(value.type)) else value)

    run.__name__, run.__doc__ = name, f"{doc}; integers as they are."
    return operation(run)


def _truncate(b: Builder, value: SSAValue) -> SSAValue:
    below = b.compare(value, b.full_like(value, 0), "LT")
    return b.select(below, b.emit(hlo.CeilOp, value), b.emit(hlo.FloorOp, value))


floor = _rounding("floor", lambda b, x: b.emit(hlo.FloorOp, x), "Rounded down")
ceil = _rounding("ceil", lambda b, x: b.emit(hlo.CeilOp, x), "Rounded up")
trunc = _rounding("trunc", _truncate, "Rounded towards 0")


@operation
def rint(x: ArrayLike) -> Tensor:
    """Rounded to the nearest integer, ties to even."""
    b, (value,) = lift_operands(x)
    value = as_float(b, value)
    require("rint", dtype_text(value.type), 2)
    return Tensor(b, b.emit(hlo.RoundNearestEvenOp, value))


@operation
def round(x: ArrayLike, decimals: int = 0) -> Tensor:
    """Rounded to a number of decimals, ties to even: rint(x * 10**decimals) / 10**decimals, as NumPy has it."""
    b, (value,) = lift_operands(x)
    text = dtype_text(value.type)
    require("round", text, 1, 2)
    if not is_float(text):
        if decimals < 0:
            require("round to tens", text, 2)
        return Tensor(b, value)
    if decimals == 0:
        return Tensor(b, b.emit(hlo.RoundNearestEvenOp, value))
    scale = b.full_like(value, 10.0 ** (decimals if decimals > 0 else -decimals))
    up, down = (b.multiply, b.divide) if decimals > 0 else (b.divide, b.multiply)
    return Tensor(b, down(b.emit(hlo.RoundNearestEvenOp, up(value, scale)), scale))


# ---- predicates -----------------------------------------------------------------------------------------------------


def _predicate(name: str, test: Callable[[Builder, SSAValue], SSAValue], of_integers: bool, doc: str) -> Unary:
    def run(x: ArrayLike) -> Tensor:
        b, (value,) = lift_operands(x)
        text = dtype_text(value.type)
        if kind_of(text) < 2:
            return Tensor(b, b.full(Tensor(b, value).shape, of_integers, "i1"))
        if not is_complex(text):
            return Tensor(b, test(b, value))
        real_part, imag_part = (test(b, b.emit(op, value)) for op in (hlo.RealOp, hlo.ImagOp))
        return Tensor(b, b.emit(hlo.AndOp if of_integers else hlo.OrOp, real_part, imag_part))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


def is_nan(b: Builder, x: SSAValue) -> SSAValue:
    """Which elements are NaN."""
    return b.compare(x, x, "NE")


isnan = _predicate("isnan", is_nan, False, "Whether an element is NaN.")
isfinite = _predicate("isfinite", lambda b, x: b.emit(hlo.IsFiniteOp, x), True, "Neither infinite nor NaN.")
isinf = _predicate(
    "isinf",
    lambda b, x: b.compare(b.emit(hlo.AbsOp, x), b.full_like(x, np.inf), "EQ"),
    False,
    "Whether an element is infinite.",
)


# ---- complex numbers ------------------------------------------------------------------------------------------------


@operation
def real(x: ArrayLike) -> Tensor:
    """The real part."""
    b, (value,) = lift_operands(x)
    return Tensor(b, b.emit(hlo.RealOp, value) if is_complex(dtype_text(value.type)) else value)


@operation
def imag(x: ArrayLike) -> Tensor:
    """The imaginary part; 0 of a real number."""
    b, (value,) = lift_operands(x)
    return Tensor(b, b.emit(hlo.ImagOp, value) if is_complex(dtype_text(value.type)) else b.full_like(value, 0))


@operation
def conj(x: ArrayLike) -> Tensor:
    """The complex conjugate."""
    b, (value,) = lift_operands(x)
    if not is_complex(dtype_text(value.type)):
        return Tensor(b, value)
    parts = b.emit(hlo.RealOp, value), b.emit(hlo.NegateOp, b.emit(hlo.ImagOp, value))
    return Tensor(b, b.emit(hlo.ComplexOp, *parts))


@operation
def astype(x: ArrayLike, dtype: object) -> Tensor:
    """The elements converted: floats to integers towards 0 and saturating, anything to boolean by "is not 0"."""
    b, (value,) = lift_operands(x)
    text = element_text(dtype)
    own = dtype_text(value.type)
    if text == "i1" and is_complex(own):
        return Tensor(b, b.compare(value, b.full_like(value, 0), "NE"))
    return Tensor(b, cast_value(b, value, text))


__all__ = [
    "abs",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "astype",
    "cbrt",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "negative",
    "real",
    "reciprocal",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip
