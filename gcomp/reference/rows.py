"""Importing this fills the table: the rows written by hand, then the generic ones, then what has none."""

from __future__ import annotations

from gcomp.reference import chlo, constant, control, host, indexing, legacy, random, reduction, sorting, viewing  # isort: skip
from gcomp.reference import collectives  # isort: skip
from gcomp.reference import generic  # isort: skip
from gcomp.reference import declared  # isort: skip
from gcomp.reference import linalg  # isort: skip

__all__ = [
    "chlo",
    "collectives",
    "constant",
    "control",
    "declared",
    "generic",
    "host",
    "indexing",
    "legacy",
    "linalg",
    "random",
    "reduction",
    "sorting",
    "viewing",
]
