"""gcomp in xDSL's universe, so that `xdsl-opt` and `xdsl-gui` know its dialects and passes.

    xdsl-opt model.mlir -p "gcomp-canonicalize,gcomp-fold-constants{max-flops=1000}"

Passes are prefixed `gcomp-`: xDSL has a `canonicalize` of its own. A module in xDSL carries no weights' data, so that
passes see weights whose values they do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from gcomp.ir.chlo import CHLO
from gcomp.ir.kernel import KERNEL
from gcomp.ir.native import GCOMP
from gcomp.ir.program import Program
from gcomp.ir.sdy import SDY
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.passes.base import Pass
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import all_passes

PREFIX = "gcomp-"


class _InXdsl(ModulePass):
    """The half of an adapted pass that xDSL calls; the other half is the gcomp pass itself, options included."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PassManager([cast(Pass, self)]).run(Program(op))


@cache
def as_module_pass(cls: type[Pass]) -> type[ModulePass]:
    """A gcomp pass as an xDSL pass, with the same options and a prefixed name."""
    body = {"name": PREFIX + cls.name, "__doc__": cls.__doc__, "__module__": __name__}
    return cast("type[ModulePass]", type(f"Xdsl{cls.__name__}", (cls, _InXdsl), body))


def _dialect(dialect: Dialect) -> Callable[[], Dialect]:
    return lambda: dialect


def _module_pass(cls: type[Pass]) -> Callable[[], type[ModulePass]]:
    return lambda: as_module_pass(cls)


GCOMP_UNIVERSE = Universe(
    all_dialects={dialect.name: _dialect(dialect) for dialect in (STABLEHLO, CHLO, GCOMP, SDY, KERNEL)},
    all_passes={PREFIX + name: _module_pass(cls) for name, cls in all_passes().items()},
)
"""Found by xDSL through the entry point group `xdsl.universe`."""
