"""Every op of the graph level has a row in each facet's table, or a reason why it has none; and no miss is silent."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.irdl import irdl_op_definition

from gcomp.analysis.work import Nominal, flops_of
from gcomp.dims import Ranges
from gcomp.errors import InternalError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.chlo.elementwise import FunctionOp
from gcomp.ir.families import APPROXIMATED, GRAPH_OPS, PLAIN, SIMPLE
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.roles import ROLES, Role
from gcomp.reference import noise
from gcomp.reference.noise import rounding_masks
from gcomp.reference.varied import name_of
from tools import audit

MODULE = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


def test_nothing_is_missing() -> None:
    assert audit.missing() == []


def test_no_reason_stands_beside_a_row() -> None:
    assert audit.stale() == []


def test_reasons_are_of_ops_and_say_something() -> None:
    for facet in audit.FACETS:
        assert facet.reasons().keys() <= set(GRAPH_OPS), facet.name
        assert all(facet.rows().values()) and all(facet.reasons().values()), facet.name


@pytest.mark.parametrize("facet", audit.FACETS, ids=lambda facet: facet.name)
def test_an_op_that_nothing_knows_lacks_every_facet(facet: audit.Facet) -> None:
    class AbsentOp(hlo.AbsOp):
        name = "stablehlo.absent"

    assert facet.cell(AbsentOp) is None


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main([]) == 0 and capsys.readouterr().out == "nothing is missing\n"
    assert audit.main(["stablehlo.cbrt"]) == 0 and "4 ulp" in capsys.readouterr().out
    assert audit.main(["stablehlo.cbrtt"]) == 2
    without = audit.Facet("color", "gcomp/colors.py", dict, dict)
    monkeypatch.setattr(audit, "FACETS", (*audit.FACETS, without))
    assert audit.main([]) == 1 and "stablehlo.cbrt: color is missing" in capsys.readouterr().out
    assert audit.main(["stablehlo.cbrt"]) == 1
    assert "MISSING: add it to gcomp/colors.py" in capsys.readouterr().out


def test_elementwise_ops_are_of_a_family() -> None:
    ops = {op for op, role in ROLES.items() if role is Role.ELEMENTWISE}
    families = {*APPROXIMATED, *SIMPLE, *PLAIN}
    assert {op.name for op in ops ^ families} == set()
    assert len(families) == len(APPROXIMATED) + len(SIMPLE) + len(PLAIN), "an op is of two families"


def test_what_broadcasts_is_called_like_what_it_applies() -> None:
    names = {op.name: name_of(op) for op in GRAPH_OPS if "broadcast" in op.name and op.name.startswith("stablehlo")}
    assert all(name == name.partition(".")[2] or names[name] == name.partition(".")[2] for name in names)
    assert all(name_of(op) == op.name.removeprefix("chlo.broadcast_") for op in PLAIN)


def test_movement_rounds_nothing() -> None:
    """Noise off by an ulp in a broadcast would be taken for what rounding does."""
    program = Program.parse("""func.func @main(%x: tensor<3xf32>) -> tensor<2x3xf32> {
      %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }""")
    x = np.array([1.0, 3.0, -7.0], np.float32)
    (result,) = noise.NoisyInterpreter(program, 0).run([x])
    assert (result == x).all()


# ---- no miss is silent ----


@irdl_op_definition
class UnknownOp(FunctionOp):
    """A function of which no table says anything."""

    name = "chlo.unknown"


def test_work_of_an_unknown_op_is_an_error() -> None:
    program = Program.parse(MODULE)
    op = UnknownOp.of(program.block.args[0])
    with pytest.raises(InternalError, match=r"gcomp\.analysis\.work has no row for chlo\.unknown"):
        flops_of(op, Nominal(Ranges()))


def test_noise_of_an_unknown_op_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = Program.parse(MODULE), np.ones(2, np.float32)
    monkeypatch.setattr(noise, "NOISY", noise.NOISY - {"add"})
    with pytest.raises(InternalError, match=r"gcomp\.reference\.noise has no row for stablehlo\.add"):
        rounding_masks(program, [x, x], [x + x], [x + x])


@pytest.mark.parametrize("op", audit.TERMINATORS)
def test_only_terminators_end_regions(op: type[GraphOp]) -> None:
    assert op.name.endswith("return")
