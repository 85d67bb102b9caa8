"""Losses: what a training makes small. Formulas and defaults are those of `torch.nn.functional`.

They are functions over `gcomp.ops`: on arrays they run at once, in a traced function, a graph or a training step they
become a part of the program. A label that is no class makes a loss NaN: nothing plausible comes out of a wrong label.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gcomp import ops
from gcomp.dims import Size
from gcomp.dtypes import bit_width, is_float
from gcomp.errors import UsageError
from gcomp.tensors.tensor import ArrayLike, Tensor

Reduction = Literal["mean", "sum", "none"]


def cross_entropy(
    logits: ArrayLike, labels: ArrayLike, *, axis: int | None = None, label_smoothing: float = 0.0,
    ignore_index: int = -100, reduction: Reduction = "mean",
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of labels under the softmax of logits along `axis` (1; 0 where that is all there is).

    Integer labels are classes, of the logits' shape without the axis; those equal to `ignore_index` do not count.
    Labels of floats are probabilities, of the logits' shape. As `torch.nn.functional.cross_entropy`.
    """
    if not 0 <= label_smoothing <= 1:
        raise UsageError(f"label_smoothing is {label_smoothing}", why="it is a part: between 0 and 1")
    scores, target = _floats(logits), ops.asarray(labels)
    place = class_axis(scores, axis)
    logs, classes = ops.log_softmax(scores, axis=place), _known_count(scores.shape[place])
    if is_float(target.element):
        _same_shape(scores, target)
        smooth = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        return _reduce(-(smooth * logs).sum(place), reduction, None)
    kept = target != ignore_index
    loss = _reduce(_pick(logs, target, place, kept), reduction, kept)
    if not label_smoothing:
        return loss
    smooth = ops.where(kept, -logs.sum(place), 0.0)
    return loss * (1 - label_smoothing) + _reduce(smooth, reduction, kept) * (label_smoothing / classes)


def nll(
    log_probabilities: ArrayLike, labels: ArrayLike, *, axis: int | None = None, ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of classes, of logarithms of probabilities. As `torch.nn.functional.nll_loss`."""
    logs, target = _floats(log_probabilities), ops.asarray(labels)
    if is_float(target.element):
        raise UsageError("the labels of nll are classes", why=f"their elements are {target.element}, not integers")
    kept = target != ignore_index
    return _reduce(_pick(logs, target, class_axis(logs, axis), kept), reduction, kept)


def mse(outputs: ArrayLike, targets: ArrayLike, *, reduction: Reduction = "mean") -> Tensor:
    """The squares of differences. As `torch.nn.functional.mse_loss`."""
    return _reduce(ops.square(_difference(outputs, targets)), reduction, None)


def l1(outputs: ArrayLike, targets: ArrayLike, *, reduction: Reduction = "mean") -> Tensor:
    """The absolute differences. As `torch.nn.functional.l1_loss`."""
    return _reduce(ops.abs(_difference(outputs, targets)), reduction, None)


def huber(outputs: ArrayLike, targets: ArrayLike, *, delta: float = 1.0, reduction: Reduction = "mean") -> Tensor:
    """Half the squares of differences up to `delta`, and beyond linear. As `torch.nn.functional.huber_loss`."""
    if not delta > 0:
        raise UsageError(f"delta is {delta}", why="it must be greater than 0")
    apart = ops.abs(_difference(outputs, targets))
    return _reduce(ops.where(apart < delta, 0.5 * apart * apart, delta * (apart - 0.5 * delta)), reduction, None)


def bce_with_logits(logits: ArrayLike, targets: ArrayLike, *, reduction: Reduction = "mean") -> Tensor:
    """The binary cross-entropy of the sigmoid of logits. As `torch.nn.functional.binary_cross_entropy_with_logits`."""
    x, y = _floats(logits), ops.asarray(targets)
    _same_shape(x, y)
    return _reduce((1 - y) * x + ops.softplus(-x), reduction, None)


def accuracy(logits: ArrayLike, labels: ArrayLike, *, axis: int | None = None, ignore_index: int = -100) -> Tensor:
    """The part of the labels (classes, or probabilities of them) that are the greatest of the logits."""
    scores, target = _floats(logits), ops.asarray(labels)
    place = class_axis(scores, axis)
    guesses = ops.argmax(scores, axis=place)
    if is_float(target.element):
        return ops.mean(ops.astype(guesses == ops.argmax(target, axis=place), np.float32))
    kept = target != ignore_index
    right = ops.logical_and(kept, guesses == target)
    return ops.astype(ops.count_nonzero(right), np.float32) / ops.astype(ops.count_nonzero(kept), np.float32)


def class_axis(scores: Tensor, axis: int | None) -> int:
    """Where the classes are: as torch has it, in dimension 1, or 0 of a vector. UsageError where it is not."""
    rank = len(scores.shape)
    place = min(1, rank - 1) if axis is None else axis
    if not rank or not -rank <= place < rank:
        raise UsageError(f"there is no dimension {place} of classes", why=f"the scores have rank {rank}")
    return place % rank


def _known_count(classes: Size) -> int:
    """How many classes there are. UsageError for a number that only a call knows."""
    if not isinstance(classes, int):
        raise UsageError(f"there are {classes} classes", why="a loss needs their number", fix="fix the size: dims=")
    return classes


def _pick(logs: Tensor, labels: Tensor, axis: int, kept: Tensor) -> Tensor:
    """Minus the logarithms at the labels: 0 where a label does not count, NaN where it is no class.

    A sum over a mask, for its gradient is a mask again, where that of a gather would be a scatter.
    """
    expected = (*logs.shape[:axis], *logs.shape[axis + 1 :])
    if tuple(labels.shape) != expected:
        raise UsageError(
            f"the labels have the shape {list(map(str, labels.shape))}",
            why=f"classes for scores of shape {list(map(str, logs.shape))} with classes in dimension {axis} have "
            f"the shape {list(map(str, expected))}",
            fix="say where the classes are: axis=",
        )
    classes = _known_count(logs.shape[axis])
    index = ops.arange(classes, dtype=labels.dtype).reshape([-1 if i == axis else 1 for i in range(len(logs.shape))])
    chosen = ops.where(index == ops.expand_dims(labels, axis), logs, 0.0).sum(axis)
    valid = ops.logical_and(labels >= 0, labels < classes)
    return ops.where(kept, ops.where(valid, -chosen, float("nan")), 0.0)


def _reduce(values: Tensor, reduction: Reduction, kept: Tensor | None) -> Tensor:
    """All values' mean, or sum; the mean is over those that count."""
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if reduction != "mean":
        raise UsageError(f"there is no reduction {reduction!r}", fix="it is 'mean', 'sum' or 'none'")
    if kept is None:
        return values.mean()
    return values.sum() / ops.astype(ops.count_nonzero(kept), values.dtype)


def _difference(outputs: ArrayLike, targets: ArrayLike) -> Tensor:
    x, y = _floats(outputs), ops.asarray(targets)
    _same_shape(x, y)
    return x - y


def _same_shape(x: Tensor, y: Tensor) -> None:
    if tuple(x.shape) != tuple(y.shape):
        raise UsageError(
            f"the labels have the shape {list(map(str, y.shape))}, and the outputs {list(map(str, x.shape))}",
            fix="this loss compares them one by one: give both one shape",
        )


def _floats(x: ArrayLike) -> Tensor:
    """Values as floats of at least 32 bits: sums of narrower ones would lose the loss."""
    tensor = ops.asarray(x)
    if not is_float(tensor.element):
        raise UsageError("a loss is made of floats", why=f"the outputs have elements of {tensor.element}")
    return ops.astype(tensor, np.float32) if bit_width(tensor.element) < 32 else tensor
