"""The corpus: its models by name, and where each comes from."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from gcomp.records import record

Made = tuple[Any, tuple[Any, ...]]
"""A source, and its example arguments, for `gcomp.import_model`."""


@record
class Entry:
    """A model of the corpus: `make` gives its source, which is ONNX, torch or JAX (`kind`)."""

    name: str
    kind: str
    what: str
    make: Callable[[], Made]


PACKAGES: Mapping[str, str] = {"onnx": "onnx", "torch": "torch", "jax": "jax"}
"""Kind of source -> the package that its models are made with."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "onnx": (
        "bert", "gpt2", "t5", "clip", "resnet", "mobilenet", "densenet", "unet", "yolo", "superres", "tagger",
        "keywords", "quantized", "forest",
    ),
    "torch": (
        "encoder", "llama", "vit", "convnext", "efficientnet", "mixer", "swin", "lstm_lm", "wavenet", "vae", "gan",
        "graph_attention", "recommender",
    ),
    "jax": (
        "mlp_step", "cnn_step", "gqa_block", "decode", "experts", "lstm_gradient", "state_space", "flow", "nerf",
        "denoiser", "kalman", "adam_step", "policy_gradient",
    ),
}  # fmt: skip
"""The models of each kind, known without importing what makes them."""


def names() -> list[str]:
    """All models, as `onnx/bert`, in order."""
    return [f"{kind}/{name}" for kind, own in NAMES.items() for name in own]


@cache
def entry(name: str) -> Entry:
    """The model of a name, from the table `MODELS` of its kind's module, which imports its package."""
    kind, _, own = name.partition("/")
    make = import_module(f"{__package__}.{kind}_models").MODELS[own]
    return Entry(name, kind, (make.__doc__ or "").strip().rstrip("."), make)


def missing_packages() -> dict[str, str]:
    """Kind of source -> its package, of those that are not installed."""
    return {kind: package for kind, package in PACKAGES.items() if importlib.util.find_spec(package) is None}


__all__ = ["NAMES", "PACKAGES", "Entry", "Made", "entry", "missing_packages", "names"]
