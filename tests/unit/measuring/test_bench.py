"""`gcomp bench`: rows for each engine at each of the sizes, answers compared, refusals named, a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gcomp.cli.app import app
from gcomp.cli.bench_plot import plot
from gcomp.errors import UsageError
from gcomp.measuring.bench import measure
from gcomp.measuring.engines import ENGINES, Engine, OnnxRuntime, engine_of

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "m.onnx"
    text = """<ir_version: 8, opset_import: ["" : 17]> m (float[n, 3] x) => (float[n, 3] y) { y = Sigmoid(x) }"""
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_engines_are_timed_beside_each_other_at_each_size(model: Path) -> None:
    found = measure(str(model), ["ort", "torch"], threads=1, dims={"n": [2, 5]}, rounds=3)
    assert [(row.engine, row.sizes["n"]) for row in found.rows] == [("gcomp", 2), ("ort", 2), ("gcomp", 5), ("ort", 5)]
    for row in found.rows:
        middle, low, high = row.seconds
        assert 0 < low <= middle <= high and row.samples == pytest.approx(row.sizes["n"] / middle)
    assert found.rows[0].ratio == (1, 1, 1)
    assert found.refused == {"torch": f"PyTorch does not take {model}: it takes .pt2, package.module:factory"}
    assert found.loading.keys() == {"gcomp", "ort"} and all(one.memory > 1 << 20 for one in found.loading.values())
    assert plot(found).count("<rect") == 1 + len(found.rows)


def test_a_fast_wrong_answer_is_no_result(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(OnnxRuntime):
        def numpy(self, inputs):
            return [out + np.float32(0.5) for out in super().numpy(inputs)]

    monkeypatch.setitem(ENGINES, "ort", Wrong)
    found = measure(str(model), ["ort"], threads=1, dims={}, rounds=3)
    assert [row.engine for row in found.rows] == ["gcomp"] and "another answer" in found.refused["ort"]


def test_wrong_words_are_named(model: Path) -> None:
    with pytest.raises(UsageError, match="no engine 'orr'"):
        engine_of("orr", str(model))
    with pytest.raises(UsageError, match="no symbolic dimension 'm'"):
        measure(str(model), [], threads=1, dims={"m": [2]}, rounds=3)
    assert all(issubclass(kind, Engine) and kind.suffixes for kind in ENGINES.values())


def test_the_command(model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "p.svg"
    words = ["bench", str(model), "--dim", "n=4", "--rounds", "3", "--threads", "1", "--plot", str(picture)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "calls/s" in done.output and picture.read_text("utf-8").startswith("<svg")
    done = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(done.stdout)["rows"][0]["engine"] == "gcomp"
