"""`gcomp compile --lengths --buckets`: buckets are chosen, shown beside powers of two, and kept in the artifact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.runtime.bucketed import BucketedModel
from tests.unit.cli.commands import Cli

MODEL = """
func.func @main(%x: tensor<?x4xf32, ["seq", "4"]> {gcomp.name = "x"})
    -> (tensor<4xf32> {gcomp.name = "y"}, tensor<?x?xf32, ["seq", "seq"]> {gcomp.name = "z"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32, ["seq", "4"]>, tensor<f32>) -> tensor<4xf32>
  %z = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
    : (tensor<?x4xf32, ["seq", "4"]>, tensor<?x4xf32, ["seq", "4"]>) -> tensor<?x?xf32, ["seq", "seq"]>
  func.return %y, %z : tensor<4xf32>, tensor<?x?xf32, ["seq", "seq"]>
}
"""

COMPILE = ("compile", "m.mlir", "-t", "xla:cpu", "-o", "m.gcomp")
"""Buckets are for targets that compile for sizes."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MODEL)
    (tmp_path / "lengths.txt").write_text("# lengths\n5\n6 10\n7, 3\n40\n41 2\n\n")
    (tmp_path / "wrong.txt").write_text("5\nfive\n")
    (tmp_path / "long.txt").write_text("5\n100\n")
    return tmp_path


def test_buckets_are_chosen_and_used(cli: Cli, folder: Path) -> None:
    done = cli(*COMPILE, "--dim", "seq=1..64", "--lengths", "lengths.txt", "--buckets", "2")
    assert done.code == 0, done.err
    assert "seq: 17 lengths" in done.err
    assert "2 optimal" in done.err
    assert "2 powers of two" in done.err
    model = gcomp.load(folder / "m.gcomp")
    assert isinstance(model, BucketedModel)
    assert dict(model.buckets) == {"seq": (7, 41)}
    x = np.ones((6, 4), np.float32)
    assert np.array_equal(model(x)[0], [6, 6, 6, 6])
    shown = cli("inspect", "m.gcomp")
    assert "seq is padded to" in shown.out
    assert "7, 41" in shown.out


def test_sizes_may_be_given(cli: Cli, folder: Path) -> None:
    assert cli(*COMPILE, "--dim", "seq=1..64", "--buckets", "seq=8,64").code == 0
    assert gcomp.load(folder / "m.gcomp").plan.buckets["seq"].sizes == (8, 64)


def test_multiples_and_costs(cli: Cli, folder: Path) -> None:
    options = "--dim seq=1..64 --lengths seq=lengths.txt --bucket-multiple 8 --bucket-cost flops"
    done = cli(*COMPILE, *options.split())
    assert done.code == 0, done.err
    assert gcomp.load(folder / "m.gcomp").plan.buckets["seq"].sizes == (8, 40, 48)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--dim seq=1..64 --lengths wrong.txt", "line 2 of wrong.txt is not a length: 'five'"),
        ("--dim seq=1..64 --lengths none.txt", "cannot read none.txt"),
        ("--dim seq=1..64 --lengths long.txt", "a length of 100 is beyond the greatest size, 64"),
        ("--lengths lengths.txt", "does not say which dimension it is about"),
        ("--dim seq=1..64 --lengths lengths.txt --buckets seq=8,64", "names sizes, and --lengths chooses them"),
        ("--dim seq=1..64 --buckets seq=many", "is not a number of buckets, nor a list of sizes"),
        ("--dim seq=1..64 --buckets seq=8,65", "the bucket 65 of 'seq' is outside of its range, 1..64"),
        ("--dim seq=1..64 --buckets 8 --buckets seq=9", "--buckets names 'seq' twice"),
        ("--dim seq=1..64 --buckets other=8", "no symbolic dimension 'other' to pad"),
        ("--dim seq=1..64 --lengths lengths.txt --bucket-cost time", "--bucket-cost is linear or flops, not 'time'"),
        ("--dim seq=1..64 --buckets seq=8 --target triton:sm_90", "there are no buckets on the target triton:sm_90"),
    ],
)
def test_what_is_wrong_is_said(options: str, message: str, cli: Cli, folder: Path) -> None:
    done = cli(*COMPILE, *options.split())
    assert done.code in (1, 2)
    assert message in " ".join(done.err.split())
    assert not (folder / "m.gcomp").exists()
