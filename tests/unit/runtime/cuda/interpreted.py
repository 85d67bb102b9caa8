"""A GPU whose kernels are run by Triton's interpreter: a whole artifact, from its file to its results, without a GPU.

    TRITON_INTERPRET=1 python -m tests.unit.runtime.cuda.interpreted MODEL.gcomp INPUTS.npz OUTPUTS.npz [CALLS]

The kernels are those of the sources in the artifact; their arguments, addresses and order are what the runtime gives.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gcomp
from gcomp.dtypes import DTYPES
from gcomp.lowering.triton import worker
from gcomp.runtime.cuda import executor
from gcomp.runtime.cuda.plan import from_text
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.plan import Plan
from gcomp.runtime.stateful import StatefulModel
from tests.unit.runtime.cuda.recorder import Recorder


class Interpreted(Recorder):
    """A `Driver` that finds the kernels of a plan by the members that hold their binaries."""

    def __init__(self, plan: Plan, architecture: str, memory: int = 1 << 32) -> None:
        super().__init__({}, architecture, memory)
        worker._stand_in()
        plans = [from_text(plan.texts[step.text], step.text)[architecture] for step in plan.segments]
        self._kernels = {kernel.binary: kernel for chosen in plans for kernel in chosen.kernels}
        self._texts = plan.texts

    def function(self, module: int, name: str, shared: int, ctas: int) -> int:
        return self._handle(self._handles[module])

    def launch(
        self, function: int, grid: tuple[int, int, int], threads: int, shared: int, ctas: int,
        arguments: Sequence[tuple[int, int]], stream: int,
    ) -> None:  # fmt: skip
        kernel = self._kernels[self._handles[function]]
        pairs = zip(arguments, kernel.parameters, strict=False)
        values = [worker._value(p.type, value, pointer=p.role != "size") for (value, _), p in pairs]

        def action() -> None:
            # Of two kernels of one name, the interpreter reads the source of the one that was made last.
            worker.kernel_of(kernel.name, self._texts[kernel.text])[grid](*values)

        self._do(stream, ("launch", kernel.name), action)


def run(model: Path, inputs: Mapping[str, Any], folder: Path, calls: int = 1) -> dict[str, Any]:
    """The outputs of an artifact, and its state, by a process in which Triton interprets."""
    np.savez(folder / "in.npz", **inputs)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    files = [str(model), str(folder / "in.npz"), str(folder / "out.npz")]
    command = [sys.executable, "-m", __name__, *files, str(calls)]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = gcomp.load(model)
    states = [found.plan.signature.inputs[i] for i in found.plan.signature.states]
    return _read(folder / "out.npz", [*found.outputs, *states])


def _read(path: Path, specs: Sequence[InputSpec | OutputSpec]) -> dict[str, Any]:
    """The arrays in a file: NumPy's format forgets the types that are not its own."""
    with np.load(path) as found:
        return {spec.name: found[spec.name].view(DTYPES[spec.dtype]) for spec in specs if spec.name in found}


def main() -> None:
    path, inputs, outputs, calls = sys.argv[1:]
    model = gcomp.load(path)
    gpu = Interpreted(model.plan, model.target.partition(":")[2].split(",")[0])
    executor.driver = lambda ordinal=0: gpu  # type: ignore[assignment]
    arrays = _read(Path(inputs), model.inputs)
    for _ in range(int(calls)):
        results = model.named(**arrays)
    state = model.state if isinstance(model, StatefulModel) else {}
    np.savez(outputs, **results, **state)


if __name__ == "__main__":
    main()
