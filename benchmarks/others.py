"""Run time of architectures that nothing was tuned for: the target `cpu` beside ONNX Runtime and OpenVINO.

    python -m benchmarks.others                     # all of benchmarks/models/others.py, one thread
    python -m benchmarks.others --only squeezenet,swin_tiny --rounds 20
    python -m benchmarks.others --only squeezenet@any,gru_tagger@any

`NAME@any` is the model exported for any sizes (of batch, image and sequence), as most published ones are, and called
with those of `NAME`: what it costs to know sizes no sooner.
Models are exported into the cache of benchmarks on first use (torch, transformers, onnxscript). OpenVINO is timed
where it is installed and takes the model. Outputs are compared with ONNX Runtime's before anything is timed. Times
are of the processor, interleaved; ratios have 95 % bootstrap bounds. Exits 1 if a model failed or disagreed.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sweep import sweep
from benchmarks.workloads import Arrays, aligned, cache_directory
from gcomp.errors import UnsupportedError
from gcomp.measuring.engines import OpenVino
from gcomp.measuring.timing import Timing, geometric_mean, interleave, ratio

TOLERANCE = 1e-4
"""The largest difference from ONNX Runtime's result over the largest element of that, which is itself up to 4e-5 away
from what float64 gives (RegNet)."""
LEAST = 1e-30
"""What is smaller than that is nothing: random weights may leave denormals."""
Run = Callable[[], Any]


ANY = "@any"
"""What names of models end with whose sizes the call decides."""


def exported(name: str) -> Path:
    """A model's file, exported now if the cache lacks it."""
    path = cache_directory() / "others" / f"{name}.onnx"
    if not path.exists():
        import torch

        from benchmarks.models.others import OTHERS

        torch.manual_seed(0)
        module, args = OTHERS[name.removesuffix(ANY)]()
        sizes = [{k: torch.export.Dim.AUTO for k in range(x.ndim) if x.ndim != 4 or k != 1} for x in args]
        plain = "args" not in str(inspect.signature(module.forward))
        given = {"dynamic_shapes": tuple(sizes) if plain else (tuple(sizes),)} if name.endswith(ANY) else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        for layer in module.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight)  # of smaller ones nothing is left after some layers
        with torch.no_grad():
            torch.onnx.export(module.eval(), args, partial, dynamo=True, external_data=False, verbose=False, **given)
        os.replace(partial, path)
    return path


def feeds_of(session: Any) -> Arrays:
    """Random inputs of the shapes that a session takes."""
    rng = np.random.default_rng(1)
    found: Arrays = {}
    for given in session.get_inputs():
        if "float" in given.type:
            found[given.name] = aligned(rng.standard_normal(given.shape, np.float32))
        else:
            found[given.name] = rng.integers(0, 100, given.shape).astype(np.int64)
    return found


def openvino(path: Path, feeds: Arrays, threads: int) -> Run | None:
    """A call of OpenVINO in f32; None where it is not installed, or does not take the model."""
    if importlib.util.find_spec("openvino") is None:
        return None
    try:
        engine = OpenVino(str(path), threads)
    except UnsupportedError as error:
        print(f"{path.stem}: OpenVINO refuses it: {error.why}", file=sys.stderr)
        return None
    return lambda: engine(feeds)


def measure(name: str, rounds: int, threads: int) -> dict[str, Timing]:
    """Timings of one model by competitor. Raises ValueError where the results differ."""
    import onnxruntime

    import gcomp

    path = exported(name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options)
    known = exported(name.removesuffix(ANY))
    feeds = feeds_of(session if known == path else onnxruntime.InferenceSession(known))
    model = gcomp.compile(str(path), target="cpu", threads=threads)
    runs: dict[str, Run] = {"cpu": lambda: model(**feeds), "ort": lambda: session.run(None, feeds)}
    for ours, theirs in zip(runs["cpu"](), runs["ort"](), strict=True):
        error = np.abs(np.asarray(ours) - theirs).max() / max(np.abs(theirs).max(), LEAST)
        if not error <= TOLERANCE:
            raise ValueError(f"differs from ONNX Runtime by {error:.1e}")
    if (run := openvino(path, feeds, threads)) is not None:
        runs["openvino"] = run
    return interleave(runs, rounds)


def names() -> list[str]:
    """All models; their packages are imported once they are asked for."""
    from benchmarks.models.others import OTHERS

    return list(OTHERS)


def main() -> None:
    swept = sweep(__doc__, names, measure, rounds=10)
    timed = swept.timed
    columns = ["model", "gcomp cpu ms", "ONNX Runtime ms", "OpenVINO ms", "cpu / ort", "cpu / openvino"]
    rows: list[list[str]] = []
    for name, found in timed.items():
        row = [
            name,
            *[f"{1e3 * np.median(found[k].cpu):.2f}" if k in found else "-" for k in ("cpu", "ort", "openvino")],
        ]
        row += [str(ratio(found["cpu"].cpu, found[k].cpu)) if k in found else "-" for k in ("ort", "openvino")]
        rows.append(row)
    means = ["geometric mean", "", "", ""]
    for k in ("ort", "openvino"):
        both = [(found["cpu"].cpu, found[k].cpu) for found in timed.values() if k in found]
        means.append(str(geometric_mean(both)) if both else "-")
    swept.publish("others", "Architectures that nothing was tuned for", columns, [*rows, means])


if __name__ == "__main__":
    main()
