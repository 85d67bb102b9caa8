"""Run time of quantized models: the target `cpu` beside ONNX Runtime and OpenVINO.

    python -m benchmarks.quantized --rounds 15 --threads 1

Models of files are read from `--models` and left out where they are missing; those of benchmarks are exported and
quantized by ONNX Runtime's tools on first use, and kept in their cache. Each workload runs in a process of its own.
Before anything is timed the outputs are compared; how much they may differ is the workload's tolerance, of its largest
output. Exits 1 if a competitor failed or disagreed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from benchmarks.quantized_models import (
    dynamically_quantized,
    int4_product,
    int4_weights,
    prepared,
    statically_quantized,
    transformer,
)
from benchmarks.report import publish
from benchmarks.run_time import CLOCKS, Result, as_json, measure_apart, table
from benchmarks.workloads import WORKLOADS, Input, Variant, Workload, cache_directory
from gcomp.measuring.timing import steady_allocator

NAMES = ["cpu", "ort", "ov"]
MODELS = Path(__file__).parents[2] / "shared" / "data" / "models"


@dataclass(frozen=True)
class ModelFile(Workload):
    """A workload whose model is a file."""

    path: Path = field(default=Path())

    def onnx_path(self, variant: Variant = "dynamo") -> Path:
        return self.path


def _bert(layers: int = 2) -> onnx.ModelProto:
    return transformer(layers, length=128, width=768, heads=12)


MADE: dict[str, tuple[str, Callable[[], onnx.ModelProto], float]] = {
    "bert2_f32": ("two layers of BERT-base, 128 tokens", _bert, 1e-5),
    # Of 1.2 million activations some fall to the other of two quantized values.
    "bert2_dynamic": ("the same by quantize_dynamic", lambda: dynamically_quantized(_bert()), 0.02),
    # ONNX Runtime fuses across QuantizeLinear: its results are several quantized values from the model as written.
    "bert2_qdq": ("the same by quantize_static, QDQ", lambda: statically_quantized(_bert(), per_channel=True), 0.2),
    "matmul_nbits": ("MatMulNBits, int4, 128x2048x2048", partial(int4_product, 128, 2048, 2048), 1e-5),
    "matmul_nbits_row": ("MatMulNBits, int4, 1x2048x2048", partial(int4_product, 1, 2048, 2048), 1e-5),
}
"""Name -> what it is, how it is made, and its tolerance."""


def _static(path: Path, activations: str = "QUInt8", **options: bool) -> onnx.ModelProto:
    from onnxruntime.quantization import QuantType

    kinds = {"activation_type": QuantType[activations], "weight_type": QuantType.QInt8}
    return statically_quantized(prepared(path), **kinds, **options)


EXPORTED: dict[str, tuple[str, str, Callable[[Path], onnx.ModelProto], float]] = {
    "resnet50_qdq": ("resnet50", "ResNet-50, QDQ, u8 by s8, per channel", partial(_static, per_channel=True), 0.2),
    "resnet50_qdq_tensor": ("resnet50", "the same, per tensor", _static, 0.2),
    "resnet50_qdq_signed": (
        "resnet50", "the same, s8 by s8, per channel", partial(_static, activations="QInt8", per_channel=True), 0.2,
    ),
    "bert_qdq": ("bert", "BERT-base, 128 tokens, QDQ, u8 by s8, per channel", partial(_static, per_channel=True), 0.2),
    "bert_dynamic": ("bert", "the same by quantize_dynamic", lambda path: dynamically_quantized(prepared(path)), 0.05),
    "gpt2_decode_int4": ("gpt2_decode", "GPT-2, one step, MatMulNBits", lambda p: int4_weights(prepared(p)), 1e-3),
}  # fmt: skip
"""Name -> the workload that it is of, what it is, how it is quantized, and its tolerance."""
REAL = {
    "ultraface_f32": ("ultraface_rfb_320_raw", "face detector, 240x320", 1e-5),
    "ultraface_qdq": ("ultraface_rfb_320_raw_qdq", "the same, QDQ", 0.02),
}


def _workload(name: str, description: str, tolerance: float, model: onnx.ModelProto, folder: Path) -> ModelFile:
    path, graph = folder / f"{name}.onnx", model.graph
    weights = {tensor.name for tensor in graph.initializer}
    # ONNX Runtime takes initializers that are inputs too, as old exporters wrote them, for values that may change.
    ports = [port for port in graph.input if port.name not in weights]
    del graph.input[:]
    graph.input.extend(ports)
    model.ir_version = max(model.ir_version, 4)
    onnx.save(model, path)
    inputs = tuple(Input(port.name, tuple(d.dim_value for d in port.type.tensor_type.shape.dim)) for port in ports)
    outputs = tuple(port.name for port in graph.output)
    return ModelFile(name, "small", description, inputs, outputs, {}, tolerance, ("dynamo",), path)


def _exported(name: str) -> ModelFile:
    """A workload of benchmarks, quantized now if the cache lacks it."""
    source, description, make, tolerance = EXPORTED[name]
    given, path = WORKLOADS[source], cache_directory() / "quantized" / f"{name}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        onnx.save(make(given.onnx_path("dynamo")), partial)
        os.replace(partial, path)
    return ModelFile(
        name, given.family, description, given.declared, given.outputs, given.sizes, tolerance, ("dynamo",), path
    )


def workloads(models: Path, folder: Path) -> Sequence[ModelFile]:
    """The workloads that there are apart from exports; their models are written to `folder`."""
    real = [
        _workload(name, description, tolerance, onnx.load(path), folder)
        for name, (file, description, tolerance) in REAL.items()
        if (path := models / f"{file}.onnx").exists()
    ]
    made = [_workload(name, text, tolerance, make(), folder) for name, (text, make, tolerance) in MADE.items()]
    return [*real, *made]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workloads", default="all", help="comma-separated names, or all")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of the real models")
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    options.variant = "dynamo"
    steady_allocator()
    results: list[Result] = []
    with TemporaryDirectory() as folder:
        every = [lambda w=w: w for w in workloads(options.models, Path(folder))]
        chosen = options.workloads.split(",")
        names = [*(w().name for w in every), *EXPORTED]
        for name, get in zip(names, [*every, *(partial(_exported, name) for name in EXPORTED)], strict=True):
            if options.workloads != "all" and name not in chosen:
                continue
            workload = get()
            print(f"{workload.name} ...", file=sys.stderr, flush=True)
            results.append(measure_apart(workload, NAMES, options.rounds, options.threads, "dynamo"))
    shape = f"{options.threads} threads, {options.rounds} rounds"
    reports = [table(results, NAMES, clock, f"{title}, quantized: {shape}") for clock, title in CLOCKS.items()]
    publish(f"quantized-{options.threads}t", reports, as_json(results, options), options.out)
    sys.exit(any(result.errors for result in results))


if __name__ == "__main__":
    main()
