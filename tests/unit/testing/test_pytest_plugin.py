"""gcomp's pytest plugin, in a pytest of its own: textual tests are collected, and `fuzz_pass` finds what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PASS = """
from dataclasses import dataclass
from typing import ClassVar
from gcomp.ir import stablehlo as hlo
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import apply_rewrites

RULE = Rule(
    "reverse-of-reverse",
    Op(hlo.ReverseOp, Op(hlo.ReverseOp, Var("x"), dimensions=Attr("p")), dimensions=Attr("q")),
    Op(hlo.ReverseOp, Var("x"), dimensions=Calc(lambda p, q: tuple(sorted({*p} JOIN {*q})))),
)

@dataclass(frozen=True)
class MergeReversals(Pass):
    name: ClassVar[str] = "merge-reversals"

    def run(self, program, context):
        return apply_rewrites(program, (RULE,), context)
"""
TEST = """
from NAME import MergeReversals

def test_merge_reversals(fuzz_pass):
    fuzz_pass(MergeReversals(), 40)
"""
TEXT = """// RUN: gcomp opt %s -p "canonicalize" | filecheck %s
// CHECK: EXPECTED
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  %1 = stablehlo.negate %0 : tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
"""


def run(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rN", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_right_ones_pass_and_other_tools_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "right_pass.py").write_text(PASS.replace("JOIN", "^"))
    (tmp_path / "test_right.py").write_text(TEST.replace("NAME", "right_pass"))
    (tmp_path / "a.mlir").write_text(TEXT.replace("EXPECTED", "return %x"))
    (tmp_path / "b.mlir").write_text("// RUN: mlir-opt %s | FileCheck %s\n")
    status, output = run(tmp_path)
    assert status == 0 and "2 passed" in output, output


def test_wrong_ones_fail_with_a_small_program(tmp_path: Path) -> None:
    (tmp_path / "wrong_pass.py").write_text(PASS.replace("JOIN", "|"))
    (tmp_path / "test_wrong.py").write_text(TEST.replace("NAME", "wrong_pass"))
    (tmp_path / "a.mlir").write_text(TEXT.replace("EXPECTED", "stablehlo.negate"))
    status, output = run(tmp_path)
    assert status == 1 and "2 failed" in output, output
    assert "the rewrite reverse-of-reverse" in output and "on this program" in output
    shown = output[output.index("on this program") :]
    assert shown.count("stablehlo.") == 2, shown
