"""Batch normalization against the specification's decomposition, and its gradient against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.normalization import batch_norm_grad, batch_norm_inference, batch_norm_training

EPSILON = 0.25


def sample(text: str = "f64") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    arrays = (rng.normal(size=(3, 2, 4)), rng.normal(size=2), rng.normal(size=2), rng.normal(size=2), rng.random(2) + 1)
    return tuple(a.astype(DTYPES[text]) for a in arrays)


@pytest.mark.parametrize("text", ["f32", "f64", "bf16"])
def test_inference_of_each_feature(text: str) -> None:
    x, scale, offset, mean, variance = sample(text)
    result = batch_norm_inference(x, scale, offset, mean, variance, epsilon=EPSILON, feature_index=1)
    wide = [v.astype(np.float64) for v in (x, scale, offset, mean, variance)]
    for f in range(2):
        expected = wide[1][f] * ((wide[0][:, f] - wide[3][f]) / np.sqrt(wide[4][f] + EPSILON)) + wide[2][f]
        assert np.array_equal(result[:, f], expected.astype(x.dtype))


def test_training_normalizes_with_its_own_statistics() -> None:
    x, scale, offset, *_ = sample()
    output, mean, variance = batch_norm_training(x, scale, offset, epsilon=EPSILON, feature_index=1)
    assert np.abs(mean - x.mean(axis=(0, 2))).max() < 1e-15
    assert np.abs(variance - x.var(axis=(0, 2))).max() < 1e-15
    again = batch_norm_inference(x, scale, offset, mean, variance, epsilon=EPSILON, feature_index=1)
    assert np.array_equal(output, again)


def test_gradient_is_the_derivative_of_training() -> None:
    x, scale, offset, *_ = sample()
    weights = np.random.default_rng(1).normal(size=x.shape)

    def loss(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> float:
        return float((batch_norm_training(x, scale, offset, epsilon=EPSILON, feature_index=1)[0] * weights).sum())

    _, mean, variance = batch_norm_training(x, scale, offset, epsilon=EPSILON, feature_index=1)
    gradients = batch_norm_grad(x, scale, mean, variance, weights, epsilon=EPSILON, feature_index=1)
    arguments = [x, scale, offset]
    for position, gradient in enumerate(gradients):
        for index in np.ndindex(*gradient.shape):
            step = np.zeros_like(gradient)
            step[index] = 1e-5
            sides = [[a + s * step if i == position else a for i, a in enumerate(arguments)] for s in (1, -1)]
            slope = (loss(*sides[0]) - loss(*sides[1])) / 2e-5
            assert abs(slope - gradient[index]) < 1e-8


def test_empty_batch_has_nan_statistics() -> None:
    one = np.ones(2, np.float32)
    _, mean, variance = batch_norm_training(np.ones((0, 2), np.float32), one, one, epsilon=0.1, feature_index=1)
    assert np.isnan(mean).all() and np.isnan(variance).all()
