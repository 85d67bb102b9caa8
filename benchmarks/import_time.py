"""How long `import gcomp` and `gcomp --help` take in a fresh process, and what they bring in.

    python -m benchmarks.import_time [--rounds 20]

Exits 1 if importing gcomp imports jax, torch or onnx, or if `gcomp.load` imports xDSL or a frontend. Times are
reported beside those of a bare interpreter, never judged: they depend on the disk and on the neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import Report, publish
from gcomp.measuring.timing import interleave, machine

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
BUDGET = 0.3  # seconds, for `import gcomp` and for `gcomp --help`

FORBIDDEN = ("jax", "jaxlib", "torch", "onnx", "onnx_ir", "triton", "onnxruntime")
FORBIDDEN_WHEN_LOADING = ("xdsl", "onnx", "onnx_ir", "torch", "triton", "gcomp.frontends", "gcomp.passes", "gcomp.ir")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def help_command() -> list[str]:
    """`gcomp --help` through the installed script, which is what a user types."""
    script = Path(sys.executable).parent / "gcomp"
    return [str(script) if script.exists() else "gcomp", "--help"]


def run(command: list[str]) -> Callable[[], object]:
    """A call that runs `command` in a fresh process and exits if it fails."""

    def call() -> None:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")

    return call


def imported(code: str) -> set[str]:
    """The modules in `sys.modules` of a fresh process after `code`."""
    report = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run(python(report), check=True, cwd=ROOT, capture_output=True, text=True).stdout
    return set(json.loads(out.splitlines()[-1]))


def broken_promises() -> list[str]:
    """What `import gcomp` and `gcomp.load` import although they must not."""
    found = [f"`import gcomp` imports {name}" for name in sorted(imported("import gcomp") & set(FORBIDDEN))]
    with tempfile.TemporaryDirectory() as scratch:
        artifact = Path(scratch) / "digits.gcomp"
        compile_ = f"import gcomp; gcomp.compile({str(DIGITS)!r}, target='xla:cpu').save({str(artifact)!r})"
        if subprocess.run(python(compile_), cwd=ROOT).returncode:
            return [*found, "`gcomp.load` was not looked at: compiling the digits example failed"]
        loaded = imported(f"import gcomp; gcomp.load({str(artifact)!r})")
    return found + [f"`gcomp.load` imports {name}" for name in sorted(loaded & set(FORBIDDEN_WHEN_LOADING))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()

    commands = {
        "bare interpreter": python("pass"),
        "import numpy": python("import numpy"),
        "import gcomp": python("import gcomp"),
        "gcomp --help": help_command(),
    }
    os.environ["PYTHONPATH"] = str(ROOT)
    seconds = interleave({name: run(command) for name, command in commands.items()}, options.rounds, slot_seconds=0)
    bare = float(np.median(seconds["bare interpreter"].wall))
    rows, data = [], {}
    for name, timing in seconds.items():
        median, low, high = (float(np.percentile(timing.wall, q)) for q in (50, 10, 90))
        verdict = "" if "gcomp" not in name else ("within" if median <= BUDGET else "over")
        rows.append(
            [
                name,
                f"{1e3 * median:.0f}",
                f"{1e3 * low:.0f} - {1e3 * high:.0f}",
                f"{1e3 * (median - bare):.0f}",
                verdict,
            ]
        )
        data[name] = timing.wall.tolist()
    broken = broken_promises()
    notes = broken or ["`import gcomp` brings in neither jax nor torch nor onnx; `gcomp.load` no xDSL and no frontend."]
    report = Report(
        f"Start-up, {options.rounds} fresh processes each",
        ["command", "median ms", "10 - 90 % ms", "over bare ms", f"budget {1e3 * BUDGET:.0f} ms"],
        rows,
        notes,
    )
    publish("import_time", [report], {"machine": machine(), "seconds": data, "broken": broken}, options.out)
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
