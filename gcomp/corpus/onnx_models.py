"""Models of the corpus as ONNX graphs, of the nodes that exporters write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from gcomp.corpus.onnx_graphs import Graph

Model = tuple[onnx.ModelProto, tuple[()]]
F, I = "float32", "int64"
WIDTH, HEADS, WORDS = 32, 4, 100


def bert() -> Model:
    """BERT: two layers with a padding mask, and a pooler; batch and sequence are symbolic."""
    g = Graph(1)
    mask = g("Unsqueeze", g("Cast", "mask", to=1), g.ints(1, 2))
    bias = g("Mul", g("Sub", g.number(1.0), mask), g.number(-1e9))
    length = g("Squeeze", g.size_of("tokens", 1), g.ints(0))
    places = g("Range", g.constant(np.array(0)), length, g.constant(np.array(1)))
    words = g("Gather", g.weight(WORDS, WIDTH, scale=1.0), "tokens")
    x = g.norm(g("Add", words, g("Gather", g.weight(64, WIDTH, scale=0.3), places)), WIDTH)
    for _ in range(2):
        x = g.norm(g("Add", x, g.attention(x, WIDTH, HEADS, bias)), WIDTH)
        x = g.norm(g("Add", x, g.dense(g.gelu(g.dense(x, WIDTH, 64)), 64, WIDTH)), WIDTH)
    first = g("Gather", x, g.constant(np.array(0)), axis=1)
    pooled = g("Tanh", g.dense(first, WIDTH, WIDTH))
    tokens = (I, ("batch", "seq"))
    return g.model(
        {"tokens": tokens, "mask": tokens}, {x: (F, ("batch", "seq", WIDTH)), pooled: (F, ("batch", WIDTH))}
    ), ()


def gpt2() -> Model:
    """GPT-2: two layers with a causal mask, and tied logits; batch and sequence are symbolic."""
    g = Graph(2)
    words = g.weight(WORDS, WIDTH, scale=0.3)
    length = g("Squeeze", g.size_of("tokens", 1), g.ints(0))
    places = g("Range", g.constant(np.array(0)), length, g.constant(np.array(1)))
    later = g("Greater", g("Unsqueeze", places, g.ints(0)), g("Unsqueeze", places, g.ints(1)))
    bias = g("Where", later, g.number(float("-inf")), g.number(0.0))
    x = g("Add", g("Gather", words, "tokens"), g("Gather", g.weight(64, WIDTH, scale=0.3), places))
    for _ in range(2):
        x = g("Add", x, g.attention(g.norm(x, WIDTH), WIDTH, HEADS, bias))
        h = g.dense(g.norm(x, WIDTH), WIDTH, 64)
        cubed = g("Add", h, g("Mul", g("Pow", h, g.number(3.0)), g.number(0.044715)))
        gate = g("Add", g("Tanh", g("Mul", cubed, g.number((2 / np.pi) ** 0.5))), g.number(1.0))
        x = g("Add", x, g.dense(g("Mul", g("Mul", h, g.number(0.5)), gate), 64, WIDTH))
    logits = g("MatMul", g.norm(x, WIDTH), g("Transpose", words, perm=[1, 0]))
    return g.model({"tokens": (I, ("batch", "seq"))}, {logits: (F, ("batch", "seq", WORDS))}), ()


def t5() -> Model:
    """T5's encoder: relative positions in buckets, RMS norms, gated GELU."""
    g = Graph(3)

    def rms(x: str) -> str:
        mean = g("ReduceMean", g("Mul", x, x), g.ints(-1))
        root = g("Sqrt", g("Add", mean, g.number(1e-6)))
        return g("Mul", g.weight(WIDTH, scale=0.1, around=1.0), g("Div", x, root))

    places = g(
        "Range", g.constant(np.array(0)), g("Squeeze", g.size_of("tokens", 1), g.ints(0)), g.constant(np.array(1))
    )
    apart = g("Sub", g("Unsqueeze", places, g.ints(0)), g("Unsqueeze", places, g.ints(1)))
    size = g("Cast", g("Add", g("Abs", apart), g.constant(np.array(1))), to=1)
    far = g("Cast", g("Mul", g("Log", size), g.number(2.5)), to=7)
    side = g("Mul", g("Cast", g("Greater", apart, g.constant(np.array(0))), to=7), g.constant(np.array(8)))
    bucket = g("Add", side, g("Min", far, g.constant(np.array(7))))
    bias = g(
        "Unsqueeze", g("Transpose", g("Gather", g.weight(16, HEADS, scale=1.0), bucket), perm=[2, 0, 1]), g.ints(0)
    )
    x = g("Gather", g.weight(WORDS, WIDTH, scale=1.0), "tokens")
    for _ in range(2):
        x = g("Add", x, g.attention(rms(x), WIDTH, HEADS, bias, scaled=False))
        h = rms(x)
        gate = g.gelu(g("MatMul", h, g.weight(WIDTH, 64)))
        x = g("Add", x, g("MatMul", g("Mul", gate, g("MatMul", h, g.weight(WIDTH, 64))), g.weight(64, WIDTH)))
    return g.model({"tokens": (I, ("batch", "seq"))}, {rms(x): (F, ("batch", "seq", WIDTH))}), ()


def clip() -> Model:
    """CLIP: an image's patches and a text, each through a layer, compared by angle."""
    g = Graph(4)

    def unit(x: str) -> str:
        return g("Div", x, g("ReduceL2", x, g.ints(-1)))

    def tower(x: str) -> str:
        x = g("Add", x, g.attention(g.norm(x, WIDTH), WIDTH, HEADS))
        h = g.dense(g.norm(x, WIDTH), WIDTH, 64)
        return g("Add", x, g.dense(g("Mul", h, g("Sigmoid", g("Mul", h, g.number(1.702)))), 64, WIDTH))

    kernel = g.weight(WIDTH, 3, 8, 8, scale=0.07)
    patches = g("Conv", "image", kernel, kernel_shape=[8, 8], strides=[8, 8])
    rows = g("Transpose", g("Reshape", patches, g.ints(0, WIDTH, 16)), perm=[0, 2, 1])
    image = g("ReduceMean", tower(g("Add", rows, g.weight(16, WIDTH, scale=0.3))), g.ints(1), keepdims=0)
    text = g("ReduceMax", tower(g("Gather", g.weight(WORDS, WIDTH, scale=1.0), "tokens")), g.ints(1), keepdims=0)
    angles = g("MatMul", unit(image), g("Transpose", unit(text), perm=[1, 0]))
    logits = g("Softmax", g("Mul", angles, g("Exp", g.number(2.66))), axis=-1)
    inputs = {"image": (F, (2, 3, 32, 32)), "tokens": (I, ("texts", "seq"))}
    return g.model(inputs, {logits: (F, (2, "texts"))}), ()


def resnet() -> Model:
    """ResNet: bottlenecks around additions, batch normalizations kept."""
    g = Graph(5)
    x = g("Relu", g.conv("x", 3, 16, 7, 2))
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 16
    for width, stride in ((8, 1), (8, 1), (16, 2), (16, 1)):
        y = g("Relu", g.conv(x, inputs, width, 1))
        y = g.conv(g("Relu", g.conv(y, width, width, 3, stride)), width, 4 * width, 1)
        same = stride == 1 and inputs == 4 * width
        x = g("Relu", g("Add", x if same else g.conv(x, inputs, 4 * width, 1, stride), y))
        inputs = 4 * width
    logits = g("Gemm", g("Flatten", g("GlobalAveragePool", x)), g.weight(inputs, 10), g.weight(10, scale=0.1))
    return g.model({"x": (F, ("batch", 3, 32, 32))}, {logits: (F, ("batch", 10))}), ()


def mobilenet() -> Model:
    """MobileNetV2: inverted residuals around depthwise convolutions, clipped at 6."""
    g = Graph(6)
    zero, six = g.number(0.0), g.number(6.0)
    x, inputs = g("Clip", g.conv("x", 3, 8, 3, 2), zero, six), 8
    for outputs, stride in ((8, 1), (12, 2), (12, 1), (16, 2)):
        hidden = 6 * inputs
        y = g("Clip", g.conv(x, inputs, hidden, 1), zero, six)
        y = g("Clip", g.conv(y, hidden, hidden, 3, stride, hidden), zero, six)
        y = g.conv(y, hidden, outputs, 1)
        x, inputs = (g("Add", x, y) if stride == 1 and inputs == outputs else y), outputs
    logits = g.dense(g("ReduceMean", x, g.ints(2, 3), keepdims=0), inputs, 10)
    return g.model({"x": (F, (1, 3, 32, 32))}, {logits: (F, (1, 10))}), ()


def densenet() -> Model:
    """DenseNet: each layer reads all before it, concatenated; batch normalizations before convolutions."""
    g = Graph(7)

    def normed(x: str, channels: int) -> str:
        scale, bias, mean = (g.weight(channels, scale=0.1, around=a) for a in (1.0, 0.0, 0.0))
        return g("Relu", g("BatchNormalization", x, scale, bias, mean, g.weight(channels, scale=0.1, around=2.0)))

    x, channels = g.conv("x", 3, 16, 3, 2), 16
    for block in range(2):
        for _ in range(3):
            wide = g("Conv", normed(x, channels), g.weight(16, channels, 1, 1, scale=channels**-0.5))
            kernel = g.weight(8, 16, 3, 3, scale=0.1)
            grown = g("Conv", normed(wide, 16), kernel, kernel_shape=[3, 3], pads=[1] * 4)
            x, channels = g("Concat", x, grown, axis=1), channels + 8
        if not block:
            x = g("Conv", normed(x, channels), g.weight(channels // 2, channels, 1, 1, scale=channels**-0.5))
            x, channels = g("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), channels // 2
    flat = g("Flatten", g("GlobalAveragePool", normed(x, channels)))
    return g.model({"x": (F, (1, 3, 32, 32))}, {g.dense(flat, channels, 10): (F, (1, 10))}), ()


def unet() -> Model:
    """U-Net: down by pooling, up by transposed convolutions, with what was skipped beside it."""
    g = Graph(8)

    def double(x: str, inputs: int, outputs: int) -> str:
        return g("Relu", g.conv(g("Relu", g.conv(x, inputs, outputs, 3)), outputs, outputs, 3))

    one = double("x", 3, 8)
    two = double(g("MaxPool", one, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    three = double(g("MaxPool", two, kernel_shape=[2, 2], strides=[2, 2]), 16, 32)
    up = g("ConvTranspose", three, g.weight(32, 16, 2, 2, scale=0.2), kernel_shape=[2, 2], strides=[2, 2])
    x = double(g("Concat", two, up, axis=1), 32, 16)
    up = g("ConvTranspose", x, g.weight(16, 8, 2, 2, scale=0.2), kernel_shape=[2, 2], strides=[2, 2])
    x = double(g("Concat", one, up, axis=1), 16, 8)
    classes = g("Softmax", g("Conv", x, g.weight(4, 8, 1, 1, scale=0.3)), axis=1)
    return g.model({"x": (F, (1, 3, 32, 32))}, {classes: (F, (1, 4, 32, 32))}), ()


def yolo() -> Model:
    """A detector: SiLU, a pyramid with nearest resizing, boxes decoded from a grid, non-maximum suppression."""
    g = Graph(9)

    def block(x: str, inputs: int, outputs: int, stride: int = 1) -> str:
        y = g.conv(x, inputs, outputs, 3, stride)
        return g("Mul", y, g("Sigmoid", y))

    fine = block(block("x", 3, 8, 2), 8, 16, 2)
    coarse = block(fine, 16, 32, 2)
    up = g("Resize", coarse, "", g.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    x = block(g("Concat", fine, up, axis=1), 48, 16)
    head = g("Conv", x, g.weight(9, 16, 1, 1, scale=0.3), g.weight(9, scale=0.1))
    rows = g("Transpose", g("Reshape", head, g.ints(1, 9, 64)), perm=[0, 2, 1])
    place, size, scores = g.several("Split", g("Sigmoid", rows), g.ints(2, 2, 5), count=3, axis=2)
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).reshape(1, 64, 2).astype(np.float32)
    centres = g("Mul", g("Add", place, g.constant(grid)), g.number(4.0))
    half = g("Mul", g("Pow", size, g.number(2.0)), g.number(8.0))
    boxes = g("Concat", g("Sub", centres, half), g("Add", centres, half), axis=2)
    kept = g(
        "NonMaxSuppression", boxes, g("Transpose", scores, perm=[0, 2, 1]), g.ints(8), g.number(0.5), g.number(0.3)
    )
    return g.model({"x": (F, (1, 3, 32, 32))}, {boxes: (F, (1, 64, 4)), kept: (I, ("kept", 3))}), ()


def superres() -> Model:
    """Super-resolution by depth to space, of images of any size, beside a bilinear one."""
    g = Graph(10)
    x = "x"
    for inputs, outputs, size in ((1, 16, 5), (16, 16, 3), (16, 4, 3)):
        kernel = g.weight(outputs, inputs, size, size, scale=(2 / (inputs * size**2)) ** 0.5)
        x = g("Conv", x, kernel, g.weight(outputs, scale=0.1), kernel_shape=[size] * 2, pads=[size // 2] * 4)
        x = g("Tanh", x) if outputs == 16 else x
    scales = g.constant(np.array([1, 1, 2, 2], np.float32))
    smooth = g("Resize", "x", "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    y = g("Add", g("DepthToSpace", x, blocksize=2), smooth)
    y = g("Clip", y, g.number(0.0), g.number(1.0))
    return g.model({"x": (F, (1, 1, "height", "width"))}, {y: (F, (1, 1, "height2", "width2"))}), ()


def recurrent(g: Graph, x: str, operator: str, gates: int, inputs: int, hidden: int, **flags: Any) -> str:
    """A bidirectional recurrence over [seq, batch, inputs]; the result is [seq, batch, 2 * hidden]."""
    w = g.weight(2, gates * hidden, inputs, scale=inputs**-0.5)
    r = g.weight(2, gates * hidden, hidden, scale=hidden**-0.5)
    b = g.weight(2, 2 * gates * hidden, scale=0.1)
    y = g(operator, x, w, r, b, hidden_size=hidden, direction="bidirectional", **flags)
    return g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 2 * hidden))


def tagger() -> Model:
    """A tagger: embedded words, a bidirectional LSTM, a class for each word."""
    g = Graph(11)
    words = g("Transpose", g("Gather", g.weight(WORDS, 16, scale=1.0), "tokens"), perm=[1, 0, 2])
    x = recurrent(g, words, "LSTM", 4, 16, 16)
    classes = g("ArgMax", g("LogSoftmax", g.dense(x, 32, 9), axis=-1), axis=2, keepdims=0)
    return g.model({"tokens": (I, ("batch", 12))}, {g("Transpose", classes, perm=[1, 0]): (I, ("batch", 12))}), ()


def keywords() -> Model:
    """Spotting of keywords: a spectrogram by a Fourier transform, convolutions, a GRU, attention over time."""
    g = Graph(12)
    window = g.constant(np.hanning(32).astype(np.float32))
    frames = g("STFT", g("Unsqueeze", "sound", g.ints(2)), g.constant(np.array(16)), window, onesided=1)
    power = g("ReduceSum", g("Mul", frames, frames), g.ints(3), keepdims=0)
    filters = g.constant(np.abs(g.random.standard_normal((17, 8))).astype(np.float32))
    mel = g("Log", g("Add", g("MatMul", power, filters), g.number(1e-6)))
    kernel = g.weight(16, 8, 3, scale=0.2)
    x = g("Relu", g("Conv", g("Transpose", mel, perm=[0, 2, 1]), kernel, kernel_shape=[3], pads=[1, 1]))
    x = recurrent(g, g("Transpose", x, perm=[2, 0, 1]), "GRU", 3, 16, 8, linear_before_reset=1)
    weights = g("Softmax", g.dense(g("Tanh", g.dense(x, 16, 16)), 16, 1), axis=0)
    pooled = g("ReduceSum", g("Mul", x, weights), g.ints(0), keepdims=0)
    return g.model({"sound": (F, (2, 256))}, {g("Softmax", g.dense(pooled, 16, 12), axis=-1): (F, (2, 12))}), ()


def quantized() -> Model:
    """A convolutional network in eight bits: each tensor quantized and dequantized."""
    g = Graph(13)

    def rounded(x: str, scale: float) -> str:
        s, zero = g.number(scale), g.constant(np.array(0, np.int8))
        return g("DequantizeLinear", g("QuantizeLinear", x, s, zero), s, zero)

    def stored(*shape: int) -> str:
        whole = g.constant(g.random.integers(-63, 64, shape).astype(np.int8))
        scales = g.constant(g.random.uniform(0.004, 0.01, shape[0]).astype(np.float32))
        return g("DequantizeLinear", whole, scales, g.constant(np.zeros(shape[0], np.int8)), axis=0)

    x = rounded("x", 0.03)
    for inputs, outputs, stride in ((3, 8, 2), (8, 16, 2), (16, 16, 1)):
        y = g("Conv", x, stored(outputs, inputs, 3, 3), kernel_shape=[3, 3], pads=[1] * 4, strides=[stride] * 2)
        x = rounded(g("Relu", y), 0.05)
    x = rounded(g("Flatten", g("GlobalAveragePool", x)), 0.02)
    logits = g("Gemm", x, stored(10, 16), g.weight(10, scale=0.1), transB=1)
    return g.model({"x": (F, ("batch", 3, 32, 32))}, {rounded(logits, 0.1): (F, ("batch", 10))}), ()


def forest() -> Model:
    """Boosted trees over scaled features."""
    g, trees, depth, features = Graph(14), 8, 4, 6
    ml, inner, count = "ai.onnx.ml", 2**depth - 1, 2 ** (depth + 1) - 1
    ids = [i for _ in range(trees) for i in range(count)]
    leaf = [i >= inner for i in ids]
    at = [t for t in range(trees) for _ in range(count)]
    x = g("Scaler", "x", domain=ml, offset=[0.1] * features, scale=[1.5] * features)
    score = g(
        "TreeEnsembleRegressor", x, domain=ml, n_targets=1, nodes_treeids=at, nodes_nodeids=ids,
        nodes_featureids=[0 if end else int(g.random.integers(features)) for end in leaf],
        nodes_values=[0.0 if end else float(g.random.standard_normal()) for end in leaf],
        nodes_modes=["LEAF" if end else "BRANCH_LEQ" for end in leaf],
        nodes_truenodeids=[0 if end else 2 * i + 1 for i, end in zip(ids, leaf, strict=True)],
        nodes_falsenodeids=[0 if end else 2 * i + 2 for i, end in zip(ids, leaf, strict=True)],
        target_treeids=[t for t, end in zip(at, leaf, strict=True) if end],
        target_nodeids=[i for i, end in zip(ids, leaf, strict=True) if end],
        target_ids=[0] * sum(leaf), target_weights=[float(g.random.standard_normal()) for _ in range(sum(leaf))],
    )  # fmt: skip
    y = g("Sigmoid", score)
    return g.model({"x": (F, ("batch", features))}, {y: (F, ("batch", 1))}, domains={ml: 3}), ()


MODELS: Mapping[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        bert, gpt2, t5, clip, resnet, mobilenet, densenet, unet, yolo, superres, tagger, keywords, quantized, forest,
    )
}  # fmt: skip
