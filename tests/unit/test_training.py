"""Training with compiled steps follows eager's losses (`benchmarks.training` has more networks and steps)."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

from tests.support.thinning import swept

STEPS = 20
NEEDS = {"jax": "optax", "torch": "torch"}
EAGER = {"jax": "jax.jit", "torch": "eager"}
"""JAX op by op compiles each op by itself: jax.jit takes a tenth of the time."""


def door(name: str) -> Any:
    """A door's trainings; the test is skipped where its optimizers are not installed."""
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"NOT CHECKED: {NEEDS[name]} is not installed")
    return importlib.import_module(f"benchmarks.learning.in_{name}")


@pytest.mark.parametrize("optimizer", ["AdamW", *swept("SGD")])
@pytest.mark.parametrize("name", ["jax", "torch"])
def test_an_mlp_learns_as_eagerly(name: str, optimizer: str) -> None:
    eager, found = (door(name).curve("MLP", optimizer, way, STEPS) for way in (EAGER[name], "gcomp"))
    assert eager[-1] < eager[0]
    np.testing.assert_allclose(found, eager, rtol=1e-5)


def test_a_compiled_step_of_an_optimizer_does_what_was_captured() -> None:
    torch_door = door("torch")
    # AdamW's corrections are captured in f32; `aot_eager` runs what is captured op by op.
    found, wanted = (torch_door.curve("MLP", "AdamW", way, 5) for way in ("gcomp, optimizer too", "aot_eager"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_orders_of_a_batch_hold_the_same_examples() -> None:
    from benchmarks.learning.data import batches

    for (x, labels), (y, other) in zip(batches(3, 0), batches(3, 1), strict=True):
        assert not np.array_equal(x, y)
        assert sorted(map(bytes, x)) == sorted(map(bytes, y))
        assert sorted(labels) == sorted(other)
