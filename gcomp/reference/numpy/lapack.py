"""Routines of LAPACK by the names under which jaxlib registers them: SciPy's LAPACK, matrix by matrix.

Results that a routine leaves open (what it overwrote on the way) are the operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.reference.numpy.dtypes import Array
from gcomp.reference.numpy.linalg import triangular_solve
from gcomp.reference.numpy.tridiagonal import solve_perturbed

Config: TypeAlias = Mapping[str, Any]
"""A call's settings. Words of LAPACK's are letters by their codes."""

Routine: TypeAlias = Callable[[Any, Config, Sequence[Array]], Sequence[Any]]
"""SciPy's function of the routine, the settings, and one matrix of each operand; the results for it."""


def _geqp3(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    a, columns = args
    if columns.any():
        raise UnsupportedError("there is no QR with columns that stay in front")
    factors, order, taus, _, _ = f(a)
    return factors, order, taus


def _geev(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    *parts, left, right, info = f(args[0], compute_vl=_is(config, "compute_left", "V"),
                                  compute_vr=_is(config, "compute_right", "V"))  # fmt: skip
    if len(parts) == 1:
        return parts[0], left, right, info
    paired = parts[1]
    return *parts, _unpack_vectors(left, paired), _unpack_vectors(right, paired), info


def _unpack_vectors(vectors: Array, imaginary: Array) -> Array:
    """The complex eigenvectors, of which LAPACK keeps real and imaginary parts in the columns of a conjugate pair."""
    found = vectors.astype(np.result_type(vectors, np.complex64))
    for column in np.flatnonzero(imaginary > 0) if vectors.shape[1] == len(imaginary) else ():
        real, rest = vectors[:, column], vectors[:, column + 1]
        found[:, column], found[:, column + 1] = real + 1j * rest, real - 1j * rest
    return found


def _gees(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    form, chosen, *values, vectors, _, info = f(_unsorted, args[0], compute_v=_is(config, "mode", "V"))
    return form, vectors, *values, chosen, info


def _gtsv(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    """Three diagonals as long as the matrix: the first of the lower one, and the last of the upper one, are nothing."""
    lower, middle, upper, right = args
    if len(middle) == 1:  # SciPy takes no empty diagonal
        return *args[:3], right / middle[:, None], int(middle[0] == 0)
    return *args[:3], *f(lower[1:], middle, upper[:-1], right)[-2:]


def _unsorted(*values: Any) -> None:
    """The choice of eigenvalues to go first, which nobody makes."""


def _svd(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    wanted = not _is(config, "mode", "N")
    left, values, right, info = f(args[0], compute_uv=wanted, full_matrices=not _is(config, "mode", "S"))
    return args[0], values, left, right, info


def _ormqr(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    a, taus, c = args
    adjoint = "C" if np.iscomplexobj(a) else "T"
    side, transpose = "L" if config["left"] else "R", adjoint if config["transpose"] else "N"
    # Further columns, which torch allows, hold no reflector.
    return (f(side, transpose, a[:, : len(taus)], taus, c, max(1, 64 * max(c.shape)))[0],)


def _trsm(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    kinds = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
    flags = {"left_side": _is(config, "side", "L"), "lower": _is(config, "uplo", "L")}
    unit = _is(config, "diag", "U")
    return (triangular_solve(*args, **flags, unit_diagonal=unit, transpose_a=kinds[chr(config["trans_x"])]),)


def _symmetric(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    return f(args[0], lower=_is(config, "uplo", "L"))


def _potrf(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    """The factor; in the other triangle is what was there."""
    return f(args[0], lower=_is(config, "uplo", "L"), clean=0)


def _trf(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    """Factors of a symmetric matrix, and its rows that were exchanged, from 1 on; negative ones for blocks of two."""
    factors, rows, info = f(args[0], lower=_is(config, "uplo", "L"))
    return factors, rows, info


def _trs(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    factors, rows, y = args
    return f(factors, rows, y, lower=_is(config, "uplo", "L"))[:1]


def _is(config: Config, name: str, letter: str) -> bool:
    return chr(config[name]) == letter


def _evd(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    values, vectors, info = _symmetric(f, config, args)
    return vectors, values, info


def _getrf(f: Any, config: Config, args: Sequence[Array]) -> Sequence[Any]:
    factors, rows, info = f(args[0])
    return factors, rows + 1, info


ROUTINES: dict[str, Routine] = {
    "geev": _geev,
    "gees": _gees,
    "gehrd": lambda f, config, args: f(args[0]),
    "geqp3": _geqp3,
    "geqrf": lambda f, config, args: f(args[0])[:2],
    "gesdd": _svd,
    "gesvd": _svd,
    "getrf": _getrf,
    "gtsv": _gtsv,
    "heevd": _evd,
    "hetrd": _symmetric,
    "hetrf": _trf,
    "hetrs": _trs,
    "orgqr": lambda f, config, args: f(*args)[:1],
    "ormqr": _ormqr,
    "potrf": _potrf,
    "syevd": _evd,
    "sytrd": _symmetric,
    "sytrf": _trf,
    "sytrs": _trs,
    "trsm": _trsm,
    "ungqr": lambda f, config, args: f(*args)[:1],
    "unmqr": _ormqr,
}
"""Name without type -> its results for one matrix."""

_TARGET = re.compile(r"lapack_([sdcz])(\w+)_ffi")
_PERTURBED = "tridiagonal_solve_perturbed_ffi"
"""A target of jaxlib's own, for all types."""


def routine_of(target: str) -> tuple[str, Routine] | None:
    """SciPy's name of a target's routine (empty where it is not SciPy's), and how it is called; None for what is none
    of these."""
    if target == _PERTURBED:
        return "", lambda f, config, args: (solve_perturbed(*args),)
    found = _TARGET.fullmatch(target)
    routine = None if found is None else ROUTINES.get(found[2])
    return None if found is None or routine is None else (found[1] + found[2], routine)


def lapack(
    *args: Array, types: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], target: str, **config: Any
) -> tuple[Array, ...]:
    """The results, of these shapes and types, of a routine for each matrix of a batch.

    UnsupportedError for a target that is none of LAPACK's, and without SciPy.
    """
    found = routine_of(target)
    if found is None:
        raise UnsupportedError(f"there is no routine {target[:80]!r} of LAPACK")
    name, routine = found
    results = [np.zeros(shape, dtype) for shape, dtype in types]
    # The operand of the highest rank is a batch of matrices.
    batch = max(args, key=np.ndim).shape[:-2]
    if any(0 in np.shape(x) for x in args):
        return tuple(results)
    function = getattr(_library(), name, None) if name else None
    for place in np.ndindex(batch):
        one = routine(function, config, [x[place] for x in args])
        for result, value in zip(results, one, strict=True):
            if np.shape(value) == result[place].shape:
                result[place] = value
    return tuple(results)


def _library() -> Any:
    try:
        return import_module("scipy.linalg.lapack")
    except ImportError as error:
        raise UnsupportedError("LAPACK is called through SciPy, which is not installed", why=str(error)) from None
