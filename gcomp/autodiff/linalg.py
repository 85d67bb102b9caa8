"""Derivatives of factorizations, triangular systems and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.autodiff.elementwise import negate
from gcomp.autodiff.sweeps import Maybe, Reverse, Row, register
from gcomp.autodiff.table import ByTangents, Expanded, Linear, Refused, chooses, tangents
from gcomp.dims import Size
from gcomp.dtypes import is_complex
from gcomp.errors import UnsupportedError
from gcomp.ir import chlo, lapack
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.types import dtype_text, element_of, rank_of, real_element, shape_of

# ---- matrices ----


def _triangle(b: Builder, x: SSAValue, *, lower: bool, diagonal: bool = True) -> SSAValue:
    """x with 0 outside of one triangle."""
    shape, rank = shape_of(x), rank_of(x)
    row, column = b.iota(shape, rank - 2), b.iota(shape, rank - 1)
    kept = b.compare(row, column, ("GE" if lower else "LE") if diagonal else ("GT" if lower else "LT"))
    return b.select(kept, x, b.full_like(x, 0))


def _swap(b: Builder, x: SSAValue) -> SSAValue:
    rank = rank_of(x)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _conjugate(b: Builder, x: SSAValue) -> SSAValue:
    return b.emit(chlo.ConjOp, x) if is_complex(dtype_text(x.type)) else x


def _adjoint(b: Builder, x: SSAValue) -> SSAValue:
    return _conjugate(b, _swap(b, x))


def _product(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    batch = tuple(range(rank_of(x) - 2))
    return b.dot(x, y, DotDimensions(batch, batch, (rank_of(x) - 1,), (rank_of(y) - 2,)))


def _solve_lower(b: Builder, a: SSAValue, y: SSAValue, *, left: bool, form: str = "NO_TRANSPOSE") -> SSAValue:
    """The solution for a lower triangle."""
    return b.emit(hlo.TriangularSolveOp, a, y, left_side=left, lower=True, unit_diagonal=False, transpose_a=form)


@tangents(hlo.CholeskyOp)
def cholesky(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """`L' = L phi(L^-1 A' L^-H)`, where phi halves the diagonal and drops what is above it.

    Of A and its tangent, the triangle that is read stands for both, and the diagonal's imaginary part is not read.
    """
    (tangent,) = tangents
    if tangent is None:
        return [None]
    lower: bool = op.value("lower")
    factor = op.result if lower else _adjoint(b, op.result)
    half = _triangle(b, tangent if lower else _adjoint(b, tangent), lower=True, diagonal=False)
    moved = b.add(b.add(half, _adjoint(b, half)), _diagonal(b, tangent))
    inner = _solve_lower(b, factor, _solve_lower(b, factor, moved, left=False, form="ADJOINT"), left=True)
    own = b.add(_triangle(b, inner, lower=True, diagonal=False), b.scale(_diagonal(b, inner), 0.5))
    made = _product(b, factor, own)
    return [made if lower else _adjoint(b, made)]


def _diagonal(b: Builder, x: SSAValue) -> SSAValue:
    """The real parts of a diagonal, and 0 elsewhere."""
    shape, rank = shape_of(x), rank_of(x)
    real = b.convert(b.emit(hlo.RealOp, x), element_of(x)) if is_complex(dtype_text(x.type)) else x
    on = b.compare(b.iota(shape, rank - 2), b.iota(shape, rank - 1), "EQ")
    return b.select(on, real, b.full_like(x, 0))


def _system_tangents(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """`X' = A^-1 (B' - A' X)`, or `(B' - X A') A^-1`."""
    moved, known = tangents
    left: bool = op.value("left_side")
    if moved is not None:
        own = _triangle(b, moved, lower=op.value("lower"), diagonal=not op.value("unit_diagonal"))
        form = op.value("transpose_a")
        own = own if form == "NO_TRANSPOSE" else _swap(b, own)
        own = _conjugate(b, own) if form == "ADJOINT" else own
        part = negate(b, _product(b, own, op.result) if left else _product(b, op.result, own))
        known = part if known is None else b.add(known, part)
    if known is None:
        return [None]
    names = ("left_side", "lower", "unit_diagonal", "transpose_a")
    return [b.emit(hlo.TriangularSolveOp, op.a, known, **{name: op.properties[name] for name in names})]


def _solve(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """For the right side: the transposed system."""
    form = op.value("transpose_a")
    a = op.a if form != "ADJOINT" else _conjugate(b, op.a)
    turned = "TRANSPOSE" if form == "NO_TRANSPOSE" else "NO_TRANSPOSE"
    return b.emit(
        hlo.TriangularSolveOp, a, g, left_side=op.value("left_side"), lower=op.value("lower"),
        unit_diagonal=op.value("unit_diagonal"), transpose_a=turned,
    )  # fmt: skip


class _Systems(ByTangents):
    """The right side is solved for as the transpose says, which is what the rest of the rule builds on."""

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        (cotangent,) = cotangents
        if cotangent is not None and sweep.wants(op.b):
            sweep.add(op.b, _solve(sweep.b, op, cotangent))
        self.pull_for([0], sweep, op, cotangents)


register(_Systems(_system_tangents), hlo.TriangularSolveOp)

# ---- Fourier transforms ----


def _transform(b: Builder, x: SSAValue, kind: str, lengths: Sequence[Size]) -> SSAValue:
    return b.emit(hlo.FftOp, x, fft_type=kind, fft_length=list(lengths))


def _symmetric(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """The matrix of the transform is its own transpose."""
    return _transform(b, g, op.value("fft_type"), sizes_of(op.fft_length))


def _of_reals(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The first half of the complex transform."""
    axis = rank_of(op.operand) - 1
    whole = _transform(b, b.convert(op.operand, element_of(op.result)), "FFT", sizes_of(op.fft_length))
    return [b.slice_axis(whole, axis, 0, shape_of(op.result)[axis])]


def _to_reals(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """The transform of reals, conjugated, scaled, and twice where a frequency stands for two."""
    lengths = sizes_of(op.fft_length)
    count, last = dims.product(lengths), lengths[-1]
    if not isinstance(count, int) or not isinstance(last, int):
        raise UnsupportedError(
            f"{op.name} cannot be differentiated backward", where=where(op), why="the transformed sizes are symbolic",
            fix="give them sizes",
        )  # fmt: skip
    if count == 0 or 0 in shape_of(g):
        return b.full_like(op.operand, 0)
    made = _transform(b, g, "RFFT", lengths)
    size = last // 2 + 1
    single = {0, *([last // 2] if last % 2 == 0 else [])}
    factors = [(1.0 if i in single else 2.0) / count for i in range(size)]
    scale = b.convert(b.constant(factors, dtype_text(real_element(op.operand))), element_of(op.operand))
    return b.emit(chlo.ConjOp, b.multiply(made, scale))


_FFT, _RFFT, _IRFFT = Linear(_symmetric, lambda op: (0,)), Expanded(_of_reals), Linear(_to_reals, lambda op: (0,))


@chooses(hlo.FftOp)
def fft(op: Any) -> Row:
    """By the kind of transform."""
    return {"RFFT": _RFFT, "IRFFT": _IRFFT}.get(op.value("fft_type"), _FFT)


# ---- calls of LAPACK, which frontends make of what XLA's CPU leaves to it ----


def _letter(op: Any, name: str) -> str:
    """A word of a call's configuration: LAPACK's letter, as a number."""
    value: Any = op.configuration.data[name]
    return chr(value.value.data)


def _factor(b: Builder, op: Any) -> Sequence[SSAValue]:
    factor = b.emit(hlo.CholeskyOp, op.operands[0], lower=_letter(op, "uplo") == "L")
    return [factor, b.full(shape_of(op.results[1]), 0, element_of(op.results[1]))]


_FORMS = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def _system(b: Builder, op: Any) -> Sequence[SSAValue]:
    form = _FORMS[_letter(op, "trans_x")]
    words = {name: _letter(op, name) for name in ("side", "uplo", "diag")}
    solved = b.emit(
        hlo.TriangularSolveOp, *op.operands, left_side=words["side"] == "L", lower=words["uplo"] == "L",
        unit_diagonal=words["diag"] == "U", transpose_a=form,
    )  # fmt: skip
    return [solved]


_ROUTINES: dict[str, Row] = {
    f"lapack_{letter}{name}_ffi": row
    for letter in lapack.PREFIXES.values()
    for name, row in (("potrf", Expanded(_factor)), ("trsm", Expanded(_system)))
}
_OUTSIDE = Refused(
    "what it calls is outside of the program", "write it with ops that have derivatives, or give its own as a program"
)


@chooses(hlo.CustomCallOp)
def custom_call(op: Any) -> Row:
    """By what is called."""
    return _ROUTINES.get(op.value("call_target_name"), _OUTSIDE)
