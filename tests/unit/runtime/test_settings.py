"""What a process says of XLA: how many threads, how many executables; and what a forked process may not do."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import UsageError
from gcomp.runtime.xla.client import client
from gcomp.runtime.xla.options import ExecutablesWarning, thread_count
from tests.unit.runtime.models import CONV_NET, conv_weights, images, make_model

DOUBLE = """
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.add %x, %x : tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
"""


def in_fork(work: Callable[[], object]) -> str:
    """What becomes of some work in a forked process: its error, "done", or nothing where it hangs."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX's own, of the fork
        child = os.fork()
    if not child:
        try:
            work()
            said = "done"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 20)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = os.read(read, 10_000).decode() if ready else ""
    os.close(read)
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_is_told_to_start_otherwise() -> None:
    called, ready = make_model(CONV_NET, conv_weights()), make_model(CONV_NET, conv_weights())

    @gcomp.jit(target="xla:cpu")
    def doubled(x: Any) -> Any:
        return x + x

    for _ in range(3):
        called(images(2))
        doubled(images(1))
    for work in (
        lambda: called(images(2)),
        lambda: called(images(3)),
        lambda: ready(images(2)),
        lambda: doubled(images(1)),
        lambda: ready.prepare(batch=4),
        lambda: gcomp.compile(DOUBLE, target="xla:cpu", dims={"n": 4}),
    ):
        said = in_fork(work)
        assert "forked" in said and 'get_context("spawn")' in said, said or "it hangs"
    assert np.array_equal(doubled(images(1)), 2 * images(1)), "the parent goes on"


def test_sizes_beyond_what_is_kept_are_told_once() -> None:
    model = gcomp.compile(DOUBLE, target="xla:cpu", executables=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, 2, 3, 4):
            model(np.ones(size, np.float32))
    with pytest.warns(ExecutablesWarning, match=r"more than 2 combinations of sizes.*GCOMP_EXECUTABLES") as told:
        for size in (1, 2, 3, 1, 2):
            assert model(np.ones(size, np.float32))[0].tolist() == [2] * size
    assert len(told) == 1
    assert model.keep(3) is model


def test_many_sizes_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCOMP_EXECUTABLES", "3")
    model = gcomp.compile(DOUBLE, target="xla:cpu")
    for _ in range(3):
        for size in (1, 2, 3):
            model(np.ones(size, np.float32))
    assert model._executor.compilations == 3  # pyright: ignore
    monkeypatch.delenv("GCOMP_EXECUTABLES")
    assert gcomp.compile(DOUBLE, target="xla:cpu")._executor.segments[0]._executables.size > 100  # pyright: ignore


def test_settings_that_say_nothing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(CONV_NET, conv_weights())
    model(images(1))
    model.save(tmp_path / "m.gcomp")
    other = thread_count() + 1
    with pytest.raises(UsageError, match=f"already, and not with {other}"):
        gcomp.load(tmp_path / "m.gcomp", threads=other)
    gcomp.load(tmp_path / "m.gcomp", threads=thread_count())
    for wrong in (0, -1):
        with pytest.raises(UsageError, match="at least 1"):
            gcomp.load(tmp_path / "m.gcomp", threads=wrong)
        with pytest.raises(UsageError, match="at least 1"):
            gcomp.load(tmp_path / "m.gcomp", executables=wrong)
    with pytest.raises(UsageError, match="the number of threads is not set on the target triton:sm_90"):
        gcomp.compile(DOUBLE, target="triton:sm_90", threads=1)
    for variable in ("GCOMP_THREADS", "GCOMP_EXECUTABLES"):
        for wrong in ("many", "0", "-1", str(1 << 40)):
            monkeypatch.setenv(variable, wrong)
            with pytest.raises(UsageError, match=variable):
                gcomp.load(tmp_path / "m.gcomp")
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GCOMP_THREADS", str(other))
    with pytest.raises(UsageError, match="already"):
        client("cpu")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_xla_has_the_threads_that_are_asked_for(tmp_path: Path) -> None:
    gcomp.compile(DOUBLE, target="xla:cpu", dims={"n": 4}).save(tmp_path / "m.gcomp")
    program = """
import sys, pathlib, gcomp
gcomp.load(sys.argv[1], threads=int(sys.argv[2])).prepare()
names = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
print(sum("XLAEigen" in name for name in names))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "m.gcomp"), "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["3"]
