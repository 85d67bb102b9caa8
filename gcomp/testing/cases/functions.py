"""CHLO, and random bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcomp.testing.cases.case import Array, Case, Rng, apply, tensor, type_of
from gcomp.testing.cases.values import edges, moderate, sample

FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv", "erfc", "lgamma",
    "sinh", "tan",
)  # fmt: skip
"""CHLO's unary functions of real numbers."""
_FLOATS = ("f64", "f32", "f16", "bf16")


def chlo_unary(rng: Rng, full: bool) -> Iterator[Case]:
    """Edge values and ordinary ones."""
    for text in _FLOATS:
        x = np.concatenate([edges(text), moderate(rng, text, (64,))])
        for op in FUNCTIONS:
            yield Case(f"chlo.{op}", text, apply(f"chlo.{op}", [x], [type_of(x)]), (x,), "ulp")
        for op in ("square", "conj"):
            yield Case(f"chlo.{op}", text, apply(f"chlo.{op}", [x], [type_of(x)]), (x,), "values")
        for op in ("is_inf", "is_neg_inf", "is_pos_inf"):
            yield Case(f"chlo.{op}", text, apply(f"chlo.{op}", [x], [tensor(x.shape, "i1")]), (x,), "bits")
    for text in ("complex<f32>", "complex<f64>"):
        x = moderate(rng, text, (40,))
        for op in ("conj", "square", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan"):
            yield Case(f"chlo.{op}", text, apply(f"chlo.{op}", [x], [type_of(x)]), (x,), "ulp")


def chlo_binary(rng: Rng, full: bool) -> Iterator[Case]:
    """Ordinary values, and for next_after the edges."""
    for text in _FLOATS:
        a, b = sample(rng, text, (100,)), sample(rng, text, (100,))
        yield Case("chlo.next_after", text, apply("chlo.next_after", [a, b], [type_of(a)]), (a, b), "values")
        order = rng.integers(0, 4, 40).astype(a.dtype)
        x = (abs(moderate(rng, "f64", (40,))) + 0.5).astype(a.dtype)
        yield Case("chlo.polygamma", text, apply("chlo.polygamma", [order, x], [type_of(x)]), (order, x), "ulp")
        s = (rng.random(40) * 8 + 1.25).astype(a.dtype)
        yield Case("chlo.zeta", text, apply("chlo.zeta", [s, x], [type_of(x)]), (s, x), "ulp")
    for text in ("f32", "i32", "i1", "ui8"):
        op = "and" if text == "i1" else "add"
        for left, right in (((3, 1), (4,)), ((), (2, 2)), ((2, 0), (1, 1)), ((4,), (4,))):
            a, b = sample(rng, text, left), sample(rng, text, right)
            result = tensor(np.broadcast_shapes(left, right), text)
            name = f"chlo.broadcast_{op}"
            label = f"{text}-{'x'.join(map(str, left)) or 'scalar'}"
            yield Case(name, label, apply(name, [a, b], [result]), (a, b), "values")


def top_k(rng: Rng, full: bool) -> Iterator[Case]:
    """Ties, NaN of both signs, both zeros, k of 0 and of everything."""
    for text in ("f32", "bf16", "i32", "ui8"):
        for shape, k in (((7,), 3), ((3, 5), 5), ((2, 4), 0), ((0, 3), 2)):
            x = edges(text)[rng.integers(0, 12, shape)]
            results = [tensor((*shape[:-1], k), text), tensor((*shape[:-1], k), "i32")]
            label = f"{text}-{'x'.join(map(str, shape))}-{k}"
            yield Case("chlo.top_k", label, apply("chlo.top_k", [x], results, {"k": f"{k} : i64"}), (x,), "bits")


_GENERATORS = (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2))


def rng_bit_generator(rng: Rng, full: bool) -> Iterator[Case]:
    """Odd counts, rank 0, size 0 and all widths; counters about to overflow."""
    for algorithm, size in _GENERATORS:
        for text in ("ui32", "ui64", "i8", "ui16", "i32"):
            for shape in ((), (0,), (5,), (3, 2), (3, 5)):
                state: Array = rng.integers(0, 2**63, size, np.uint64)
                if len(shape) == 1:
                    state[1] = np.iinfo(np.uint64).max
                attributes = {"rng_algorithm": f"#stablehlo<rng_algorithm {algorithm}>"}
                results = [type_of(state), tensor(shape, text)]
                code = apply("stablehlo.rng_bit_generator", [state], results, attributes)
                label = f"{algorithm}-{size}-{text}-{'x'.join(map(str, shape)) or 'scalar'}"
                yield Case("stablehlo.rng_bit_generator", label, code, (state,), "bits")
