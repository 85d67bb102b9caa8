"""Tensor descriptors and box loads of the tile dialect, for the tensor memory accelerator (TMA) of sm_90 and later.

A descriptor says where a tensor lies in a buffer; a box is a tile of it, and is 0 beyond the tensor's sizes.
"""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, i32
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    param_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import bit_width
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.types import Tensor, dtype_text
from gcomp.lowering.tiles import tile


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """A tensor in a buffer, described to the unit of a GPU that copies boxes of it; `box` is the tile that one is."""

    name = "tile.descriptor"
    box: Attribute = param_def()


@irdl_op_definition
class DescribeOp(IRDLOperation):
    """Describe a tensor of up to five dimensions that lies in a buffer. `layout` has its sizes, then its strides.

    Elements of the last dimension lie side by side (its stride is 1); the other strides are multiples of 16 bytes.
    """

    name = "tile.describe"
    buffer = operand_def()
    layout = var_operand_def(AnyTensorTypeConstr)
    result = result_def(DescriptorType)
    traits = traits_def(NoMemoryEffect())

    ALIGNMENT: ClassVar = 16

    @property
    def rank(self) -> int:
        """The tensor's rank."""
        return len(self.layout) // 2

    def verify_(self) -> None:
        box = cast(Tensor, self.result.type.box)
        shape = tile.static_shape(box)
        if not isinstance(self.buffer.type, tile.BufferType) or self.buffer.type.element != box.element_type:
            raise VerifyException("tile.describe: describes a buffer of the box's element type")
        if not 1 <= len(shape) <= 5 or len(self.layout) != 2 * len(shape):
            raise VerifyException(f"tile.describe: a size and a stride for each of one to five dimensions, not {shape}")
        if any(tile.static_shape(v) or cast(Tensor, v.type).element_type not in tile.INDEX for v in self.layout):
            raise VerifyException("tile.describe: sizes and strides are scalars of i32 or i64")
        if shape[-1] * bit_width(dtype_text(box)) < 8 * self.ALIGNMENT:
            raise VerifyException(f"tile.describe: rows of a box have {self.ALIGNMENT} bytes or more, unlike {shape}")


@irdl_op_definition
class LoadBoxOp(tile.TileOp):
    """The box of a described tensor that begins at these indices (i32); 0 beyond the tensor's sizes."""

    name = "tile.load_box"
    descriptor = operand_def(DescriptorType)
    offsets = var_operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        box = cast(Tensor, cast(DescriptorType, self.descriptor.type).box)
        self.expect(self.result, tile.static_shape(box), box.element_type)
        if len(self.offsets) != len(tile.static_shape(box)):
            self.fail(
                f"takes an index for each of the {len(tile.static_shape(box))} dimensions, not {len(self.offsets)}"
            )
        if any(tile.static_shape(v) or cast(Tensor, v.type).element_type != i32 for v in self.offsets):
            self.fail("indices are scalars of i32")
