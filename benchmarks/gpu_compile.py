"""Models compiled for GPUs, on a machine without one: time, kernels, registers, memory, and equal bytes.

    python -m benchmarks.gpu_compile [--workloads all] [--target triton:sm_90] [--out DIR]

For each model: launches, and how many of them are different kernels; how many kernels spill registers, and the most
shared memory of one; the arena beside the weights; the seconds to compile with an empty cache of kernels and with a
full one, each in a process of its own; and whether these two, with different hash seeds and in different folders, wrote
the same bytes. Exits 1 if a model does not compile, a kernel spills, or bytes differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Report, publish
from benchmarks.workloads import Workload, select
from gcomp.measuring.timing import machine


@dataclass
class Compiled:
    """One model's figures: bytes and seconds."""

    model: str
    launches: int = 0
    kernels: int = 0
    spilling: int = 0
    shared: int = 0
    arena: int = 0
    binaries: int = 0
    cold: float = 0.0
    warm: float = 0.0
    equal: bool = False
    error: str = ""


CHILD = """
import json, sys, time
import gcomp
from gcomp.runtime.cuda.plan import from_text
start = time.perf_counter()
model = gcomp.compile(sys.argv[1], target=sys.argv[2])
model.save(sys.argv[3])
seconds = time.perf_counter() - start
plan = next(iter(from_text(model.plan.texts["plan.json"], "plan").values()))
print(json.dumps({
    "seconds": seconds,
    "launches": sum(1 for _ in plan.launches()),
    "kernels": len(plan.kernels),
    "spilling": sum(k.stack > 0 for k in plan.kernels),
    "shared": max((k.shared for k in plan.kernels), default=0),
    "arena": int(plan.arena),
    "binaries": sum(len(b) for b in model.plan.binaries.values()),
}))
"""


def measured(workload: Workload, target: str) -> Compiled:
    """Compile a model twice, with the same cache, which is empty at first."""
    path = str(workload.onnx_path("dynamo").resolve())
    found = Compiled(workload.name)
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        digests: list[str] = []
        for seed, folder in (("1", cache), ("2", other)):
            output = Path(folder) / "model.gcomp"
            environment = {**os.environ, "GCOMP_CACHE_DIR": cache, "PYTHONHASHSEED": seed}
            # A user's Python keeps the bytecode of what it has imported once.
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            child = subprocess.run(
                [sys.executable, "-c", CHILD, path, target, str(output)],
                cwd=folder, env={**environment, "PYTHONPATH": os.getcwd()}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if child.returncode:
                found.error = child.stderr.strip().splitlines()[-1][:200] if child.stderr.strip() else "no output"
                return found
            facts = json.loads(child.stdout.splitlines()[-1])
            digests.append(hashlib.sha256(output.read_bytes()).hexdigest())
            setattr(found, "cold" if seed == "1" else "warm", facts.pop("seconds"))
            for name, value in facts.items():
                setattr(found, name, value)
        found.equal = digests[0] == digests[1]
    return found


def cells(row: Compiled) -> list[str]:
    """A row of the table."""
    if row.error:
        return [row.model, row.error, *[""] * 8]
    megabytes = [f"{size / 1e6:.2f}" for size in (row.arena, row.binaries)]
    seconds = [f"{row.cold:.1f}", f"{row.warm:.1f}"]
    counts = [str(row.launches), str(row.kernels), str(row.spilling), f"{row.shared / 1024:.0f}"]
    return [row.model, *counts, *megabytes, *seconds, "yes" if row.equal else "no"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--target", default="triton:sm_90")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[Compiled] = []
    for workload in select(options.workloads):
        print(f"{workload.name} ...", flush=True)
        start = time.perf_counter()
        rows.append(measured(workload, options.target))
        print(f"  {rows[-1].error or 'compiled'}, {time.perf_counter() - start:.0f} s", flush=True)
    columns = [
        "model", "launches", "kernels", "spilling", "shared KiB", "arena MB", "code MB", "cold s", "warm s", "equal",
    ]  # fmt: skip
    report = Report(f"Compiled for {options.target}", columns, [cells(row) for row in rows])
    data = {"machine": machine(), "target": options.target, "rows": [asdict(row) for row in rows]}
    publish("gpu_compile", [report], data, options.out)
    return int(any(r.error or r.spilling or not r.equal for r in rows))


if __name__ == "__main__":
    sys.exit(main())
