"""Import one ONNX file in this process, on one core, and print the seconds that it took.

    python -m benchmarks.import_one model.onnx

`compile_time imports` runs this. Libraries are loaded before the clock starts.
"""

from __future__ import annotations

import os
import sys
import time

from gcomp.frontends.onnx import import_onnx


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.perf_counter()
    import_onnx(sys.argv[1])
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
