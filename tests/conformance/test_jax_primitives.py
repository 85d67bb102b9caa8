"""JAX's harnesses of its primitives: a sample, another one each week (`jax_primitives.run` has all)."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

EVERY = 150
WEEK = datetime.datetime.now(tz=datetime.UTC).isocalendar().week
FIRST = int(os.environ.get("GCOMP_JAX_SAMPLE", WEEK)) % EVERY


def test_a_sample_of_the_harnesses() -> None:
    # A process of its own: JAX's settings for 64 bits are the process's.
    command = [sys.executable, "-m", "tests.conformance.jax_primitives.run", "--jobs", "1"]
    command += ["--every", str(EVERY), "--first", str(FIRST)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, f"repeat with GCOMP_JAX_SAMPLE={FIRST}\n{done.stdout}{done.stderr[-2000:]}"
