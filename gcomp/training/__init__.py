"""Training steps from any model; losses, optimizers, schedules and initializers for them (train_step.md)."""

from __future__ import annotations

from gcomp.training import initializers
from gcomp.training.losses import accuracy, bce_with_logits, cross_entropy, huber, l1, mse, nll
from gcomp.training.optimizers import SGD, Adafactor, AdamW, Lion, Optimizer, clip_by_global_norm
from gcomp.training.schedules import Constant, Cosine, Linear, Piecewise, Schedule
from gcomp.training.step import TrainingStep, TrainingWarning, train_step, training_step

__all__ = [
    "SGD",
    "Adafactor",
    "AdamW",
    "Constant",
    "Cosine",
    "Linear",
    "Lion",
    "Optimizer",
    "Piecewise",
    "Schedule",
    "TrainingStep",
    "TrainingWarning",
    "accuracy",
    "bce_with_logits",
    "clip_by_global_norm",
    "cross_entropy",
    "huber",
    "initializers",
    "l1",
    "mse",
    "nll",
    "train_step",
    "training_step",
]
