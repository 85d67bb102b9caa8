"""Make random weights look trained: no identity BatchNorm, no zero bias, no scale of one.

A compiler may fold `x + 0` and `x * 1` and merge equal constants; a benchmark must not hand it that.
"""

from __future__ import annotations

import torch
from torch import nn


def calibrate_batch_norms(module: nn.Module, *args: torch.Tensor) -> nn.Module:
    """Give every BatchNorm random scales and offsets, and the statistics of one forward pass over `args`.

    Statistics that do not match the activations would let them grow with depth. Returns the module in
    inference mode.
    """
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1.0  # running statistics = those of the one batch below
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, std=0.1)
    module.train()
    with torch.no_grad():
        module(*args)
    return module.eval()


def perturb_vectors(module: nn.Module) -> nn.Module:
    """Add noise to every bias and every normalization scale of `module`; returns it."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter += 0.05 * torch.randn_like(parameter)
    return module
