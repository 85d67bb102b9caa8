"""Batch normalization: statistics are read at an element's feature, or made of all elements of that feature."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import IndexingMap, Ranging, coordinates, identity
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.stablehlo.normalization import BatchNormOp
from gcomp.ir.types import shape_of

Shape = tuple[Size, ...]


def _maps(op: BatchNormOp, domain: Shape) -> tuple[IndexingMap, IndexingMap]:
    """What an element of a result reads of a vector of features, and of a tensor in all of its feature."""
    shape = shape_of(op.operands[0])
    axis: int = op.value("feature_index")
    own, ranging = coordinates(domain), Ranging()
    feature = own[axis] if domain == shape else own[0]
    indices = tuple([feature if k == axis else ranging(size) for k, size in enumerate(shape)])
    vector = IndexingMap(domain, (shape[axis],), (feature,))
    return vector, IndexingMap(domain, shape, indices, tuple(ranging.sizes))


@maps(hlo.BatchNormInferenceOp)
def batch_norm_inference(op: hlo.BatchNormInferenceOp) -> list[Maps]:
    """The statistics are operands."""
    domain = shape_of(op.operand)
    vector, _ = _maps(op, domain)
    return [[identity(domain), *[vector] * 4]]


@maps(hlo.BatchNormTrainingOp)
def batch_norm_training(op: hlo.BatchNormTrainingOp) -> list[Maps]:
    """The statistics are of the operand, and do not depend on scale and offset."""
    vector, feature = _maps(op, shape_of(op.operand))
    _, own = _maps(op, shape_of(op.batch_mean))
    return [[feature, vector, vector], [own, None, None], [own, None, None]]


@maps(hlo.BatchNormGradOp)
def batch_norm_grad(op: hlo.BatchNormGradOp) -> list[Maps]:
    """The gradients of scale and offset are sums over a feature, and that of the operand holds both."""
    vector, feature = _maps(op, shape_of(op.operand))
    own, all_own = _maps(op, shape_of(op.grad_scale))
    return [
        [feature, vector, vector, vector, feature],
        [all_own, None, own, own, all_own],
        [None, None, None, None, all_own],
    ]
