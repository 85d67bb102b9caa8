"""Parameters that are `DTensor`s become weights with shardings."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

RUN = [sys.executable, "-m", "tests.support.placed_torch"]


@pytest.mark.slow
def test_placements_become_shardings(tmp_path: Path) -> None:
    out = tmp_path / "text"
    done = subprocess.run([*RUN, "fake", str(out)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    text = out.read_text("utf-8")
    assert text.count('sdy.mesh @mesh = <["data"=2, "model"=2]>') == 2
    names = dict(re.findall(r"(%\d+) = gcomp.weight @([\w.]+) :", text))
    said = re.findall(r"sdy.sharding_constraint (%\d+) <@mesh, (\[.*?\])>", text)
    assert [(names[value], sharding) for value, sharding in said] == [
        ("_0.weight", '[{"model"}, {}]'), ("_0.bias", '[{"model"}]'), ("_2.weight", '[{}, {"model"}]'),
        ("_2.bias", "[{}]"), ("_0.weight", '[{"data", "model"}, {}]'), ("_2.weight", '[{}, {"data"}]'),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_parallelized_module_computes_what_it_does_in_torch(tmp_path: Path) -> None:
    """Two processes hold its parameters; gcomp runs it on two virtual devices of one."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    files = [tmp_path / f"{rank}.npz" for rank in range(2)]
    started = [
        subprocess.Popen([*RUN, "gloo", str(file), str(rank), str(port)], stderr=subprocess.PIPE, text=True)
        for rank, file in enumerate(files)
    ]
    for process in started:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-2000:]
    for file in files:
        with np.load(file) as found:
            np.testing.assert_allclose(found["ours"], found["theirs"], rtol=1e-5, atol=1e-6)
            assert "all-reduce" in str(found["text"]) and "f32[8,32]" not in str(found["text"]), "columns are cut"
