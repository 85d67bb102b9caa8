"""CHLO, and random bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gcomp.dtypes import dtype_of, text_of
from gcomp.reference.values import edges
from tests.support.cases.case import Array, Case, Comparison, Rng, apply, tensor, type_of
from tests.support.cases.values import moderate, sample

FUNCTIONS = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv", "erfc",
    "lgamma", "sinh", "tan",
)  # fmt: skip
"""CHLO's unary functions of real numbers."""
_NARROW_DOMAINS: dict[str, Callable[[Array], Array]] = {
    "bessel_i1e": lambda x: x[np.abs(x) > 1e-3],
    "digamma": lambda x: np.abs(x) + x.dtype.type(2),
    "lgamma": lambda x: np.abs(x) + x.dtype.type(3),
}
_FLOATS = ("f64", "f32", "f16", "bf16")


def chlo_unary(rng: Rng, full: bool) -> Iterator[Case]:
    """Edge values and ordinary ones; ordinary ones only where StableHLO's expansion is good for no others."""
    for text in _FLOATS:
        ordinary = moderate(rng, text, (64,))
        x = np.concatenate([edges(text), ordinary])
        for op in FUNCTIONS:
            y = x if op not in _NARROW_DOMAINS else _NARROW_DOMAINS[op](ordinary)
            yield Case(f"chlo.{op}", text, apply(f"chlo.{op}", [y], [type_of(y)]), (y,), "ulp")
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
    for text in ("i4", "ui8", "i32", "i64", "ui64"):
        a, b = sample(rng, text, (100,)), sample(rng, text, (100,))
        yield Case("chlo.mulhi", text, apply("chlo.mulhi", [a, b], [type_of(a)]), (a, b), "bits")
    for value, text in (("2.5 : f32", "f32"), ("-7 : i8", "i8")):
        x = sample(rng, "i32", (2, 3))
        code = apply("chlo.constant_like", [x], [tensor(x.shape, text)], {"value": value})
        yield Case("chlo.constant_like", text, code, (x,), "bits")
    code = apply("chlo.constant", [], ["tensor<2xf32>"], {"value": "dense<[1.5, -0.0]> : tensor<2xf32>"})
    yield Case("chlo.constant", "two", code, (), "bits")


_BROADCASTS = {
    "f32": ("add", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "polygamma", "power",
            "remainder", "subtract", "zeta"),
    "i8": ("add", "and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
}  # fmt: skip
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (((3, 1), (4,)), ((), (2, 2)), ((2, 0), (1, 1)))


def chlo_broadcast(rng: Rng, full: bool) -> Iterator[Case]:
    """Shapes aligned at the end, and at given dimensions."""
    for text, ops in _BROADCASTS.items():
        for op in ops:
            for left, right in _SHAPES:
                a, b = (abs(moderate(rng, text, shape)) + np.ones((), dtype_of(text)) for shape in (left, right))
                yield _broadcast(op, text, a, b, {})
            a, b = sample(rng, text, (3,)), sample(rng, text, (2, 3))
            if op not in ("polygamma", "zeta"):
                yield _broadcast(op, f"{text}-aligned", a, b, {"broadcast_dimensions": "array<i64: 1>"})
    a, b = sample(rng, "f32", (3, 1)), sample(rng, "f32", (2,))
    attributes = {
        "comparison_direction": "#chlo<comparison_direction LT>",
        "compare_type": "#chlo<comparison_type FLOAT>",
    }
    code = apply("chlo.broadcast_compare", [a, b], ["tensor<3x2xi1>"], attributes)
    yield Case("chlo.broadcast_compare", "f32", code, (a, b), "bits")
    pred = sample(rng, "i1", (2, 1, 1))
    code = apply("chlo.broadcast_select", [pred, a, b], ["tensor<2x3x2xf32>"])
    reason = "has no expansion of it that it can run"
    yield Case("chlo.broadcast_select", "f32", code, (pred, a, b), "bits", reason)


def _broadcast(op: str, label: str, a: Array, b: Array, attributes: dict[str, str]) -> Case:
    shape = b.shape if attributes else np.broadcast_shapes(a.shape, b.shape)
    text = text_of(a.dtype)
    result = tensor(shape, f"complex<{text}>" if op == "complex" else text)
    shapes = "-".join("x".join(map(str, x.shape)) or "scalar" for x in (a, b))
    code = apply(f"chlo.broadcast_{op}", [a, b], [result], attributes)
    compare: Comparison = "ulp" if op in ("atan2", "polygamma", "power", "zeta") else "values"
    return Case(f"chlo.broadcast_{op}", f"{label}-{shapes}", code, (a, b), compare)


def legacy(rng: Rng, full: bool) -> Iterator[Case]:
    """Ops that the specification has dropped."""
    x = sample(rng, "i32", (2, 3))
    code = apply("stablehlo.broadcast", [x], ["tensor<4x0x2x3xi32>"], {"broadcast_sizes": "array<i64: 4, 0>"})
    yield Case("stablehlo.broadcast", "empty", code, (x,), "bits", "does not have the op")
    code = apply("stablehlo.broadcast", [x], ["tensor<4x2x3xi32>"], {"broadcast_sizes": "array<i64: 4>"})
    yield Case("stablehlo.broadcast", "four", code, (x,), "bits", "does not have the op")
    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4))):
        a, b = moderate(rng, "i32", left), moderate(rng, "i32", right)
        result = tensor((*left[:-1], *right[1:]), "i32")
        label = f"{len(left)}-{len(right)}"
        yield Case(
            "stablehlo.dot", label, apply("stablehlo.dot", [a, b], [result]), (a, b), "bits", "does not have the op"
        )


def top_k(rng: Rng, full: bool) -> Iterator[Case]:
    """Ties, NaN of both signs, both zeros, k of 0 and of everything."""
    for text in ("f32", "bf16", "i32", "ui8"):
        for shape, k in (((7,), 3), ((3, 5), 5), ((2, 4), 0), ((0, 3), 2)):
            x = edges(text)[rng.integers(0, min(12, edges(text).size), shape)]
            results = [tensor((*shape[:-1], k), text), tensor((*shape[:-1], k), "i32")]
            label = f"{text}-{'x'.join(map(str, shape))}-{k}"
            yield Case("chlo.top_k", label, apply("chlo.top_k", [x], results, {"k": f"{k} : i64"}), (x,), "bits")


_GENERATORS = (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2))


def rng_bit_generator(rng: Rng, full: bool) -> Iterator[Case]:
    """Odd counts, rank 0, size 0 and all widths; counters about to overflow."""
    for algorithm, size in _GENERATORS:
        for text in ("ui32", "ui64", "ui8", "ui16") if full else ("ui32", "ui64", "ui8"):
            for shape in ((), (0,), (5,), (3, 2), (3, 5)) if full else ((), (3, 5)):
                state: Array = rng.integers(0, 2**63, size, np.uint64)
                if len(shape) != 1:
                    state[1] = np.iinfo(np.uint64).max
                attributes = {"rng_algorithm": f"#stablehlo<rng_algorithm {algorithm}>"}
                results = [type_of(state), tensor(shape, text)]
                code = apply("stablehlo.rng_bit_generator", [state], results, attributes)
                label = f"{algorithm}-{size}-{text}-{'x'.join(map(str, shape)) or 'scalar'}"
                yield Case("stablehlo.rng_bit_generator", label, code, (state,), "bits", "does not have the op")
