"""`gcomp explain --mesh`: what is cut, what is sent, and what else would have cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gcomp.cli.app import app

RUNNER = CliRunner(env={"COLUMNS": "240"})
MODEL = """
func.func @main(%x: tensor<?x512xf32, ["batch", "512"]>, %up: tensor<512x2048xf32>, %down: tensor<2048x512xf32>)
    -> tensor<?x512xf32, ["batch", "512"]> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] :
    (tensor<?x512xf32, ["batch", "512"]>, tensor<512x2048xf32>) -> tensor<?x2048xf32, ["batch", "2048"]>
  %1 = stablehlo.tanh %0 : tensor<?x2048xf32, ["batch", "2048"]>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] :
    (tensor<?x2048xf32, ["batch", "2048"]>, tensor<2048x512xf32>) -> tensor<?x512xf32, ["batch", "512"]>
  return %2 : tensor<?x512xf32, ["batch", "512"]>
}
"""


@pytest.fixture(name="model")
def written(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.mlir"
    path.write_text(MODEL, "utf-8")
    return path


def test_rows_are_cut_where_there_are_many(model: Path) -> None:
    found = RUNNER.invoke(app, ["explain", str(model), "--mesh", "data=2,model=4", "--dim", "batch=64"])
    assert found.exit_code == 0, found.output
    assert "to send 0 B" in found.output and "[data+model, -]" in found.output
    assert "data parallel" in found.output and "from the best plan" in found.output


def test_one_row_cuts_weights_and_says_what_is_sent(model: Path) -> None:
    command = ["explain", str(model), "--mesh", "model=4", "--dim", "batch=1", "--json"]
    found = json.loads(RUNNER.invoke(app, command).output)
    cuts = {row["input"]: row["cut"] for row in found["inputs"]}
    assert (cuts["up"], cuts["down"]) == ("[-, model]", "[model, -]") and found["gap"] <= 0.02
    assert [m["bytes"] for m in found["messages"]] == [4 * 512]
    assert found["seconds"] == pytest.approx(found["computing"] + found["communicating"])


def test_a_page_shows_the_plan(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    command = ["explain", str(model), "--mesh", "model=4", "--dim", "batch=1", "--graph", str(page)]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 0 and "XLA is predicted to take" in found.output
    text = page.read_text("utf-8")
    assert "mlp.mlir on model=4 of cpu" in text and "2 KiB along model" in text and "fully sharded" in text


def test_what_has_no_number_is_told(model: Path) -> None:
    found = RUNNER.invoke(app, ["explain", str(model), "--mesh", "data=2"])
    assert "--dim batch=N" in found.output


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--mesh", "data"], "is no mesh"), (["--mesh", "data=2", "--devices", "h10"], "did you mean 'h100'"),
     (["--mesh", "data=2", "--dim", "batch=8", "--memory-budget", "1KiB"], "no plan was found that fits")],
)  # fmt: skip
def test_what_cannot_be_is_refused(model: Path, options: list[str], said: str) -> None:
    found = RUNNER.invoke(app, ["explain", str(model), *options])
    assert found.exit_code != 0 and said in f"{found.output}{found.exception}"
