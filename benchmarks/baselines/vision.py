"""Convolution networks and the vision transformer in JAX, NHWC inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.baselines.layers import attention, batch_norm, conv, dense, heads, layer_norm, max_pool, nhwc
from benchmarks.baselines.weights import Weights

Params = Any
Baseline = tuple[Callable[..., tuple[jax.Array, ...]], Params]


def conv_norm_params(w: Weights, conv_path: str, norm_path: str) -> Params:
    return {"conv": w.conv(conv_path), "norm": w.batch_norm(norm_path)}


def conv_norm(
    p: Params, x: jax.Array, stride: int = 1, padding: int = 0, groups: int = 1, eps: float = 1e-5
) -> jax.Array:
    return batch_norm(p["norm"], conv(p["conv"], x, stride, padding, groups), eps)


# ResNet-50


def resnet50(weights: Weights) -> Baseline:
    def layer(w: Weights, path: str) -> Params:
        return conv_norm_params(w, f"{path}.convolution", f"{path}.normalization")

    def block(w: Weights) -> Params:
        params = {name: layer(w, f"layer.{i}") for i, name in enumerate(("reduce", "spatial", "expand"))}
        return {**params, "shortcut": layer(w, "shortcut")} if "shortcut.convolution.weight" in w else params

    encoder = weights.at("model.resnet.encoder")
    stages = []
    for i in range(encoder.count("stages")):
        stage = encoder.at(f"stages.{i}")
        stages.append([block(stage.at(f"layers.{j}")) for j in range(stage.count("layers"))])
    params = {
        "stem": layer(weights, "model.resnet.embedder.embedder"),
        "stages": stages,
        "head": weights.dense("model.classifier.1"),
    }
    return resnet50_apply, params


def bottleneck(p: Params, x: jax.Array, stride: int) -> jax.Array:
    y = jax.nn.relu(conv_norm(p["reduce"], x))
    y = jax.nn.relu(conv_norm(p["spatial"], y, stride, padding=1))
    y = conv_norm(p["expand"], y)
    shortcut = conv_norm(p["shortcut"], x, stride) if "shortcut" in p else x
    return jax.nn.relu(y + shortcut)


def resnet50_apply(p: Params, pixel_values: jax.Array) -> tuple[jax.Array]:
    x = jax.nn.relu(conv_norm(p["stem"], nhwc(pixel_values), stride=2, padding=3))
    x = max_pool(x, 3, 2, padding=1)
    for i, stage in enumerate(p["stages"]):
        for j, block in enumerate(stage):
            x = bottleneck(block, x, stride=2 if i > 0 and j == 0 else 1)
    return (dense(p["head"], x.mean((1, 2))),)


# MobileNetV2

MOBILENET_EPS = 1e-3
MOBILENET_STRIDES = (2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)


def mobilenetv2(weights: Weights) -> Baseline:
    def layer(w: Weights, path: str) -> Params:
        return conv_norm_params(w, f"{path}.convolution", f"{path}.normalization")

    net = weights.at("model.mobilenet_v2")
    stem = net.at("conv_stem")
    params = {
        "first": layer(stem, "first_conv"),
        "depthwise": layer(stem, "conv_3x3"),
        "project": layer(stem, "reduce_1x1"),
        "blocks": [
            {
                "expand": layer(net, f"layer.{i}.expand_1x1"),
                "depthwise": layer(net, f"layer.{i}.conv_3x3"),
                "project": layer(net, f"layer.{i}.reduce_1x1"),
            }
            for i in range(len(MOBILENET_STRIDES))
        ],
        "last": layer(net, "conv_1x1"),
        "head": weights.dense("model.classifier"),
    }
    return mobilenetv2_apply, params


def separable(p: Params, x: jax.Array, stride: int) -> jax.Array:
    x = conv_norm(p["depthwise"], x, stride, padding=1, groups=x.shape[-1], eps=MOBILENET_EPS)
    return conv_norm(p["project"], jax.nn.relu6(x), eps=MOBILENET_EPS)


def mobilenetv2_apply(p: Params, pixel_values: jax.Array) -> tuple[jax.Array]:
    x = jax.nn.relu6(conv_norm(p["first"], nhwc(pixel_values), stride=2, padding=1, eps=MOBILENET_EPS))
    x = separable(p, x, stride=1)
    for block, stride in zip(p["blocks"], MOBILENET_STRIDES, strict=True):
        y = jax.nn.relu6(conv_norm(block["expand"], x, eps=MOBILENET_EPS))
        y = separable(block, y, stride)
        x = x + y if x.shape == y.shape else y
    x = jax.nn.relu6(conv_norm(p["last"], x, eps=MOBILENET_EPS))
    return (dense(p["head"], x.mean((1, 2))),)


# U-Net


def unet(weights: Weights) -> Baseline:
    def double(w: Weights) -> Params:
        return [conv_norm_params(w, "0", "1"), conv_norm_params(w, "3", "4")]

    depth = weights.count("down")
    params = {
        "stem": double(weights.at("stem")),
        "down": [double(weights.at(f"down.{i}")) for i in range(depth)],
        "up": [weights.conv_transpose(f"up.{i}") for i in range(depth)],
        "merge": [double(weights.at(f"merge.{i}")) for i in range(depth)],
        "head": weights.conv("head"),
    }
    return unet_apply, params


def double_conv(p: Params, x: jax.Array) -> jax.Array:
    for layer in p:
        x = jax.nn.relu(conv_norm(layer, x, padding=1))
    return x


def upsample(p: Params, x: jax.Array) -> jax.Array:
    y = lax.conv_transpose(x, p["kernel"], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["bias"]


def unet_apply(p: Params, image: jax.Array) -> tuple[jax.Array]:
    x = double_conv(p["stem"], nhwc(image))
    skips = []
    for block in p["down"]:
        skips.append(x)
        x = double_conv(block, max_pool(x, 2, 2))
    for up, merge in zip(p["up"], p["merge"], strict=True):
        x = double_conv(merge, jnp.concatenate([skips.pop(), upsample(up, x)], axis=-1))
    return (conv(p["head"], x).transpose(0, 3, 1, 2),)


# ViT-B/16

VIT_EPS = 1e-12


def vit(weights: Weights) -> Baseline:
    net = weights.at("model.vit")

    def block(w: Weights) -> Params:
        names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "o_proj"}
        return {
            "before": w.layer_norm("layernorm_before"),
            "attention": {ours: w.dense(f"attention.{theirs}") for ours, theirs in names.items()},
            "after": w.layer_norm("layernorm_after"),
            "up": w.dense("mlp.fc1"),
            "down": w.dense("mlp.fc2"),
        }

    params = {
        "patch": net.conv("embeddings.patch_embeddings.projection"),
        "class": net["embeddings.cls_token"],
        "position": net["embeddings.position_embeddings"],
        "blocks": [block(net.at(f"layers.{i}")) for i in range(net.count("layers"))],
        "norm": net.layer_norm("layernorm"),
        "head": weights.dense("model.classifier"),
    }
    return vit_apply, params


def vit_apply(p: Params, pixel_values: jax.Array) -> tuple[jax.Array]:
    patches = conv(p["patch"], nhwc(pixel_values), stride=16)
    batch, _, _, width = patches.shape
    first = jnp.broadcast_to(p["class"], (batch, 1, width))
    x = jnp.concatenate([first, patches.reshape(batch, -1, width)], axis=1) + p["position"]
    for block in p["blocks"]:
        a, y = block["attention"], layer_norm(block["before"], x, VIT_EPS)
        y = attention(*(heads(dense(a[name], y), 64) for name in ("query", "key", "value")))
        x = x + dense(a["out"], y)
        y = jax.nn.gelu(dense(block["up"], layer_norm(block["after"], x, VIT_EPS)), approximate=False)
        x = x + dense(block["down"], y)
    return (dense(p["head"], layer_norm(p["norm"], x, VIT_EPS)[:, 0]),)
