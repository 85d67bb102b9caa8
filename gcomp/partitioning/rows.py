"""Importing this fills the table of sharding rules."""

from __future__ import annotations

from gcomp.partitioning import constant, contraction, control, elementwise, indexing, linalg, movement, reduction

__all__ = ["constant", "contraction", "control", "elementwise", "indexing", "linalg", "movement", "reduction"]
