"""Small workloads that each stress one thing: recurrence, dense layers, element-wise fusion, row reductions."""

from __future__ import annotations

import torch
from torch import nn


class Recurrent(nn.Module):
    """Two LSTM layers over a sequence; returns the outputs of every step and the final states."""

    def __init__(self, inputs: int, hidden: int, layers: int):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y, (h, c) = self.lstm(x)
        return y, h, c


class Chain(nn.Module):
    """Ten element-wise operations on one array: one pass over memory if fused, ten if not."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        h = x * 1.5 + 0.25
        h = h * torch.sigmoid(h)
        h = torch.relu(h) - 0.5 * x
        return (torch.sqrt(h * h + 1.0),)


class SoftmaxLayerNorm(nn.Module):
    """Softmax and then layer normalization, both over the rows of a matrix."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias, std=0.1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.norm(torch.softmax(x, dim=-1)),)


class Dense(nn.Module):
    """Three dense layers with ReLU between them."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.layers(x),)


def lstm() -> nn.Module:
    """Two LSTM layers of 256."""
    return Recurrent(256, 256, 2).eval()


def mlp() -> nn.Module:
    """Three dense layers of 1024."""
    return Dense(1024).eval()


def elementwise() -> nn.Module:
    """The element-wise chain."""
    return Chain().eval()


def softmax_layernorm() -> nn.Module:
    """Softmax and layer normalization over rows of 1024."""
    return SoftmaxLayerNorm(1024).eval()
