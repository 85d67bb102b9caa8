"""StableHLO in xDSL: every op of the specification, and the dialect that holds them.

`from gcomp.ir import stablehlo as hlo` gives each op as `hlo.AddOp`, `hlo.WhileOp`, ...
"""
# ruff: noqa: F403  the ops of each family are exported as they are

from __future__ import annotations

from gcomp.ir import enums, structures
from gcomp.ir.collecting import make_dialect
from gcomp.ir.stablehlo.asynchronous import *
from gcomp.ir.stablehlo.collectives import *
from gcomp.ir.stablehlo.constant import *
from gcomp.ir.stablehlo.contraction import *
from gcomp.ir.stablehlo.control import *
from gcomp.ir.stablehlo.conversion import *
from gcomp.ir.stablehlo.dynamic import *
from gcomp.ir.stablehlo.elementwise import *
from gcomp.ir.stablehlo.extension import *
from gcomp.ir.stablehlo.indexing import *
from gcomp.ir.stablehlo.legacy import *
from gcomp.ir.stablehlo.linalg import *
from gcomp.ir.stablehlo.movement import *
from gcomp.ir.stablehlo.normalization import *
from gcomp.ir.stablehlo.quantization import *
from gcomp.ir.stablehlo.random import *
from gcomp.ir.stablehlo.reduction import *
from gcomp.ir.stablehlo.sorting import *

STABLEHLO = make_dialect("stablehlo", globals(), enums, structures)
"""All ops, types and attributes of StableHLO."""
