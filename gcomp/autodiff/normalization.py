"""Derivatives of batch normalization, by its definition."""

from __future__ import annotations

from gcomp.autodiff.table import expands
from gcomp.decompositions.normalization import NORMALIZATIONS

for _op, _definition in NORMALIZATIONS.items():
    expands(_op)(_definition)

__all__: list[str] = []
