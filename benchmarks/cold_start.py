"""What a fresh process takes: the command, and loading a model with its first call, beside ONNX Runtime.

    python -m benchmarks.cold_start [model.onnx ...] [--rounds 5] [--target cpu] [--out DIR]

Without files: the digits example, and ResNet-50 and MobileNetV2 with random weights. Each in turn: `gcomp compile`;
a process that loads the artifact and calls it once, with an empty cache of executables and with a full one; a process
that compiles the file by `gcomp.compile` and calls it; and one that runs it by ONNX Runtime. Wall time depends on the
neighbours: beside it is processor time. Memory is the peak that the system saw, and what is resident at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import networks
from benchmarks.report import Report, publish
from gcomp.measuring.timing import machine

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"

_CALL = """
types = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "i8": "int8", "ui8": "uint8"}
x = [np.ones([int(d) if d.isdigit() else 1 for d in s.dims], types[s.dtype]) for s in model.inputs]
[np.asarray(y) for y in model.flat(x)]
"""
_MEMORY = """
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(*(int(status[key].split()[0]) * 1024 for key in ("VmHWM", "VmRSS")))
"""
_PROGRAMS = {
    "command": """
import sys
from gcomp.cli.app import main
sys.argv = ["gcomp", "compile", sys.argv[1], "-o", sys.argv[2], "--target", sys.argv[3]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    + _MEMORY,
    "load": "import sys, numpy as np, gcomp\nmodel = gcomp.load(sys.argv[2])" + _CALL + _MEMORY,
    "in Python": (
        "import sys, numpy as np, gcomp\nmodel = gcomp.compile(sys.argv[1], target=sys.argv[3])" + _CALL + _MEMORY
    ),
    "ONNX Runtime": """
import sys, numpy as np, onnxruntime
onnxruntime.set_default_logger_severity(3)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
types = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}
x = {i.name: np.ones([d if isinstance(d, int) else 1 for d in i.shape], types[i.type]) for i in session.get_inputs()}
session.run(None, x)
"""
    + _MEMORY,
}


@dataclass(frozen=True)
class Taken:
    """What a process took: seconds of wall and processor time, bytes at its peak and at its end."""

    wall: float
    cpu: float
    peak: int
    resident: int


def take(command: Sequence[str], cache: Path) -> Taken:
    """Run a command in a process of its own. Ends this one where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GCOMP_CACHE_DIR": str(cache)}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            err.seek(0)
            sys.exit(f"{' '.join(command[:2])} failed:\n{err.read()[-2000:]}")
        out.seek(0)
        # The system's own account of the peak would begin with this process's memory.
        peak, resident = map(int, out.read().split()[-2:])
    return Taken(wall, used.ru_utime + used.ru_stime, peak, resident)


def round_of(model: Path, scratch: Path, target: str) -> dict[str, Taken]:
    """One process of each kind for a model."""
    artifact, cache, none = scratch / "model.gcomp", scratch / "cache", scratch / "other"
    for folder in (cache, none):
        subprocess.run(["rm", "-rf", str(folder)], check=True)

    def program(name: str) -> list[str]:
        return [sys.executable, "-c", _PROGRAMS[name], str(model), str(artifact), target]

    return {
        "gcomp compile": take(program("command"), cache),
        "load, call": take(program("load"), cache),
        "load, call again": take(program("load"), cache),
        "compile in Python, call": take(program("in Python"), none),
        "ONNX Runtime": take(program("ONNX Runtime"), none),
    }


def rows_of(name: str, weights: int, rounds: Sequence[Mapping[str, Taken]]) -> list[list[str]]:
    """The medians of a model's rounds."""
    rows: list[list[str]] = []
    for kind in rounds[0]:
        taken = [r[kind] for r in rounds]
        wall, cpu, peak, end = (
            float(np.median([getattr(t, field) for t in taken])) for field in ("wall", "cpu", "peak", "resident")
        )
        label = f"{name} ({weights / 1e6:.1f} MB)"
        rows.append([label, kind, f"{wall:.2f}", f"{cpu:.2f}", f"{peak / 1e6:.0f}", f"{end / 1e6:.0f}"])
    return rows


def models_in(given: Sequence[Path], scratch: Path) -> dict[str, Path]:
    """The models to look at by name; without any, those that can be had everywhere."""
    if given:
        return {path.stem: path for path in given}
    found = {"digits": DIGITS}
    for name in networks.NETWORKS:
        found[name] = scratch / f"{name}.onnx"
        networks.write(name, found[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", default="xla:cpu")
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    rows: list[list[str]] = []
    data: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for name, path in models_in(options.models, scratch).items():
            rounds = [round_of(path, scratch, options.target) for _ in range(options.rounds)]
            made = rows_of(name, path.stat().st_size, rounds)
            print("\n".join("  ".join(row) for row in made), file=sys.stderr, flush=True)
            rows += made
            data[name] = [{kind: vars(taken) for kind, taken in r.items()} for r in rounds]
    columns = ["model (file)", "process", "wall s", "CPU s", "peak MB", "resident MB"]
    notes = ["The executable comes from the cache where a model is called again."]
    title = f"Fresh processes for {options.target}, medians of {options.rounds}"
    publish("cold_start", [Report(title, columns, rows, notes)], data, options.out)


if __name__ == "__main__":
    main()
