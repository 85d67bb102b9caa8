"""Row 0 of an architecture in batches of many sizes, on each engine: how many bit patterns; runs in a worker.

The architecture is exported by torch's TorchScript exporter with a dynamic batch. Row 0 is the same in all batches;
of the results, those are compared whose first dimension is the batch.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.conformance.architecture_export import Flat, build, export, inputs
from tests.conformance.architecture_table import ARCHITECTURES, Architecture

Array = np.ndarray[Any, Any]
Run = Callable[[Mapping[str, Array]], Sequence[Array]]

BATCHES = (1, 2, 3, 7, 8, 16, 33, 64)
FEW_BATCHES = (1, 2, 7, 64)
"""Those of an engine that compiles again for each."""
THREADS = (1, 2)
SEQUENCE = 33
"""Tokens of a text: no multiple of a vector."""


def _compiled(target: str, path: Path) -> Iterator[Run]:
    import gcomp

    model = gcomp.compile(str(path), target=target)
    for threads in THREADS if target == "cpu" else (0,):  # XLA's threads are the process's
        if threads:
            model.set_threads(threads)
        yield lambda arrays: [np.asarray(x) for x in model(**{p.name: arrays[p.name] for p in model.inputs})]


def _onnxruntime(path: Path, model: Any) -> Iterator[Run]:
    ort: Any = import_module("onnxruntime")
    ort.set_default_logger_severity(4)
    for threads in THREADS:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names: list[str] = [port.name for port in session.get_inputs()]
        yield partial(_run_session, session, names)


def _run_session(session: Any, names: Sequence[str], arrays: Mapping[str, Array]) -> Sequence[Array]:
    return session.run(None, {name: arrays[name] for name in names})


def _openvino(path: Path, model: Any) -> Iterator[Run]:
    core: Any = import_module("openvino").Core()
    for threads in THREADS:
        settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        yield partial(_run_compiled, core.compile_model(str(path), "CPU", settings))


def _run_compiled(compiled: Any, arrays: Mapping[str, Array]) -> Sequence[Array]:
    names = [next(name for name in port.get_names() if name in arrays) for port in compiled.inputs]
    found = compiled({name: arrays[name] for name in names})
    return [np.array(found[port]) for port in compiled.outputs]


def _torch(path: Path, model: Any) -> Iterator[Run]:
    for threads in THREADS:
        torch.set_num_threads(threads)
        yield partial(_run_module, model)


def _run_module(model: Any, arrays: Mapping[str, Array]) -> Sequence[Array]:
    with torch.no_grad():
        return [x.numpy() for x in model(*(torch.as_tensor(a) for a in arrays.values()))]


ENGINES: Mapping[str, Callable[[Path, Any], Iterator[Run]]] = {
    "cpu": lambda path, _: _compiled("cpu", path), "xla:cpu": lambda path, _: _compiled("xla:cpu", path),
    "ONNX Runtime": _onnxruntime, "OpenVINO": _openvino, "torch": _torch,
}  # fmt: skip
"""Name -> what makes the engine's ways to run a model, one for each number of threads."""


def patterns(arch: Architecture, engines: Sequence[str]) -> dict[str, int | str]:
    """How many bit patterns row 0 has on each engine, or why it has none."""
    sizes = {**arch.example, "batch": BATCHES[-1]} | ({"seq": SEQUENCE} if "seq" in arch.example else {})
    whole, model = inputs(arch, sizes, 0), Flat(build(arch), arch).eval()
    found: dict[str, int | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export(model, arch, "torchscript", path)
        for engine in engines:
            batches = FEW_BATCHES if engine == "xla:cpu" else BATCHES
            try:
                ways = ENGINES[engine](path, model)
                found[engine] = len({_row(run, _first(arch, whole, n), n) for run in ways for n in batches})
            except Exception as error:  # an engine that does not take the model says so in the table
                found[engine] = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    return found


def _first(arch: Architecture, arrays: Mapping[str, Array], count: int) -> dict[str, Array]:
    """The first rows of a batch."""
    batched = [name for name in arrays if arch.inputs[name].shape[0] == "batch"]
    return {**arrays, **{name: np.ascontiguousarray(arrays[name][:count]) for name in batched}}


def _row(run: Run, arrays: Mapping[str, Array], batch: int) -> str:
    """The hash of row 0 of what is computed."""
    rows = [np.ascontiguousarray(x[0]) for x in run(arrays) if x.ndim and x.shape[0] == batch]
    if not rows:
        raise ValueError("no result has the batch as its first dimension")
    return hashlib.sha256(b"".join(row.tobytes() for row in rows)).hexdigest()


def main(name: str, engines: str) -> int:
    """Print the counts as one line of JSON."""
    arch = next(a for a in ARCHITECTURES if a.name == name)
    sys.stdout.write(json.dumps(patterns(arch, engines.split(","))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
