"""Bounds hold for reordered and narrow evaluations, and every op has exactly one entry."""

from __future__ import annotations

import inspect
import itertools
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy import (
    bounds,
    chlo,
    contraction,
    conversion,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    quantization,
    random,
    reduction,
    sorting,
)

F32 = np.dtype(np.float32)
PLACED = {"partition_id", "replica_id", "reshard", "sharding_constraint", "sharding_group"}
"""Ops that say where a program runs, or values lie: they compute nothing, and have no function on arrays."""
MODULES = [elementwise, conversion, movement, indexing, reduction, contraction, linalg, normalization, random, sorting]
HELPERS = {
    "in_double",
    "total_order_key",
    "sizes",
    "turns",
    "window_counts",
    "window_slices",
    "threefry2x32",
    "philox4x32",
}


def ops_of(module: ModuleType) -> set[str]:
    functions = inspect.getmembers(module, inspect.isfunction)
    return {n.rstrip("_") for n, f in functions if f.__module__ == module.__name__ and n[0] != "_" and n not in HELPERS}


def test_every_op_has_one_entry() -> None:
    ops = set().union(*(ops_of(module) for module in [*MODULES, chlo, quantization]))
    kinds = [set(bounds.EXACT), set(bounds.UNBOUNDED), set(bounds.BOUNDS)]
    assert set().union(*kinds) == ops | PLACED
    for one, other in itertools.combinations(kinds, 2):
        assert not one & other


@given(st.integers(1, 200), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_sums_in_any_order_stay_inside(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6, n)).astype(np.float32)
    (bound,) = bounds.BOUNDS["reduce"]([x], [np.zeros((), F32)], dimensions=[0])
    exact = float(sum(map(float, x)))
    for order in (np.arange(n), np.argsort(x), np.argsort(-np.abs(x)), rng.permutation(n)):
        total = np.float32(0)
        for value in x[order]:
            total = np.float32(total + value)
        assert abs(float(total) - exact) <= bound * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("text", ["f32", "bf16"])
def test_dot_products_accumulated_in_f32_stay_inside(text: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32).astype(DTYPES[text]) for s in ((4, 300), (300, 5)))
    attributes = {"lhs_contracting_dimensions": [1], "rhs_contracting_dimensions": [0]}
    bound = bounds.BOUNDS["dot_general"](a, b, **attributes)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    total = np.zeros((4, 5), np.float32)
    for k in range(300):
        total += a[:, k : k + 1].astype(np.float32) * b[k].astype(np.float32)
    assert (np.abs(total.astype(DTYPES[text]).astype(np.float64) - exact) <= bound).all()


def test_elementwise_bounds_are_ulps_of_the_result() -> None:
    x = np.array([0.5, 3.0], np.float32)
    assert bounds.BOUNDS["add"](x, x).tolist() == [2.0**-24, 2.0**-22]
    expected = 2 * np.spacing(np.exp(x.astype(np.float64)).astype(np.float32))
    assert bounds.BOUNDS["exponential"](x).tolist() == expected.astype(np.float64).tolist()
    assert not bounds.BOUNDS["add"](np.array([1]), np.array([2])).any()
    assert bounds.ulp(np.array([0.0, 1e-45, 1.0, np.inf, np.nan]), F32).tolist()[:3] == [2.0**-149, 2.0**-149, 2.0**-23]


def test_every_bound_can_be_computed_and_covers_the_reference() -> None:
    x = np.linspace(0.1, 0.9, 9, dtype=np.float32)
    for name in bounds.ULPS:
        op = getattr(elementwise, name, None) or getattr(chlo, name)
        arity = len(inspect.signature(op).parameters)
        operands = [x + np.float32(1)] * arity if name in ("acosh", "zeta") else [x] * arity
        error = np.abs(op(*operands).astype(np.float64) - op(*(v.astype(np.float64) for v in operands)))
        assert (error <= bounds.BOUNDS[name](*operands)).all(), name
    for name in ("lgamma", "digamma", "abs"):
        op = getattr(elementwise, name, None) or getattr(chlo, name)
        assert (np.abs(op(x).astype(np.float64) - op(x.astype(np.float64))) <= bounds.BOUNDS[name](x)).all()
    spectrum = bounds.BOUNDS["fft"](x, fft_type="RFFT", fft_length=[9])
    assert spectrum.shape == (5,) and (spectrum > 0).all()
    one = np.ones(3, np.float32)
    image = x.reshape(3, 3)
    assert bounds.BOUNDS["batch_norm_inference"](image, one, one, one, one, epsilon=0.1, feature_index=1).shape == (
        3,
        3,
    )
    assert bounds.BOUNDS["convert"](x.astype(np.float64), dtype=F32).max() <= 2.0**-25


def test_window_and_scatter_bounds_count_their_terms() -> None:
    x = np.ones(4, np.float32)
    zero = np.zeros((), F32)
    (window,) = bounds.BOUNDS["reduce_window"]([x], [zero], window_dimensions=[2])
    assert window.tolist() == [4 * 2.0**-24] * 3
    (scattered,) = bounds.BOUNDS["scatter"](
        [x],
        np.array([[0], [0], [9]]),
        [np.ones(3, np.float32)],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    assert scattered.tolist() == [6 * 2.0**-24, 0, 0, 0]
    chosen = bounds.BOUNDS["select_and_scatter"](
        x, np.ones(2, np.float32), zero, window_dimensions=[2], window_strides=[2], select=np.greater_equal
    )
    assert chosen.tolist() == [2.0**-24, 0, 2.0**-24, 0]


def test_gamma() -> None:
    assert bounds.gamma(1, F32) == 2.0**-24 / (1 - 2.0**-24)
    assert bounds.gamma(2**24, F32) == float("inf")
