"""Every option that is given is used or refused: over the whole command line, with wrong values made from the types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import UsageError
from gcomp.texts import write_weights
from tests.unit.cli.commands import Cli, all_commands

MODEL = """
func.func @main(%x: tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "x"}) -> (tensor<?x4xf32, ["batch", "4"]> {gcomp.name = "y"}) {
  %0 = stablehlo.add %x, %x : tensor<?x4xf32, ["batch", "4"]>
  return %0 : tensor<?x4xf32, ["batch", "4"]>
}
"""  # noqa: E501
LINEAR = """
func.func @main(%x: tensor<2x4xf32> {gcomp.name = "x"}) -> (tensor<2x1xf32> {gcomp.name = "y"}) {
  %w = gcomp.weight @w : tensor<4x1xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x1xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}
"""  # noqa: E501
BASES = {
    "compile": "m.mlir -o new.gcomp", "run": "m.mlir --random", "opt": "m.mlir", "inspect": "m.gcomp",
    "explain": "m.mlir", "reduce": "m.mlir --check cse", "bisect": "m.mlir", "tune": "m.mlir", "fuzz": "--programs 1",
    "train-step": "w.mlir -o new.gcomp --loss mse", "train": "step.gcomp --data in.npz",
    "write-parameters": "m.mlir m.gcomp -o n.onnx",
}  # fmt: skip
WORDS = {
    "--target", "--pipeline", "--verify", "--machine", "--check", "--loss", "--optimizer", "--schedule", "--dim",
    "--structure", "--constant", "--bucket-cost", "--fetch", "--donate", "--memory-budget", "--input", "--output",
    "--of", "--labels", "--metric", "--train", "--freeze", "--buckets", "--at", "--pass", "--what",
}  # fmt: skip
"""Options of text that only some words fit. Others are names of files to write, and patterns."""
FREE = {
    ("fuzz", "--output"),
    ("reduce", "--match"),
    ("reduce", "--command"),
    ("write-parameters", "--output"),
    ("compile", "--emit"),
}
"""Options that take any text, or more than one word, or a folder to make."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("options")
    (path / "m.mlir").write_text(MODEL)
    gcomp.compile(MODEL).save(path / "m.gcomp")
    (path / "w.mlir").write_text(LINEAR)
    program = gcomp.Program.parse(LINEAR)
    program.weights.add("w", np.ones((4, 1), np.float32))
    write_weights(path / "w.mlir", program)
    gcomp.train_step(path / "w.mlir", loss="mse").save(path / "step.gcomp")
    np.savez(path / "in.npz", x=np.ones((2, 4), np.float32), labels=np.ones((2, 1), np.float32))
    (path / "folder").mkdir()
    return path


@pytest.fixture
def folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


def options() -> Iterator[tuple[str, Any]]:
    """Every option of every command."""
    for name, command in all_commands().items():
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                yield name, parameter


def wrong_values(command: str, option: Any) -> Iterator[str]:
    """Values that are none of an option."""
    name = next(o for o in option.opts if o.startswith("--"))
    kind, bounds = str(option.type_descriptor.annotation), option.min
    if option.is_flag or (command, name) in FREE:
        return
    if "int" in kind or "float" in kind:
        yield from ("many", "1e400x")
        if bounds is not None:
            yield str(bounds - 1)
        if "int" in kind:
            yield "1.5"
    elif "Path" in kind:
        yield "no/such/file"
        yield "folder"
    elif name in WORDS:
        yield from ("no-such-thing", "no=such,thing=")


CASES = [(c, next(o for o in p.opts if o.startswith("--")), v) for c, p in options() for v in wrong_values(c, p)]


def test_every_command_is_walked() -> None:
    assert {command for command, _ in options()} == set(BASES)
    assert len(CASES) > 150


@pytest.mark.parametrize(("command", "option", "value"), CASES)
def test_a_wrong_value_is_refused_by_name(command: str, option: str, value: str, cli: Cli, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    result = cli(command, *BASES[command].split(), option, value)
    assert result.code in (1, 2), (result.out + result.err)[-500:]
    assert "Traceback" not in result.err and "report" not in result.err
    said = result.err.replace("\n", " ")
    names = (
        option,
        option.lstrip("-").replace("-", " "),
        option.lstrip("-"),
        value,
        value.partition("=")[0],
        "no/such",
        "NVIDIA",
    )
    assert any(name in said for name in names), said
    assert {path.name for path in folder.iterdir()} == before


NOTHING = {
    "opt --list-passes m.mlir": "--list-passes",
    "opt --list-passes -p cse": "--list-passes",
    "opt --list-rules m.mlir": "--list-rules",
    "opt m.mlir --prove": "--prove",
    "opt m.mlir --bisect-limit -1": "--bisect-limit",
    "opt m.mlir -t triton": "triton:sm_90",
    "opt m.mlir -p fuse{max-ops=-1}": "max-ops",
    "opt m.mlir -p fuse{max-ops=0}": "max-ops",
    "opt m.mlir -p fold-constants{max-flops=-5}": "max-flops is -5",
    "opt m.mlir -p fuse,order-for-memory{seconds=-1.0}": "seconds",
    "inspect m.gcomp --text --json": "--text and --json",
    "inspect m.mlir": "gcomp compile m.mlir -o m.gcomp",
    "compile m.mlir -t triton": "triton:sm_90",
    "compile m.mlir --dim batch=-1": "'batch'",
    "compile m.mlir --dim batch=-4..8": "'batch'",
    "compile m.mlir --dim batch=100000000000000000000": "'batch'",
    "compile m.mlir --dim batch=1..100000000000000000000": "'batch'",
    "run m.mlir --random --dim batch=-1": "'batch'",
    "explain m.mlir --dim batch=-3": "'batch'",
    "compile m.mlir --verify-inputs in.npz": "verify",
    "compile m.mlir --bucket-multiple 8": "--bucket-multiple",
    "compile m.mlir --bucket-cost flops": "--bucket-cost",
    "run m.mlir --threads 1 --threads x": "--threads",
    "train step.gcomp --data in.npz --steps 1 --epochs 2": "--epochs",
    "reduce m.mlir --check cse --match x": "--match",
}


@pytest.mark.parametrize("command", NOTHING)
def test_what_would_say_nothing_is_refused(command: str, cli: Cli, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    result = cli(*command.split())
    assert result.code == 2 and NOTHING[command] in result.err and result.out == "", result.out + result.err
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("verify", ["eachh", "FULL", True, None, 1, ""])
def test_verify_is_one_of_three_words(verify: Any) -> None:
    with pytest.raises(UsageError, match="verify is 'off', 'each', 'full'"):
        gcomp.compile(MODEL, verify=verify)


def test_both_pages_are_written(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr("gcomp.cli.inspecting._draw", lambda *_: done.append("memory"))
    monkeypatch.setattr("gcomp.cli.inspecting._roofline", lambda *_: done.append("roofline"))
    assert cli("inspect", "m.gcomp", "--memory", "m.html", "--roofline", "r.html").code == 0
    assert done == ["memory", "roofline"]
