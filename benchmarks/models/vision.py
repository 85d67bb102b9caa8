"""Convolution networks and the vision transformer, as PyTorch modules in inference mode."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from transformers import (
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from benchmarks.models.weights import calibrate_batch_norms, perturb_vectors


class ImageClassifier(nn.Module):
    """A `transformers` image classifier that returns its logits and nothing else."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.model(pixel_values).logits,)


def resnet50() -> nn.Module:
    """ResNet-50 v1.5 (stride on the 3x3 convolutions), 8.2 GFLOP at 224x224."""
    model = ImageClassifier(ResNetForImageClassification(ResNetConfig(num_labels=1000)))
    return calibrate_batch_norms(model, torch.randn(2, 3, 224, 224))


def mobilenetv2() -> nn.Module:
    """MobileNetV2 1.0 with symmetric padding, 0.6 GFLOP at 224x224."""
    config = MobileNetV2Config(num_labels=1000, tf_padding=False)
    model = ImageClassifier(MobileNetV2ForImageClassification(config))
    return calibrate_batch_norms(model, torch.randn(2, 3, 224, 224))


class DoubleConv(nn.Sequential):
    """Two rounds of 3x3 convolution, BatchNorm and ReLU."""

    def __init__(self, inputs: int, outputs: int):
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(*layers)


class UNet(nn.Module):
    """U-Net (Ronneberger 2015) with BatchNorm and same-size convolutions: encoder, bottleneck, decoder with skips."""

    def __init__(self, inputs: int = 3, classes: int = 2, widths: tuple[int, ...] = (16, 32, 64, 128, 256)):
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.stem = DoubleConv(inputs, widths[0])
        self.down = nn.ModuleList(DoubleConv(narrow, wide) for narrow, wide in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for narrow, wide in reversed(pairs))
        self.merge = nn.ModuleList(DoubleConv(2 * narrow, narrow) for narrow, _ in reversed(pairs))
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor]:
        x = self.stem(image)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(nn.functional.max_pool2d(x, 2))
        for grow, block in zip(self.up, self.merge, strict=True):
            x = block(torch.cat([skips.pop(), grow(x)], dim=1))
        return (self.head(x),)


def unet() -> nn.Module:
    """A five-level U-Net with 1.9 M parameters, 5.3 GFLOP at 240x240."""
    return calibrate_batch_norms(UNet(), torch.randn(2, 3, 240, 240))


def vit() -> nn.Module:
    """ViT-B/16 with a 1000-class head, 35 GFLOP at 224x224."""
    return perturb_vectors(ImageClassifier(ViTForImageClassification(ViTConfig(num_labels=1000)))).eval()
