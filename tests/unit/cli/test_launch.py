"""Several processes run one artifact for a mesh: `gcomp run --coordinator` and `gcomp launch`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gcomp

MODEL = """func.func @main(%x: tensor<?x16xf32, ["n", "16"]> {gcomp.name = "x"}) -> (tensor<?x8xf32, ["n", "8"]> {gcomp.name = "y"}) {
  %w = stablehlo.constant dense<0.25> : tensor<16x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x16xf32, ["n", "16"]>, tensor<16x8xf32>) -> tensor<?x8xf32, ["n", "8"]>
  %1 = stablehlo.tanh %0 : tensor<?x8xf32, ["n", "8"]>
  return %1 : tensor<?x8xf32, ["n", "8"]>
}"""  # noqa: E501
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launch")
    for name, spec in (("net", "data,model"), ("other", "model,data")):
        options = {"mesh": "data=2,model=2", "shardings": {"x": spec}}
        gcomp.compile(MODEL, target="xla:cpu", prepare=False, **options).save(folder / f"{name}.gcomp")  # pyright: ignore
    gcomp.compile(MODEL, target="xla:cpu", prepare=False).save(folder / "one.gcomp")
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32))
    return folder


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gcomp", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def member(folder: Path, port: str, number: int, file: str = "net.gcomp", count: int = 2) -> subprocess.Popen[str]:
    return start(
        folder, "run", file, "-i", "x=x.npy", "--coordinator", f"127.0.0.1:{port}", "--processes", str(count),
        "--process-id", str(number), "--timeout", "4",
    )  # fmt: skip


def test_four_processes_compute_what_one_does(folder: Path) -> None:
    run = ("run", "net.gcomp", "-i", "x=x.npy", "-o")
    code, out, err = ended(start(folder, "launch", "-n", "4", "--", *run, "y=y4.npy"))
    assert code == 0, err
    assert "y" in out and "[1]" not in out
    code, _, err = ended(start(folder, *run, "y=y1.npy"))
    assert code == 0, err
    alone = np.asarray(gcomp.load(folder / "one.gcomp")(np.load(folder / "x.npy"))[0])
    four, one = np.load(folder / "y4.npy"), np.load(folder / "y1.npy")
    assert four.shape == one.shape == alone.shape
    assert np.abs(four - alone).max() <= 1e-6 and np.abs(one - alone).max() <= 1e-6


def test_a_coordinator_that_is_not_there(folder: Path) -> None:
    begun = time.monotonic()
    code, _, err = ended(member(folder, free_port(), 1))
    assert code == 2 and "the first process was not there within 4 s" in err
    assert time.monotonic() - begun < 60


def test_a_process_that_does_not_come_is_named_in_all_others(folder: Path) -> None:
    port = free_port()
    processes = [member(folder, port, number, count=4) for number in (0, 1, 3)]
    for code, _, err in map(ended, processes):
        assert code == 2 and "process 2 did not come within 4 s" in err


def test_unequal_artifacts_are_told_to_all(folder: Path) -> None:
    port = free_port()
    processes = [member(folder, port, 0), member(folder, port, 1, "other.gcomp")]
    for code, _, err in map(ended, processes):
        assert code == 2 and "process 1 has another artifact than process 0" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "net.gcomp", "--random", "--coordinator", "here", "--processes", "2"), "is not a coordinator"),
        (
            ("run", "net.gcomp", "--random", "--coordinator", "a:1", "--processes", "2", "--process-id", "2"),
            "no process 2",
        ),
        (("run", "net.gcomp", "--random", "--coordinator", "a:1", "--processes", "3"), "not shared by 3 processes"),
        (("run", "one.gcomp", "--random", "--coordinator", "a:1", "--processes", "2"), "is for one device"),
        (("run", "net.gcomp", "--random", "--processes", "2"), "find each other at a coordinator"),
        (("launch", "-n", "2", "--", "compile", "net.gcomp"), "starts run or train, not 'compile'"),
        (("launch", "-n", "2", "--", "run", "net.gcomp", "--processes", "3"), "is what gcomp launch says"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, arguments: tuple[str, ...], why: str) -> None:
    code, _, err = ended(start(folder, *arguments))
    assert code == 2 and why in err


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition: object, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():  # pyright: ignore
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("victim", ["a process", "the launcher"])
def test_nothing_is_left_where_a_process_dies(folder: Path, victim: str) -> None:
    """The others end, with an error that says who died; nobody hangs."""
    trace = folder / "running.npy"
    trace.unlink(missing_ok=True)
    launcher = start(
        folder,
        "launch",
        "-n",
        "2",
        "--",
        "run",
        "net.gcomp",
        "-i",
        "x=x.npy",
        "-o",
        "y=running.npy",
        "--repeat",
        "100000000",
    )
    wait_for(trace.exists)
    found = children(launcher.pid)
    assert len(found) == 2
    os.kill(found[1] if victim == "a process" else launcher.pid, signal.SIGKILL)
    code, _, err = ended(launcher)
    if victim == "a process":
        assert code == 1 and "process 1 of 2 was ended by signal 9" in err and "another process is gone" in err
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found))


def test_a_step_for_a_mesh_trains_as_on_one_device(tmp_path: Path) -> None:
    digits = Path(__file__).parents[3] / "examples" / "digits"
    with np.load(digits / "heldout.npz") as file:
        np.savez(tmp_path / "data.npz", images=file["images"][:96], labels=file["labels"][:96])
    losses = list[float]()
    for name, options in (("one", ()), ("mesh", ("--mesh", "data=4", "--sharding", "images=data"))):
        command = (
            "train-step",
            str(digits / "digits.onnx"),
            "--target",
            "xla:cpu",
            "--train-mode",
            "--dim",
            "batch=32",
        )
        made = start(tmp_path, *command, "-o", f"{name}.gcomp", *options)
        assert ended(made)[0] == 0
        code, out, err = ended(start(tmp_path, "train", f"{name}.gcomp", "--data", "data.npz", "--epochs", "1"))
        assert code == 0
        losses.append(float((out + err).split("3 steps: loss ")[1].split()[0]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


WIDE = """func.func @main(%x: tensor<32x16xf32> {gcomp.name = "x"}, %w: tensor<16x8xf32> {gcomp.name = "w"})
    -> (tensor<32x8xf32> {gcomp.name = "y"}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}"""  # noqa: E501


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training step for two meshes, not begun here, where JAX may have counted fewer devices, and data."""
    folder, rng = tmp_path_factory.mktemp("steps"), np.random.default_rng(0)
    parameters = {"w": rng.normal(size=(16, 8)).astype(np.float32)}
    for name, mesh, shardings in (
        ("grid", "data=2,model=2", {"x": "data,*", "labels": "data,*", "w": "*,model"}),
        ("rows", "data=2", {"x": "data,*", "labels": "data,*"}),
    ):
        made = gcomp.train_step(
            WIDE,
            parameters=parameters,
            loss="mse",
            optimizer="adamw:lr=0.05",
            target="xla:cpu",
            mesh=mesh,
            shardings=shardings,
            prepare=False,
        )
        made.save(folder / f"{name}.gcomp")
    x = rng.normal(size=(128, 16)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, labels=x[:, :8])
    return folder


def train(name: str, *options: str) -> tuple[str, ...]:
    return ("train", f"{name}.gcomp", "--data", "data.npz", "--state", f"{options[0]}.safetensors", "--log",
            f"{options[0]}.csv", *options[1:])  # fmt: skip


def losses(folder: Path, name: str) -> list[float]:
    return [float(line.split(",")[1]) for line in (folder / f"{name}.csv").read_text("utf-8").splitlines()[1:]]


def test_a_training_goes_on_where_it_was_left(steps: Path) -> None:
    """With the batches that it would have taken: the same bits on the same mesh, and nearly those on another."""
    assert ended(start(steps, *train("rows", "whole", "--steps", "10")))[0] == 0
    assert ended(start(steps, *train("rows", "left", "--steps", "6", "--every", "3")))[0] == 0
    for kind in ("csv", "safetensors"):
        (steps / f"moved.{kind}").write_bytes((steps / f"left.{kind}").read_bytes())
    code, _, err = ended(start(steps, *train("rows", "left", "--steps", "10", "--resume")))
    assert code == 0 and "10 steps" in err
    for kind in ("csv", "safetensors"):
        assert (steps / f"left.{kind}").read_bytes() == (steps / f"whole.{kind}").read_bytes()
    assert ended(start(steps, *train("grid", "moved", "--steps", "10", "--resume")))[0] == 0
    assert losses(steps, "moved") == pytest.approx(losses(steps, "whole"), rel=1e-5)
    code, _, err = ended(start(steps, *train("rows", "whole", "--steps", "12", "--resume", "--seed", "7")))
    assert code == 2 and "of another training" in err and "its seed is 0, and now it is 7" in err


@pytest.mark.slow
def test_a_training_that_lost_a_process_goes_on_from_its_last_state(steps: Path) -> None:
    launch = ("launch", "-n", "2", "--")
    assert ended(start(steps, *launch, *train("rows", "calm", "--steps", "400")))[0] == 0
    options = ("--steps", "400", "--every", "20", "--resume")
    launcher = start(steps, *launch, *train("rows", "hit", *options))
    wait_for((steps / "hit.safetensors").exists)
    os.kill(children(launcher.pid)[1], signal.SIGKILL)
    code, _, err = ended(launcher)
    assert code == 1 and "process 1 of 2 was ended by signal 9" in err and "another process is gone" in err
    assert 0 < len(losses(steps, "hit")) < 400
    assert ended(start(steps, *launch, *train("rows", "hit", *options)))[0] == 0
    assert (steps / "hit.csv").read_bytes() == (steps / "calm.csv").read_bytes()
    assert (steps / "hit.safetensors").read_bytes() == (steps / "calm.safetensors").read_bytes()
