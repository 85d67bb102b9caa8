"""Elementwise ops with implicit broadcasting: shapes are aligned at their last dimension, as in NumPy, unless
`broadcast_dimensions` says to which result dimensions those of the operand of lower rank belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, DenseArrayBase
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.enums import ChloComparisonDirectionAttr, ChloComparisonTypeAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.types import BOOL, COMPLEX, ELEMENT_TYPES, FLOATS, INTEGERS, dtype_text, element_of, shape_of, tensor

_BITS = INTEGERS | {BOOL}
_NUMBERS = INTEGERS | FLOATS | COMPLEX


def broadcast_shapes(op: GraphOp, shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The shape that all of `shapes` broadcast to, aligned at the last dimension. Refuses shapes that do not."""
    rank = max(map(len, shapes))
    result: tuple[Size, ...] = ()
    for axis in range(-rank, 0):
        size: Size = 1
        for shape in shapes:
            if -axis <= len(shape):
                size = _broadcast(op, size, shape[axis])
        result = (*result, size)
    return result


def _broadcast(op: GraphOp, a: Size, b: Size) -> Size:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if "_" in dims.symbols_of(a) or "_" in dims.symbols_of(b):
        return a if isinstance(a, int) else b
    op.fail("C1", f"sizes {a} and {b} do not broadcast")


class BroadcastingOp(GraphOp):
    """Two operands, each repeated along dimensions that it lacks or has with size 1."""

    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    broadcast_dimensions = opt_prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)"

    def result_element(self) -> Attribute:
        """The result's element type."""
        return element_of(self.lhs)

    def aligned_shapes(self) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
        """The operands' shapes with ones put where `broadcast_dimensions` skips a dimension."""
        shapes = shape_of(self.lhs), shape_of(self.rhs)
        dimensions: tuple[int, ...] | None = self.value("broadcast_dimensions")
        if dimensions is None or len(shapes[0]) == len(shapes[1]):
            return shapes
        small = 0 if len(shapes[0]) < len(shapes[1]) else 1
        rank = len(shapes[1 - small])
        if len(dimensions) != len(shapes[small]) or list(dimensions) != sorted(set(dimensions)):
            self.fail("C2", f"broadcast_dimensions {list(dimensions)} do not fit {shapes[small]}")
        if any(not 0 <= d < rank for d in dimensions):
            self.fail("C2", f"broadcast_dimensions {list(dimensions)} are not dimensions of rank {rank}")
        sizes = dict(zip(dimensions, shapes[small], strict=True))
        padded = tuple(sizes.get(i, 1) for i in range(rank))
        return (padded, shapes[1]) if small == 0 else (shapes[0], padded)

    def infer(self) -> Sequence[Attribute]:
        if element_of(self.lhs) != element_of(self.rhs):
            self.fail("C1", f"operands have types {self.lhs.type} and {self.rhs.type}")
        return (tensor(broadcast_shapes(self, self.aligned_shapes()), self.result_element()),)


@irdl_op_definition
class BroadcastAddOp(BroadcastingOp):
    """`add`, broadcasting."""

    name = "chlo.broadcast_add"


@irdl_op_definition
class BroadcastAndOp(BroadcastingOp):
    """`and`, broadcasting."""

    name = "chlo.broadcast_and"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class BroadcastAtan2Op(BroadcastingOp):
    """`atan2`, broadcasting."""

    name = "chlo.broadcast_atan2"
    ELEMENTS: ClassVar = FLOATS | COMPLEX


@irdl_op_definition
class BroadcastDivideOp(BroadcastingOp):
    """`divide`, broadcasting."""

    name = "chlo.broadcast_divide"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class BroadcastMaximumOp(BroadcastingOp):
    """`maximum`, broadcasting."""

    name = "chlo.broadcast_maximum"


@irdl_op_definition
class BroadcastMinimumOp(BroadcastingOp):
    """`minimum`, broadcasting."""

    name = "chlo.broadcast_minimum"


@irdl_op_definition
class BroadcastMultiplyOp(BroadcastingOp):
    """`multiply`, broadcasting."""

    name = "chlo.broadcast_multiply"


@irdl_op_definition
class BroadcastNextAfterOp(BroadcastingOp):
    """`next_after`, broadcasting."""

    name = "chlo.broadcast_next_after"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class BroadcastOrOp(BroadcastingOp):
    """`or`, broadcasting."""

    name = "chlo.broadcast_or"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class BroadcastPolygammaOp(BroadcastingOp):
    """`polygamma`, broadcasting."""

    name = "chlo.broadcast_polygamma"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class BroadcastPowerOp(BroadcastingOp):
    """`power`, broadcasting."""

    name = "chlo.broadcast_power"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class BroadcastRemainderOp(BroadcastingOp):
    """`remainder`, broadcasting."""

    name = "chlo.broadcast_remainder"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class BroadcastShiftLeftOp(BroadcastingOp):
    """`shift_left`, broadcasting."""

    name = "chlo.broadcast_shift_left"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class BroadcastShiftRightArithmeticOp(BroadcastingOp):
    """`shift_right_arithmetic`, broadcasting."""

    name = "chlo.broadcast_shift_right_arithmetic"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class BroadcastShiftRightLogicalOp(BroadcastingOp):
    """`shift_right_logical`, broadcasting."""

    name = "chlo.broadcast_shift_right_logical"
    ELEMENTS: ClassVar = INTEGERS


@irdl_op_definition
class BroadcastSubtractOp(BroadcastingOp):
    """`subtract`, broadcasting."""

    name = "chlo.broadcast_subtract"
    ELEMENTS: ClassVar = _NUMBERS


@irdl_op_definition
class BroadcastXorOp(BroadcastingOp):
    """`xor`, broadcasting."""

    name = "chlo.broadcast_xor"
    ELEMENTS: ClassVar = _BITS


@irdl_op_definition
class BroadcastZetaOp(BroadcastingOp):
    """`zeta`, broadcasting."""

    name = "chlo.broadcast_zeta"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class BroadcastComplexOp(BroadcastingOp):
    """`complex`, broadcasting."""

    name = "chlo.broadcast_complex"
    ELEMENTS: ClassVar = frozenset((ELEMENT_TYPES["f32"], ELEMENT_TYPES["f64"]))

    def result_element(self) -> Attribute:
        element = dtype_text(self.lhs.type)
        if ELEMENT_TYPES[element] not in self.ELEMENTS:
            raise VerifyException(f"there are no complex numbers of {element}")
        return ELEMENT_TYPES[f"complex<{element}>"]


@irdl_op_definition
class BroadcastCompareOp(BroadcastingOp):
    """`compare`, broadcasting."""

    name = "chlo.broadcast_compare"
    comparison_direction = prop_def(ChloComparisonDirectionAttr)
    compare_type = opt_prop_def(ChloComparisonTypeAttr)

    @classmethod
    def encode_property(cls, name: str, value: Any) -> Attribute:
        words = {"comparison_direction": ChloComparisonDirectionAttr, "compare_type": ChloComparisonTypeAttr}
        return words[name](value) if isinstance(value, str) else super().encode_property(name, value)

    def result_element(self) -> Attribute:
        return BOOL


@irdl_op_definition
class BroadcastSelectOp(GraphOp):
    """`select`, broadcasting."""

    name = "chlo.broadcast_select"
    pred = operand_def(AnyTensorTypeConstr)
    on_true = operand_def(AnyTensorTypeConstr)
    on_false = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = (
        "$pred `,` $on_true `,` $on_false attr-dict `:` "
        "`(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->` type($result)"
    )

    def infer(self) -> Sequence[Attribute]:
        if element_of(self.on_true) != element_of(self.on_false):
            self.fail("C1", f"branches have types {self.on_true.type} and {self.on_false.type}")
        return (tensor(broadcast_shapes(self, [shape_of(v) for v in self.operands]), element_of(self.on_true)),)

    def check(self) -> None:
        if element_of(self.pred) != BOOL:
            self.fail("I1", "the predicate is not boolean")
