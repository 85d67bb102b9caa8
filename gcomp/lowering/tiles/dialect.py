"""The `tile` dialect as one object, for what reads its text."""

from __future__ import annotations

from gcomp.ir.collecting import make_dialect
from gcomp.lowering.tiles import combining, descriptors, tile

TILE = make_dialect("tile", {}, tile, combining, descriptors)
