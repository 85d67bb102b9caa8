"""CHLO in xDSL: StableHLO's companion of functions and broadcasts that frontends use.

`from gcomp.ir import chlo` gives each op as `chlo.ErfOp`, `chlo.TopKOp`, ...
"""
# ruff: noqa: F403  the ops of each family are exported as they are

from __future__ import annotations

from gcomp.ir import enums, structures
from gcomp.ir.chlo.broadcasting import *
from gcomp.ir.chlo.elementwise import *
from gcomp.ir.chlo.structural import *
from gcomp.ir.collecting import make_dialect

CHLO = make_dialect("chlo", globals(), enums, structures)
"""All ops and attributes of CHLO."""
