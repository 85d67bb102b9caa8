"""xDSL's tools find gcomp's dialects and passes, and run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.universe import Universe
from xdsl.xdsl_opt_main import xDSLOptMain

from gcomp.ir.program import Program
from gcomp.passes.registry import all_passes
from gcomp.universe import GCOMP_UNIVERSE, as_module_pass

TEXT = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.subtract %1, %zero : tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
"""


def xdsl_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, pipeline: str) -> str:
    """What `xdsl-opt` prints, run in this process."""
    path = tmp_path / "input.mlir"
    path.write_text(text, "utf-8")
    xDSLOptMain(args=[str(path), "-p", pipeline]).run()
    return capsys.readouterr().out


def test_every_pass_is_registered_with_the_prefix() -> None:
    found = Universe.get_multiverse().all_passes
    assert {f"gcomp-{name}" for name in all_passes()} <= set(found)
    assert {"stablehlo", "chlo", "gcomp"} <= set(Universe.get_multiverse().all_dialects)
    for name, make in GCOMP_UNIVERSE.all_passes.items():
        assert make().name == name


def test_xdsl_opt_runs_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = xdsl_opt(tmp_path, capsys, TEXT, "gcomp-canonicalize")
    program = Program.parse(output)
    assert [op.name for op in program.block.ops] == ["func.return"]
    assert program.returned.operands[0] is program.block.args[0]


def test_options_travel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    func.func @main() -> tensor<4xf32> {
      %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %1 = stablehlo.negate %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    """
    assert "negate" in xdsl_opt(tmp_path, capsys, text, "gcomp-fold-constants{max-flops=3}")
    assert "negate" not in xdsl_opt(tmp_path, capsys, text, "gcomp-fold-constants{max-flops=4}")


@pytest.mark.parametrize("name", all_passes())
def test_a_pass_does_the_same_under_both_managers(name: str) -> None:
    from xdsl.context import Context

    from gcomp.passes.base import PassContext

    ours, theirs = Program.parse(TEXT), Program.parse(TEXT)
    all_passes()[name]().run(ours, PassContext())
    as_module_pass(all_passes()[name])().apply(Context(), theirs.module)
    assert ours.text() == theirs.text()


def test_weights_without_data_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    func.func @main() -> tensor<4xf32> {
      %0 = gcomp.weight @w : tensor<4xf32>
      %1 = stablehlo.negate %0 : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    """
    assert "stablehlo.negate" in xdsl_opt(tmp_path, capsys, text, "gcomp-fold-constants")
