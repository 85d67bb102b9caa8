"""Gradients and tangents are JAX's, and so are gradients of gradients: a sample of each family of cases.

All cases: `python -m tests.conformance.gradients.run --cases --programs 0 --jax 5000`.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from gcomp.testing.foreign import jax_families as cases
from gcomp.testing.foreign.jax_random import function_of
from tests.conformance.gradients.against_jax import compare, compare_second

SAMPLE = {
    "elementwise": ("power", "stop_gradient"), "choices": ("clamp at its bounds", "maximum of equals", "relu at 0"),
    "complex": ("modulus",), "movement": ("pad",), "contraction": ("strided convolution",),
    "folds": ("max pooling",), "indexing": ("set",), "linalg": ("cholesky",), "control": ("cond in scan",),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_f64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(("family", "name"), [(f, n) for f, names in SAMPLE.items() for n in names])
def test_gradient_and_tangent_are_those_of_jax(family: str, name: str) -> None:
    function, given = cases.FAMILIES[family][name]
    compare(function, cases.arrays(given))


def test_second_derivatives_are_those_of_jax() -> None:
    function, given = cases.FAMILIES["control"]["swap"]
    compare_second(function, cases.arrays(given))


def test_a_random_function_has_the_gradient_that_jax_gives() -> None:
    function, args, _ = function_of(1)
    compare(function, args, rtol=1e-6, atol=1e-8)
