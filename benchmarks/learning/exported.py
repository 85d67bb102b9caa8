"""Classifiers of digits: in torch, exported to ONNX, and the same in JAX with torch's parameters.

Each JAX function takes the parameters by torch's names, and a pair of running statistics for each batch norm, which it
gives back renewed. They are written as one writes JAX: `lax.scan`, `lax.conv_general_dilated`, `jnp.einsum`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from torch import nn

Array = np.ndarray[Any, Any]
Params = Mapping[str, Any]
HEADS = 4


class CNN(nn.Sequential):
    """The network of `examples/digits`, without its softmax."""

    def __init__(self) -> None:
        def norm(layer: nn.Conv2d) -> list[nn.Module]:
            return [layer, nn.BatchNorm2d(layer.out_channels), nn.ReLU()]

        super().__init__(
            *norm(nn.Conv2d(1, 16, 3, padding=1, bias=False)),
            *norm(nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)),
            *norm(nn.Conv2d(16, 32, 1, bias=False)),
            nn.MaxPool2d(2),
            *norm(nn.Conv2d(32, 32, 3, padding=1, bias=False)),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


class LSTM(nn.Module):
    """Rows of pixels, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(images[:, 0])[0][:, -1])


class Transformer(nn.Module):
    """Two layers over the rows of pixels."""

    def __init__(self) -> None:
        super().__init__()
        layer = {"dim_feedforward": 64, "dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.rows, self.places = nn.Linear(8, 32), nn.Parameter(torch.randn(8, 32) * 0.1)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, HEADS, **layer) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        h = self.rows(images[:, 0]) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h).mean(1))


# ---- in JAX ---------------------------------------------------------------------------------------------------------


def cnn(p: Params, state: Params, x: Any) -> tuple[Any, Params]:
    following: dict[str, Any] = {}

    def block(x: Any, conv: str, norm: str, padding: int, groups: int = 1) -> Any:
        x = lax.conv_general_dilated(x, p[f"{conv}.weight"], (1, 1), [(padding, padding)] * 2,
                                     feature_group_count=groups)  # fmt: skip
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        for name, now in (("running_mean", mean), ("running_var", var)):
            following[f"{norm}.{name}"] = 0.9 * state[f"{norm}.{name}"] + 0.1 * now
        scale = lax.rsqrt(var + 1e-5) * p[f"{norm}.weight"]
        return jax.nn.relu((x - mean[:, None, None]) * scale[:, None, None] + p[f"{norm}.bias"][:, None, None])

    x = block(block(block(x, "0", "1", 1), "3", "4", 1, 16), "6", "7", 0)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = block(x, "10", "11", 1).reshape(x.shape[0], -1)
    return _dense(p, "16", jax.nn.relu(_dense(p, "14", x))), following


def lstm(p: Params, state: Params, x: Any) -> tuple[Any, Params]:
    def step(carry: Any, row: Any) -> Any:
        h, c = carry
        gates = row + h @ p["lstm.weight_hh_l0"].T
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    bias = p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]
    rows = jnp.einsum("btf,gf->tbg", x[:, 0], p["lstm.weight_ih_l0"]) + bias
    zeros = jnp.zeros((x.shape[0], 32), x.dtype)
    (h, _), _ = lax.scan(step, (zeros, zeros), rows)
    return _dense(p, "head", h), state


def transformer(p: Params, state: Params, x: Any) -> tuple[Any, Params]:
    h = _dense(p, "rows", x[:, 0]) + p["places"]
    for i in range(2):
        own = {name.removeprefix(f"layers.{i}."): value for name, value in p.items()}
        h = h + _attention(own, _norm(own, "norm1", h))
        h = h + _dense(own, "linear2", jax.nn.gelu(_dense(own, "linear1", _norm(own, "norm2", h)), approximate=False))
    return _dense(p, "head", _norm(p, "norm", h).mean(1)), state


def _attention(p: Params, x: Any) -> Any:
    batch, length, width = x.shape
    mixed = x @ p["self_attn.in_proj_weight"].T + p["self_attn.in_proj_bias"]
    q, k, v = (part.reshape(batch, length, HEADS, -1) for part in jnp.split(mixed, 3, axis=-1))
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // HEADS))
    return _dense(p, "self_attn.out_proj", jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape))


def _dense(p: Params, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def _norm(p: Params, name: str, x: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


@dataclass(frozen=True)
class Network:
    """A classifier in torch and in JAX, and how it is trained."""

    module: Callable[[], nn.Module]
    apply: Callable[[Params, Params, Any], tuple[Any, Params]]
    optimizer: str
    train_mode: bool = False


NETWORKS: Mapping[str, Network] = {
    "CNN": Network(CNN, cnn, "AdamW", train_mode=True),
    "LSTM": Network(LSTM, lstm, "AdamW"),
    "transformer": Network(Transformer, transformer, "SGD"),
}


def made(name: str) -> nn.Module:
    """A network as it is before its training, in inference mode."""
    torch.manual_seed(0)
    return NETWORKS[name].module().eval()


def export(module: nn.Module, path: Path) -> None:
    """Write ONNX as it leaves the exporter: its initializers are the module's parameters, by their names."""
    torch.backends.mha.set_fastpath_enabled(False)  # it is one op, which ONNX does not have
    program = torch.onnx.export(
        module, (torch.zeros(2, 1, 8, 8),), dynamo=True, optimize=False, input_names=["images"],
        output_names=["logits"], dynamic_shapes=({0: "batch"},), verbose=False,
    )  # fmt: skip
    assert program is not None
    program.save(path, external_data=False)
