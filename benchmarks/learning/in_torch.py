"""The networks in torch: modules, and torch's own optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.learning.data import SHADES, batches, tokens

OPTIMIZERS: dict[str, Callable[[Iterable[Any]], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, 0.02, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, 2e-3, weight_decay=1e-2),
}


WAYS = {
    "eager": (None, None),
    "gcomp": ("gcomp", None),
    "gcomp, optimizer too": ("gcomp", "gcomp"),
    "aot_eager": ("aot_eager", "aot_eager"),
}
"""What compiles forward and backward, and what compiles the optimizer's step. `aot_eager` runs what torch.compile
captures, op by op: AdamW as captured computes its corrections of bias in f32, which Python's numbers do in f64."""


def curve(network: str, optimizer: str, way: str, steps: int, order: int = 0) -> list[float]:
    """The losses of a training."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    make, prepare = NETWORKS[network]
    module = make()
    rule = OPTIMIZERS[optimizer](module.parameters())
    network_by, optimizer_by = WAYS[way]
    loss, update = module.loss, rule.step
    if network_by:
        loss = torch.compile(loss, backend=network_by, fullgraph=True, dynamic=False)
    if optimizer_by:
        update = torch.compile(update, backend=optimizer_by, dynamic=False)
    losses: list[float] = []
    for images, labels in batches(steps, order):
        rule.zero_grad()
        value = loss(torch.from_numpy(prepare(images)), torch.from_numpy(labels).long())
        value.backward()
        update()
        losses.append(float(value.detach()))
    return losses


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.layers(x), y)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(16), nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.norm2(self.second(F.relu(self.norm1(self.first(x))))))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        self.layers = nn.Sequential(*stem, Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.layers(x), y)


class Transformer(nn.Module):
    """Two layers, that predict the next pixel."""

    def __init__(self) -> None:
        super().__init__()
        layer = {"dim_feedforward": 128, "dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.tokens, self.places = nn.Embedding(SHADES, 32), nn.Embedding(64, 32)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, **layer) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, SHADES)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        del y
        length = x.shape[1] - 1
        h = self.tokens(x[:, :-1]) + self.places(torch.arange(length))
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        for layer in self.layers:
            h = layer(h, src_mask=mask)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), x[:, 1:].flatten())


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "MLP": (MLP, lambda images: images),
    "ResNet": (ResNet, lambda images: images),
    "transformer": (Transformer, lambda images: tokens(images).astype(np.int64)),
}
"""Name -> the module, and what of the images it takes."""
