"""Initializers: their shapes, moments and bounds are those of `torch.nn.init`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from gcomp import ops
from gcomp.errors import UsageError
from gcomp.training import initializers as own

SHAPE = (64, 32, 3, 3)
PAIRS: list[tuple[Any, str, dict[str, Any]]] = [
    (partial(own.uniform, low=-1.0, high=3.0), "uniform_", {"a": -1.0, "b": 3.0}),
    (partial(own.normal, mean=1.0, std=0.5), "normal_", {"mean": 1.0, "std": 0.5}),
    (partial(own.truncated_normal, std=0.7, low=-0.5, high=1.0), "trunc_normal_", {"std": 0.7, "a": -0.5, "b": 1.0}),
    (own.glorot_uniform, "xavier_uniform_", {}),
    (partial(own.glorot_normal, gain=2.0), "xavier_normal_", {"gain": 2.0}),
    (own.kaiming_uniform, "kaiming_uniform_", {}),
    (partial(own.kaiming_normal, slope=0.2), "kaiming_normal_", {"a": 0.2}),
]


@pytest.mark.parametrize(("make", "name", "options"), PAIRS)
def test_distributions_are_torchs(make: Any, name: str, options: dict[str, Any]) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    theirs = getattr(torch.nn.init, name)(torch.empty(SHAPE), **options).numpy()
    drawn = make(ops.random.key(1), SHAPE).numpy()
    assert drawn.dtype == np.float32 and drawn.shape == SHAPE
    assert abs(drawn.mean() - theirs.mean()) < 0.02 * theirs.std()
    assert abs(drawn.std() / theirs.std() - 1) < 0.02
    assert abs(np.abs(drawn).max() / np.abs(theirs).max() - 1) < 0.25
    again = make(ops.random.key(1), SHAPE).numpy()
    assert np.array_equal(drawn, again) and not np.array_equal(drawn, make(ops.random.key(2), SHAPE).numpy())


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...]) -> None:
    drawn = own.orthogonal(ops.random.key(3), shape, gain=2.0).numpy().reshape(shape[0], -1) / 2
    small = drawn @ drawn.T if drawn.shape[0] <= drawn.shape[1] else drawn.T @ drawn
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def test_constants() -> None:
    assert own.zeros(ops.random.key(0), (2, 3)).numpy().tolist() == [[0] * 3] * 2
    assert own.constant(ops.random.key(0), (2,), "f64", value=3).numpy().tolist() == [3, 3]


def test_a_vector_has_no_fans() -> None:
    with pytest.raises(UsageError, match="fans"):
        own.kaiming_normal(ops.random.key(0), (4,))
