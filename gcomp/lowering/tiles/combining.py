"""Ops of the tile dialect that combine elements along a dimension: reductions and scans."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, IntegerAttr
from xdsl.ir import Block
from xdsl.irdl import opt_prop_def, prop_def, region_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import IsolatedFromAbove, NoMemoryEffect

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.types import Tensor
from gcomp.lowering.tiles import tile


class Folding(tile.TileOp):
    """Tiles of one shape, combined along a dimension by a region on scalars: `^(a1, a2, b1, b2): ... yield c1, c2`."""

    @property
    def axis(self) -> int:
        """The dimension along which elements are combined."""
        return tile.integer_of(cast("IntegerAttr[Any]", self.properties["dimension"]))

    @property
    def block(self) -> Block:
        """The region's block."""
        return self.regions[0].block

    def folded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the results."""
        raise NotImplementedError

    def check_size(self, size: int) -> None:
        """Refuse a dimension of so many elements, unless that is a power of two."""
        if not tile.is_power_of_two([size]):
            self.fail(f"folds a dimension whose size is a power of two, not {size}")

    def check(self) -> None:
        if not self.operands:
            self.fail("has no operand")
        shape = tile.static_shape(self.operands[0])
        if not 0 <= self.axis < len(shape) or any(tile.static_shape(v) != shape for v in self.operands):
            self.fail(f"folds tiles of one shape along dimension {self.axis}")
        self.check_size(shape[self.axis])
        kinds = [tile.element(v) for v in self.operands]
        if [tile.element(v) for v in self.block.args] != kinds * 2 or any(
            tile.static_shape(v) for v in self.block.args
        ):
            self.fail("the region takes two scalars of each operand's type")
        last = self.block.last_op
        if not isinstance(last, tile.YieldOp) or [tile.element(v) for v in last.operands] != kinds:
            self.fail("the region yields one scalar of each operand's type")
        for result, operand in zip(self.results, self.operands, strict=True):
            self.expect(result, self.folded_shape(shape), cast(Tensor, operand.type).element_type)


@irdl_op_definition
class ReduceOp(Folding):
    """All elements along a dimension in one, which stays as a dimension of size 1.

    On processors the order is part of the meaning: of n elements, element i is combined with element i + n / 2, the
    former first, and so on with the n / 2 results until one is left. With `chains` c, elements i, i + c, i + 2c, ...
    are combined one after the other before that, which leaves c. On GPUs the order is not said.
    """

    name = "tile.reduce"
    operands_ = var_operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    chains = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    results_ = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect(), IsolatedFromAbove())

    @property
    def chain_count(self) -> int:
        """How many elements are left when those of each chain are combined; 0 where there are no chains."""
        return 0 if self.chains is None else tile.integer_of(self.chains)

    def check_size(self, size: int) -> None:
        """Refuse a dimension that is no whole number of elements for each chain, or of chains no power of two."""
        if not self.chain_count:
            super().check_size(size)
        elif not tile.is_power_of_two([self.chain_count]) or size % self.chain_count:
            self.fail(f"folds {size} elements in {self.chain_count} chains")

    def folded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[: self.axis], 1, *shape[self.axis + 1 :])


@irdl_op_definition
class ScanOp(Folding):
    """Each element combined with all before it along a dimension, or with `reverse` with all after it.

    On processors the order is part of the meaning: for distances 1, 2, 4, ..., each element at once is combined with
    the one so far before it (the former is the region's first), where there is one. On GPUs it is not said.
    """

    name = "tile.scan"
    operands_ = var_operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    reverse = prop_def(IntegerAttr)
    body = region_def("single_block")
    results_ = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect(), IsolatedFromAbove())

    @property
    def reversed(self) -> bool:
        """Whether the last element comes first."""
        return bool(tile.integer_of(self.reverse))

    def folded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape
