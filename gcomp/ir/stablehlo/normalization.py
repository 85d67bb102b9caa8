"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import FLOATS, element_of, rank_of, same_shape, same_size, shape_of, tensor


class BatchNormOp(GraphOp):
    """Normalization of each feature over all other dimensions."""

    ELEMENTS: ClassVar = FLOATS
    # Operands stand in the subclasses: xDSL puts a base class's after its subclass's.
    epsilon = prop_def(FloatAttr)
    feature_index = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def check_features(self, vectors: Sequence[tuple[str, SSAValue]]) -> None:
        """Refuse vectors that do not hold one element of the operand's type for each feature."""
        index: int = self.value("feature_index")
        if not 0 <= index < rank_of(self.operands[0]):
            self.fail("C1", f"feature_index {index} is not a dimension of rank {rank_of(self.operands[0])}")
        if any(element_of(v) != element_of(self.operands[0]) for v in self.operands):
            self.fail("C2", "operands have different element types")
        features = shape_of(self.operands[0])[index]
        for constraint, vector in vectors:
            if rank_of(vector) != 1 or not same_size(shape_of(vector)[0], features):
                self.fail(constraint, f"{vector.type} does not hold {features} features")

    def vector_type(self) -> Attribute:
        """The type of a vector with one element per feature."""
        index: int = self.value("feature_index")
        if not 0 <= index < rank_of(self.operands[0]):
            self.fail("C1", f"feature_index {index} is not a dimension of rank {rank_of(self.operands[0])}")
        return tensor((shape_of(self.operands[0])[index],), element_of(self.operands[0]))


@irdl_op_definition
class BatchNormInferenceOp(BatchNormOp):
    """`(operand - mean) / sqrt(variance + epsilon) * scale + offset`."""

    name = "stablehlo.batch_norm_inference"
    operand = operand_def(AnyTensorTypeConstr)
    scale = operand_def(AnyTensorTypeConstr)
    offset = operand_def(AnyTensorTypeConstr)
    mean = operand_def(AnyTensorTypeConstr)
    variance = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        vectors = zip(("C3", "C4", "C5", "C6"), (self.scale, self.offset, self.mean, self.variance), strict=True)
        self.check_features(tuple(vectors))


@irdl_op_definition
class BatchNormTrainingOp(BatchNormOp):
    """Normalization by the batch's own mean and variance, which are results too."""

    name = "stablehlo.batch_norm_training"
    operand = operand_def(AnyTensorTypeConstr)
    scale = operand_def(AnyTensorTypeConstr)
    offset = operand_def(AnyTensorTypeConstr)
    output = result_def(AnyTensorTypeConstr)
    batch_mean = result_def(AnyTensorTypeConstr)
    batch_var = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type, self.vector_type(), self.vector_type())

    def check(self) -> None:
        self.check_features((("C3", self.scale), ("C4", self.offset)))


@irdl_op_definition
class BatchNormGradOp(BatchNormOp):
    """The gradients of batch normalization with respect to operand, scale and offset."""

    name = "stablehlo.batch_norm_grad"
    operand = operand_def(AnyTensorTypeConstr)
    scale = operand_def(AnyTensorTypeConstr)
    mean = operand_def(AnyTensorTypeConstr)
    variance = operand_def(AnyTensorTypeConstr)
    grad_output = operand_def(AnyTensorTypeConstr)
    grad_operand = result_def(AnyTensorTypeConstr)
    grad_scale = result_def(AnyTensorTypeConstr)
    grad_offset = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type, self.vector_type(), self.vector_type())

    def check(self) -> None:
        self.check_features((("C5", self.scale), ("C4", self.mean), ("C4", self.variance)))
        if not same_shape(shape_of(self.grad_output), shape_of(self.operand)):
            self.fail("C3", "operand and grad_output have different shapes")
