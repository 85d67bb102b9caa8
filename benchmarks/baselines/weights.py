"""Read the shared weights and lay them out as JAX code wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

Params = dict[str, np.ndarray]


@dataclass(frozen=True)
class Weights:
    """A PyTorch state dict as NumPy arrays, seen through a name prefix."""

    arrays: Params
    prefix: str = ""

    @staticmethod
    def read(path: Path) -> Weights:
        return Weights(load_file(path))

    def at(self, path: str) -> Weights:
        """The weights below `path`."""
        return Weights(self.arrays, f"{self.prefix}{path}.")

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[self.prefix + name]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def count(self, path: str) -> int:
        """How many numbered children `path` has."""
        start = f"{self.prefix}{path}."
        return len({name[len(start) :].split(".")[0] for name in self.arrays if name.startswith(start)})

    def dense(self, path: str) -> Params:
        """A linear layer: kernel `[in, out]` and, where there is one, bias."""
        params = {"kernel": np.ascontiguousarray(self[f"{path}.weight"].T)}
        return {**params, "bias": self[f"{path}.bias"]} if f"{path}.bias" in self else params

    def conv(self, path: str) -> Params:
        """A convolution: kernel HWIO and, where there is one, bias."""
        params = {"kernel": np.ascontiguousarray(self[f"{path}.weight"].transpose(2, 3, 1, 0))}
        return {**params, "bias": self[f"{path}.bias"]} if f"{path}.bias" in self else params

    def conv_transpose(self, path: str) -> Params:
        """A transposed convolution: kernel HWIO, spatially flipped (lax correlates, PyTorch scatters)."""
        kernel = self[f"{path}.weight"].transpose(2, 3, 0, 1)[::-1, ::-1]
        return {"kernel": np.ascontiguousarray(kernel), "bias": self[f"{path}.bias"]}

    def batch_norm(self, path: str) -> Params:
        names = {"scale": "weight", "bias": "bias", "mean": "running_mean", "var": "running_var"}
        return {ours: self[f"{path}.{theirs}"] for ours, theirs in names.items()}

    def layer_norm(self, path: str) -> Params:
        return {"scale": self[f"{path}.weight"], "bias": self[f"{path}.bias"]}
