"""Builds a random model of an architecture and exports it to ONNX with torch's two exporters; runs in a worker.

What it writes beside each other, for the architecture NAME: `NAME-dynamo.onnx`, `NAME-torchscript.onnx` (or `.txt`
that says why the exporter failed), and `NAME.npz` with inputs and float64 results for both sets of sizes.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from tests.conformance.architecture_table import ARCHITECTURES, Architecture, Input

Array = np.ndarray[Any, Any]
EXPORTERS = ("dynamo", "torchscript")


class Flat(torch.nn.Module):
    """A model of named inputs and structured results as one of positional inputs and a tuple of tensors."""

    def __init__(self, model: torch.nn.Module, arch: Architecture) -> None:
        super().__init__()
        self.model = model
        self.names = tuple(arch.inputs)
        self.outputs = arch.outputs
        self.calls = dict(arch.calls)

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = self.model(**dict(zip(self.names, args, strict=True)), **self.calls)
        if isinstance(out, torch.Tensor):
            return (out,)
        fields = out if self.outputs else dict(out)
        return tuple(fields[k] for k in (self.outputs or fields) if isinstance(fields[k], torch.Tensor))


def build(arch: Architecture) -> torch.nn.Module:
    """The model, in evaluation mode, with parameters that leave no part of it idle."""
    torch.manual_seed(0)
    first, *path = arch.model.split(".")
    kind = getattr(transformers, first)
    config = kind.config_class(**copy.deepcopy(dict(arch.config)))
    if arch.eager:
        config._attn_implementation = "eager"
    if hasattr(config, "num_local_experts"):
        config._experts_implementation = "batched_mm"  # the default has no ONNX form
    model = kind(config)
    _enliven(model)
    for name in path:
        model = getattr(model, name)
    return model.eval()


def _enliven(model: torch.nn.Module) -> None:
    """Zero biases, unit scales and tiny matrices become random: a mistake in any of them then shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim < 2:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif float(parameter.std()) < (wanted := 0.7 / parameter[0].numel() ** 0.5):
                parameter.copy_(wanted * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.1 * torch.randn_like(buffer))
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand_like(buffer))


def inputs(arch: Architecture, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Random inputs of these sizes."""
    rng = np.random.default_rng(seed)
    return {name: _input(spec, sizes, rng) for name, spec in arch.inputs.items()}


def _input(spec: Input, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    shape = tuple(sizes[s] if isinstance(s, str) else s for s in spec.shape)
    if spec.kind == "float":
        return rng.standard_normal(shape).astype(np.float32)
    if spec.kind == "mask":
        mask = np.ones(shape, np.int64)
        mask[-1, -2:] = 0
        return mask
    if spec.kind == "boxes":
        corners = np.sort(rng.integers(0, 60, (*shape[:-1], 2, 2)), axis=-2)
        return corners.reshape(shape).astype(np.int64)
    return rng.integers(3, 99, shape).astype(np.int64)


def export(model: torch.nn.Module, arch: Architecture, exporter: str, path: Path) -> None:
    """Export with the sizes that have names as dynamic dims."""
    args = tuple(torch.from_numpy(a) for a in inputs(arch, arch.example, 0).values())
    names = list(arch.inputs)
    dynamic = [{i: s for i, s in enumerate(spec.shape) if isinstance(s, str)} for spec in arch.inputs.values()]
    if exporter == "dynamo":
        torch.onnx.export(
            model, args, str(path), dynamo=True, dynamic_shapes=(tuple(dynamic),), input_names=names,
            external_data=False, verbose=False,
        )  # fmt: skip
        return
    torch.onnx.export(
        model, args, str(path), dynamo=False, input_names=names, dynamic_axes=dict(zip(names, dynamic, strict=True)),
        opset_version=17,
    )  # fmt: skip


def _double(array: Array) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    return tensor.double() if tensor.is_floating_point() else tensor


def expected(model: torch.nn.Module, arch: Architecture) -> dict[str, Array]:
    """Inputs as `in0.NAME` and results in float64 as `out0.0`, for the sizes 0 (the example's) and 1."""
    saved: dict[str, Array] = {}
    wide = copy.deepcopy(model).double()
    for case, sizes in enumerate((arch.example, arch.other)):
        arrays = inputs(arch, sizes, case)
        saved.update({f"in{case}.{name}": array for name, array in arrays.items()})
        try:
            with torch.no_grad():
                results = wide(*(_double(a) for a in arrays.values()))
        except Exception as error:  # some models hold constants of one dtype: those have no float64 twin
            sys.stderr.write(f"{arch.name}: no float64 result: {str(error)[:200]}\n")
            continue
        saved.update({f"out{case}.{i}": r.numpy() for i, r in enumerate(results)})
    return saved


def main(name: str, folder: str) -> int:
    """Export the architecture `name` with both exporters into `folder`."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    arch = next(a for a in ARCHITECTURES if a.name == name)
    place = Path(folder)
    model = Flat(build(arch), arch).eval()
    for exporter in EXPORTERS:
        path = place / f"{name}-{exporter}.onnx"
        if path.exists() or path.with_suffix(".txt").exists():
            continue
        partial = path.with_suffix(".partial")
        try:
            with torch.no_grad():
                export(model, arch, exporter, partial)
            partial.rename(path)
        except Exception as error:
            partial.unlink(missing_ok=True)
            path.with_suffix(".txt").write_text(_reason(error), encoding="utf-8")
    np.savez(place / f"{name}.npz", **expected(model, arch))
    return 0


def _reason(error: Exception) -> str:
    """The most telling line of an exporter's error."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines: Sequence[str] = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {' '.join(lines[:4])}"[:300]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
