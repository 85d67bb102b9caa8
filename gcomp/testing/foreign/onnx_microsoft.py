# pyright: basic
"""ONNX Runtime's own operators (`com.microsoft`), with attributes and inputs at random: only it computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcomp.testing.foreign.onnx_nodes import Array, Known, Model, Rng, flip, ints, maker, one, sizes, whole


def own(operator: str, *inputs: Array | Known | None, outputs: int = 1, **attributes: Any) -> Model:
    """A model of one of them."""
    return one(operator, *inputs, domain="com.microsoft", outputs=outputs, opset=17, **attributes)


def real(rng: Rng, *shape: int) -> Array:
    """Ordinary numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def _scale(rng: Rng) -> Array:
    return np.array(rng.choice([0.5, 1, 2, 0.25]), np.float32)


def _point(rng: Rng, dtype: Any) -> Array:
    return np.array(rng.choice([0, 3, 100, 127]), dtype)


def _bytes(rng: Rng, dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


@maker(8)
def gelus(rng: Rng) -> Model:
    """By erf, by tanh and by the logistic function, of a bias too."""
    x, bias = real(rng, 2, 3, 4) * 2, real(rng, 4)
    match int(rng.integers(4)):
        case 0:
            return own("Gelu", x)
        case 1:
            return own("BiasGelu", x, bias)
        case 2:
            return own("FastGelu", x, bias if flip(rng) else None)
        case _:
            return own("QuickGelu", x, alpha=float(rng.choice([1.702, 0.5])))


@maker(8)
def products(rng: Rng) -> Model:
    """Matrix products of operands that are turned, with a factor, a bias, an activation."""
    turned, other = flip(rng), flip(rng)
    a, b = real(rng, *([2, 4, 3] if turned else [2, 3, 4])), real(rng, *([5, 4] if other else [4, 5]))
    words: dict[str, Any] = {"alpha": float(rng.choice([1, 0.5, -2])), "transA": turned, "transB": other}
    match int(rng.integers(4)):
        case 0:
            return own("FusedMatMul", a, b, **words)
        case 1:
            batch = flip(rng)
            a = real(rng, *([4, 2, 3] if batch and turned else [3, 2, 4] if batch else a.shape))
            return own("FusedMatMul", a, real(rng, 2, *b.shape), transBatchA=batch, **words)
        case 2:
            return own("TransposeMatMul", a, b, **words)
        case _:
            return own("FusedGemm", a[0], b, real(rng, *[[5], [3, 5], [1, 5], [3, 1]][int(rng.integers(4))]),
                       beta=float(rng.choice([1, 0.5])), activation=str(rng.choice(["Relu", "LeakyRelu", "Tanh"])),
                       **words)  # fmt: skip


@maker(8)
def convolutions(rng: Rng) -> Model:
    """With a residual and an activation."""
    group, pads = 1 + flip(rng), ints(rng, 0, 2, 4)
    x, w = whole(rng, [1, 2 * group, 6, 5]), whole(rng, [2 * group, 2, *sizes(rng, 2, 1, 4)])
    kind = str(rng.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"]))
    parameters = {"LeakyRelu": [0.25], "Clip": [-1.0, 2.0], "HardSigmoid": [0.25, 0.5]}.get(kind)
    words: dict[str, Any] = {"activation": kind, "group": group, "pads": pads, "strides": ints(rng, 1, 3, 2)}
    if parameters is not None:
        words["activation_params"] = parameters
    return own("FusedConv", x, w, whole(rng, 2 * group) if flip(rng) else None, **words)


@maker(8)
def normalizations(rng: Rng) -> Model:
    """Of a sum, of its root mean square alone, of groups of channels."""
    x, skip, gamma, beta, bias = real(rng, 2, 3, 4), real(rng, 2, 3, 4), real(rng, 4), real(rng, 4), real(rng, 4)
    epsilon = float(rng.choice([1e-5, 0.5]))
    some = flip(rng)
    match int(rng.integers(3)):
        case 0:
            return own("SkipLayerNormalization", x, skip, gamma, beta if some else None, bias if flip(rng) else None,
                       epsilon=epsilon)  # fmt: skip
        case 1:
            return own("SkipSimplifiedLayerNormalization", x, skip, gamma, bias if some else None, epsilon=epsilon)
        case _:
            ids, kinds = rng.integers(0, 5, (2, 3)).astype(np.int32), rng.integers(0, 2, (2, 3)).astype(np.int32)
            return own("EmbedLayerNormalization", ids, kinds if some else None, real(rng, 5, 4), real(rng, 6, 4),
                       real(rng, 2, 4) if some else None, gamma, beta, epsilon=epsilon, outputs=2)  # fmt: skip


@maker(8)
def attention(rng: Rng) -> Model:
    """Of packed weights, causal or not, with a scale; turned by positions."""
    scale: dict[str, Any] = {"scale": float(rng.choice([0.5, 2]))} if flip(rng) else {}
    match int(rng.integers(3)):
        case 0:
            return own("Attention", real(rng, 2, 3, 4), real(rng, 4, 12), real(rng, 12), unidirectional=flip(rng),
                       num_heads=2)  # fmt: skip
        case 1:
            return own("MultiHeadAttention", real(rng, 2, 3, 4), real(rng, 2, 5, 4), real(rng, 2, 5, 6), num_heads=2,
                       **scale)  # fmt: skip
        case _:
            half, heads = 2, 2
            angles = rng.integers(0, 7, (8, half)).astype(np.float32)
            places = rng.integers(0, 5, (2, 3) if flip(rng) else (1,))
            return own("RotaryEmbedding", real(rng, 2, heads, 3, 2 * half), places, Known(np.cos(angles)),
                       Known(np.sin(angles)), interleaved=flip(rng))  # fmt: skip


@maker(12)
def quantized(rng: Rng) -> Model:
    """Arithmetic of quantized numbers, with points and scales of each."""
    dtype = rng.choice(["int8", "uint8"])
    a, b = _bytes(rng, dtype, 2, 5), _bytes(rng, dtype, *([5] if flip(rng) else [2, 5]))
    first, second, result = ([_scale(rng), _point(rng, dtype)] for _ in range(3))
    match int(rng.integers(5)):
        case 0:
            return own(str(rng.choice(["QLinearAdd", "QLinearMul"])), a, *first, b, *second, *result)
        case 1:
            return own("QLinearSigmoid", a, *map(Known, first), Known(np.array(1 / 256, np.float32)), Known(result[1]))
        case 2:
            return own("QLinearLeakyRelu", a, *map(Known, first), *map(Known, result), alpha=0.25)
        case 3:
            return own("QLinearConcat", Known(result[0]), Known(result[1]), a, *map(Known, first), a,
                       *map(Known, second), axis=flip(rng))  # fmt: skip
        case _:
            x = _bytes(rng, dtype, 1, 2, 4, 4)
            return own("QLinearGlobalAveragePool", x, *map(Known, first), *map(Known, result), channels_last=flip(rng))


@maker(12)
def quantized_products(rng: Rng) -> Model:
    """Products of quantized matrices, by columns too, and of blocks of few bits."""
    left, right = rng.choice(["int8", "uint8"]), rng.choice(["int8", "uint8"])
    # Numbers of 7 bits: processors without instructions of their own for this let sums of two products saturate.
    a, b = _bytes(rng, left, 3, 8), (_bytes(rng, right, 8, 5) // 2).astype(right)
    columns = flip(rng)
    scales = rng.choice([0.5, 1, 2], 5 if columns else ()).astype(np.float32)
    points = _bytes(rng, right, 5) if columns else _point(rng, right)
    match int(rng.integers(3)):
        case 0:
            return own("MatMulIntegerToFloat", a, Known(b), _scale(rng), Known(scales), _point(rng, left),
                       Known(points) if flip(rng) else None, Known(real(rng, 5)) if flip(rng) else None)  # fmt: skip
        case 1:
            return own("DynamicQuantizeMatMul", real(rng, 3, 8), Known(b), Known(scales),
                       Known(points) if flip(rng) else None, Known(real(rng, 5)) if flip(rng) else None)  # fmt: skip
        case _:
            blocks = 1 + flip(rng)
            packed = _bytes(rng, np.uint8, 4, blocks, 8)
            zeros = _bytes(rng, np.uint8, 4 * ((blocks + 1) // 2)) if flip(rng) else None
            return own("MatMulNBits", real(rng, 2, 16 * blocks), Known(packed), Known(real(rng, 4 * blocks)),
                       None if zeros is None else Known(zeros), K=16 * blocks, N=4, bits=4, block_size=16)  # fmt: skip


@maker(8)
def others(rng: Rng) -> Model:
    """What stands alone: ranges, pads, spectra, distances, unfolded tensors."""
    match int(rng.integers(6)):
        case 0:
            return own("ExpandDims", whole(rng, [2, 3]), Known(np.array(rng.integers(-3, 3), np.int32)))
        case 1:
            return own("Pad", whole(rng, [3, 4]), Known(np.array(ints(rng, -1, 3, 4), np.int64)),
                       Known(np.array(7, np.float32)) if flip(rng) else None,
                       mode=str(rng.choice(["constant", "reflect", "edge"])))  # fmt: skip
        case 2:
            return own("CDist", whole(rng, [3, 4]), whole(rng, [2, 4]),
                       metric=str(rng.choice(["euclidean", "sqeuclidean"])))  # fmt: skip
        case 3:
            return own("Inverse", real(rng, 2, 3, 3) + 3 * np.eye(3, dtype=np.float32))
        case 4:
            return own(
                "Range", *(np.array(v, np.float32) for v in (ints(rng, -3, 3, 1)[0], 6, rng.choice([1, 0.5, 2])))
            )
        case _:
            return own("Unique", whole(rng, [6]), outputs=3)
