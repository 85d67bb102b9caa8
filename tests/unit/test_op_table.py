"""docs/generated/ops.md is what the parts of gcomp say, and no op lacks anything without a reason."""

from __future__ import annotations

from importlib import import_module

import pytest

from gcomp.ir import stablehlo as hlo
from tools import op_table
from tools.op_table import FACETS, GAP, PAGE, render, table


@pytest.fixture(scope="module")
def cells() -> dict[str, list[str]]:
    return table()


def test_no_op_has_a_gap(cells: dict[str, list[str]]) -> None:
    gaps = {
        f"{op}: {facet}": cell
        for op, row in cells.items()
        for facet, cell in zip(FACETS, row, strict=True)
        if not cell or GAP in cell
    }
    assert gaps == {}


def test_the_page_is_fresh(cells: dict[str, list[str]]) -> None:
    assert PAGE.read_text("utf-8") == render(cells), "run `python -m tools.op_table`"


def test_every_op_that_jaxlib_has_is_listed(cells: dict[str, list[str]]) -> None:
    modules = [import_module(f"jaxlib.mlir.dialects._{name}_ops_gen") for name in ("stablehlo", "chlo")]
    classes = [value for module in modules for value in vars(module).values() if hasattr(value, "OPERATION_NAME")]
    names = {cls.OPERATION_NAME for cls in classes}
    assert len(names) > 150
    assert names - cells.keys() == set()


class AbsentOp(hlo.AbsOp):
    """An op that no part of gcomp knows."""

    name = "stablehlo.absent"


@pytest.mark.parametrize("facet", [name for name in FACETS if name != "result type"])
def test_an_op_that_nothing_knows_has_gaps(facet: str) -> None:
    assert op_table.FACETS[facet](AbsentOp).startswith(GAP)
