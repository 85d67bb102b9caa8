"""`gcomp tune`: times of candidates as data, and what is compiled of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gcomp
from gcomp.cli import tuning
from gcomp.cli.options import Source
from gcomp.errors import GcompError
from gcomp.lowering.triton import timing
from gcomp.lowering.triton.tuning import versions
from gcomp.lowering.tuned import FORMAT, Results, read, to_bytes
from gcomp.runtime import strict_json
from gcomp.runtime.cpu.variants import this_machine
from gcomp.runtime.cuda.plan import from_text
from gcomp.runtime.folders import CACHE
from tests.unit.cli.commands import Cli
from tests.unit.runtime.cuda.recorder import Recorder

MODEL = """func.func @main(%x: tensor<64x1024xbf16>, %y: tensor<1024x64xbf16>, %b: tensor<64xbf16>)
    -> tensor<64x64xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
      (tensor<64x1024xbf16>, tensor<1024x64xbf16>) -> tensor<64x64xbf16>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xbf16>) -> tensor<64x64xbf16>
  %2 = stablehlo.add %0, %1 : tensor<64x64xbf16>
  return %2 : tensor<64x64xbf16>
}"""


class Timed(Recorder):
    """Kernels that do nothing, and take as long as their text's digest says."""

    name = "a GPU of numbers"

    def __init__(self, architecture: str = "sm_90") -> None:
        super().__init__({}, architecture, 1 << 26)
        self.clock, self.marks, self.milli = 0.0, dict[int, float](), dict[str, float]()
        self._bodies = self  # type: ignore[assignment]
        self._binaries: dict[str, str] = {}

    def __getitem__(self, name: str) -> Any:
        return lambda *_, **__: None

    def load(self, binary: bytes, what: str) -> int:
        handle = super().load(binary, what)
        self._binaries[what.partition(".")[0]] = hashlib.sha256(binary).hexdigest()
        return handle

    def launch(self, function: int, *arguments: Any) -> None:
        super().launch(function, *arguments)
        digest = self._binaries[self._handles[function]]
        self.milli[digest] = 1e-3 * (1 + int(digest[:4], 16) % 997)
        self.clock += self.milli[digest]

    def mark(self, event: int, stream: int) -> None:
        self.marks[event] = self.clock

    def milliseconds(self, first: int, last: int) -> float:
        return self.marks[last] - self.marks[first]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("tune")
    (path / "model.mlir").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setenv(CACHE, str(tmp_path_factory.getbasetemp() / "kernels"))
        yield path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Timed:
    found = Timed()
    monkeypatch.setattr(tuning, "driver", lambda: found)
    monkeypatch.setattr(timing, "FLUSHED", 1 << 12)
    return found


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Path:
    """Results, and the artifact that follows them, made on a GPU of numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "driver", Timed)
        patch.setattr(timing, "FLUSHED", 1 << 12)
        tuning.tune_command(Path("model.mlir"), None, Source(), None, Path("known.gcomp"), Path("known.json"))
    return folder


def test_the_roofline_shows_what_was_measured(cli: Cli, tuned: Path) -> None:
    results = read(tuned / "known.json", versions())
    (form,) = results.forms
    result = cli("inspect", "known.gcomp", "--roofline", "roof.html")
    assert result.code == 0, result.err
    page = (tuned / "roof.html").read_text()
    assert page.count('circle class="predicted"') > 0 and 'circle class="measured"' not in page
    result = cli("inspect", "known.gcomp", "--roofline", "roof.html", "--tuned", "known.json")
    assert result.code == 0, result.err
    page = (tuned / "roof.html").read_text()
    assert 'circle class="predicted"' not in page and page.count('circle class="measured"') > 0
    assert "stablehlo" not in page and "4.80 TB/s" in page and page.count('class="roof"') == 3
    for seconds in form.best.steps:
        assert f"<td>{1e6 * seconds:.1f}</td>" in page
    assert "costliest" in result.out


def test_a_roofline_is_of_launches(cli: Cli, tuned: Path) -> None:
    assert cli("compile", "model.mlir", "-t", "xla:cpu", "-o", "host.gcomp").code == 0
    result = cli("inspect", "host.gcomp", "--roofline", "roof2.html")
    assert result.code == 2 and "--roofline shows launches" in result.err and not (tuned / "roof2.html").exists()
    result = cli("inspect", "known.gcomp", "--tuned", "known.json")
    assert result.code == 2 and "--roofline" in result.err


def test_without_a_driver_there_is_nothing_to_measure(cli: Cli) -> None:
    result = cli("tune", "model.mlir")
    assert result.code == 1 and "There is no NVIDIA driver" in result.err


def test_the_choice_follows_the_times(cli: Cli, gpu: Timed, folder: Path) -> None:
    result = cli("tune", "model.mlir", "--results", "times.json", "-o", "tuned.gcomp")
    assert result.code == 0, result.err
    assert "rank correlation" in result.out
    assert gpu.memory_held() == 0 and gpu.count("load") == gpu.count("unload")
    results = json.loads((folder / "times.json").read_text())["results"]
    (form,) = results["forms"]
    assert results["target"] == "sm_90" and results["device"] == gpu.name
    assert len(form["trials"]) > 5
    for trial in form["trials"]:
        assert trial["measured"] == pytest.approx(sum(trial["steps"])) and trial["predicted"] > 0
    best = min(form["trials"], key=lambda trial: trial["measured"])
    assert best["measured"] < form["trials"][0]["measured"], "the times say something else than the model"
    for command in ((), ("compile", "model.mlir", "-t", "triton:sm_90", "--tuned", "times.json", "-o", "tuned.gcomp")):
        if command:
            (folder / "tuned.gcomp").unlink()
            assert cli(*command).code == 0
        assert kernels(folder / "tuned.gcomp") == best["sources"]
    assert cli("compile", "model.mlir", "-t", "triton:sm_90", "-o", "plain.gcomp").code == 0
    assert kernels(folder / "plain.gcomp") == form["trials"][0]["sources"]


def kernels(path: Path) -> list[str]:
    plan = from_text(gcomp.load(path).plan.texts["plan.json"], "plan.json")["sm_90"]
    return [plan.kernels[launch.kernel].text for launch in plan.launches()]


@pytest.fixture(scope="module")
def times(folder: Path) -> dict[str, Any]:
    """Results of no kernel."""
    found = to_bytes(Results(FORMAT, "sm_90", "a GPU", versions(), ()))
    return json.loads(found)["results"]


@pytest.mark.parametrize(
    ("change", "target", "said"),
    [
        ({"triton": "3.1.4"}, "triton:sm_90", "of another triton"),
        ({"gcomp": "0.0.0"}, "triton:sm_90", "of another gcomp"),
        ({"assembler": "none"}, "triton:sm_90", "of another assembler"),
        ({"format": 0}, "triton:sm_90", "of another format"),
        ({}, "triton:sm_80", "are for sm_90, and the target is sm_80"),
        ({}, "xla:cpu", "not used on the target xla:cpu"),
    ],
)
def test_results_of_something_else_are_refused(
    cli: Cli, folder: Path, times: dict[str, Any], change: dict[str, Any], target: str, said: str
) -> None:
    changed = times | {key: value for key, value in change.items() if key not in times["versions"]}
    changed["versions"] = times["versions"] | {key: value for key, value in change.items() if key != "format"}
    sealed = {"sha256": hashlib.sha256(strict_json.dumps(changed)).hexdigest(), "results": changed}
    (folder / "other.json").write_bytes(strict_json.dumps(sealed))
    result = cli("compile", "model.mlir", "-t", target, "--tuned", "other.json", "-o", "no.gcomp")
    assert result.code == 2 and said in result.err
    assert not (folder / "no.gcomp").exists()


def test_changed_results_are_refused(cli: Cli, folder: Path, times: dict[str, Any]) -> None:
    data = strict_json.dumps({"sha256": hashlib.sha256(strict_json.dumps(times)).hexdigest(), "results": times})
    for place in range(0, len(data), 7):
        (folder / "changed.json").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(GcompError, match=r"results of tuning were changed|no file of tuning results"):
            read(folder / "changed.json", versions())
    result = cli("compile", "model.mlir", "-t", "triton:sm_90", "--tuned", "changed.json", "-o", "no.gcomp")
    assert result.code == 1 and "tun" in result.err
    result = cli("compile", "model.mlir", "-t", "triton:sm_90", "--tuned", "nothing.json", "-o", "no.gcomp")
    assert result.code == 2 and "cannot read nothing.json" in result.err


def test_only_models_are_tuned_and_only_for_this_gpu(cli: Cli, gpu: Timed, folder: Path) -> None:
    (folder / "some.gcomp").write_bytes(b"")
    result = cli("tune", "some.gcomp")
    assert result.code == 2 and "is compiled already" in result.err and "tune the model" in result.err
    result = cli("tune", "model.mlir", "-t", "triton:sm_80")
    assert result.code == 1 and "cannot be timed on this GPU, which is of sm_90" in result.err
    result = cli("tune", "model.mlir", "-t", "triton:sm_90,sm_80")
    assert result.code == 2 and "a GPU is of one architecture" in result.err
    assert gpu.count("launch") == 0


PRODUCT = """func.func @main(%x: tensor<50x96xf32>, %w: tensor<96x64xf32>) -> tensor<50x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<50x96xf32>, tensor<96x64xf32>) -> tensor<50x64xf32>
  return %0 : tensor<50x64xf32>
}"""


def test_a_file_of_results_gives_the_same_artifact_twice(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(PRODUCT)
    done = cli("tune", "model.mlir", "--target", "cpu", "--results", "t.json", "-o", "first.gcomp")
    assert done.code == 0, done.err
    found = json.loads(Path("t.json").read_text())["results"]
    assert found["target"] == this_machine() and len(found["forms"]) == 1
    done = cli("compile", "model.mlir", "--tuned", "t.json", "-o", "second.gcomp")
    assert done.code == 0, done.err
    assert Path("first.gcomp").read_bytes() == Path("second.gcomp").read_bytes()
    done = cli("compile", "model.mlir", "--target", "cpu:riscv64", "--tuned", "t.json", "-o", "third.gcomp")
    assert done.code == 2 and "the target is riscv64" in done.err
