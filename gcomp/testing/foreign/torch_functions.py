# pyright: basic
"""Torch functions by name, each with the inputs that numbers draw for it. Torch is imported when one is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Drawn = tuple[Callable[..., Any], list[Array]]
Maker = Callable[[Any, np.random.Generator], Drawn]
"""Of torch and a generator of numbers: a function, and arguments for it."""

MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    """Register a kind of functions by its name."""
    MAKERS[function.__name__] = function
    return function


def name_of(number: int) -> str:
    """The kind of functions of a number."""
    return [*MAKERS][number % len(MAKERS)]


def function_of(number: int) -> tuple[str, Callable[..., Any], list[Array]]:
    """The function of a number, by the name of its kind, and arguments."""
    import torch

    turn, kind = divmod(number, len(MAKERS))
    name = [*MAKERS][kind]
    return name, *MAKERS[name](torch, np.random.default_rng([turn, kind]))


def real(rng: np.random.Generator, *shape: int) -> Array:
    """Ordinary numbers in f32."""
    return np.asarray(rng.standard_normal(shape)).astype(np.float32)


def shape(rng: np.random.Generator, least: int = 1, most: int = 4) -> list[int]:
    """A small shape."""
    return rng.integers(1, 5, int(rng.integers(least, most))).tolist()


def pick(rng: np.random.Generator, *items: Any) -> Any:
    """One of some items."""
    return items[int(rng.integers(len(items)))]


@maker
def unary(torch: Any, rng: np.random.Generator) -> Drawn:
    name = pick(rng, "sin", "cos", "tanh", "exp", "sigmoid", "abs", "neg", "floor", "ceil", "round", "trunc", "sign",
                "erf", "expm1", "square", "frac", "relu", "isnan", "logical_not", "atan", "sinh", "cosh")  # fmt: skip
    return getattr(torch, name), [real(rng, *shape(rng)) * 2]


@maker
def positive(torch: Any, rng: np.random.Generator) -> Drawn:
    name = pick(rng, "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma")
    return getattr(torch, name), [np.abs(real(rng, *shape(rng))) + np.float32(0.5)]


@maker
def activation(torch: Any, rng: np.random.Generator) -> Drawn:
    f = torch.nn.functional
    slope = float(pick(rng, 0.01, 0.3))
    return pick(
        rng, lambda x: f.leaky_relu(x, slope), lambda x: f.elu(x, 1.5), f.gelu, lambda x: f.gelu(x, approximate="tanh"),
        f.silu, f.softplus, f.hardtanh, f.hardswish, f.hardsigmoid, f.relu6, f.selu, f.mish, f.softsign,
        lambda x: f.hardshrink(x, 0.4), lambda x: f.softshrink(x, 0.4), f.logsigmoid, lambda x: f.celu(x, 1.2),
        lambda x: f.threshold(x, 0.1, 7.0),
    ), [real(rng, *shape(rng)) * 3]  # fmt: skip


@maker
def binary(torch: Any, rng: np.random.Generator) -> Drawn:
    name = pick(rng, "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "fmod", "remainder", "floor_divide",
                "hypot", "copysign", "lt", "ge", "eq", "logaddexp", "true_divide")  # fmt: skip
    size = shape(rng)
    other = [int(rng.choice([1, n])) for n in size][int(rng.integers(0, len(size))) :]
    y = real(rng, *other)
    return getattr(torch, name), [real(rng, *size) * 3, y + np.sign(y) * np.float32(0.5)]


@maker
def alpha(torch: Any, rng: np.random.Generator) -> Drawn:
    a = float(pick(rng, 2, -0.5))
    return pick(rng, lambda x, y: torch.add(x, y, alpha=a), lambda x, y: torch.sub(x, y, alpha=a),
                lambda x, y: torch.lerp(x, y, a), lambda x, y: torch.addcmul(x, x, y, value=a)), [
        real(rng, 3, 4), real(rng, 3, 4)]  # fmt: skip


@maker
def integers(torch: Any, rng: np.random.Generator) -> Drawn:
    name = pick(rng, "bitwise_and", "bitwise_or", "bitwise_xor", "add", "mul", "floor_divide", "remainder", "fmod")
    dtype = pick(rng, np.int32, np.int64, np.int8, np.uint8)
    y = rng.integers(1, 6, 6)
    low = 0 if dtype is np.uint8 else -9
    return getattr(torch, name), [rng.integers(low, 10, 6).astype(dtype), y.astype(dtype)]


@maker
def where(torch: Any, rng: np.random.Generator) -> Drawn:
    return lambda x, y: torch.where(x > 0.2, x, y), [real(rng, 2, 3), real(rng, 3)]


@maker
def clamp(torch: Any, rng: np.random.Generator) -> Drawn:
    low, high = (float(v) for v in rng.standard_normal(2))
    return pick(rng, lambda x: torch.clamp(x, low, high), lambda x: torch.clamp(x, min=low),
                lambda x: torch.clamp(x, max=high)), [real(rng, 3, 4)]  # fmt: skip


@maker
def reduction(torch: Any, rng: np.random.Generator) -> Drawn:
    size = shape(rng, 1, 4)
    dim, keep = int(rng.integers(-len(size), len(size))), bool(rng.integers(2))
    name = pick(rng, "sum", "mean", "amax", "amin", "prod", "logsumexp", "any", "all")
    return lambda x: getattr(torch, name)(x, dim=dim, keepdim=keep), [real(rng, *size)]


@maker
def variance(torch: Any, rng: np.random.Generator) -> Drawn:
    c, keep, dim = int(rng.integers(2)), bool(rng.integers(2)), int(rng.integers(-2, 2))
    name = pick(rng, "var", "std")
    return lambda x: getattr(torch, name)(x, dim=dim, correction=c, keepdim=keep), [real(rng, 4, 5)]


@maker
def norm(torch: Any, rng: np.random.Generator) -> Drawn:
    p, dim = float(pick(rng, 1, 2, 3, np.inf)), int(rng.integers(-2, 2))
    return lambda x: torch.linalg.vector_norm(x, p, dim), [real(rng, 3, 4)]


@maker
def order(torch: Any, rng: np.random.Generator) -> Drawn:
    dim, largest = int(rng.integers(-2, 2)), bool(rng.integers(2))
    return pick(
        rng, lambda x: torch.sort(x, dim, largest)[0], lambda x: torch.topk(x, 2, dim, largest)[0],
        lambda x: torch.argsort(x, dim), lambda x: torch.argmax(x, dim), lambda x: torch.max(x, dim)[1],
        lambda x: torch.median(x, dim)[0], lambda x: torch.kthvalue(x, 2, dim)[0],
    ), [real(rng, 3, 4)]  # fmt: skip


@maker
def cumulative(torch: Any, rng: np.random.Generator) -> Drawn:
    dim = int(rng.integers(-2, 2))
    return pick(rng, lambda x: torch.cumsum(x, dim), lambda x: torch.cumprod(x, dim), lambda x: torch.cummax(x, dim)[0],
                lambda x: torch.logcumsumexp(x, dim), lambda x: torch.cummin(x, dim)[1]), [real(rng, 3, 4)]  # fmt: skip


@maker
def movement(torch: Any, rng: np.random.Generator) -> Drawn:
    a, b = rng.permutation(3)[:2].tolist()
    shift = int(rng.integers(-3, 4))
    return pick(
        rng, lambda x: x.transpose(a, b), lambda x: x.permute(2, 0, 1), lambda x: x.flip(a), lambda x: x.roll(shift, a),
        lambda x: x.reshape(4, -1), lambda x: x.flatten(1), lambda x: x.unsqueeze(a), lambda x: x.movedim(a, b),
        lambda x: x.repeat(1, 2, 1), lambda x: x.expand(2, 2, 3, 4), lambda x: x.unfold(2, 2, 1), lambda x: x.T,
        lambda x: torch.stack([x, x * 2], a), lambda x: torch.cat([x, x[:, :1]], 1), lambda x: x.split(2, 2)[1],
        lambda x: x.chunk(2, a)[0], lambda x: torch.tile(x, (2, 1)), lambda x: torch.rot90(x, shift, (1, 2)),
        lambda x: x.narrow(2, 1, 2), lambda x: torch.diagonal(x, shift % 2, 1, 2), lambda x: x.repeat_interleave(2, a),
        lambda x: torch.tril(x, shift), lambda x: torch.triu(x, shift), lambda x: x.select(a, 1),
    ), [real(rng, 2, 3, 4)]  # fmt: skip


@maker
def indexing(torch: Any, rng: np.random.Generator) -> Drawn:
    start, step = int(rng.integers(-4, 4)), int(rng.integers(1, 3))
    rows = rng.integers(-4, 4, 3)
    return pick(
        rng, lambda x, i: x[start::step], lambda x, i: x[i], lambda x, i: x[:, i % 3], lambda x, i: x[i, i % 3],
        lambda x, i: x[..., 1], lambda x, i: x[None, :, -1], lambda x, i: torch.index_select(x, 0, i % 4),
        lambda x, i: torch.gather(x, 0, (i % 4)[None]), lambda x, i: x.index_add(0, i % 4, x[:3]),
        lambda x, i: x.scatter(0, (i % 4)[None], x[:1] * 2), lambda x, i: x.index_put((i,), x[:3], accumulate=True),
        lambda x, i: torch.take_along_dim(x, (i % 4)[:, None], 0), lambda x, i: x.masked_fill(x > 0, 3.0),
        lambda x, i: x.scatter_add(0, (i % 4)[None], x[:1]), lambda x, i: x.index_fill(1, i % 3, 7.0),
        lambda x, i: x.scatter_reduce(0, (i % 4)[None], x[:1], "amax", include_self=bool(start % 2)),
    ), [real(rng, 4, 3), rows]  # fmt: skip


@maker
def padding(torch: Any, rng: np.random.Generator) -> Drawn:
    pads = rng.integers(0, 3, 2).tolist()
    mode = pick(rng, "constant", "reflect", "replicate", "circular")
    if mode == "constant":
        pads = rng.integers(-1, 3, 4).tolist()
        return lambda x: torch.nn.functional.pad(x, pads, value=1.5), [real(rng, 2, 3, 5)]
    return lambda x: torch.nn.functional.pad(x, pads, mode), [real(rng, 2, 3, 5)]


@maker
def products(torch: Any, rng: np.random.Generator) -> Drawn:
    function, left, right = pick(
        rng, (torch.matmul, (2, 3), (3, 4)), (torch.matmul, (3,), (3, 2)), (torch.matmul, (2, 3), (3,)),
        (torch.matmul, (5, 2, 3), (3, 4)), (torch.bmm, (2, 3, 4), (2, 4, 5)), (torch.outer, (3,), (4,)),
        (torch.matmul, (2, 1, 2, 3), (3, 3, 2)), (lambda x, y: torch.einsum("bij,kj->bki", x, y), (2, 3, 4), (5, 4)),
        (lambda x, y: torch.tensordot(x, y, 2), (2, 3, 4), (3, 4, 5)), (torch.kron, (2, 3), (3, 2)),
        (lambda x, y: torch.baddbmm(x, x, y, beta=0.5, alpha=2.0), (2, 3, 3), (2, 3, 3)),
        (lambda x, y: torch.cdist(x, y), (3, 4), (5, 4)),
    )  # fmt: skip
    return function, [real(rng, *left), real(rng, *right)]


@maker
def convolution(torch: Any, rng: np.random.Generator) -> Drawn:
    n, groups = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    stride, dilation = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel = rng.integers(1, 3, n).tolist()
    turned = bool(rng.integers(2))
    pad = 0 if turned and max(kernel) == 1 else int(rng.integers(0, 2))
    name = f"conv{'_transpose' if turned else ''}{n}d"
    call = getattr(torch.nn.functional, name)
    weight = [2 * groups, 3, *kernel] if turned else [3 * groups, 2, *kernel]
    return lambda x, w, b: call(x, w, b, stride=stride, padding=pad, dilation=dilation, groups=groups), [
        real(rng, 2, 2 * groups, *rng.integers(5, 8, n).tolist()), real(rng, *weight), real(rng, 3 * groups)
    ]  # fmt: skip


@maker
def pooling(torch: Any, rng: np.random.Generator) -> Drawn:
    f, stride, pad, ceil = torch.nn.functional, int(rng.integers(1, 4)), int(rng.integers(0, 2)), bool(rng.integers(2))
    count = bool(rng.integers(2))
    return pick(
        rng, lambda x: f.max_pool2d(x, 3, stride, pad, ceil_mode=ceil),
        lambda x: f.avg_pool2d(x, 3, stride, pad, ceil_mode=ceil, count_include_pad=count),
        lambda x: f.adaptive_avg_pool2d(x, (2, 3)), lambda x: f.adaptive_max_pool2d(x, 2),
        lambda x: f.max_pool2d(x, 2, stride, 1, 2), lambda x: f.lp_pool2d(x, 2, 2, stride),
    ), [real(rng, 2, 3, int(rng.integers(6, 9)), 7)]  # fmt: skip


@maker
def normalization(torch: Any, rng: np.random.Generator) -> Drawn:
    f = torch.nn.functional
    return pick(
        rng, lambda x, w, c: f.layer_norm(x, [6], w, w * 2), lambda x, w, c: f.group_norm(x, 2, c, c * 2),
        lambda x, w, c: f.instance_norm(x), lambda x, w, c: f.normalize(x, dim=1),
        lambda x, w, c: f.batch_norm(x, c, c * c + 1, c, c * 3), lambda x, w, c: f.rms_norm(x, [6], w),
        lambda x, w, c: f.softmax(x, -1), lambda x, w, c: f.log_softmax(x, 1), lambda x, w, c: f.softmin(x, 0),
        lambda x, w, c: f.local_response_norm(x, 3),
    ), [real(rng, 2, 4, 6), real(rng, 6), real(rng, 4)]  # fmt: skip


@maker
def losses(torch: Any, rng: np.random.Generator) -> Drawn:
    f, mean = torch.nn.functional, pick(rng, "mean", "sum", "none")
    labels = rng.integers(0, 4, 3)
    return pick(
        rng, lambda x, t: f.cross_entropy(x, t, reduction=mean, label_smoothing=0.1),
        lambda x, t: f.nll_loss(x, t, reduction=mean), lambda x, t: f.mse_loss(x, x * x, reduction=mean),
        lambda x, t: f.smooth_l1_loss(x, x * x, reduction=mean), lambda x, t: f.huber_loss(x, x * x, reduction=mean),
        lambda x, t: f.binary_cross_entropy_with_logits(x, x.sigmoid(), reduction=mean),
        lambda x, t: f.kl_div(x, x.softmax(1), reduction=mean), lambda x, t: f.one_hot(t, 5),
        lambda x, t: f.embedding(t, x), lambda x, t: f.cosine_similarity(x, x * x + 1, 1),
    ), [real(rng, 4, 4)[: 3 if mean else 4].copy(), labels]  # fmt: skip


@maker
def resize(torch: Any, rng: np.random.Generator) -> Drawn:
    f, corners = torch.nn.functional, bool(rng.integers(2))
    scale = float(pick(rng, 2.0, 0.5, 1.5))
    return pick(
        rng, lambda x: f.interpolate(x, scale_factor=scale, mode="nearest"),
        lambda x: f.interpolate(x, (5, 7), mode="bilinear", align_corners=corners),
        lambda x: f.interpolate(x, (3, 8), mode="bicubic", align_corners=corners),
        lambda x: f.pixel_shuffle(x, 2), lambda x: f.pixel_unshuffle(x, 2), lambda x: f.unfold(x, 2, padding=1),
    ), [real(rng, 1, 4, 4, 6)]  # fmt: skip


@maker
def attention(torch: Any, rng: np.random.Generator) -> Drawn:
    causal = bool(rng.integers(2))
    f = torch.nn.functional.scaled_dot_product_attention
    return lambda q, k, v: f(q, k, v, is_causal=causal), [real(rng, 1, 2, n, 4) for n in (3, 5, 5)]


@maker
def conversion(torch: Any, rng: np.random.Generator) -> Drawn:
    to = pick(rng, torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.float64, torch.int8)
    return lambda x: x.to(to), [real(rng, 3, 4) * 3]


@maker
def sizes(torch: Any, rng: np.random.Generator) -> Drawn:
    """Numbers made of sizes: rounded both ways, of differences that may be negative, compared, as sizes of others."""
    f = torch.nn.functional
    a, d = int(rng.integers(-6, 7)), int(rng.integers(2, 5))
    half = float(pick(rng, 0.5, 1.5, 0.25))

    def of(number: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        """A function whose result says the number."""
        return pick(
            rng, lambda x: x + number(*x.shape), lambda x: x.new_full((3,), number(*x.shape)),
            lambda x: torch.zeros(number(*x.shape) * number(*x.shape) + 1) + x.sum(),
            lambda x: torch.arange(8)[number(*x.shape) :] + x.sum(),
            lambda x: torch.arange(8)[: number(*x.shape)] + x.sum(),
            lambda x: torch.cat([x, x])[::2].roll(number(*x.shape), 0),
        )  # fmt: skip

    whole = pick(
        rng, lambda n, m: (n + a) // d, lambda n, m: -((n + a) // d), lambda n, m: -(n + a) // d,
        lambda n, m: (n - m) // d, lambda n, m: (n + a) % d, lambda n, m: (a * n - m) % d,
        lambda n, m: math.floor((n + a) / 2), lambda n, m: math.ceil((n - m) / 2), lambda n, m: math.trunc((n + a) / 4),
        lambda n, m: int((n + a) * half), lambda n, m: int((n - m) * half), lambda n, m: torch.sym_int(m * half),
        lambda n, m: torch.sym_max(n + a, m), lambda n, m: torch.sym_min(n, m + a), lambda n, m: max(n, m) - min(n, m),
        lambda n, m: n**2 - m, lambda n, m: abs(n - m), lambda n, m: n * m + a, lambda n, m: torch.sym_max(n, d) // d,
        lambda n, m: torch.sym_sum((n, m, a)),
    )  # fmt: skip
    function = pick(
        rng, of(whole), of(whole), of(whole),
        lambda x: x[: (x.shape[0] + 1) // 2], lambda x: x[x.shape[0] // d :], lambda x: x[-(x.shape[0] // d) :],
        lambda x: x.reshape(x.shape[0] * x.shape[1]), lambda x: x.reshape(1, -1, x.shape[0]).transpose(1, 2),
        lambda x: f.pad(x, (0, x.shape[0] % d, (-x.shape[1]) % d, 0)), lambda x: x.narrow(0, x.shape[0] // 2, 1),
        lambda x: f.interpolate(x[None, None], size=(x.shape[0] * d, x.shape[1] + 1))[0, 0],
        lambda x: x.unfold(0, 1, 1).sum(-1) / x.shape[0], lambda x: torch.linspace(0, 1, x.shape[1]) * x,
        lambda x: torch.ones(x.shape[1], x.shape[1]).tril(a) @ x.T, lambda x: x.diagonal(0) + x.numel(),
        lambda x: torch.split(x, (x.shape[0] + 1) // 2)[0], lambda x: x.expand(x.shape[0], x.shape[0], x.shape[1]),
        lambda x: x.as_strided((x.shape[0], 1), (x.shape[1], 1)), lambda x: x.repeat(1, x.shape[0]),
    )  # fmt: skip
    return function, [real(rng, *rng.integers(1, 7, 2).tolist())]


@maker
def certain(torch: Any, rng: np.random.Generator) -> Drawn:
    """Random functions where chance has no choice, so that the numbers are eager's."""
    f, low = torch.nn.functional, float(pick(rng, -1.5, 0.25, 2.0))
    n = int(rng.integers(1, 5))
    return pick(
        rng, lambda x: f.rrelu(x, 0.1, 0.5, training=False), lambda x: f.rrelu(x, 0.3, 0.3, training=True),
        lambda x: f.dropout(x, 0.4, training=False), lambda x: f.dropout(x, 0.0), lambda x: f.dropout(x, 1.0),
        lambda x: f.alpha_dropout(x, 0.0), lambda x: x + torch.rand_like(x) * 0.0, lambda x: x.bernoulli(0.0),
        lambda x: torch.bernoulli((x > 0).to(x.dtype)), lambda x: torch.normal(x, 0.0), lambda x: x.bernoulli(1.0),
        lambda x: torch.randint(n, n + 1, (2, 3)) + x.sum(), lambda x: torch.randint_like(x, n, n + 1),
        lambda x: torch.randperm(5).sort()[0] + x.sum(), lambda x: torch.rand(64).add(x.sum() * 0.0).lt(1.0),
        lambda x: torch.rand(64, dtype=torch.float16).mul(x.abs().sum() * 0.0 + 1.0).ge(0.0),
        lambda x: x.clone().normal_(low, 0.0),
        lambda x: x.clone().uniform_(low, low), lambda x: torch.multinomial(torch.eye(4)[:n] + x.sum() * 0.0, 1),
        lambda x: torch.multinomial(torch.ones(2, 4), 4).sort(-1)[0] + x.sum(),
        lambda x: torch.multinomial(torch.eye(4)[:n] + x.sum() * 0.0, 6, replacement=True),
        lambda x: (torch.randn(4096).mean() + x.sum() * 0.0).abs() < 0.2,
        lambda x: (torch.randn(4096).std() + x.sum() * 0.0 - 1).abs() < 0.1,
        lambda x: (torch.rand(4096).mean() + x.sum() * 0.0 - 0.5).abs() < 0.05,
        lambda x: (f.dropout(torch.ones(4096), 0.25).mean() + x.sum() * 0.0 - 1).abs() < 0.1,
        lambda x: f.dropout(torch.ones(64), 0.5).add(x.sum() * 0.0).mul(0.5).frac(),
    ), [real(rng, 3, 4)]  # fmt: skip
