# pyright: basic
"""Models of the corpus as PyTorch modules, in inference mode, with random weights from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Model = tuple[nn.Module, tuple[Tensor, ...]]
WIDTH, HEADS, WORDS = 32, 4, 100


def tokens(count: int, rows: int = 2) -> Tensor:
    """Random words."""
    return torch.randint(0, WORDS, (rows, count))


class Residual(nn.Module):
    """A layer beside what it is given."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Permuted(nn.Module):
    """A layer on permuted dimensions."""

    def __init__(self, layer: nn.Module, *order: int) -> None:
        super().__init__()
        self.layer, self.order = layer, order
        self.back = [order.index(i) for i in range(len(order))]

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.permute(*self.order)).permute(*self.back)


class Attention(nn.Module):
    """Self-attention by torch's own function."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, w))


def mlp(width: int = WIDTH, hidden: int = 64, act: type[nn.Module] = nn.GELU) -> nn.Module:
    """Two dense layers."""
    return nn.Sequential(nn.Linear(width, hidden), act(), nn.Linear(hidden, width))


def transformer(width: int = WIDTH) -> Sequence[nn.Module]:
    """A layer of a transformer, with norms first."""
    return Residual(nn.LayerNorm(width), Attention(width)), Residual(nn.LayerNorm(width), mlp(width))


def encoder() -> Model:
    """A transformer encoder of torch's own layers"""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), model), (tokens(12),)


class Llama(nn.Module):
    """A layer of Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.out, self.gate, self.up, self.down = (
            nn.Linear(i, o, bias=False) for i, o in ((WIDTH, WIDTH), (WIDTH, 64), (WIDTH, 64), (64, WIDTH))
        )
        self.before, self.after = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def rotated(self, x: Tensor) -> Tensor:
        depth, places = x.shape[-1], torch.arange(x.shape[-2], dtype=torch.float32)
        angles = places[:, None] * 10000.0 ** (-torch.arange(0, depth, 2) / depth)
        angles = torch.cat([angles, angles], -1)
        a, b = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        b, s, w = x.shape
        h = self.before(x)
        q = self.q(h).view(b, s, HEADS, -1).transpose(1, 2)
        k, v = self.kv(h).view(b, s, 2, 2, -1).permute(2, 0, 3, 1, 4)
        k, v = (t.repeat_interleave(2, 1) for t in (self.rotated(k), v))
        mixed = F.scaled_dot_product_attention(self.rotated(q), k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, s, w))
        h = self.after(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def llama() -> Model:
    """Llama: RMS norms, rotary and grouped-query attention, SwiGLU"""
    layers = [nn.Embedding(WORDS, WIDTH), Llama(), Llama(), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)]
    return nn.Sequential(*layers), (tokens(12),)


class Vit(nn.Module):
    """Patches, a class token and places."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 8, 8)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, WIDTH)), nn.Parameter(torch.randn(1, 17, WIDTH))
        self.layers = nn.Sequential(*transformer(), *transformer(), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.patches(x).flatten(2).transpose(1, 2)
        rows = torch.cat([self.token.expand(len(x), -1, -1), rows], 1) + self.places
        return self.head(self.layers(rows)[:, 0])


def vit() -> Model:
    """A vision transformer with a class token"""
    return Vit(), (torch.randn(2, 3, 32, 32),)


def convnext() -> Model:
    """ConvNeXt: depthwise convolutions of 7 x 7, layer norms over channels"""

    def block(width: int) -> nn.Module:
        inner = nn.Sequential(nn.LayerNorm(width), mlp(width, 4 * width))
        return Residual(nn.Conv2d(width, width, 7, padding=3, groups=width), Permuted(inner, 0, 2, 3, 1))

    stem = [nn.Conv2d(3, 16, 4, 4), Permuted(nn.LayerNorm(16), 0, 2, 3, 1)]
    down = [Permuted(nn.LayerNorm(16), 0, 2, 3, 1), nn.Conv2d(16, 32, 2, 2)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(32), nn.Linear(32, 10)]
    return nn.Sequential(*stem, block(16), block(16), *down, block(32), *head), (torch.randn(1, 3, 32, 32),)


class Squeeze(nn.Module):
    """Channels weighted by what they are on average."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.SiLU(), nn.Conv2d(4, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.layers(x)


def normed(inputs: int, outputs: int, size: int = 1, stride: int = 1, groups: int = 1) -> nn.Module:
    """A convolution and its batch normalization."""
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


def efficientnet() -> Model:
    """EfficientNet: SiLU, squeeze and excitation"""

    def block(inputs: int, outputs: int, stride: int) -> nn.Module:
        h = 4 * inputs
        layers = [normed(inputs, h), nn.SiLU(), normed(h, h, 3, stride, h), nn.SiLU(), Squeeze(h), normed(h, outputs)]
        return Residual(*layers) if inputs == outputs and stride == 1 else nn.Sequential(*layers)

    layers = [
        normed(3, 8, 3, 2),
        nn.SiLU(),
        block(8, 8, 1),
        block(8, 16, 2),
        block(16, 16, 1),
        normed(16, 64),
        nn.SiLU(),
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (
        torch.randn(1, 3, 32, 32),
    )


def mixer() -> Model:
    """MLP-Mixer: dense layers over patches, then over channels"""
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTH, 8, 8), nn.Flatten(2), Permuted(nn.Identity(), 0, 1, 2)]
    for _ in range(2):
        layers += [Residual(mlp(16, 32)), Residual(Permuted(nn.Sequential(nn.LayerNorm(WIDTH), mlp()), 0, 2, 1))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(WIDTH, 10)), (
        torch.randn(2, 3, 32, 32),
    )


class Windows(nn.Module):
    """Attention within shifted windows of 4 x 4."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift, self.attention = shift, Attention()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = y.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        y = self.attention(y).view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + torch.roll(y, (self.shift, self.shift), (1, 2))


def swin() -> Model:
    """Swin: attention in windows, shifted by rolling"""
    inner = [Windows(0), Residual(nn.LayerNorm(WIDTH), mlp()), Windows(2), Residual(nn.LayerNorm(WIDTH), mlp())]
    layers = [nn.Conv2d(3, WIDTH, 4, 4), Permuted(nn.Sequential(*inner, nn.LayerNorm(WIDTH)), 0, 2, 3, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10)), (
        torch.randn(1, 3, 32, 32),
    )


class Language(nn.Module):
    """A recurrent language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, 16), nn.LSTM(16, 16, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layers(self.words(x))
        return F.log_softmax(y @ self.words.weight.T, -1), h, c


def lstm_lm() -> Model:
    """A language model of two LSTM layers with tied words"""
    return Language(), (tokens(8),)


class Causal(nn.Module):
    """A dilated convolution that sees no future, gated."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.conv, self.out = nn.Conv1d(16, 32, 2, dilation=dilation), nn.Conv1d(16, 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.conv(F.pad(x, (self.dilation, 0))).chunk(2, 1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


def wavenet() -> Model:
    """WaveNet: gated causal convolutions of growing dilation"""
    layers = [nn.Conv1d(1, 16, 1), *(Causal(2**i) for i in range(4)), nn.ReLU(), nn.Conv1d(16, 32, 1)]
    return nn.Sequential(*layers, nn.LogSoftmax(1)), (torch.randn(1, 1, 48),)


class Vae(nn.Module):
    """A variational autoencoder, its noise given."""

    def __init__(self) -> None:
        super().__init__()
        down = [nn.Conv2d(1, 8, 3, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ELU(), nn.Flatten()]
        self.encode = nn.Sequential(*down, nn.Linear(256, 16))
        self.dense = nn.Linear(8, 256)
        up = [nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid()]
        self.decode = nn.Sequential(*up)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log = self.encode(x).chunk(2, -1)
        again = self.decode(self.dense(mean + noise * torch.exp(0.5 * log)).view(-1, 16, 4, 4))
        divergence = -0.5 * (1 + log - mean**2 - log.exp()).sum(-1)
        return again, F.binary_cross_entropy(again, x, reduction="none").sum((1, 2, 3)) + divergence


def vae() -> Model:
    """A variational autoencoder with its loss"""
    return Vae(), (torch.rand(2, 1, 16, 16), torch.randn(2, 8))


def gan() -> Model:
    """DCGAN's generator and discriminator, one after the other"""
    up = [nn.ConvTranspose2d(16, 16, 4, 1, 0), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 8, 4, 2, 1),
          nn.InstanceNorm2d(8, affine=True), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()]  # fmt: skip
    down = [nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 4, 2, 1), nn.GroupNorm(4, 16)]
    return nn.Sequential(*up, *down, nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4), nn.Flatten()), (torch.randn(2, 16, 1, 1),)


class GraphAttention(nn.Module):
    """Messages along edges, weighted by a softmax over the edges that reach a node."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense, self.score = nn.Linear(inputs, outputs, bias=False), nn.Linear(2 * outputs, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h, (source, target) = self.dense(x), (edges[0], edges[1])
        score = F.leaky_relu(self.score(torch.cat([h[source], h[target]], -1)), 0.2).exp()
        total = torch.zeros(len(x), 1).index_add(0, target, score)
        return torch.zeros_like(h).index_add(0, target, h[source] * (score / total[target]))


class GraphNetwork(nn.Module):
    """Two layers of it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = GraphAttention(8, 16), GraphAttention(16, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return F.softmax(self.two(F.elu(self.one(x, edges)), edges), -1)


def graph_attention() -> Model:
    """A graph attention network: gathers, scatters, a softmax over edges"""
    return GraphNetwork(), (torch.randn(12, 8), torch.randint(0, 12, (2, 40)))


class Recommender(nn.Module):
    """DLRM: embeddings of categories and their products."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(50, 8) for _ in range(4))
        self.below = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(18, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        rows, columns = torch.triu_indices(5, 5, 1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        x = self.below(torch.log1p(F.relu(dense)))
        found = [x, *(table(categories[:, i]) for i, table in enumerate(self.tables))]
        all_of_them = torch.stack(found, 1)
        products = (all_of_them @ all_of_them.transpose(1, 2))[:, self.rows, self.columns]  # pyright: ignore[reportArgumentType] - buffers
        return self.above(torch.cat([x, products], 1))


def recommender() -> Model:
    """DLRM: embeddings of categories, products of all pairs, dense layers"""
    return Recommender(), (torch.randn(16, 6), torch.randint(0, 50, (16, 4)))


def _seeded(make: Callable[[], Model], seed: int) -> Callable[[], Model]:
    def made() -> Model:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module, args = make()
            with torch.no_grad():
                for parameter in module.parameters():
                    if parameter.ndim < 2:  # scales of 1 and biases of 0 would hide what uses them
                        parameter.add_(0.1 * torch.randn_like(parameter))
            return module.eval(), args

    made.__doc__ = make.__doc__
    return made


MODELS: Mapping[str, Callable[[], Model]] = {
    make.__name__: _seeded(make, seed)
    for seed, make in enumerate((
        encoder, llama, vit, convnext, efficientnet, mixer, swin, lstm_lm, wavenet, vae, gan, graph_attention,
        recommender,
    ))
}  # fmt: skip
