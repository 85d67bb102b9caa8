"""Operators beside torch's own: one exported function each, equal to the bit where nothing is rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from gcomp.frontends.fx import export_module  # noqa: E402
from tests.support.thinning import thinned  # noqa: E402

F: Any = torch.nn.functional
NAN, INF = float("nan"), float("inf")
X = torch.arange(24.0).reshape(2, 3, 4) - 11.5
ODD = torch.tensor([[3.0, NAN, -1.0, 3.0, -INF], [0.0, -0.0, INF, 2.0, NAN]])
I = torch.tensor([[2, 0], [-1, 1]])
IMAGE = torch.randn(2, 4, 9, 7, generator=torch.Generator().manual_seed(0))
ALONG = torch.tensor([[[0, 1, 1, 0], [1, 0, 0, 1]]])
LINALG: Any = torch.linalg
SPECIAL: Any = torch.special
GENERATOR = torch.Generator().manual_seed(1)
SQUARE = torch.randn(2, 4, 4, generator=GENERATOR) + 4 * torch.eye(4)
TALL = torch.randn(2, 5, 3, generator=GENERATOR)
POSITIVE = SQUARE @ SQUARE.mT
COMPLEX = torch.complex(X, X.flip(0))
TIES = torch.tensor([[3, 1, 3, 2, 1], [0, 7, 7, 7, 2]])
BAGS = (torch.tensor([0, 2, 1, 2, 2]), torch.tensor([0, 2, 2]))

EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "hash": (lambda x, i: (torch.hash_tensor(x), torch.hash_tensor(x, dim=1), torch.hash_tensor(i)), (X, I)),
    "index one": (lambda x, i: x[i], (X, torch.tensor([1, 0, -1]))),
    "index two apart": (lambda x, i, j: x[i, :, j], (X, I[:, 0].abs() % 2, I[:, 1])),
    "index two together": (lambda x, i, j: x[:, i, j], (X, I, I.t())),
    "index and broadcast": (lambda x, i, j: x[i, j], (X, torch.tensor([[1], [0]]), torch.tensor([0, 2, -1]))),
    "index_put": (lambda x, i, v: x.clone().index_put((i,), v), (X, torch.tensor([1]), X[:1] * 2)),
    "index_put accumulate": (
        lambda x, i, v: x.clone().index_put((i,), v, accumulate=True),
        (X[0], torch.tensor([1, 1, 0]), torch.ones(3, 4)),
    ),
    "index_put of a mask": (lambda x, m: x.clone().index_put((m,), torch.tensor(7.0)), (X, X > 0)),
    "gather": (lambda x, i: torch.gather(x, 1, i), (X, ALONG)),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), (X, torch.tensor([[[2, 1, 0, 1]]]), X * 3)),
    "scatter value": (lambda x, i: x.scatter(0, i, 5.0), (X, ALONG)),
    "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), (X, ALONG, X * 2)),
    "scatter_reduce": (lambda x, i, v: x.scatter_reduce(0, i, v, "amax", include_self=False), (X, ALONG, X - 100)),
    "index_add": (lambda x, i, v: x.index_add(1, i, v, alpha=2), (X, torch.tensor([0, 0, 2]), X)),
    "index_copy": (lambda x, i, v: x.index_copy(0, i, v), (X, torch.tensor([1]), X[:1])),
    "index_select": (lambda x, i: x.index_select(2, i), (X, torch.tensor([3, 0, 0]))),
    "embedding": (lambda w, i: F.embedding(i, w), (X[0], I.abs())),
    "masked_fill": (lambda x, m: x.masked_fill(m, -INF), (X, X > 0)),
    "sort": (lambda x: torch.sort(x, dim=1, stable=True), (ODD,)),
    "sort descending": (lambda x: torch.sort(x, dim=1, descending=True, stable=True), (ODD,)),
    "topk": (lambda x: torch.topk(x, 3), (X,)),
    "topk least": (lambda x: torch.topk(x, 2, dim=1, largest=False), (X,)),
    "argmax": (lambda x: (x.argmax(1), x.argmin(1), x.argmax()), (ODD,)),
    "max": (lambda x: (x.max(1), x.min(0), x.amax((0, 1)), x.max()), (ODD,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True), (IMAGE,)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), (IMAGE[0],)),
    "flip, roll": (lambda x: (x.flip(0, 2), x.roll(1, 1), x.roll((1, -2), (0, 2)), x.roll(5)), (X,)),
    "slices": (lambda x: (x[:, 1:], x[..., ::2], x[-1], x[:, -2:-1], x[:, :, 1:100]), (X,)),
    "cat, stack": (lambda x: (torch.cat([x, x[:, :1]], 1), torch.stack([x, x], -1), torch.cat([x, x.int()])), (X,)),
    "split, chunk, unbind": (lambda x: (*x.split([1, 2], 1), *x.chunk(3, 2), *x.unbind(0)), (X,)),
    "repeat, expand, tile": (lambda x: (x.repeat(2, 1, 1, 2), x[:1].expand(3, -1, -1), x.tile(2)), (X,)),
    "pad": (lambda x: (F.pad(x, (1, 2, -1, 0)), F.pad(x, (1, 1), "reflect"), F.pad(x, (1, 1), "replicate")), (X,)),
    "tril, triu": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), (X,)),
    "arange, full": (
        lambda x: (torch.arange(3, 9, 2), torch.full((2,), 3), torch.linspace(0, 1, 5) + x[0, 0, 0]),
        (X,),
    ),
    "where, clamp": (lambda x: (torch.where(x > 0, x, 0.0), x.clamp(-3, 2), x.clamp(min=0), F.relu6(x)), (ODD,)),
    "any, all": (lambda x: (x.any(1), x.all(), (x > 0).any((0, 1), keepdim=True)), (ODD,)),
    "comparisons": (lambda x: (x.isnan(), x.isinf(), x.isfinite(), x == x, x.sign(), x.logical_not()), (ODD,)),
    "integers": (
        lambda x: (x // 3, x % 3, -x, x.abs(), x << 2, x >> 1, x & 6, x ^ 3, ~x),
        (torch.tensor([-7, -1, 0, 5, 9]),),
    ),
    "the same bytes": (
        lambda x, flags: (
            x.view(torch.int32), x.view(torch.int16) + 1, x.view(torch.float64) * 1, x.view(torch.uint8)[..., 3],
            x.double().view(torch.int32), x.half().view(torch.bfloat16), flags.view(torch.uint8) + 1,
            flags.to(torch.uint8).view(torch.bool), x.view(torch.float32) + 1,
        ),
        (X, X > 0),
    ),
    "as_strided": (
        lambda x: (x.as_strided((3, 2), (4, 1), 2), x.as_strided((4,), (3,)), x.as_strided((2, 2), (0, 1))),
        (X,),
    ),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), (IMAGE,)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (IMAGE,)),
    "one_hot": (lambda i: F.one_hot(i, 5), (I.abs(),)),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-5.0, 0.0, 5.0])), (X,)),
    "searchsorted": (
        lambda x: (torch.searchsorted(x.sort(-1).values, x + 1, right=True), torch.bucketize(x[0, 0, 0], x[0, 0])),
        (X,),
    ),
    "index_put of a mask, one after the other": (
        lambda x, m, v: (x.clone().index_put((m,), v), x.index_put((m,), v, accumulate=True)),
        (X[0], X[0] > -9, torch.arange(9.0)),
    ),
    "masked_scatter": (lambda x, m: x.masked_scatter(m, -x), (X, (X > 0) | (X < -9))),
    "put, take": (lambda x, i: (x.put(i, x[0, :2, :2]), x.take(i), x.put(i, i * 1.0, accumulate=True)), (X, I)),
    "index_reduce": (
        lambda x, i: (x.index_reduce(0, i, x + 1, "amax"), x.index_reduce(0, i, x, "prod", include_self=False)),
        (X, torch.tensor([1, 1])),
    ),
    "mean of integers": (lambda x, i: x.scatter_reduce(0, i, x - 9, "mean"), (TIES, torch.zeros_like(TIES))),
    "diagonal_scatter": (lambda x, v: x.diagonal_scatter(v, 1, 2, 1), (X, torch.ones(2, 2))),
    "as_strided_scatter": (lambda x, v: x.as_strided_scatter(v, (2, 2), (4, 1), 1), (X, torch.ones(2, 2))),
    "nonzero_static": (lambda x: torch.nonzero_static(x, size=5, fill_value=-7), (TIES - 7,)),
    "gather nothing": (lambda x, i: (x.gather(0, i), x.scatter(0, i, x)), (X[0], torch.zeros(0, 4).long())),
    "cummax": (lambda x: (*x.cummax(1), *x.cummin(0), *x[0, 0].cummax(0)), (ODD,)),
    "kthvalue, median, mode": (
        lambda x, o: (x.kthvalue(2, 1).values, x.median(), *o.nanmedian(1), o.median(1).values, *x.mode(1)),
        (TIES, ODD),
    ),
    "histc": (lambda x: (torch.histc(x, 4, -5, 7), torch.histc(x, 3)), (X,)),
    "segment_reduce": (
        lambda x: (torch.segment_reduce(x, "max", lengths=torch.tensor([2, 0, 1])),
                   torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 2, 3]), initial=1.0)),
        (X[0],),
    ),
    "gcd, lcm": (lambda x: (torch.gcd(x, x - 6), torch.lcm(x, x.flip(0))), (torch.tensor([[-12, 0, 18], [8, -6, 0]]),)),
    "complex parts": (
        lambda z: (z.real, z.imag, torch.view_as_real(z), torch.view_as_complex(torch.view_as_real(z)), z.conj() * 2),
        (COMPLEX,),
    ),
    "signs": (
        lambda x, i: (x.signbit(), (i - 2).signbit(), torch.copysign(x, -x), torch.fmin(x, x.flip(1))), (ODD, TIES),
    ),
    "frexp": (lambda x: torch.frexp(x), (torch.tensor([0.0, -0.0, 1e-45, -3e-39, 0.75, -8.0, 3.0, INF, NAN]),)),
    "digamma at its poles": (lambda x: torch.digamma(x), (torch.tensor([0.0, -0.0, -1.0, NAN]),)),
    "adaptive_max_pool": (lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), (IMAGE,)),
    "embedding_bag of maxima": (lambda w, i, o: F.embedding_bag(i, w, o, mode="max"), (X[0], *BAGS)),
    "a permutation": (lambda a: LINALG.lu(a)[0], (SQUARE,)),
    "upsample nearest": (lambda x: F.interpolate(x, scale_factor=2), (IMAGE,)),
}  # fmt: skip
CLOSE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "histograms": (
        lambda x, w: (
            torch.histogram(x, 5), torch.histogram(x, 4, range=(-3.0, 8.0), weight=w, density=True),
            torch.histogram(x[:1], 3), torch.histogramdd(x.reshape(-1, 2), [3, 2])[0],
            torch.histogramdd(x.reshape(-1, 2), [3, 2], range=[-9.0, 4.0, -1.0, 12.0], density=True),
            torch.histogram(x, torch.tensor([-8.0, -3.5, 0.0, 4.5]), weight=w, density=True),
            torch.histogramdd(x.reshape(-1, 2), [torch.tensor([-9.0, 0.5, 8.5]), torch.tensor([0.0, 9.0])])[0],
        ),
        (X.flatten(), X.flatten() ** 2),
    ),
    "resized with antialiasing": (
        lambda x: (
            F.interpolate(x, (5, 3), mode="bilinear", antialias=True), F.interpolate(x, (2, 9), mode="bicubic",
            antialias=True), F.interpolate(x, (4, 4), mode="bilinear", antialias=True, align_corners=True),
            F.interpolate(x, scale_factor=0.4, mode="bicubic", antialias=True),
        ),
        (torch.arange(336.0).reshape(2, 2, 12, 7).sin(),),
    ),
    "incomplete gamma functions": (
        lambda a, x: (torch.special.gammainc(a, x), torch.special.gammaincc(a, x)),
        (torch.logspace(-2, 4, 25).unsqueeze(1), torch.logspace(-3, 4, 29)),
    ),
    "their ends": (
        lambda a, x: (torch.special.gammainc(a, x), torch.special.gammaincc(a, x)),
        (torch.tensor([0, 0, 1, INF, INF, -1, 1, 2, 0, NAN]), torch.tensor([0, 1, 0, 1, INF, 1, -1, INF, INF, 1])),
    ),
    "symmetric factors": (
        lambda a: (torch.linalg.ldl_factor_ex(a), torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), a[..., :2])),
        (X @ X.mT + torch.tensor([[0.0, 9, 0], [9, 0, 1], [0, 1, 0]]),),
    ),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False), (IMAGE,)),
    "avg_pool2d ceil, padding counts": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
    "avg_pool2d divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), (IMAGE,)),
    "adaptive": (lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 5))), (IMAGE,)),
    "interpolate": (lambda x: F.interpolate(x, size=(5, 11), mode="bilinear", align_corners=False), (IMAGE,)),
    "batch_norm": (
        lambda x: F.batch_norm(x, torch.ones(4), torch.full((4,), 2.0), torch.arange(4.0), None, eps=0.1),
        (IMAGE,),
    ),
    "group_norm": (lambda x: F.group_norm(x, 2, torch.ones(4), torch.arange(4.0)), (IMAGE,)),
    "instance_norm": (lambda x: F.instance_norm(x), (IMAGE,)),
    "cumsum": (lambda x: (x.cumsum(1), x.cumprod(2), x.int().cumsum(0)), (X,)),
    "statistics": (lambda x: (x.var(), x.std(1), x.mean((0, 2)), x.var(1, correction=0), x.norm(dim=1)), (X,)),
    "activations": (
        lambda x: (F.silu(x), F.mish(x), F.elu(x), F.softplus(x), F.hardswish(x), F.leaky_relu(x), F.selu(x), F.glu(x)),
        (X,),
    ),
    "losses": (lambda x: (F.mse_loss(x, x + 1), F.cross_entropy(x[0], torch.tensor([0, 2, 3])), F.huber_loss(x, -x)),
               (X,)),
    "functions": (
        lambda x: (x.exp(), x.abs().log(), x.sin(), x.tanh(), x.sigmoid(), x.erf(), x.abs().sqrt(), x.expm1(),
                   x.atan2(x)),
        (X / 7,),
    ),
    "logsumexp": (lambda x: (x.logsumexp(1), F.log_softmax(x, 0), F.softmin(x, 2)), (X,)),
    "products": (lambda x: (x @ x.mT, torch.einsum("bij,bkj->ik", x, x), torch.outer(x[0, 0], x[1, 1]), x[0] @ x[1, 0]),
                 (X,)),
    "attention with a mask": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        (IMAGE, torch.tril(torch.ones(9, 9)).bool()),
    ),
    "attention with shared heads": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True, scale=0.3),
        (IMAGE, IMAGE[:, :2]),
    ),
    "embedding_bag": (
        lambda w, i, o: (F.embedding_bag(i, w, o, mode="sum", padding_idx=1), F.embedding_bag(i, w, o)), (X[0], *BAGS),
    ),
    "embedding with a greatest norm": (lambda w, i: F.embedding(i, w.clone(), max_norm=9.0), (X[0], I.abs())),
    "distances": (
        lambda x: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=0.5), F.pdist(x[0], p=1), torch.cdist(x, -x, p=INF)),
        (X,),
    ),
    "round to decimals": (lambda x: (x.round(decimals=1), x.round(decimals=-1), x.round()), (X * 1.25,)),
    "addbmm": (lambda x: torch.addbmm(x[0, :, :3], x, x.mT, beta=0.5, alpha=2), (X,)),
    "trilinear": (lambda x: F.bilinear(x[0], x[1], torch.ones(5, 4, 4) * x[0, 0], torch.arange(5.0)), (X / 9,)),
    "grid_sample of volumes": (
        lambda x, g: [F.grid_sample(x, g, m, p, align_corners=a) for m, p, a in (
            ("bilinear", "zeros", False), ("bilinear", "reflection", True), ("nearest", "border", False))],
        (IMAGE[:, :, :8].reshape(2, 4, 2, 4, 7), torch.randn(2, 2, 3, 4, 3, generator=GENERATOR)),
    ),
    "logcumsumexp": (lambda x: (x.logcumsumexp(1), x.nan_to_num(-INF).logcumsumexp(0)), (ODD,)),
    "complex functions": (lambda z, x: (z.abs(), z.angle(), x.angle(), torch.polar(x.abs(), x)), (COMPLEX, X)),
    "fft": (
        lambda x: (torch.fft.fft(x), torch.fft.rfft2(x, norm="ortho"), torch.fft.ifftn(x, norm="forward"),
                   torch.fft.irfft(x, 5), torch.fft.hfft(x, dim=1), torch.fft.fftn(torch.complex(x, -x))),
        (X / 12,),
    ),
    "logarithms": (lambda x: (x.log2(), x.log10(), (x / 9).exp2(), torch.hypot(x, x + 1)), (X.abs(),)),
    "products of factors": (
        lambda a, t: [q @ r for mode in ("reduced", "complete") for q, r in [LINALG.qr(t, mode)]]
        + [LINALG.lu(a)[0] @ LINALG.lu(a)[1] @ LINALG.lu(a)[2], LINALG.qr(t.mT, "r")[1].abs()],
        (SQUARE / 4, TALL),
    ),
    "systems": (
        lambda a: (LINALG.solve(a, a[..., 0] * 2), LINALG.solve(a, a.mT, left=False), LINALG.inv(a), LINALG.slogdet(a),
                   LINALG.solve_triangular(a, a.mT, upper=True),
                   LINALG.lu_solve(*LINALG.lu_factor(a), a.mT, adjoint=True), LINALG.det(a / 4)),
        (SQUARE,),
    ),
    "cholesky": (
        lambda a: (LINALG.cholesky(a), torch.cholesky_solve(a, LINALG.cholesky(a)),
                   torch.cholesky_inverse(LINALG.cholesky(a, upper=True), upper=True)),
        (POSITIVE / 16,),
    ),
    "eigenvalues": (
        lambda s: (LINALG.eigvalsh(s), LINALG.eigh(s, UPLO="U")[1].abs(), LINALG.eigvals(s).real.sort().values),
        (POSITIVE / 16,),
    ),
    "singular values": (
        lambda t: (LINALG.svdvals(t), LINALG.svd(t, full_matrices=False)[0].abs(), LINALG.pinv(t),
                   LINALG.matrix_rank(t)),
        (TALL,),
    ),
    "householder": (
        lambda t: (torch.ormqr(*torch.geqrf(t), t @ t.mT), LINALG.householder_product(*torch.geqrf(t))), (TALL / 2,),
    ),
    "matrix_exp": (lambda a: (LINALG.matrix_exp(a / 4), LINALG.matrix_exp(a * 0)), (SQUARE,)),
    "bessel": (
        lambda x: (SPECIAL.bessel_j0(x), SPECIAL.bessel_j1(x), SPECIAL.bessel_y0(x), SPECIAL.bessel_y1(x),
                   SPECIAL.i0e(x), SPECIAL.i1e(x), SPECIAL.spherical_bessel_j0(x), SPECIAL.airy_ai(x)),
        (X,),
    ),
    "modified bessel": (
        lambda x: (torch.i0(x), SPECIAL.i1(x), SPECIAL.modified_bessel_k0(x), SPECIAL.scaled_modified_bessel_k1(x)),
        (X / 4,),
    ),
    "of the normal distribution": (
        lambda x: (SPECIAL.erfcx(x), SPECIAL.log_ndtr(x), SPECIAL.ndtri(x / 24 + 0.5), SPECIAL.ndtr(x)), (X / 3,),
    ),
    "derivatives of digamma": (
        lambda x: [torch.polygamma(n, x) for n in range(4)], (torch.tensor([-8.25, -3.6, -0.3, 0.0, 0.4, 2.5, 40.0]),),
    ),
    "polynomials": (
        lambda x, n: [f(x, n) for f in (
            SPECIAL.chebyshev_polynomial_t, SPECIAL.chebyshev_polynomial_u, SPECIAL.chebyshev_polynomial_v,
            SPECIAL.chebyshev_polynomial_w, SPECIAL.shifted_chebyshev_polynomial_t, SPECIAL.hermite_polynomial_h,
            SPECIAL.hermite_polynomial_he, SPECIAL.laguerre_polynomial_l, SPECIAL.legendre_polynomial_p)],
        (torch.tensor([-1.0, -0.6, 0.0, 0.3, 1.0, 1.5]), torch.tensor([[0], [1], [2], [5], [12], [-1]])),
    ),
    "lstm": (lambda x, *w: torch.lstm(x, (torch.zeros(1, 3, 2),) * 2, w, True, 1, 0.0, False, False, False)[0],
             (X.reshape(2, 3, 4) / 9, torch.ones(8, 4) / 5, torch.ones(8, 2) / 3, torch.ones(8), torch.zeros(8))),
}  # fmt: skip


Cases = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
GROUP = 12
"""Functions that are exported together: to export one takes torch most of a second."""
ALONE = "embedding with a greatest norm"
"""torch's own decomposition fails where this is exported beside a batched product of views."""


SWEPT = ("histograms", "distances", "eigenvalues")
"""The groups whose decompositions are long. Of each family in them tests/conformance/test_torch_opinfo.py has one."""


def groups(cases: Cases) -> list[list[str]]:
    names = [name for name in cases if name != ALONE]
    return [names[i : i + GROUP] for i in range(0, len(names), GROUP)] + [[ALONE]] * (ALONE in cases)


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, tuple | list) else [value]


def together(functions: list[Callable[..., Any]]) -> Callable[..., Any]:
    """One function of the arguments of several: it gives what each of them gives."""
    return lambda *args: [flat(f(*given)) for f, given in zip(functions, args, strict=True)]


def check(names: list[str], cases: Cases, bound: float) -> None:
    """Compare what functions give, exported as one program. Where that fails, each alone: that names the culprit."""
    functions, args = [cases[name][0] for name in names], [cases[name][1] for name in names]
    run = together(functions)
    try:
        results = gcomp.compile(export_module(run, tuple(args)))(*args)
        for got, wanted in zip(flat(results), flat(run(*args)), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            torch.testing.assert_close(got, wanted, rtol=bound, atol=bound, equal_nan=True)
    except Exception as error:
        if len(names) == 1:
            raise AssertionError(names[0]) from error
        for name in names:
            check([name], cases, bound)
        raise AssertionError("the functions are right alone, and wrong together") from error


@pytest.mark.parametrize("names", groups(EXACT), ids=lambda names: names[0])
def test_what_is_not_rounded_is_equal(names: list[str]) -> None:
    check(names, EXACT, 0.0)


@pytest.mark.parametrize(
    "names",
    thinned(groups(CLOSE), lambda names: names[0] not in SWEPT),
    ids=lambda names: names[0],
)
def test_what_is_rounded_is_close(names: list[str]) -> None:
    check(names, CLOSE, 2e-6)
