"""Every option that is given is used or refused: over the whole command line, with wrong values made from the types."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.cli.fuzzing import fuzz
from gcomp.errors import GcompError, InternalError, UsageError
from gcomp.testing.fuzz.doors import door_names
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
    "report": "m.mlir -o page.html", "launch": "--processes 2 run m.gcomp",
    "new": "pass p", "bench": "m.mlir --rounds 3 --threads 1", "try": "cse --stage values --seconds 5",
    "train-step": "w.mlir -o new.gcomp --loss mse", "train": "step.gcomp --data in.npz",
    "write-parameters": "m.mlir m.gcomp -o n.onnx",
}  # fmt: skip
WORDS = {
    "--target", "--pipeline", "--verify", "--machine", "--check", "--loss", "--optimizer", "--schedule", "--dim",
    "--structure", "--constant", "--bucket-cost", "--fetch", "--donate", "--memory-budget", "--input", "--output",
    "--of", "--labels", "--metric", "--train", "--freeze", "--buckets", "--at", "--pass", "--what",
    "--against", "--stage", "--corpus", "--compare", "--mesh", "--sharding", "--coordinator",
}  # fmt: skip
"""Options of text that only some words fit. Others are names of files to write, and patterns."""
FREE = {
    ("fuzz", "--output"),
    ("try", "--output"),
    ("new", "--domain"),
    ("new", "--output"),
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
FOR_TARGETS = {command for command, option in options() if "--target" in option.opts} - {"reduce"}
"""Commands that compile for a target. That of reduce says what a program fails on, in place of --check."""


def test_every_command_is_walked() -> None:
    assert {command for command, _ in options()} == set(BASES)
    assert len(CASES) > 150


@pytest.mark.parametrize(
    ("target", "command", "option", "value"),
    [("", *case) for case in CASES] + [("cpu", *c) for c in CASES if c[0] in FOR_TARGETS and c[1] != "--target"],
)
def test_a_wrong_value_is_refused_by_name(
    target: str, command: str, option: str, value: str, cli: Cli, folder: Path
) -> None:
    before = {path.name for path in folder.iterdir()}
    result = cli(command, *BASES[command].split(), *(("--target", target) if target else ()), option, value)
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
    "compile m.mlir -p cse,": "'cse,'",
    "compile m.mlir --bucket-multiple 8": "--bucket-multiple",
    "compile m.mlir --bucket-cost flops": "--bucket-cost",
    "compile m.mlir -t xla:cpu --emit c-library lib": "machine code of processors",
    "compile m.mlir -t cpu --emit triton-source lib": "Triton kernels",
    "compile m.mlir -t cpu --emit no-such-thing lib": "no-such-thing",
    "compile m.mlir -t xla:cpu --tuned in.npz": "--tuned",
    "compile m.mlir -t xla:cpu --memory-budget 1GiB": "memory budget",
    "run m.gcomp --random --threads 100000": "threads",
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


WRONG: dict[str, list[Any]] = {
    "target": [None, 3, ""], "dims": [3, ["batch"], {"batch": 1.5}, {"batch": None}],
    "structures": [3], "constants": [3], "pipeline": [3, ["cse"], True, "cse,", ","],
    "verify": [True, None],
    "verify_inputs": [3, "nosuch", {"x": "abc"}, {"x": np.ones((2, 3), "f4")}, [], [None], {"y": 1}],
    "donate": [3, True, "x"], "fetch": [3, True, "y"],
    "checks": [3, True, ("nan", 3), "nosuch"], "buckets": [3, True, {"batch": "x"}],
    "instruments": [3, "abc", ["x"], [None]], "progress": [3, "x"], "reproducer": [3, True], "tuned": [3, True],
    "memory_budget": [1.5, True, -1], "numerics": [3, True, "odd"],
    "threads": ["x", 1.5, True, 0, -1], "executables": ["x", 1.5, True, 0, -1],
    "prepare": ["x", 3, None], "mesh": [3, True, "data", {"data": 1.5}, {}], "shardings": [3, "x=data", {"x": "data"}],
}  # fmt: skip
"""Keyword of `gcomp.compile` -> values that are none of it."""


def test_every_keyword_has_wrong_values() -> None:
    assert set(WRONG) == set(inspect.signature(gcomp.compile).parameters) - {"source", "args"}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
@pytest.mark.parametrize("target", ["xla:cpu", "cpu"])
def test_a_keyword_that_is_given_is_used_or_refused_by_name(target: str, name: str, value: Any) -> None:
    more = {"verify": "each"} if name == "verify_inputs" else {}
    with pytest.raises(GcompError) as caught:
        gcomp.compile(MODEL, **{"target": target, **more, name: value})
    assert not isinstance(caught.value, InternalError)


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n in ("threads", "executables") for v in WRONG[n]] + [("native", "x"), ("native", 3), ("verify", True)],
)
def test_what_a_model_is_loaded_with_is_used_or_refused_by_name(name: str, value: Any, place: Path) -> None:
    with pytest.raises(UsageError, match=name):
        gcomp.load(place / "m.gcomp", **{name: value})


@pytest.mark.parametrize("verify", ["eachh", "FULL", True, None, 1, ""])
def test_verify_is_one_of_three_words(verify: Any) -> None:
    with pytest.raises(UsageError, match="verify is 'off', 'each', 'full'"):
        gcomp.compile(MODEL, verify=verify)


def test_inputs_that_no_pass_would_see_are_refused() -> None:
    x = np.ones((2, 4), np.float32)
    with pytest.raises(UsageError, match="verify_inputs say nothing where buckets"):
        gcomp.compile(MODEL, target="xla:cpu", verify="each", verify_inputs=[x], buckets={"batch": [2, 4]})
    gcomp.compile(MODEL, target="xla:cpu", verify="full", verify_inputs=[x], buckets={"batch": [2, 4]})


def test_both_pages_are_written(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr("gcomp.cli.inspecting._draw", lambda *_: done.append("memory"))
    monkeypatch.setattr("gcomp.cli.inspecting._roofline", lambda *_: done.append("roofline"))
    assert cli("inspect", "m.gcomp", "--memory", "m.html", "--roofline", "r.html").code == 0
    assert done == ["memory", "roofline"]


@pytest.mark.parametrize(("target", "last"), [("cpu", "emission"), ("xla:cpu", "xla")])
def test_the_last_line_tells_the_stages_that_there_are(target: str, last: str, cli: Cli, folder: Path) -> None:
    """Of a model that has run: the comparison with the target's answer runs it."""
    said = cli("compile", "m.mlir", "-t", target, "--verify", "full", "-o", "told.gcomp").err
    (line,) = [line for line in said.splitlines() if line.startswith("wrote told.gcomp")]
    told = [part.split()[0] for part in line.partition(f"for {target}: ")[2].split(", ")]
    assert told[:3] == ["import", "passes", "emission"] and told[-1] == last
    (folder / "told.gcomp").unlink()


def test_the_help_of_fuzz_names_every_judge() -> None:
    said = set((inspect.getdoc(fuzz) or "").replace(",", " ").replace("(", " ").replace(")", " ").split())
    assert set(door_names()) <= said
