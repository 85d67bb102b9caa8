"""Folds over dimensions and windows; sort; map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gcomp.dtypes import is_float
from gcomp.reference.values import edges
from tests.support.cases.case import Array, Case, Rng, apply, binary_body, body, ints, tensor, type_of
from tests.support.cases.values import sample

_MONOIDS = {
    "f32": ("add", "multiply", "maximum", "minimum", "subtract"),
    "f64": ("add", "maximum"),
    "bf16": ("add", "maximum"),
    "f16": ("add", "multiply"),
    "f8E4M3FN": ("add", "minimum"),
    "i4": ("add", "maximum"),
    "i32": ("add", "multiply", "maximum", "minimum", "and", "or", "xor", "subtract"),
    "ui8": ("add", "multiply", "minimum"),
    "i1": ("and", "or", "xor", "add", "maximum"),
    "complex<f32>": ("add",),
}
_SHAPES = ((), (0,), (1,), (7,), (3, 4), (2, 0), (0, 3), (2, 3, 4), (1, 5, 1), (2, 2, 2, 2))


def _moderate(rng: Rng, text: str, shape: tuple[int, ...]) -> Array:
    x = sample(rng, text, shape)
    if is_float(text):
        with np.errstate(all="ignore"):
            # Few enough extremes that sums are not all NaN.
            keep = rng.random(shape) < 0.05
            tame = rng.normal(size=shape).astype(x.dtype)
            x = np.where(keep, x, tame)
    return x


def reduce(rng: Rng, full: bool) -> Iterator[Case]:
    """Every op over every kind of dimension list."""
    for text, ops in _MONOIDS.items():
        for op in ops:
            for shape in _SHAPES:
                x, init = _moderate(rng, text, shape), _moderate(rng, text, ())
                dimensions = [d for d in range(len(shape)) if rng.random() < 0.6]
                result = tensor([n for d, n in enumerate(shape) if d not in dimensions], text)
                regions = f" ({binary_body(op, text)})"
                code = apply("stablehlo.reduce", [x, init], [result], {"dimensions": ints(dimensions)}, regions)
                label = f"{text}-{op}-{'x'.join(map(str, shape))}-{''.join(map(str, dimensions))}"
                yield Case("stablehlo.reduce", label, code, (x, init), "values")
    yield from _argmax(rng)


def _argmax(rng: Rng) -> Iterator[Case]:
    """Two inputs folded together, the way argmax is written."""
    lines = [
        "%g = stablehlo.compare GT, %x0, %x2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "%n = stablehlo.compare NE, %x0, %x0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "%p = stablehlo.or %g, %n : tensor<i1>",
        "%v = stablehlo.select %p, %x0, %x2 : tensor<i1>, tensor<f32>",
        "%i = stablehlo.select %p, %x1, %x3 : tensor<i1>, tensor<i32>",
    ]
    scalars = ["tensor<f32>", "tensor<i32>"]
    region = body(scalars * 2, lines, [("%v", scalars[0]), ("%i", scalars[1])])
    for shape, dimension in (((4, 5), 0), ((4, 5), 1), ((0, 3), 0), ((3,), 0)):
        x = sample(rng, "f32", shape)
        index = np.arange(x.size, dtype=np.int32).reshape(shape)
        inputs = (x, index, np.array(-np.inf, np.float32), np.array(0, np.int32))
        kept = [n for d, n in enumerate(shape) if d != dimension]
        results = [tensor(kept, "f32"), tensor(kept, "i32")]
        code = apply("stablehlo.reduce", inputs, results, {"dimensions": ints([dimension])}, f" ({region})")
        yield Case("stablehlo.reduce", f"argmax-{shape}-{dimension}", code, inputs, "values")


def _windows(rng: Rng, shape: Sequence[int]) -> tuple[dict[str, str], list[int]]:
    n = len(shape)
    window, strides = [int(v) for v in rng.integers(1, 4, n)], [int(v) for v in rng.integers(1, 3, n)]
    base, dilation = [int(v) for v in rng.integers(1, 3, n)], [int(v) for v in rng.integers(1, 3, n)]
    # Windows of a dimension of which padding removes more than there is, the C++ interpreter dies of.
    padding = np.array([rng.integers(0 if size < 2 else -1, 3, 2) for size in shape], np.int64).reshape(n, 2)
    result: list[int] = []
    for d, size in enumerate(shape):
        padded = max(0, (size - 1) * base[d] + 1 if size else 0) + int(padding[d].sum())
        reach = (window[d] - 1) * dilation[d] + 1
        result.append(0 if padded <= 0 or reach > padded else (padded - reach) // strides[d] + 1)
    attributes = {
        "window_dimensions": ints(window),
        "window_strides": ints(strides),
        "base_dilations": ints(base),
        "window_dilations": ints(dilation),
        "padding": f"dense<{padding.tolist()}> : tensor<{n}x2xi64>" if n else "dense<> : tensor<0x2xi64>",
    }
    return attributes, result


def reduce_window(rng: Rng, full: bool) -> Iterator[Case]:
    """Random windows with dilations and negative padding."""
    for i in range(120 if full else 24):
        text = ("f32", "i32", "bf16", "i1")[i % 4]
        op = _MONOIDS[text][i // 4 % len(_MONOIDS[text])]
        shape = [int(n) for n in rng.integers(1, 7, rng.integers(0, 4))]
        x, init = _moderate(rng, text, tuple(shape)), _moderate(rng, text, ())
        attributes, result = _windows(rng, shape)
        regions = f" ({binary_body(op, text)})"
        code = apply("stablehlo.reduce_window", [x, init], [tensor(result, text)], attributes, regions)
        yield Case("stablehlo.reduce_window", f"{i}-{text}-{op}", code, (x, init), "values")


def select_and_scatter(rng: Rng, full: bool) -> Iterator[Case]:
    """Overlapping windows, ties and NaN."""
    for i in range(60 if full else 12):
        text = ("f32", "i32")[i % 2]
        shape = tuple(int(n) for n in rng.integers(2, 6, 2))
        window, strides = [int(v) for v in rng.integers(1, 3, 2)], [int(v) for v in rng.integers(1, 3, 2)]
        padding = rng.integers(0, 2, (2, 2))
        counts = [(n + int(p.sum()) - w) // s + 1 for n, p, w, s in zip(shape, padding, window, strides, strict=True)]
        x, source = sample(rng, text, shape), sample(rng, text, tuple(counts))
        kind = "FLOAT" if text == "f32" else "SIGNED"
        scalar = tensor((), text)
        compare = f"%y = stablehlo.compare GE, %x0, %x1, {kind} : ({scalar}, {scalar}) -> tensor<i1>"
        select = body([scalar, scalar], [compare], [("%y", "tensor<i1>")])
        attributes = {
            "window_dimensions": ints(window),
            "window_strides": ints(strides),
            "padding": f"dense<{padding.tolist()}> : tensor<2x2xi64>",
        }
        inputs = (x, source, np.zeros((), x.dtype))
        regions = f" ({select}, {binary_body('add', text)})"
        code = apply("stablehlo.select_and_scatter", inputs, [type_of(x)], attributes, regions)
        yield Case("stablehlo.select_and_scatter", f"{i}-{text}", code, inputs, "values")


def map_(rng: Rng, full: bool) -> Iterator[Case]:
    """A body of several ops, one of them a constant; size 0 and rank 0."""
    lines = [
        "%c = stablehlo.constant dense<3> : tensor<i32>",
        "%m = stablehlo.multiply %x0, %c : tensor<i32>",
        "%y = stablehlo.add %m, %x1 : tensor<i32>",
    ]
    region = body(["tensor<i32>", "tensor<i32>"], lines, [("%y", "tensor<i32>")])
    for shape in ((), (0,), (5,), (2, 3)):
        x, y = sample(rng, "i32", shape), sample(rng, "i32", shape)
        code = apply("stablehlo.map", [x, y], [type_of(x)], {"dimensions": ints(range(len(shape)))}, f" ({region})")
        yield Case("stablehlo.map", f"{shape}", code, (x, y), "bits")


def sort(rng: Rng, full: bool) -> Iterator[Case]:
    """One and two operands, each dimension, many equal keys, NaN in total order."""
    for i in range(80 if full else 20):
        text = ("f32", "i32", "ui8", "bf16")[i % 4]
        shape = tuple(int(n) for n in rng.integers(0, 9, rng.integers(1, 4)))
        axis = int(rng.integers(0, len(shape)))
        key = sample(rng, text, shape)
        if i % 3 == 0:
            key = edges(text)[rng.integers(0, 4, shape)]
        value = np.arange(key.size, dtype=np.int32).reshape(shape)
        kind = {"i": "SIGNED", "u": "UNSIGNED"}.get(text[0], "TOTALORDER")
        # The C++ interpreter compares TOTALORDER like FLOAT, which is no order on NaN and zeros.
        if kind == "TOTALORDER":
            key = np.where(np.isnan(key) | (key == 0), np.ones((), key.dtype), key)
        scalar, direction = tensor((), text), ("LT", "GT")[i % 2]
        compare = f"%y = stablehlo.compare {direction}, %x0, %x1, {kind} : ({scalar}, {scalar}) -> tensor<i1>"
        region = body([scalar, scalar, "tensor<i32>", "tensor<i32>"], [compare], [("%y", "tensor<i1>")])
        attributes = {"dimension": f"{axis} : i64", "is_stable": "true"}
        inputs = (key, value)
        code = apply("stablehlo.sort", inputs, [type_of(key), type_of(value)], attributes, f" ({region})")
        yield Case("stablehlo.sort", f"{i}-{text}-{shape}-{axis}", code, inputs, "bits")
