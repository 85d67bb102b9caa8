"""dot_general and convolution, with small integers where every order of the sum gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.dtypes import dtype_of
from tests.support.cases.case import Array, Case, Rng, apply, ints, tensor

_TYPES = ("f32", "f64", "bf16", "f16", "i32", "i8", "ui8", "i4", "complex<f32>")
_WIDER = {"bf16": "f32", "f16": "f32", "i8": "i32", "ui8": "ui32", "f8E4M3FN": "f32"}


def _small(rng: Rng, text: str, shape: tuple[int, ...]) -> Array:
    """Small whole numbers: sums are exact in every type, or wrap."""
    low = 0 if text[0] == "u" else -3
    values = rng.integers(low, 4, shape)
    if text.startswith("complex"):
        return (values + 1j * rng.integers(-3, 4, shape)).astype(dtype_of(text))
    return values.astype(dtype_of(text))


def _roles(rng: Rng, batching: int, contracting: int, free: int) -> list[tuple[str, int]]:
    """What each dimension of an operand is, in random order: ("b", 0), ("c", 0), ("c", 1), ("f", 0), ..."""
    roles = [(kind, k) for kind, count in (("b", batching), ("c", contracting), ("f", free)) for k in range(count)]
    return [roles[int(k)] for k in rng.permutation(len(roles))]


def dot_general(rng: Rng, full: bool) -> Iterator[Case]:
    """Any number of batching and contracting dimensions in any order, sizes 0 and 1 among them."""
    for i in range(200 if full else 45):
        text = _TYPES[i % len(_TYPES)]
        result = _WIDER.get(text, text) if i % 2 else text
        b, c, m, n = (int(v) for v in rng.integers(0, 3, 4))
        sizes = rng.choice([0, 1, 2, 3, 4], p=[0.05, 0.2, 0.3, 0.25, 0.2], size=b + c + m + n)
        parts: list[list[int]] = [p.tolist() for p in np.split(sizes, np.cumsum([b, c, m]))]
        batch, contract, rows, columns = parts
        left, right = (_roles(rng, b, c, free) for free in (m, n))
        lhs_free = [k for kind, k in left if kind == "f"]
        rhs_free = [k for kind, k in right if kind == "f"]
        lhs = _small(rng, text, tuple({"b": batch, "c": contract, "f": rows}[kind][k] for kind, k in left))
        rhs = _small(rng, text, tuple({"b": batch, "c": contract, "f": columns}[kind][k] for kind, k in right))
        numbers = (
            f"#stablehlo.dot<lhs_batching_dimensions = {[left.index(('b', k)) for k in range(b)]}, "
            f"rhs_batching_dimensions = {[right.index(('b', k)) for k in range(b)]}, "
            f"lhs_contracting_dimensions = {[left.index(('c', k)) for k in range(c)]}, "
            f"rhs_contracting_dimensions = {[right.index(('c', k)) for k in range(c)]}>"
        )
        shape = [*batch, *(rows[k] for k in lhs_free), *(columns[k] for k in rhs_free)]
        attributes = {"dot_dimension_numbers": numbers}
        code = apply("stablehlo.dot_general", [lhs, rhs], [tensor(shape, result)], attributes)
        empty = 0 in contract and 0 not in shape
        reason = "dies of an empty contracting dimension" if empty else ""
        yield Case("stablehlo.dot_general", f"{i}-{text}-{result}", code, (lhs, rhs), "values", reason)


def rounding(rng: Rng, full: bool) -> Iterator[Case]:
    """Random reals, where the order of the sum shows in the last bits."""
    for text in ("f64", "f32", "f16", "bf16"):
        for depth in (1, 2, 7, 64):
            lhs = rng.normal(size=(5, depth)).astype(dtype_of(text))
            rhs = rng.normal(size=(depth, 4)).astype(dtype_of(text))
            numbers = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
            attributes = {"dot_dimension_numbers": numbers}
            code = apply("stablehlo.dot_general", [lhs, rhs], [tensor((5, 4), text)], attributes)
            yield Case("stablehlo.dot_general", f"real-{text}-{depth}", code, (lhs, rhs), "norm")


def _letters(rng: Rng, rank: int, letters: str, *, ordered: bool = False) -> tuple[str, list[int]]:
    """Dimension numbers as text, and for b/i, f/o, 0, 1, ... where each stands; `ordered` keeps the letters' order."""
    names = [*letters, *(str(d) for d in range(rank))]
    order = [int(k) for k in rng.permutation(len(names))]
    if ordered and order.index(1) < order.index(0):
        order = [{0: 1, 1: 0}.get(k, k) for k in order]
    return f"[{', '.join(names[k] for k in order)}]", [order.index(k) for k in range(len(names))]


def _placed(sizes: list[int], places: list[int]) -> tuple[int, ...]:
    shape = [0] * len(sizes)
    for size, place in zip(sizes, places, strict=True):
        shape[place] = size
    return tuple(shape)


def convolution(rng: Rng, full: bool) -> Iterator[Case]:
    """Spatial ranks 0 to 3, all layouts, strides, dilations, padding, reversal, both kinds of groups."""
    for i in range(150 if full else 40):
        text = ("f32", "i32", "bf16", "i8")[i % 4]
        result = _WIDER.get(text, text) if i % 2 else text
        rank = int(rng.integers(0, 4))
        features, batches = ((1, 1), (2, 1), (1, 2))[i % 3]
        n, c, o = (
            int(rng.integers(1, 3)) * batches,
            int(rng.integers(1, 3)),
            int(rng.integers(1, 3)) * features * batches,
        )
        size, window = ([int(v) for v in rng.integers(low, 6 if low else 4, rank)] for low in (1, 1))
        window = [min(w, 3) for w in window]
        strides, lhs_dilation, rhs_dilation = ([int(v) for v in rng.integers(1, 3, rank)] for _ in range(3))
        padding = rng.integers(-1, 3, (rank, 2))
        reversal = [bool(v) for v in rng.random(rank) < 0.3]
        spatial: list[int] = []
        for d in range(rank):
            padded = max(0, (size[d] - 1) * lhs_dilation[d] + 1 + int(padding[d].sum()))
            reach = (window[d] - 1) * rhs_dilation[d] + 1
            spatial.append(0 if reach > padded else (padded - reach) // strides[d] + 1)
        lhs_text, lhs_places = _letters(rng, rank, "bf")
        rhs_text, rhs_places = _letters(rng, rank, "io")
        out_text, out_places = _letters(rng, rank, "bf")
        if out_places[1] < out_places[0] and i % 5:
            out_text, out_places = _letters(rng, rank, "bf", ordered=True)
        lhs = _small(rng, text, _placed([n, c * features, *size], lhs_places))
        rhs = _small(rng, text, _placed([c, o, *window], rhs_places))
        shape = _placed([n // batches, o, *spatial], out_places)
        flags = ", ".join("true" if r else "false" for r in reversal)
        attributes = {
            "dimension_numbers": f"#stablehlo.conv<{lhs_text}x{rhs_text}->{out_text}>",
            "feature_group_count": f"{features} : i64",
            "batch_group_count": f"{batches} : i64",
            "window_strides": ints(strides),
            "padding": f"dense<{padding.tolist()}> : tensor<{rank}x2xi64>" if rank else "dense<> : tensor<0x2xi64>",
            "lhs_dilation": ints(lhs_dilation),
            "rhs_dilation": ints(rhs_dilation),
            "window_reversal": f"array<i1: {flags}>" if rank else "array<i1>",
        }
        code = apply("stablehlo.convolution", [lhs, rhs], [tensor(shape, result)], attributes)
        reason = (
            "dies where the output's feature dimension comes before its batch" if out_places[1] < out_places[0] else ""
        )
        removed = any((size[d] - 1) * lhs_dilation[d] + 1 + int(padding[d].sum()) < 0 for d in range(rank))
        reason = reason or ("dies of padding that removes more than there is" if removed else "")
        yield Case("stablehlo.convolution", f"{i}-{text}-{result}", code, (lhs, rhs), "values", reason)
        if i % 5 == 0 and not reason:
            del attributes["padding"]
            inputs = (lhs, rhs, padding.astype(np.int64))
            code = apply("stablehlo.dynamic_conv", inputs, [tensor(shape, result)], attributes)
            yield Case("stablehlo.dynamic_conv", f"{i}-{text}-{result}", code, inputs, "values")
