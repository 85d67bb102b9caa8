"""Small programs around every op, with inputs at its edges: what any evaluation of StableHLO must get right.

`all_cases()` gives them in a fixed order; the same seed gives the same cases. `measure` compares two evaluations as the
case asks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.support.cases import (
    contraction,
    conversion,
    corners,
    elementwise,
    functions,
    indexing,
    linalg,
    movement,
    reduction,
    structure,
)
from tests.support.cases.case import Case, Comparison, Family
from tests.support.cases.measure import Measured, measure

__all__ = ["ELSEWHERE", "FAMILIES", "Case", "Comparison", "Measured", "all_cases", "family_cases", "measure"]

FAMILIES: dict[str, Family] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module, names in (
        (elementwise, ("unary", "binary", "division", "ternary")),
        (conversion, ("convert", "out_of_range", "bitcast", "reduce_precision")),
        (
            movement,
            ("broadcast_in_dim", "concatenate", "dynamic", "get_dimension_size", "iota", "pad", "reshape", "reverse"),
        ),
        (movement, ("slice_", "transpose")),
        (indexing, ("dynamic_slice", "gather", "scatter")),
        (reduction, ("reduce", "reduce_window", "select_and_scatter", "map_", "sort")),
        (contraction, ("dot_general", "rounding", "convolution")),
        (linalg, ("cholesky", "triangular_solve", "fft", "batch_norm")),
        (functions, ("chlo_unary", "chlo_binary", "chlo_broadcast", "top_k", "legacy", "rng_bit_generator")),
        (structure, ("structure",)),
        (corners, ("corners",)),
    )
    for name in names
}
"""Each family by name: a function of a random generator and of whether the sweep is full."""


_NO_OP = "does not have the op"
ELSEWHERE: dict[str, tuple[str, str]] = {
    "chlo.ragged_dot": (_NO_OP, "test_chlo_grouped.py: jax.lax.ragged_dot_general, and what it is expanded to"),
    "chlo.scan": (_NO_OP, "test_chlo_grouped.py: jax.lax.scan, XLA:CPU, and what it is expanded to"),
    "gcomp.dim": (_NO_OP, "test_interpreter.py: symbolic sizes"),
    "gcomp.host": (
        _NO_OP,
        "test_data_dependent_sizes.py: ONNX Runtime on NonZero, Unique, NonMaxSuppression, Range, ...",
    ),
    "gcomp.print": (_NO_OP, "test_printing.py: lines, in order, and what Python's format writes"),
    "gcomp.view_as_complex": (_NO_OP, "test_interpreter.py: pairs in memory, as NumPy views them"),
    "gcomp.view_as_real": (_NO_OP, "test_interpreter.py: pairs in memory, as NumPy views them"),
    "gcomp.weight": (_NO_OP, "test_interpreter.py: weights"),
    "kernel.launch": (_NO_OP, "test_planned.py: programs cut into kernels compute what they did"),
    **dict.fromkeys(
        ("sdy.manual_computation", "sdy.reshard", "sdy.sharding_constraint", "sdy.sharding_group"),
        (_NO_OP, "test_devices.py: JAX on eight virtual devices"),
    ),
    **dict.fromkeys(
        (
            "stablehlo.all_gather",
            "stablehlo.all_reduce",
            "stablehlo.all_to_all",
            "stablehlo.collective_broadcast",
            "stablehlo.collective_permute",
            "stablehlo.partition_id",
            "stablehlo.reduce_scatter",
            "stablehlo.replica_id",
        ),
        ("is one device", "test_devices.py: JAX on eight virtual devices, and the specification's examples"),
    ),
    "stablehlo.real_dynamic_slice": (_NO_OP, "test_interpreter.py: it equals slice"),
    "stablehlo.rng": (_NO_OP, "test_random.py: interval, moments and repetition"),
}
"""Ops without a case, because no oracle has them: why, and which test of tests/unit/reference checks them instead."""


def family_cases(name: str, *, full: bool = False, seed: int = 0) -> Iterator[Case]:
    """The cases of one family."""
    yield from FAMILIES[name](np.random.default_rng(seed), full)


def all_cases(*, full: bool = False, seed: int = 0) -> Iterator[Case]:
    """The cases of all families."""
    for name in FAMILIES:
        yield from family_cases(name, full=full, seed=seed)
