"""Architectures that nothing was tuned for, small enough to run in a second: random weights from a fixed seed.

Each function returns a module in inference mode and its example arguments. Those of transformers are made from its
configurations; the others are written out, since their package is no dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import nn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]
IMAGE = (1, 3, 224, 224)


class Picked(nn.Module):
    """A model of transformers whose forward returns one of its outputs."""

    def __init__(self, model: nn.Module, output: str, **options: Any) -> None:
        super().__init__()
        self.model, self.output, self.options = model, output, options

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.model(*args, **self.options)[self.output]


def tokens(count: int, vocabulary: int = 1000) -> tuple[torch.Tensor]:
    return (torch.randint(0, vocabulary, (1, count)),)


def images(*shape: int) -> tuple[torch.Tensor]:
    return (torch.randn(shape or IMAGE),)


def normed(*layers: tuple[int, int, int, int, int]) -> list[nn.Module]:
    """Convolutions (input, output, kernel, stride, groups), each with batch normalization."""
    made: list[nn.Module] = []
    for i, o, kernel, stride, groups in layers:
        made += [nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return made


def stem(channels: int, kernel: int) -> list[nn.Module]:
    return [*normed((3, channels, kernel, 2, 1)), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]


def head(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]


class Fire(nn.Module):
    """A layer of SqueezeNet."""

    def __init__(self, inputs: int, squeezed: int, outputs: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.point = nn.Conv2d(squeezed, outputs, 1)
        self.window = nn.Conv2d(squeezed, outputs, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.point(x)), F.relu(self.window(x))], 1)


def squeezenet() -> Made:
    def pool() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    first = [nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool()]
    middle = [Fire(128, 32, 128), Fire(256, 32, 128), pool(), Fire(256, 48, 192), Fire(384, 48, 192)]
    last = [Fire(384, 64, 256), Fire(512, 64, 256), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *middle, *last, nn.Flatten()), images()


class Bottleneck(nn.Module):
    """A layer of ResNeXt."""

    def __init__(self, inputs: int, width: int, outputs: int, stride: int) -> None:
        super().__init__()
        first, window, last = (
            normed(layer)
            for layer in ((inputs, width, 1, 1, 1), (width, width, 3, stride, 32), (width, outputs, 1, 1, 1))
        )
        self.path = nn.Sequential(*first, nn.ReLU(), *window, nn.ReLU(), *last)
        changes = inputs != outputs or stride > 1
        self.beside = nn.Sequential(*normed((inputs, outputs, 1, stride, 1))) if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.path(x) + self.beside(x))


def resnext50() -> Made:
    layers, inputs = stem(64, 7), 64
    for stage, (count, width) in enumerate(((3, 128), (4, 256), (6, 512), (3, 1024))):
        for n in range(count):
            layers.append(Bottleneck(inputs, width, 2 * width, 2 if stage and n == 0 else 1))
            inputs = 2 * width
    return nn.Sequential(*layers, *head(inputs)), images()


class Dense(nn.Module):
    """A layer of DenseNet."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(), *normed((inputs, 128, 1, 1, 1)), nn.ReLU(),
                                    nn.Conv2d(128, 32, 3, padding=1, bias=False))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.layers(x)], 1)


def densenet121() -> Made:
    layers, channels = stem(64, 7), 64
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            layers.append(Dense(channels))
            channels += 32
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if stage < 3:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, *head(channels)), images()


class Shuffled(nn.Module):
    """A layer of ShuffleNetV2."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half, own = outputs // 2, inputs if stride == 2 else inputs // 2
        self.stride = stride
        window = normed((inputs, inputs, 3, 2, inputs))
        self.left = nn.Sequential(*window, *normed((inputs, half, 1, 1, 1)), nn.ReLU()) if stride == 2 else None
        first, middle = normed((own, half, 1, 1, 1)), normed((half, half, 3, stride, half))
        self.right = nn.Sequential(*first, nn.ReLU(), *middle, *normed((half, half, 1, 1, 1)), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, changed = (x, x) if self.left is not None else x.chunk(2, 1)
        y = torch.cat([kept if self.left is None else self.left(kept), self.right(changed)], 1)
        n, channels, height, width = y.shape
        return y.view(n, 2, channels // 2, height, width).transpose(1, 2).reshape(n, channels, height, width)


def shufflenetv2() -> Made:
    layers, inputs = stem(24, 3), 24
    for count, outputs in ((4, 116), (8, 232), (4, 464)):
        for n in range(count):
            layers.append(Shuffled(inputs, outputs, 2 if n == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, *normed((inputs, 1024, 1, 1, 1)), nn.ReLU(), *head(1024)), images()


class Tagger(nn.Module):
    """Two bidirectional GRU layers over embedded tokens, and a class for each."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10_000, 128)
        self.layers = nn.GRU(128, 256, 2, batch_first=True, bidirectional=True)
        self.classes = nn.Linear(512, 20)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.classes(self.layers(self.embedding(words))[0])


def convnext_tiny() -> Made:
    config = transformers.ConvNextConfig(num_labels=1000)
    return Picked(transformers.ConvNextForImageClassification(config), "logits"), images()


def efficientnet_b0() -> Made:
    config = transformers.EfficientNetConfig(
        image_size=224, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, num_labels=1000
    )
    return Picked(transformers.EfficientNetForImageClassification(config), "logits"), images()


def regnet_y() -> Made:
    config = transformers.RegNetConfig(embedding_size=32, hidden_sizes=[48, 120, 336, 888], depths=[2, 6, 17, 2],
                                       groups_width=24, num_labels=1000)  # fmt: skip
    return Picked(transformers.RegNetForImageClassification(config), "logits"), images()


def swin_tiny() -> Made:
    return Picked(transformers.SwinForImageClassification(transformers.SwinConfig(num_labels=1000)), "logits"), images()


def segformer_b0() -> Made:
    return Picked(transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig()), "logits"), images()


def mobilevit() -> Made:
    model = transformers.MobileViTForImageClassification(transformers.MobileViTConfig(num_labels=1000))
    return Picked(model, "logits"), images(1, 3, 256, 256)


def whisper_encoder() -> Made:
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_attention_heads=6
    )
    return Picked(transformers.WhisperModel(config).encoder, "last_hidden_state"), images(1, 80, 3000)


def t5_step() -> Made:
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(d_ff=2048, is_decoder=True, use_cache=False))

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, words: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
            found = self.model.decoder(input_ids=words, encoder_hidden_states=encoded, use_cache=False)
            return self.model.lm_head(found.last_hidden_state)

    return Step(), (*tokens(1), torch.randn(1, 64, 512))


def distilbert() -> Made:
    return Picked(transformers.DistilBertModel(transformers.DistilBertConfig()), "last_hidden_state"), tokens(128)


def gru_tagger() -> Made:
    return Tagger(), tokens(64, 10_000)


OTHERS: Mapping[str, Callable[[], Made]] = {
    made.__name__: made
    for made in (
        convnext_tiny, efficientnet_b0, squeezenet, whisper_encoder, t5_step, distilbert, gru_tagger, resnext50,
        densenet121, shufflenetv2, regnet_y, swin_tiny, segformer_b0, mobilevit,
    )
}  # fmt: skip
