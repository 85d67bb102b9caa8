"""Export a workload to ONNX and its weights to safetensors, into the cache.

    python -m benchmarks.export resnet50 --variant dynamo
    python -m benchmarks.export all --variant all

Layout: `<cache>/<workload>/<variant>/model.onnx` (the dynamo variants with `model.onnx.data` beside it, as the
exporter does by default) and `<cache>/<workload>/weights.safetensors`, named as in the module's state dict.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from benchmarks.workloads import VARIANTS, Variant, Workload, select


def module_and_weights(workload: Workload) -> torch.nn.Module:
    """The workload's module, with the cached weights if there are any, else with fresh ones that are now cached."""
    module = workload.torch_module()
    path = workload.directory() / "weights.safetensors"
    if path.exists():
        safetensors.torch.load_model(module, path)
        return module
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    safetensors.torch.save_model(module, str(partial))  # writes a tied weight once
    os.replace(partial, path)
    return module


def dynamic_shapes(workload: Workload) -> tuple[Any, ...]:
    """The dynamic dimensions of every positional argument of `forward`, by position in the shape."""
    shapes = [{i: dim for i, dim in enumerate(given.shape) if isinstance(dim, str)} for given in workload.declared]
    if workload.name == "gpt2_decode":  # forward(input_ids, *past)
        return (shapes[0], tuple(shapes[1:]))
    return tuple(shapes)


def export_dynamo(workload: Workload, module: torch.nn.Module, variant: Variant, path: Path) -> None:
    """Export through torch.export; keeps BatchNorm unless the variant is `optimized`."""
    from onnxscript import optimizer

    # torch.export would specialize a dimension whose example has size 1
    sizes = {dim: max(size, 2) for dim, size in workload.sizes.items()} if variant == "dynamic" else {}
    args = tuple(torch.from_numpy(value) for value in workload.inputs(np.random.default_rng(0), **sizes).values())
    program = torch.onnx.export(
        module,
        args,
        dynamo=True,
        optimize=variant == "optimized",
        input_names=[given.name for given in workload.declared],
        output_names=list(workload.outputs),
        dynamic_shapes=dynamic_shapes(workload) if variant == "dynamic" else None,
        verbose=False,
    )
    assert program is not None
    if variant != "optimized":
        # What `optimize=True` does, less the rewrite rules, one of which folds BatchNorm into convolutions.
        optimizer.inline(program.model)
        optimizer.fold_constants(program.model, onnx_shape_inference=True)
        optimizer.remove_unused_nodes(program.model)
    program.save(path, external_data=True)


def export_legacy(workload: Workload, module: torch.nn.Module, path: Path) -> None:
    """Export through TorchScript; `PRESERVE` with a module in inference mode keeps BatchNorm as it is."""
    args = tuple(torch.from_numpy(value) for value in workload.inputs(np.random.default_rng(0)).values())
    torch.onnx.export(
        module,
        args,
        path,
        dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        input_names=[given.name for given in workload.declared],
        output_names=list(workload.outputs),
    )


def export(workload: Workload, variant: Variant) -> Path:
    """Export one variant of one workload into the cache and return its path; does nothing if it is there."""
    final = workload.directory() / variant
    if not final.exists():
        module = module_and_weights(workload)
        # a whole directory is renamed into place: an interrupted export leaves nothing that looks finished
        scratch = Path(tempfile.mkdtemp(prefix=f"{variant}-", dir=workload.directory()))
        try:
            if variant == "legacy":
                export_legacy(workload, module, scratch / "model.onnx")
            else:
                export_dynamo(workload, module, variant, scratch / "model.onnx")
            os.rename(scratch, final)
        except BaseException:
            shutil.rmtree(scratch)
            raise
    return final / "model.onnx"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", help="comma-separated names, or all")
    parser.add_argument("--variant", default="dynamo", choices=[*VARIANTS, "all"])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    for workload in select(options.workloads):
        for variant in workload.variants if options.variant == "all" else (options.variant,):
            print(export(workload, variant), flush=True)


if __name__ == "__main__":
    main()
