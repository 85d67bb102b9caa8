"""What a process really takes for a model: its intermediates beside the plan of memory, and all that stays resident.

    python -m benchmarks.resident [--workloads all] [--only cpu,gcomp,ort,openvino] [--threads 1] [--out DIR]

Each workload runs in a process of its own for each engine. *Intermediates* is what is not backed by a file and stays
between calls, against the state after loading, and what a second call takes at its peak beside that: arena and scratch,
results included, arguments and weights not. *Growth* is everything resident after two calls, against the state before
the model was loaded, libraries loaded. The system counts both (Linux: `VmHWM`, reset before the call; proc(5)).
gcomp's artifacts are compiled in a process before, and loaded from their files, as a user of them does; the other
engines read the ONNX file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Report, publish
from benchmarks.workloads import Arrays, Workload, select
from gcomp.measuring.timing import machine, pin

Run = Callable[[Arrays], Any]


@dataclass(frozen=True)
class Taken:
    """Bytes: kept between calls, more at the peak of a call, all growth of the process; and what was promised."""

    kept: int
    call: int
    growth: int
    weights: int
    outputs: int
    planned: int | None
    """Temporaries that the engine says it takes, for those that say it."""

    @property
    def intermediates(self) -> int:
        return self.kept + self.call


# The engines: how a file is loaded, ready to be called; and the temporaries that it states.


def gcomp_model(path: Path, threads: int) -> tuple[Run, int | None]:
    import gcomp

    model = gcomp.load(path, threads=threads).prepare()
    return lambda inputs: model(**inputs), model.memory().temporary_bytes


def onnx_runtime(path: Path, threads: int) -> tuple[Run, int | None]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs), None


def openvino(path: Path, threads: int) -> tuple[Run, int | None]:
    import openvino

    core = openvino.Core()
    # By default it computes in bf16 on some machines: others here compute in f32.
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(str(path), "CPU", settings).create_infer_request()
    return lambda inputs: request.infer(inputs), None


ENGINES = {"cpu": gcomp_model, "gcomp": gcomp_model, "ort": onnx_runtime, "openvino": openvino}
TARGETS = {"cpu": "cpu", "gcomp": "xla:cpu"}
LABELS = {"cpu": "gcomp cpu", "gcomp": "gcomp xla:cpu", "ort": "ONNX Runtime", "openvino": "OpenVINO"}
LIBRARIES = {"cpu": "gcomp.runtime.cpu", "gcomp": "jax", "ort": "onnxruntime", "openvino": "openvino"}


def status() -> dict[str, int]:
    """Bytes of this process by the system's name."""
    with open("/proc/self/status") as lines:
        pairs = (line.split(":", 1) for line in lines)
        return {name: int(value.split()[0]) * 1024 for name, value in pairs if value.endswith("kB\n")}


def measure(engine: str, path: Path, workload: Workload, threads: int) -> Taken:
    """Load and call twice, in this process, which did nothing before."""
    pin(threads)
    __import__(LIBRARIES[engine])
    inputs = workload.inputs(np.random.default_rng(1))
    before = status()
    run, planned = ENGINES[engine](path, threads)
    loaded = status()
    results = run(inputs)
    outputs = sum(np.asarray(result).nbytes for result in (results.values() if hasattr(results, "values") else results))
    del results
    between = status()
    Path("/proc/self/clear_refs").write_text("5")
    run(inputs)
    after = status()
    mapped = after["RssFile"] + after["RssShmem"]
    return Taken(
        kept=between["RssAnon"] - loaded["RssAnon"],
        call=after["VmHWM"] - mapped - between["RssAnon"],
        growth=after["VmRSS"] - before["VmRSS"],
        weights=sum(file.stat().st_size for file in workload.onnx_path("dynamo").parent.iterdir()),
        outputs=outputs,
        planned=planned,
    )


def compile_to(path: Path, workload: Workload, target: str) -> None:
    import gcomp

    gcomp.compile(str(workload.onnx_path("dynamo")), target=target).save(path)


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def of_workload(workload: Workload, engines: list[str], threads: int) -> dict[str, Taken]:
    """What each engine takes."""
    found: dict[str, Taken] = {}
    for engine in engines:
        with tempfile.TemporaryDirectory() as folder:
            path = workload.onnx_path("dynamo")
            if target := TARGETS.get(engine):
                path = Path(folder) / "model.gcomp"
                apart(compile_to, path, workload, target)
            found[engine] = apart(measure, engine, path, workload, threads)
    return found


def megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:.2f}"


def intermediates(name: str, found: dict[str, Taken]) -> list[str]:
    """The row of a workload: what is planned by `cpu`, and what each engine takes beside weights and arguments."""
    planned = found["cpu"].planned if "cpu" in found else None
    outputs = next(iter(found.values())).outputs
    return [name, megabytes(planned), megabytes(outputs), *(megabytes(taken.intermediates) for taken in found.values())]


def growth(name: str, found: dict[str, Taken]) -> list[str]:
    """The row of a workload: the bytes of its files, and by how much each engine's process grew."""
    one = next(iter(found.values()))
    return [name, megabytes(one.weights), *(f"{taken.growth / 1e6:.0f}" for taken in found.values())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all", help="comma-separated names, or all")
    parser.add_argument("--only", default=",".join(ENGINES), help="engines, of " + ", ".join(ENGINES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    engines: list[str] = options.only.split(",")
    if unknown := set(engines) - set(ENGINES):
        parser.error(f"unknown engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    found: dict[str, dict[str, Taken]] = {}
    for workload in select(options.workloads):
        found[workload.name] = of_workload(workload, engines, options.threads)
        print("  ".join(intermediates(workload.name, found[workload.name])), file=sys.stderr, flush=True)
    labels = [LABELS[engine] for engine in engines]
    threads = f"{options.threads} thread" + "s" * (options.threads > 1)
    reports = [
        Report(
            f"MB of intermediates in a process, {threads}",
            ["model", "planned for cpu", "of results", *labels],
            [intermediates(name, taken) for name, taken in found.items()],
        ),
        Report(
            f"MB by which a process grows, {threads}",
            ["model", "files", *labels],
            [growth(name, taken) for name, taken in found.items()],
        ),
    ]
    data = {name: {engine: asdict(one) for engine, one in taken.items()} for name, taken in found.items()}
    publish("resident", reports, {"machine": machine(), **data}, options.out)


if __name__ == "__main__":
    main()
