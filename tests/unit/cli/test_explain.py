"""`gcomp explain`: kernels, what they cost, and why they are not one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.commands import Cli

CENTERED = """
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<64x256xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %5 = stablehlo.tanh %4 : tensor<64x256xf32>
  return %5 : tensor<64x256xf32>
}
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "centered.mlir").write_text(CENTERED)
    return tmp_path


def test_kernels_and_reasons_are_shown(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--steps")
    assert done.code == 0, done.err
    assert "2 kernels" in done.out
    assert "dot_general_tanh" in done.out
    assert "do not share a kernel" in done.out
    assert "saves time" in done.out


def test_all_of_it_is_json_too(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--json", "--machine", "cpu")
    (block,) = (found := json.loads(done.out))["blocks"]
    assert found["machine"] == "cpu"
    assert [kernel["kind"] for kernel in block["kernels"]] == ["reduction", "matmul"]
    assert block["kernels"][0]["read_bytes"] == 64 * 256 * 4
    assert all(not pair["fused"] and pair["reason"] for pair in block["apart"])
    assert any(step["fused"] and step["microseconds"] > 0 for step in block["steps"])


def test_a_text_chooses_kernels(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--at", "tanh")
    assert "dot_general_tanh" in done.out
    assert "reduction" not in done.out


def test_a_page_shows_the_plan(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--memory", "plan.html")
    assert done.code == 0, done.err
    page = (folder / "plan.html").read_text("utf-8")
    assert page.count("<rect ") == 2
    assert "131,072 bytes, exactly the most bytes alive" in page


def test_an_unknown_machine_is_wrong_usage(cli: Cli, folder: Path) -> None:
    done = cli("explain", "centered.mlir", "--machine", "abacus")
    assert done.code == 2
    assert "sm_90" in done.err
