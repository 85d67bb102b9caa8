"""Every op class of the graph level has a row of indexing maps, or a reason why it has none."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import CallOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp

from gcomp.analysis.indexing import MAPS, operand_maps
from gcomp.analysis.indexing.table import WITHOUT, extent
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.chlo import CHLO
from gcomp.ir.native import GCOMP
from gcomp.ir.program import Program
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from tests.support.samples import samples

SDY_OPS = [op for op in sdy.SDY.operations if op is not sdy.MeshOp]
OPS = [*STABLEHLO.operations, *CHLO.operations, *GCOMP.operations, *SDY_OPS, CallOp]


def test_every_op_class_has_a_row() -> None:
    assert [op.name for op in OPS if op not in MAPS and op not in WITHOUT] == []
    assert WITHOUT.keys() == {
        hlo.ReturnOp, FuncReturnOp, sdy.ReturnOp, sdy.ShardingGroupOp, ViewAsRealOp, ViewAsComplexOp,
    }  # fmt: skip
    assert not MAPS.keys() & WITHOUT.keys()


@pytest.mark.parametrize("name", SAMPLES := samples())
def test_rows_fit_their_ops(name: str) -> None:
    """One map for each operand, of each result; their shapes are the result's and the operand's."""
    for op in Program.parse(SAMPLES[name]).ops():
        if type(op) not in MAPS:
            continue
        rows = operand_maps(op)
        assert len(rows) == len(op.results)
        for result, row in zip(op.results, rows, strict=True):
            assert len(row) == len(op.operands)
            for operand, m in zip(op.operands, row, strict=True):
                assert m is None or (m.domain, m.shape) == (extent(result), extent(operand)), str(m)
                assert m is None or len(m.indices) == len(m.shape)
                assert m is None or m.data_dependent <= set(range(len(m.shape)))
                assert m is None or not m.data_dependent or not m.exact
