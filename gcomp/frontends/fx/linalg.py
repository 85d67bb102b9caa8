"""Dense linear algebra: the factorizations are LAPACK's, as torch's own are.

A matrix that a routine cannot factor gives NaN; torch's errors for those (`_linalg_check_errors`) are not raised.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_complex, is_narrow_float
from gcomp.frontends.fx.context import NodeContext, operator_name
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import chlo, lapack
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import sort_along, take_along
from gcomp.ir.lapack import status, valid
from gcomp.ir.types import Tensor, dtype_text, element_of, rank_of, shape_of, tensor


def matrix(ctx: NodeContext, name: str) -> SSAValue:
    """An argument of matrices that LAPACK takes: of fixed sizes, of a type that it has."""
    x = ctx[name]
    if is_narrow_float(dtype_text(x.type)):
        ctx.unsupported(f"LAPACK has no {dtype_text(x.type)}", "convert to float32")
    if not all(isinstance(size, int) for size in shape_of(x)[-2:]):
        ctx.unsupported("its matrices have a symbolic size, which LAPACK is told as a number", "use a fixed size")
    return x


def batch_of(x: SSAValue) -> tuple[Size, ...]:
    return shape_of(x)[:-2]


def is_empty(x: SSAValue) -> bool:
    return 0 in shape_of(x)


def extents(x: SSAValue) -> tuple[int, int]:
    """The rows and columns of matrices."""
    m, n = shape_of(x)[-2:]
    assert isinstance(m, int) and isinstance(n, int)
    return m, n


def like(x: SSAValue, shape: Sequence[Size]) -> Tensor:
    """The type of matrices of a shape, for each of the batch of others."""
    return tensor((*batch_of(x), *shape), element_of(x))


def by_kind(x: SSAValue, real: str, other: str) -> str:
    """The name of a routine, which differs for complex numbers."""
    return other if is_complex(dtype_text(x.type)) else real


def triangle(b: Builder, x: SSAValue, *, upper: bool, offset: int = 0) -> SSAValue:
    """Matrices with zeros below (or above) a diagonal."""
    shape = shape_of(x)
    rows, columns = (b.iota(shape[-2:], i) for i in (0, 1))
    kept = b.compare(columns, b.add(rows, b.constant(offset, "i64")), "GE" if upper else "LE")
    return b.select(kept, x, b.scalar_like(x, 0))


def transpose_matrices(b: Builder, x: SSAValue, *, conjugate: bool = False) -> SSAValue:
    """Transposed matrices, or adjoint ones."""
    order = list(range(rank_of(x)))
    order[-2:] = order[:-3:-1]
    found = b.transpose(x, order)
    return b.emit(chlo.ConjOp, found) if conjugate and is_complex(dtype_text(x.type)) else found


def diagonal(b: Builder, x: SSAValue) -> SSAValue:
    """The diagonals of matrices."""
    shape, k = shape_of(x), min(extents(x))
    square = b.slice(x, [0] * rank_of(x), (*shape[:-2], k, k))
    on = b.compare(b.iota((k, k), 0), b.iota((k, k), 1), "EQ")
    return b.reduce(hlo.AddOp, b.select(on, square, b.scalar_like(x, 0)), [rank_of(x) - 1])


def identity_like(b: Builder, x: SSAValue, n: int) -> SSAValue:
    """Unit matrices, one for each of the batch."""
    on = b.convert(b.compare(b.iota((n, n), 0), b.iota((n, n), 1), "EQ"), element_of(x))
    return b.broadcast_to(on, (*batch_of(x), n, n))


# ---- triangular systems ---------------------------------------------------------------------------------------------


def solve_triangular(
    b: Builder, a: SSAValue, y: SSAValue, *, upper: bool, left: bool = True, adjoint: str = "N", unit: bool = False
) -> SSAValue:  # fmt: skip
    """x with op(a) x = y, or x op(a) = y; op is nothing (N), a transpose (T) or an adjoint (C)."""
    batch = b.broadcast_shape(batch_of(a), batch_of(y))
    a, y = (b.broadcast_to(v, (*batch, *shape_of(v)[-2:])) for v in (a, y))
    if is_empty(y):
        return y
    config = {"side": "L" if left else "R", "uplo": "U" if upper else "L", "trans_x": adjoint}
    return lapack.call(b, "trsm", [a, y], [tensor(shape_of(y), element_of(y))], {1: 0}, diag="U" if unit else "N",
                       **config)[0]  # fmt: skip


@imports("linalg_solve_triangular")
def linalg_solve_triangular(ctx: NodeContext) -> Results:
    """x with a x = y, or x a = y, for a triangular a."""
    return solve_triangular(
        ctx.b, matrix(ctx, "self"), matrix(ctx, "B"), upper=ctx.arg("upper"), left=ctx.arg("left", True),
        unit=ctx.arg("unitriangular", False),
    )  # fmt: skip


@imports("triangular_solve")
def triangular_solve(ctx: NodeContext) -> Results:
    """x with op(a) x = y for a triangular a, and a."""
    a = matrix(ctx, "A")
    found = solve_triangular(
        ctx.b, a, matrix(ctx, "self"), upper=ctx.arg("upper", True), unit=ctx.arg("unitriangular", False),
        adjoint="T" if ctx.arg("transpose", False) else "N",
    )  # fmt: skip
    return [found, ctx.b.broadcast_to(a, (*batch_of(found), *shape_of(a)[-2:]))]


# ---- Cholesky -------------------------------------------------------------------------------------------------------


@imports("linalg_cholesky_ex", "cholesky")
def cholesky(ctx: NodeContext) -> Results:
    """The lower (or upper) triangular factor, and whether there is one."""
    b, a, upper = ctx.b, matrix(ctx, "self"), bool(ctx.arg("upper", False))
    if is_empty(a):
        return [a, b.full(batch_of(a), 0, "i32")]
    found, info = lapack.call(
        b, "potrf", [a], [like(a, shape_of(a)[-2:]), status(batch_of(a))], {0: 0}, uplo="U" if upper else "L"
    )
    factor = triangle(b, valid(b, info, [found])[0], upper=upper)
    return [factor, info][: 1 if ctx.operator == "aten::cholesky" else 2]


@imports("cholesky_solve")
def cholesky_solve(ctx: NodeContext) -> Results:
    """x with a x = y, given the factor of a."""
    return _by_factor(ctx, matrix(ctx, "input2"), matrix(ctx, "self"))


@imports("cholesky_inverse")
def cholesky_inverse(ctx: NodeContext) -> Results:
    """The inverse of a, given its factor."""
    factor = matrix(ctx, "self")
    return _by_factor(ctx, factor, identity_like(ctx.b, factor, extents(factor)[0]))


def _by_factor(ctx: NodeContext, factor: SSAValue, y: SSAValue) -> SSAValue:
    upper = bool(ctx.arg("upper", False))
    first, second = ("C", "N") if upper else ("N", "C")
    y = solve_triangular(ctx.b, factor, y, upper=upper, adjoint=first)
    return solve_triangular(ctx.b, factor, y, upper=upper, adjoint=second)


# ---- QR -------------------------------------------------------------------------------------------------------------


@imports("geqrf")
def geqrf(ctx: NodeContext) -> Results:
    """R, with Householder's vectors below it, and their factors."""
    return _reflectors(ctx.b, matrix(ctx, "self"))


def _reflectors(b: Builder, a: SSAValue) -> list[SSAValue]:
    k = min(extents(a))
    if is_empty(a):
        return [a, b.full((*batch_of(a), k), 0, element_of(a))]
    return lapack.call(b, "geqrf", [a], [like(a, shape_of(a)[-2:]), like(a, (k,))], {0: 0})


@imports("linalg_householder_product")
def householder_product(ctx: NodeContext) -> Results:
    """Q from Householder's vectors and their factors."""
    return _product(ctx.b, matrix(ctx, "input"), ctx["tau"])


def _product(b: Builder, a: SSAValue, tau: SSAValue) -> SSAValue:
    if is_empty(a) or is_empty(tau):
        m, n = extents(a)
        return b.slice(identity_like(b, a, max(m, n)), [0] * rank_of(a), shape_of(a))
    return lapack.call(b, by_kind(a, "orgqr", "ungqr"), [a, tau], [like(a, shape_of(a)[-2:])], {0: 0})[0]


@imports("ormqr")
def ormqr(ctx: NodeContext) -> Results:
    """A matrix times Q, or its adjoint, from either side."""
    a, tau, other = matrix(ctx, "self"), ctx["input2"], matrix(ctx, "input3")
    if is_empty(other) or is_empty(tau):
        return other
    return lapack.call(
        ctx.b, by_kind(a, "ormqr", "unmqr"), [a, tau, other], [like(other, shape_of(other)[-2:])], {2: 0},
        left=bool(ctx.arg("left", True)), transpose=bool(ctx.arg("transpose", False)),
    )  # fmt: skip


@imports("linalg_qr")
def qr(ctx: NodeContext) -> Results:
    """Q and R: reduced to as many columns as the smaller dimension has, complete, or R alone."""
    b, a, mode = ctx.b, matrix(ctx, "A"), ctx.arg("mode", "reduced")
    (m, n), rank = extents(a), rank_of(a)
    packed, tau = _reflectors(b, a)
    columns = m if mode == "complete" else min(m, n)
    r = triangle(b, b.slice_axis(packed, rank - 2, 0, columns), upper=True)
    if mode == "r":
        return [b.full((0,), 0, element_of(a)), r]
    if columns <= n:
        vectors = b.slice_axis(packed, rank - 1, 0, columns)
    else:
        high = [0] * (rank - 1) + [columns - n]
        vectors = b.pad(packed, b.scalar_like(a, 0), [0] * rank, high)
    return [_product(b, vectors, tau), r]


# ---- LU -------------------------------------------------------------------------------------------------------------


def _lu(b: Builder, a: SSAValue) -> list[SSAValue]:
    """Both factors in one matrix, the rows that were exchanged (from 1 on), and whether U is regular."""
    k = min(extents(a))
    if is_empty(a):
        return [a, b.full((*batch_of(a), k), 0, "i32"), b.full(batch_of(a), 0, "i32")]
    types = [like(a, shape_of(a)[-2:]), tensor((*batch_of(a), k), "i32"), status(batch_of(a))]
    return lapack.call(b, "getrf", [a], types, {0: 0})


@imports("linalg_lu_factor_ex")
def lu_factor(ctx: NodeContext) -> Results:
    """Both factors in one matrix, the rows that were exchanged, and whether U is regular."""
    _check_pivots(ctx)
    return _lu(ctx.b, matrix(ctx, "A"))


def _check_pivots(ctx: NodeContext) -> None:
    if not ctx.arg("pivot", True):
        ctx.unsupported("torch has no factorization without pivots on CPUs", "leave `pivot` out")


def permutation(b: Builder, pivots: SSAValue, count: int) -> SSAValue:
    """The order of rows that exchanges make, one after the other: row i goes where pivots[i] - 1 is."""
    *batch, steps = shape_of(pivots)
    rows = b.broadcast_to(b.iota((count,), 0), (*batch, count))
    if 0 in shape_of(pivots):
        return rows
    axis = len(batch)
    places = b.convert(pivots, "i64")

    def step(args: Sequence[SSAValue]) -> list[SSAValue]:
        at, order = args
        starts = [at if i == axis else b.constant(0, "i64") for i in range(axis + 1)]
        there = b.emit(hlo.DynamicSliceOp, places, *starts, slice_sizes=[*batch, 1])
        there = b.subtract(there, b.full_like(there, 1))
        own = b.emit(hlo.DynamicSliceOp, order, *starts, slice_sizes=[*batch, 1])
        other = take_along(b, order, there, axis)
        found = b.select(b.compare(rows, there, "EQ"), own, order)
        return [b.add(at, b.constant(1, "i64")), b.select(b.compare(rows, at, "EQ"), other, found)]

    types = [tensor((), "i64"), rows.type]
    regions = [b.region(types, lambda args: [b.compare(args[0], b.dim(steps), "LT")]), b.region(types, step)]
    return b.emit_all(hlo.WhileOp, b.constant(0, "i64"), rows, regions=regions)[1]


def _unpack(b: Builder, lu: SSAValue) -> list[SSAValue]:
    """L and U of both in one matrix."""
    (m, n), rank = extents(lu), rank_of(lu)
    k = min(m, n)
    lower = triangle(b, b.slice_axis(lu, rank - 1, 0, k), upper=False, offset=-1)
    unit = b.convert(b.compare(b.iota((m, k), 0), b.iota((m, k), 1), "EQ"), element_of(lu))
    return [b.add(lower, unit), triangle(b, b.slice_axis(lu, rank - 2, 0, k), upper=True)]


def _permutation_matrix(b: Builder, pivots: SSAValue, m: int, element: object) -> SSAValue:
    order = permutation(b, pivots, m)
    shape = (*shape_of(order), m)
    rank = len(shape)
    wide = b.broadcast(order, shape, [*range(rank - 2), rank - 1])
    return b.convert(b.compare(wide, b.iota(shape, rank - 2), "EQ"), element)  # pyright: ignore[reportArgumentType]


@imports("linalg_lu")
def lu(ctx: NodeContext) -> Results:
    """P, L and U."""
    _check_pivots(ctx)
    b, a = ctx.b, matrix(ctx, "A")
    packed, pivots, _ = _lu(b, a)
    return [_permutation_matrix(b, pivots, extents(a)[0], element_of(a)), *_unpack(b, packed)]


@imports("lu_unpack")
def lu_unpack(ctx: NodeContext) -> Results:
    """P, L and U of a factorization; empty ones where they are not asked for."""
    b, packed = ctx.b, matrix(ctx, "LU_data")
    nothing = b.full((0,), 0, element_of(packed))
    results = [nothing] * 3
    if ctx.arg("unpack_pivots", True):
        results[0] = _permutation_matrix(b, ctx["LU_pivots"], extents(packed)[0], element_of(packed))
    if ctx.arg("unpack_data", True):
        results[1:] = _unpack(b, packed)
    return results


# ---- systems --------------------------------------------------------------------------------------------------------


def lu_solve(b: Builder, lu: SSAValue, pivots: SSAValue, y: SSAValue, adjoint: str = "N") -> SSAValue:
    """x with op(a) x = y, given the factors of a."""
    batch = b.broadcast_shape(batch_of(lu), batch_of(y))
    y = b.broadcast_to(y, (*batch, *shape_of(y)[-2:]))
    if is_empty(y):
        return y
    n, axis = extents(lu)[0], rank_of(y) - 2
    order = b.broadcast_to(permutation(b, pivots, n), (*batch, n))
    if adjoint == "N":
        x = solve_triangular(b, lu, _rows(b, y, order), upper=False, unit=True)
        return solve_triangular(b, lu, x, upper=True)
    x = solve_triangular(b, lu, y, upper=True, adjoint=adjoint)
    x = solve_triangular(b, lu, x, upper=False, adjoint=adjoint, unit=True)
    return _rows(b, x, sort_along(b, order, axis, descending=False)[1])


def _rows(b: Builder, x: SSAValue, order: SSAValue) -> SSAValue:
    rank = rank_of(x)
    return take_along(b, x, b.broadcast(order, shape_of(x), range(rank - 1)), rank - 2)


def _solve_from(b: Builder, lu: SSAValue, pivots: SSAValue, y: SSAValue, *, left: bool, adjoint: bool) -> SSAValue:
    """x with op(a) x = y, or x op(a) = y."""
    if left:
        return lu_solve(b, lu, pivots, y, "C" if adjoint else "N")
    found = lu_solve(b, lu, pivots, transpose_matrices(b, y, conjugate=True), "N" if adjoint else "C")
    return transpose_matrices(b, found, conjugate=True)


@imports("linalg_lu_solve")
def linalg_lu_solve(ctx: NodeContext) -> Results:
    """x with a x = y, given the factors of a."""
    left, adjoint = bool(ctx.arg("left", True)), bool(ctx.arg("adjoint", False))
    return _solve_from(ctx.b, matrix(ctx, "LU"), ctx["pivots"], matrix(ctx, "B"), left=left, adjoint=adjoint)


def _factor(ctx: NodeContext) -> list[SSAValue]:
    """The factors of a, or of its transpose: the one of which torch, and with it the gradient, keeps the factors."""
    a = matrix(ctx, "A")
    turned = bool(ctx.fake("A").is_contiguous()) and not is_complex(dtype_text(a.type))
    return _lu(ctx.b, transpose_matrices(ctx.b, a) if turned else a)


@imports("_linalg_solve_ex")
def solve(ctx: NodeContext) -> Results:
    """x with a x = y, or x a = y, and the factors; y may be a vector."""
    b, a, y, left = ctx.b, matrix(ctx, "A"), ctx["B"], bool(ctx.arg("left", True))
    vector = rank_of(y) == 1 or (rank_of(y) == rank_of(a) - 1 and shape_of(y) == shape_of(a)[:-1])
    if vector:
        y = b.reshape(y, (*shape_of(y), 1))
    lu, pivots, info = _lu(b, a)
    found = _solve_from(b, lu, pivots, y, left=left, adjoint=False)
    bad = b.broadcast(b.compare(info, b.full_like(info, 0), "EQ"), (*batch_of(a), 1, 1), range(rank_of(info)))
    nan = complex("nan+nanj") if is_complex(dtype_text(a.type)) else float("nan")
    found = b.select(bad, found, b.scalar_like(found, nan))
    return [b.reshape(found, ctx.out_shape(0)), lu, pivots, info]


@imports("linalg_inv_ex")
def inverse(ctx: NodeContext) -> Results:
    """The inverse, and whether there is one."""
    b, a = ctx.b, matrix(ctx, "A")
    lu, pivots, info = _lu(b, a)
    found = lu_solve(b, lu, pivots, identity_like(b, a, extents(a)[0]))
    return [found if is_empty(a) else valid(b, info, [found])[0], info]


def _parity(b: Builder, pivots: SSAValue) -> SSAValue:
    """Whether an odd number of rows were exchanged."""
    last = rank_of(pivots) - 1
    own = b.add(b.iota(shape_of(pivots), last, "i32"), b.full_like(pivots, 1))
    return b.reduce(hlo.XorOp, b.compare(pivots, own, "NE"), [last])


@imports("_linalg_det")
def determinant(ctx: NodeContext) -> Results:
    """The determinant, and the factors."""
    b, (lu, pivots, _) = ctx.b, _factor(ctx)
    on = diagonal(b, lu)
    found = b.reduce(hlo.MultiplyOp, on, [rank_of(on) - 1])
    return [b.select(_parity(b, pivots), b.emit(hlo.NegateOp, found), found), lu, pivots]


@imports("_linalg_slogdet")
def log_determinant(ctx: NodeContext) -> Results:
    """The sign and the logarithm of the absolute value of the determinant, and the factors."""
    b, (lu, pivots, _) = ctx.b, _factor(ctx)
    on = diagonal(b, lu)
    sign = b.reduce(hlo.MultiplyOp, b.emit(hlo.SignOp, on), [rank_of(on) - 1])
    total = b.reduce(hlo.AddOp, b.emit(hlo.LogOp, b.emit(hlo.AbsOp, on)), [rank_of(on) - 1])
    return [b.select(_parity(b, pivots), b.emit(hlo.NegateOp, sign), sign), total, lu, pivots]


# ---- symmetric matrices: the host factors them, since jaxlib has no such routine for XLA -----------------------------


def _bunch_kaufman(ctx: NodeContext, a: SSAValue, more: Sequence[SSAValue], types: Sequence[Tensor], name: str
                   ) -> list[SSAValue]:  # fmt: skip
    """The results of a routine for symmetric matrices, or for Hermitian ones, by their lower triangle."""
    kind = "he" if ctx.arg("hermitian", False) and is_complex(dtype_text(a.type)) else "sy"
    target = f"lapack_{lapack.PREFIXES[dtype_text(a.type)]}{kind}{name}_ffi"
    return list(ctx.host("lapack", [a, *more], types, target=target, uplo=ord("L")))


@imports("linalg_ldl_factor_ex", "linalg_ldl_factor")
def ldl_factor(ctx: NodeContext) -> Results:
    """L with blocks of D on its diagonal, the rows that were exchanged (from 1 on), and whether D is regular."""
    b, a = ctx.b, matrix(ctx, "self")
    n = extents(a)[0]
    if is_empty(a):
        results = [a, b.full((*batch_of(a), n), 0, "i32"), b.full(batch_of(a), 0, "i32")]
    else:
        types = [like(a, shape_of(a)[-2:]), tensor((*batch_of(a), n), "i32"), status(batch_of(a))]
        results = _bunch_kaufman(ctx, a, [], types, "trf")
        results[0] = triangle(b, results[0], upper=False)
    return results[: 3 if ctx.operator.endswith("_ex") else 2]


@imports("linalg_ldl_solve")
def ldl_solve(ctx: NodeContext) -> Results:
    """x with a x = y, given the factors of a."""
    b, factors, pivots, y = ctx.b, matrix(ctx, "LD"), ctx["pivots"], matrix(ctx, "B")
    batch = b.broadcast_shape(batch_of(factors), batch_of(y))
    factors, y = (b.broadcast_to(v, (*batch, *shape_of(v)[-2:])) for v in (factors, y))
    pivots = b.broadcast_to(pivots, (*batch, shape_of(pivots)[-1]))
    if is_empty(y):
        return y
    return _bunch_kaufman(ctx, factors, [pivots, y], [tensor(shape_of(y), element_of(y))], "trs")


# ---- errors ---------------------------------------------------------------------------------------------------------


@imports("_linalg_check_errors")
def check_errors(ctx: NodeContext) -> Results:
    """What failed is NaN already."""
    return []


@imports("higher_order::with_effects")
def with_effects(ctx: NodeContext) -> Results:
    """An operator that acts on more than its results, in order; the only one is the check of a factorization."""
    if (name := operator_name(ctx.arg("1"))) != "aten::_linalg_check_errors":
        ctx.unsupported(f"{name} acts on more than its results", "call it outside of the model")
    return [ctx.arg("0")]


@imports("prims::_make_token")
def make_token(ctx: NodeContext) -> Results:
    """What keeps such operators in order: nothing."""
    return ctx.b.full((0,), 0, "f32")


@imports("prims::_sink_tokens")
def sink_tokens(ctx: NodeContext) -> Results:
    """The end of their order."""
    return []
