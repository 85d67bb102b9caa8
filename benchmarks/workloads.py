"""The twelve workloads: what each computes, its inputs, its ONNX file and its hand-written JAX baseline.

Every workload has the same weights everywhere: `models/` builds the PyTorch module from a fixed seed, `export`
writes ONNX files and the weights into a cache, and `baselines/` reads those weights for the JAX function.

    python -m benchmarks.export all        # into ~/.cache/gcomp-bench, or $GCOMP_BENCH_CACHE; on demand otherwise
    python -m benchmarks.check             # JAX baselines against ONNX Runtime
    python -m benchmarks.operators         # operator histogram of every export
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcomp.measuring.engines import aligned

Arrays = dict[str, np.ndarray]
Variant = Literal["dynamo", "optimized", "dynamic", "legacy"]

# dynamo     torch.onnx.export(dynamo=True, optimize=False), constants folded, dead nodes removed: BatchNorm stays
# optimized  torch.onnx.export(dynamo=True), the exporter's default: BatchNorm folded into convolutions
# dynamic    as dynamo, with named dynamic dimensions (`Input.shape`)
# legacy     torch.onnx.export(dynamo=False, training=PRESERVE): the TorchScript exporter; BatchNorm stays
VARIANTS: tuple[Variant, ...] = ("dynamo", "optimized", "dynamic", "legacy")

CACHE_REVISION = "v1"  # raise it when a model or an export setting changes


def cache_directory() -> Path:
    """Where exports are kept: `$GCOMP_BENCH_CACHE`, or `~/.cache/gcomp-bench`."""
    root = os.environ.get("GCOMP_BENCH_CACHE") or Path.home() / ".cache" / "gcomp-bench"
    return Path(root) / CACHE_REVISION


@dataclass(frozen=True)
class Input:
    """One model input. A string in `shape` is a dimension that the `dynamic` export leaves open."""

    name: str
    shape: tuple[int | str, ...]
    kind: Literal["normal", "token", "mask"] = "normal"
    vocabulary: int = 0

    def sample(self, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        """A random value: standard normal float32, or int64 token ids, or an int64 mask of a shorter text."""
        shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.shape)
        if self.kind == "token":
            return rng.integers(0, self.vocabulary, shape, dtype=np.int64)
        if self.kind == "mask":
            return np.broadcast_to(np.arange(shape[-1]) < shape[-1] * 7 // 8, shape).astype(np.int64)
        return aligned(rng.standard_normal(shape, dtype=np.float32))


@dataclass(frozen=True)
class Workload:
    """One benchmark: `benchmarks.models.<family>.<name>` and `benchmarks.baselines.<family>.<name>`."""

    name: str
    family: Literal["vision", "language", "small"]
    description: str
    declared: tuple[Input, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, int]
    tolerance: float = 1e-5  # largest |JAX - ONNX Runtime| over the largest |ONNX Runtime|, per output
    variants: tuple[Variant, ...] = VARIANTS

    def inputs(self, rng: np.random.Generator, **sizes: int) -> Arrays:
        """Random inputs; `sizes` overrides the default size of dynamic dimensions."""
        chosen = {**self.sizes, **sizes}
        return {given.name: given.sample(rng, chosen) for given in self.declared}

    def directory(self) -> Path:
        return cache_directory() / self.name

    def onnx_path(self, variant: Variant = "dynamo") -> Path:
        """The exported model, exported now (in a process of its own) if the cache lacks it."""
        path = self.directory() / variant / "model.onnx"
        if not path.exists():
            command = [sys.executable, "-m", "benchmarks.export", self.name, "--variant", variant]
            subprocess.run(command, check=True, cwd=Path(__file__).resolve().parent.parent)
        return path

    def torch_module(self) -> Any:
        """The PyTorch module in inference mode, from the fixed seed. Imports torch."""
        import torch

        torch.manual_seed(0)
        return pkgutil.resolve_name(f"benchmarks.models.{self.family}:{self.name}")()

    def jax_fn(self) -> tuple[Callable[..., Any], Any]:
        """`(function, params)`: `function(params, **inputs)` returns a tuple in declared order. Imports jax."""
        from benchmarks.baselines.weights import Weights

        self.onnx_path()  # writes the weights too
        build = pkgutil.resolve_name(f"benchmarks.baselines.{self.family}:{self.name}")
        return build(Weights.read(self.directory() / "weights.safetensors"))


image = partial(Input, "pixel_values", kind="normal")
tokens = partial(Input, "input_ids", ("batch", "seq"), "token")
NOT_LEGACY: tuple[Variant, ...] = VARIANTS[:3]  # the TorchScript exporter lacks aten::diff
GPT2_CACHE = tuple(f"{part}_{layer}" for layer in range(12) for part in ("key", "value"))

_ALL = (
    Workload(
        "resnet50",
        "vision",
        "ResNet-50, batch 1, 224x224",
        (image(("batch", 3, 224, 224)),),
        ("logits",),
        {"batch": 1},
        tolerance=5e-5,  # ONNX Runtime itself is 1e-5 from float64, jax 1.5e-5
    ),
    Workload(
        "mobilenetv2",
        "vision",
        "MobileNetV2, batch 1, 224x224",
        (image(("batch", 3, 224, 224)),),
        ("logits",),
        {"batch": 1},
        tolerance=2e-5,
    ),
    Workload(
        "unet",
        "vision",
        "U-Net, five levels, batch 1, 240x240",
        (Input("image", ("batch", 3, 240, 240)),),
        ("mask",),
        {"batch": 1},
    ),
    Workload(
        "bert",
        "language",
        "BERT-base, batch 1, 128 tokens",
        (tokens(vocabulary=30522), Input("attention_mask", ("batch", "seq"), "mask")),
        ("last_hidden_state", "pooler_output"),
        {"batch": 1, "seq": 128},
    ),
    Workload(
        "gpt2_prefill",
        "language",
        "GPT-2 small, prompt of 64 tokens",
        (tokens(vocabulary=50257),),
        ("logits",),
        {"batch": 1, "seq": 64},
        variants=NOT_LEGACY,
    ),
    Workload(
        "gpt2_decode",
        "language",
        "GPT-2 small, one token, 512 cached",
        (
            Input("input_ids", ("batch", 1), "token", 50257),
            *(Input(f"past_{name}", ("batch", 12, "past", 64)) for name in GPT2_CACHE),
        ),
        ("logits", *(f"present_{name}" for name in GPT2_CACHE)),
        {"batch": 1, "past": 512},
    ),
    Workload(
        "vit", "vision", "ViT-B/16, batch 1, 224x224", (image(("batch", 3, 224, 224)),), ("logits",), {"batch": 1}
    ),
    Workload(
        "lstm",
        "small",
        "LSTM, two layers of 256, 64 steps",
        (Input("x", ("batch", 64, 256)),),  # the exporter fixes the sequence length
        ("y", "h", "c"),
        {"batch": 1},
    ),
    Workload(
        "mlp", "small", "MLP, three layers of 1024, batch 64", (Input("x", ("batch", 1024)),), ("y",), {"batch": 64}
    ),
    Workload(
        "llama",
        "language",
        "Llama-like, 8 layers of 512, 128 tokens",
        (tokens(vocabulary=8000),),
        ("logits",),
        {"batch": 1, "seq": 128},
        variants=NOT_LEGACY,
    ),
    Workload(
        "elementwise",
        "small",
        "ten element-wise operations on 16 M elements",
        (Input("x", ("rows", 4096)),),
        ("y",),
        {"rows": 4096},
    ),
    Workload(
        "softmax_layernorm",
        "small",
        "softmax, then layer normalization, 4096x1024",
        (Input("x", ("rows", 1024)),),
        ("y",),
        {"rows": 4096},
    ),
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}


def select(names: str) -> Sequence[Workload]:
    """The workloads of a comma-separated list, or every one for `all`; exits on an unknown name."""
    chosen = list(WORKLOADS) if names == "all" else names.split(",")
    if unknown := [name for name in chosen if name not in WORKLOADS]:
        sys.exit(f"unknown workload {', '.join(unknown)}; there are: {', '.join(WORKLOADS)}")
    return [WORKLOADS[name] for name in chosen]
