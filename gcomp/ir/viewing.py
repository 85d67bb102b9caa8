"""Complex numbers as the pairs of real ones that memory holds, for targets that have no complex type.

StableHLO's `bitcast_convert` does not lead from complex numbers to real ones; these do, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import COMPLEX, ELEMENT_TYPES, dtype_text, real_element, same_size, shape_of, tensor

_PARTS = frozenset(ELEMENT_TYPES[text] for text in ("f32", "f64"))


class ViewOp(GraphOp):
    """The same bytes under another element type."""

    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class ViewAsRealOp(ViewOp):
    """Complex numbers as pairs along a last dimension of size 2: the real part, then the imaginary one."""

    name = "gcomp.view_as_real"
    ELEMENTS: ClassVar = COMPLEX

    def infer(self) -> Sequence[Attribute]:
        return (tensor((*shape_of(self.operand), 2), real_element(self.operand)),)


@irdl_op_definition
class ViewAsComplexOp(ViewOp):
    """Pairs along the last dimension, whose size is 2, as complex numbers."""

    name = "gcomp.view_as_complex"
    ELEMENTS: ClassVar = _PARTS

    def infer(self) -> Sequence[Attribute]:
        *shape, pairs = shape_of(self.operand) or (0,)
        if not same_size(pairs, 2):
            self.fail("C1", f"the last dimension of {self.operand.type} does not hold pairs")
        return (tensor(shape, f"complex<{dtype_text(self.operand.type)}>"),)
