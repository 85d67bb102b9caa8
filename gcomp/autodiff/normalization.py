"""Derivatives of batch normalization, by its definition."""

from __future__ import annotations

from gcomp.autodiff.table import expands
from gcomp.decompositions.normalization import NORMALIZATIONS, normalize

for _op in NORMALIZATIONS:
    expands(_op)(normalize)

__all__: list[str] = []
