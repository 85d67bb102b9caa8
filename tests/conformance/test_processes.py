"""Twenty plans of the corpus on four processes, over `jax.distributed` and gloo, beside one device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gcomp
from benchmarks.sharding import opened
from gcomp.corpus.store import corpus
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from tests.conformance.sharding_plans import judged
from tests.unit.cli.test_launch import ENVIRONMENT, free_port

MODELS = (
    "onnx/bert", "onnx/gpt2", "onnx/clip", "onnx/resnet", "onnx/unet", "onnx/quantized", "onnx/keywords",
    "torch/encoder", "torch/llama", "torch/vit", "torch/mixer", "torch/lstm_lm", "torch/vae", "torch/recommender",
    "jax/mlp_step", "jax/gqa_block", "jax/experts", "jax/state_space", "jax/nerf", "jax/adam_step",
)  # fmt: skip
PROCESSES = 4


@pytest.mark.slow
def test_four_processes_compute_what_one_device_does(tmp_path: Path) -> None:
    expected = {}
    for member in corpus(MODELS).members:
        program = opened(member)
        inputs = sample_inputs(program, 0)
        name = member.name.replace("/", "_")
        expected[name] = program.clone(), inputs, interpret(program, inputs)
        model = gcomp.compile(program, target="xla:cpu", mesh="data=2,model=2", shardings="auto", prepare=False)
        model.save(tmp_path / f"{name}.gcomp")
        np.savez(tmp_path / f"{name}.npz", *inputs)
    assert len(expected) == len(MODELS) == 20
    command = [sys.executable, "-m", "tests.support.processes", str(tmp_path), free_port(), str(PROCESSES)]
    started = [
        subprocess.Popen([*command, str(n)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        for n in range(PROCESSES)
    ]
    for process in started:
        _, err = process.communicate(timeout=1200)
        assert process.returncode == 0, err[-2000:]
    for name, (program, inputs, wanted) in expected.items():
        with np.load(tmp_path / f"{name}.out.npz") as found:
            actual = [found[f"arr_{i}"] for i in range(len(found.files))]
        assert judged(program, inputs, wanted, actual) == "", name
