"""JAX's harnesses of its primitives: a sample, another one each week (`jax_primitives.run` has all)."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.conformance.jax_primitives.comparison import epsilon, is_nearer

EVERY = 150
WEEK = datetime.datetime.now(tz=datetime.UTC).isocalendar().week
FIRST = int(os.environ.get("GCOMP_JAX_SAMPLE", WEEK)) % EVERY


def test_a_sample_of_the_harnesses() -> None:
    # A process of its own: JAX's settings for 64 bits are the process's.
    command = [sys.executable, "-m", "tests.conformance.jax_primitives.run", "--jobs", "1"]
    command += ["--every", str(EVERY), "--first", str(FIRST)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, f"repeat with GCOMP_JAX_SAMPLE={FIRST}\n{done.stdout}{done.stderr[-2000:]}"


def test_only_what_is_better_than_jax_s_result_is_nearer() -> None:
    exact, unit = np.linspace(1, 2, 9), 2 * epsilon(np.dtype(np.float32))

    def off_by(units: float, at: int = 3) -> np.ndarray:
        return (exact + units * unit * (np.arange(9) == at)).astype(np.float32)

    assert is_nearer([off_by(3)], [off_by(12)], [exact])
    assert is_nearer([off_by(-3, 5)], [off_by(12)], [exact])
    assert not is_nearer([off_by(13)], [off_by(12)], [exact])
    assert not is_nearer([off_by(10)], [off_by(12)], [exact]), "both are far away"
    assert not is_nearer([off_by(3)], [off_by(12)], [exact.astype(np.float32)]), "nothing says what is right"
    assert not is_nearer([off_by(3)], [off_by(12)], [])
    assert not is_nearer([off_by(3).astype(np.float64)], [off_by(12)], [exact]), "another element type is wrong"
    assert not is_nearer([off_by(3)[:1]], [off_by(12)], [exact]), "so is another shape"
    assert not is_nearer([off_by(3)] * 2, [off_by(12)], [exact]), "and another number of results"
    assert not is_nearer([np.arange(9)], [np.arange(9) + 1], [np.arange(9)]), "integers are right or wrong"
    nan = np.where(np.arange(9) == 1, np.nan, off_by(3)).astype(np.float32)
    assert not is_nearer([nan], [off_by(12)], [exact])
    assert not is_nearer([off_by(3)], [nan], [exact])
