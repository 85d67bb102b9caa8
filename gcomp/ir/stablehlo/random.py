"""Random numbers."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect

from gcomp.ir.assembly import EnumWord
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.enums import RngAlgorithmAttr, RngDistributionAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.types import ELEMENT_TYPES, FLOATS, compatible, element_of, rank_of, same_shape, shape_of


@irdl_op_definition
class RngOp(GraphOp):
    """Random numbers from hidden state: each execution gives others. The result's type is declared.

    Parameters `a` and `b` bound a uniform distribution (`b` excluded), or are a normal one's mean and deviation.
    """

    name = "stablehlo.rng"
    INFERS: ClassVar = False
    a = operand_def(AnyTensorTypeConstr)
    b = operand_def(AnyTensorTypeConstr)
    shape = operand_def(AnyTensorTypeConstr)
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(AnyTensorTypeConstr)
    custom_directives = (EnumWord,)
    assembly_format = (
        "$a `,` $b `,` $shape `,` `distribution` `=` custom<EnumWord>($rng_distribution) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def check(self) -> None:
        for constraint, parameter in (("I1", self.a), ("I2", self.b)):
            if rank_of(parameter):
                self.fail(constraint, f"{parameter.type} is not a scalar")
            if element_of(parameter) != element_of(self.result):
                self.fail("C1", "parameters and result have different element types")
        if self.value("rng_distribution") == "NORMAL" and element_of(self.a) not in FLOATS:
            self.fail("C2", "a normal distribution needs floats")
        if not same_shape(shape_of(self.shape), (rank_of(self.result),)):
            self.fail("C3", f"a shape {self.shape.type} for a result of rank {rank_of(self.result)}")


_STATE_SIZES = {"THREE_FRY": (2,), "PHILOX": (2, 3)}


@irdl_op_definition
class RngBitGeneratorOp(GraphOp):
    """Random bits, and the next state of the generator. The type of the bits is declared."""

    name = "stablehlo.rng_bit_generator"
    INFERS: ClassVar = False
    rng_algorithm = prop_def(RngAlgorithmAttr)
    initial_state = operand_def(AnyTensorTypeConstr)
    output_state = result_def(AnyTensorTypeConstr)
    output = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (EnumWord,)
    assembly_format = (
        "$initial_state `,` `algorithm` `=` custom<EnumWord>($rng_algorithm) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def check(self) -> None:
        before, after = self.initial_state.type, self.output_state.type
        if element_of(before) != ELEMENT_TYPES["ui64"] or rank_of(before) != 1:
            self.fail("I2", f"the state {before} is not a vector of ui64")
        if not compatible(before, after):
            self.fail("C1", f"the states have types {before} and {after}")
        algorithm = self.value("rng_algorithm")
        if algorithm in _STATE_SIZES and shape_of(before)[0] not in _STATE_SIZES[algorithm]:
            self.fail("C2", f"{algorithm} does not take a state of type {before}")
