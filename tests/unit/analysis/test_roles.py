"""Every op has a role, and every role that can stand in a kernel makes a kind of one."""

from __future__ import annotations

from gcomp.ir.chlo import CHLO
from gcomp.ir.native import GCOMP
from gcomp.ir.roles import KIND_OF, PER_ELEMENT, ROLES, Role
from gcomp.ir.sdy import SDY, MeshOp
from gcomp.ir.stablehlo import STABLEHLO


def test_every_op_has_a_role() -> None:
    ops = [
        *STABLEHLO.operations,
        *CHLO.operations,
        *GCOMP.operations,
        *(op for op in SDY.operations if op is not MeshOp),
    ]
    assert [op.name for op in ops if op not in ROLES] == []


def test_every_role_has_its_place() -> None:
    outside = {Role.SOURCE, Role.CONTROL, Role.EFFECT, Role.REINTERPRETATION}
    assert set(Role) == PER_ELEMENT | KIND_OF.keys() | outside
