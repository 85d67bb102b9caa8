"""Derivatives of batch normalization, by its definition."""

from __future__ import annotations

from gcomp.autodiff.table import expands
from gcomp.decompositions import normalization
from gcomp.ir import stablehlo as hlo

expands(hlo.BatchNormInferenceOp)(normalization.inference)
expands(hlo.BatchNormTrainingOp)(normalization.training)
expands(hlo.BatchNormGradOp)(normalization.gradient)

__all__: list[str] = []
