"""Assembly formats are read when they are needed, and all are right."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, operand_def, result_def
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.utils.exceptions import ParseError

from gcomp.ir.chlo import CHLO
from gcomp.ir.definitions import derives, irdl_op_definition
from gcomp.ir.families import GRAPH_OPS
from gcomp.ir.native import GCOMP
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.lowering.tiles.dialect import TILE

OPS = [
    op for dialect in (STABLEHLO, CHLO, GCOMP, SDY, TILE) for op in dialect.operations if issubclass(op, IRDLOperation)
]
WITH_FORMAT = [op for op in OPS if op.get_irdl_definition().assembly_format is not None]


@pytest.mark.parametrize("op", WITH_FORMAT, ids=lambda op: op.name)
def test_every_format_is_right(op: type[IRDLOperation]) -> None:
    definition = op.get_irdl_definition()
    assert definition.assembly_format is not None
    assert FormatProgram.from_str(definition.assembly_format, definition).stmts


def test_most_ops_have_a_format() -> None:
    assert len(WITH_FORMAT) > 100


def test_a_wrong_format_is_found_when_it_is_used() -> None:
    @irdl_op_definition
    class Wrong(IRDLOperation):
        name = "test.wrong"
        operand = operand_def()
        result = result_def()
        assembly_format = "$missing attr-dict"

    program = Program.parse("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}")
    op = Wrong.create(operands=[program.block.args[0]], result_types=[program.block.args[0].type])
    with pytest.raises(ParseError, match="missing"):
        str(op)


def test_no_format_is_read_by_importing() -> None:
    code = """
import xdsl.irdl.declarative_assembly_format as formats
import xdsl.dialects.func, xdsl.dialects.builtin
read = []
formats.FormatProgram.from_str = staticmethod(lambda text, definition: read.append(definition.name))
import gcomp.ir.program, gcomp.lowering.tiles.dialect
assert not read, read
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_classes_derive_as_python_says() -> None:
    for op in OPS:
        assert derives(op, GraphOp) == issubclass(op, GraphOp)
        assert derives(op, Operation)
    assert set(GRAPH_OPS) == {op for op in OPS if issubclass(op, GraphOp)}
