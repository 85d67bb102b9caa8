"""Every op with symbolic dims: once these have sizes, the program verifies, and jaxlib takes its export text."""

from __future__ import annotations

from pathlib import Path

import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib

from gcomp.ir.host import HostOp
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.viewing import ViewOp
from gcomp.lowering.xla.export import export
from gcomp.lowering.xla.legality import problem_of
from gcomp.lowering.xla.segments import cut
from gcomp.runtime.template import Template

FILETESTS = Path(__file__).parents[2] / "filetests"
FILES = [
    path
    for dialect in ("stablehlo", "chlo", "gcomp")
    for path in sorted((FILETESTS / dialect).glob("*.mlir"))
    if not path.stem.endswith("-invalid") and path.stem != "quantization"
]
SIZES = {"batch": 2, "seq": 5, "n": 4, "m": 6, "h": 8, "c": 3, "w": 7, "past": 3, "vocabulary": 9}
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")


@each_file
def test_bound_programs_verify(path: Path) -> None:
    bound = Program.parse(path.read_text("utf-8"), path.name).bind(SIZES)
    bound.verify()
    assert '["' not in bound.text(), "a symbol is left"


@each_file
def test_export_text_is_accepted(path: Path) -> None:
    program = Program.parse(path.read_text("utf-8"), path.name)
    if any(isinstance(op, HostOp) for op in program.ops()):
        # A program is cut around its host steps, whose parts test_segments.py compiles.
        assert all(isinstance(step, HostOp) or step.program is not program for step in cut(program))
        return
    if any(isinstance(op, ViewOp) for op in program.ops()):
        assert all(problem_of(op) for op in program.ops() if isinstance(op, ViewOp)), "XLA does not get them"
        return
    weights = {
        f.sym_name.data: [(op.symbol, op.result.type) for op in f.walk() if isinstance(op, WeightOp)]
        for f in program.functions()
    }
    # An unknown size may be any that fits.
    text = Template(export(program, weights, ())).fill({**SIZES, "_": 4})
    jaxlib.Module.parse(text, mlir.make_ir_context()).operation.verify()
