"""Losses: torch's values and gradients, on arrays and compiled; labels that are none make NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import ops
from gcomp.errors import UsageError
from gcomp.graph import gradients
from gcomp.training import accuracy, bce_with_logits, cross_entropy, huber, l1, mse, nll

torch: Any = pytest.importorskip("torch")
Array = np.ndarray[Any, Any]
functional = torch.nn.functional
RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((5, 7)).astype(np.float32) * 3
CLASSES = RNG.integers(0, 7, 5)
SOME = np.where(np.arange(5) == 2, -100, CLASSES)
PARTS = np.abs(RNG.standard_normal((5, 7))).astype(np.float32)
PARTS /= PARTS.sum(1, keepdims=True)
IMAGES, MASKS = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32), RNG.integers(0, 3, (2, 4, 5))
TARGETS = RNG.standard_normal((5, 7)).astype(np.float32) * 3
HITS = RNG.integers(0, 2, (5, 7)).astype(np.float32)


def log_softmax(x: Any) -> Any:
    return ops.log_softmax(x) if not isinstance(x, torch.Tensor) else functional.log_softmax(x, -1)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Array, Array]] = {
    "cross entropy": (cross_entropy, functional.cross_entropy, SCORES, CLASSES),
    "a sum": (lambda x, y: cross_entropy(x, y, reduction="sum"),
              lambda x, y: functional.cross_entropy(x, y, reduction="sum"), SCORES, CLASSES),
    "smoothed": (lambda x, y: cross_entropy(x, y, label_smoothing=0.1),
                 lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.1), SCORES, CLASSES),
    "ignored and smoothed": (lambda x, y: cross_entropy(x, y, label_smoothing=0.1),
                             lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.1), SCORES, SOME),
    "another ignored": (lambda x, y: cross_entropy(x, y, ignore_index=3),
                        lambda x, y: functional.cross_entropy(x, y, ignore_index=3), SCORES, CLASSES % 5),
    "probabilities": (cross_entropy, functional.cross_entropy, SCORES, PARTS),
    "smoothed probabilities": (lambda x, y: cross_entropy(x, y, label_smoothing=0.2),
                               lambda x, y: functional.cross_entropy(x, y, label_smoothing=0.2), SCORES, PARTS),
    "images": (cross_entropy, functional.cross_entropy, IMAGES, MASKS),
    "one sample": (cross_entropy, functional.cross_entropy, SCORES[0], CLASSES[0]),
    "nll": (lambda x, y: nll(log_softmax(x), y), lambda x, y: functional.nll_loss(log_softmax(x), y), SCORES, SOME),
    "mse": (mse, functional.mse_loss, SCORES, TARGETS),
    "l1": (l1, functional.l1_loss, SCORES, TARGETS),
    "huber": (lambda x, y: huber(x, y, delta=1.5),
              lambda x, y: functional.huber_loss(x, y, delta=1.5), SCORES, TARGETS),
    "bce": (bce_with_logits, functional.binary_cross_entropy_with_logits, SCORES, HITS),
    "bce at 0": (bce_with_logits, functional.binary_cross_entropy_with_logits, SCORES * 0, HITS),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_torchs(case: str) -> None:
    own, theirs, outputs, labels = CASES[case]
    x = torch.from_numpy(outputs.copy()).requires_grad_()
    expected = theirs(x, torch.from_numpy(np.asarray(labels)))
    expected.backward()
    np.testing.assert_allclose(own(outputs, labels).numpy(), expected.detach().numpy(), rtol=2e-6)

    @gcomp.function
    def step(x: Any, y: Any) -> Any:
        loss = own(x, y)
        return loss, gradients(loss, [x])[0]

    loss, slope = step(outputs, labels)
    np.testing.assert_allclose(loss.numpy(), expected.detach().numpy(), rtol=2e-6)
    np.testing.assert_allclose(slope.numpy(), x.grad.numpy(), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("label", [7, -1, 10**6])
def test_a_label_that_is_no_class_makes_the_loss_nan(label: int) -> None:
    assert np.isnan(cross_entropy(SCORES, np.where(np.arange(5) == 1, label, CLASSES)).numpy())


def test_a_masked_class_costs_nothing() -> None:
    scores = SCORES.copy()
    scores[:, 3] = -np.inf
    labels = np.where(CLASSES == 3, 4, CLASSES)
    expected = functional.cross_entropy(torch.from_numpy(scores), torch.from_numpy(labels))
    np.testing.assert_allclose(cross_entropy(scores, labels).numpy(), expected.numpy(), rtol=2e-6)


def test_accuracy_counts_what_counts() -> None:
    labels = SCORES.argmax(1)
    labels[0] = (labels[0] + 1) % 7
    assert accuracy(SCORES, labels).numpy() == np.float32(0.8)
    labels[0] = -100
    assert accuracy(SCORES, labels).numpy() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: cross_entropy(SCORES, CLASSES[:3]),
        lambda: cross_entropy(SCORES, CLASSES, axis=4),
        lambda: cross_entropy(SCORES, CLASSES, label_smoothing=2.0),
        lambda: cross_entropy(SCORES, CLASSES, reduction="most"),  # pyright: ignore[reportArgumentType]
        lambda: cross_entropy(CLASSES, CLASSES),
        lambda: nll(SCORES, PARTS),
        lambda: mse(SCORES, TARGETS[:1]),
        lambda: huber(SCORES, TARGETS, delta=0),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(UsageError):
        wrong()


def test_derivatives_where_both_sides_meet() -> None:
    """At a kink of their formulas, which the functions do not have."""

    @gcomp.function
    def slopes(x: Any, y: Any) -> Any:
        return gradients(ops.softplus(x).sum(), [x])[0], gradients(ops.logaddexp(x, y).sum(), [x, y])

    zero = np.zeros(2, np.float32)
    soft, both = slopes(zero, zero + 0)
    assert soft.numpy().tolist() == [0.5, 0.5]
    assert [one.numpy().tolist() for one in both] == [[0.5, 0.5]] * 2
