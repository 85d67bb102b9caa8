"""The view of memory of programs whose sizes have no bound: at the sizes of the profile, and something is drawn."""

from __future__ import annotations

import re

from gcomp.report.building import report_of

TEXT = """func.func @main(%x: tensor<?x64xf32, ["n", "64"]> {gcomp.name = "x"}) -> tensor<?x64xf32, ["n", "64"]> {
  %w = stablehlo.constant dense<0.02> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<?x64xf32, ["n", "64"]>, tensor<64x64xf32>) -> tensor<?x64xf32, ["n", "64"]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<?x64xf32, ["n", "64"]>, tensor<64x64xf32>) -> tensor<?x64xf32, ["n", "64"]>
  return %1 : tensor<?x64xf32, ["n", "64"]>
}"""


def test_sizes_without_a_bound_are_drawn_too() -> None:
    data = report_of(TEXT, target="cpu", title="open").data
    found = re.search(r"The arena has ([\d,]+) bytes", data["memory"]["summary"])
    assert found is not None and int(found.group(1).replace(",", "")) >= 64 * 4
    assert 'class="storage"' in data["memory"]["svg"] and 'height="0.00"' not in data["memory"]["svg"]
    assert max(p["after"][2] or 0 for p in data["passes"]) >= 64 * 4
