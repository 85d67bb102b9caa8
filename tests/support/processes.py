"""One of several processes that run all artifacts of a folder together, over gloo.

    python -m tests.support.processes FOLDER PORT PROCESSES NUMBER

Each `NAME.gcomp` is run on the inputs in `NAME.npz`; the first process writes what comes out to `NAME.out.npz`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gcomp
from gcomp.runtime.xla.joining import Member, join


def _main(folder: Path, port: int, processes: int, number: int) -> None:
    join(Member(f"127.0.0.1:{port}", processes, number, 120), "cpu", processes, "folder")
    for file in sorted(folder.glob("*.gcomp")):
        model = gcomp.load(file)
        with np.load(file.with_suffix(".npz")) as given:
            results = model.flat([given[f"arr_{i}"] for i in range(len(given.files))])
        if number == 0:
            np.savez(file.with_suffix(".out.npz"), *map(np.asarray, results))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
