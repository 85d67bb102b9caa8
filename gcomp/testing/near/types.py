"""Types that follow from what was changed: inferred anew, in order, through regions and functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import (
    dtype_text,
    element_of,
    is_tensor,
    rank_of,
    retype,
    shape_of,
    static_shape,
    with_element,
    with_shape,
)
from gcomp.testing.near.sites import callee
from gcomp.testing.reduce.sizes import dot_shape

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 22
"""Elements of data that are made for another shape, at most: sizes of near misses are what programs say somewhere."""


def settle(program: Program) -> None:
    """Infer the types of all results from those of the inputs. What does not fit then, the verifier says."""
    _settle_block(program, program.block)
    for function in program.functions():
        function.update_function_type()


def _settle_block(program: Program, block: Block) -> None:
    for op in block.ops:
        _settle_op(program, op)


def _settle_op(program: Program, op: Operation) -> None:
    if isinstance(op, hlo.WhileOp):
        for region in op.regions:
            for arg, operand in zip(region.block.args, op.operands, strict=True):
                retype(arg, operand.type)
    for region in op.regions:
        for block in region.blocks:
            _settle_block(program, block)
    if isinstance(op, CallOp | hlo.CompositeOp):
        _settle_call(program, op)
    elif isinstance(op, hlo.ReshapeOp):
        _settle_reshape(op)
    elif isinstance(op, hlo.BroadcastInDimOp):
        _settle_broadcast(op)
    elif isinstance(op, hlo.ConvolutionOp):
        retype(op.result, with_shape(op.result, op.result_shape()))
    elif isinstance(op, hlo.DotGeneralOp):
        retype(op.result, with_shape(op.result, dot_shape(op)))
    elif isinstance(op, hlo.ConvertOp | hlo.BitcastConvertOp):
        if rank_of(op.operands[0]) == rank_of(op.results[0]):
            retype(op.results[0], with_shape(op.results[0], shape_of(op.operands[0])))
    elif isinstance(op, GraphOp) and op.INFERS:
        for result, type in zip(op.results, op.infer(), strict=True):
            retype(result, type)


def _settle_call(program: Program, op: CallOp | hlo.CompositeOp) -> None:
    """What a function is given, and what it returns, where nothing else calls it."""
    name = callee(op)
    function = program.function(name)
    if function is None or not _is_used_once(program, name):
        return
    for arg, operand in zip(function.body.block.args, op.operands, strict=True):
        retype(arg, operand.type)
    _settle_block(program, function.body.block)
    returned = function.body.block.last_op
    assert returned is not None
    for result, value in zip(op.results, returned.operands, strict=True):
        retype(result, value.type)


def _is_used_once(program: Program, name: str) -> bool:
    calls = [called for _, called in program.callees()]
    calls += [op.decomposition_name for op in program.ops() if isinstance(op, hlo.CompositeOp)]
    return calls.count(name) == 1


def _settle_reshape(op: hlo.ReshapeOp) -> None:
    """A reshape keeps the number of elements: some size of the result follows from the operand's."""
    source, shape = static_shape(op.operand), static_shape(op.result)
    if source is None or shape is None or math.prod(source) == math.prod(shape):
        return
    total = math.prod(source)
    for i in sorted(range(len(shape)), key=lambda i: -shape[i]):
        rest = math.prod(s for j, s in enumerate(shape) if j != i)
        if rest and total % rest == 0:
            retype(op.result, with_shape(op.result, [total // rest if j == i else s for j, s in enumerate(shape)]))
            return


def _settle_broadcast(op: hlo.BroadcastInDimOp) -> None:
    shape, places = list(shape_of(op.result)), op.value("broadcast_dimensions")
    for size, place in zip(shape_of(op.operand), places, strict=True):
        if size != 1:
            shape[place] = size
    retype(op.result, with_shape(op.result, shape))


# ---- sizes and element types of everything ----


def map_sizes(program: Program, mapping: Mapping[int, Size]) -> bool:
    """Change sizes wherever they stand; False where data has a size that becomes a symbol."""
    for value in _all_values(program):
        if is_tensor(value.type):
            sizes = [mapping.get(s, s) if isinstance(s, int) else s for s in shape_of(value)]
            retype(value, with_shape(value, sizes))
    for op in list(program.ops()):
        if isinstance(op, hlo.ConstantOp | WeightOp) and not _refill(program, op):
            return False
    return True


def _all_values(program: Program) -> list[SSAValue]:
    ops = list(program.ops())
    args = [arg for op in ops for region in op.regions for block in region.blocks for arg in block.args]
    return [*args, *(result for op in ops for result in op.results)]


def _refill(program: Program, op: hlo.ConstantOp | WeightOp) -> bool:
    """Data for a constant or a weight of another shape."""
    shape = static_shape(op.results[0])
    if shape is not None and math.prod(shape) > MOST_ELEMENTS:
        return False
    if isinstance(op, hlo.ConstantOp):
        old = op.elements_attr
        if shape is None:
            return _spread(program, op)
        if shape != old.shape:
            type = with_shape(old.type, shape)
            filled = old.array().size and 0 not in shape
            data = np.resize(old.array(), shape) if filled else np.zeros(shape, old.dtype)
            op.properties["value"] = ElementsAttr.of(old.splat() if old.is_splat and filled else data, type)
        return True
    if shape is None or op.symbol not in program.weights:
        return False
    array = program.weights[op.symbol]
    if array.shape != shape:
        _renew(program, op, np.resize(array, shape) if array.size else np.zeros(shape, array.dtype))
    return True


def _renew(program: Program, op: WeightOp, data: Array) -> None:
    op.properties["weight"] = SymbolRefAttr(program.weights.add(op.symbol, data))


def _spread(program: Program, op: hlo.ConstantOp) -> bool:
    """A constant of a symbolic shape: a scalar, repeated."""

    if not op.elements_attr.is_splat:
        return False
    scalar = with_shape(op.elements_attr.type, ())
    b = Builder(program, InsertPoint.before(op))
    value = b.emit(hlo.ConstantOp, types=(scalar,), value=ElementsAttr.of(op.elements_attr.splat(), scalar))
    spread = b.emit(hlo.BroadcastInDimOp, value, types=(op.results[0].type,), broadcast_dimensions=())
    op.results[0].replace_all_uses_with(spread)
    Rewriter.erase_op(op)
    return True


def map_elements(program: Program, old: Attribute, new: Attribute) -> None:
    """Change an element type wherever it stands."""
    for value in _all_values(program):
        if is_tensor(value.type) and value.type.element_type == old:
            retype(value, with_element(value, new))
    for op in list(program.ops()):
        if isinstance(op, hlo.ConstantOp) and op.elements_attr.type.element_type == old:
            type = with_element(op.elements_attr.type, new)
            with np.errstate(all="ignore"):
                op.properties["value"] = ElementsAttr.of(_real(op.elements_attr.array()), type)
        elif isinstance(op, WeightOp) and element_of(op.result) == new and op.symbol in program.weights:
            with np.errstate(all="ignore"):
                data = _real(program.weights[op.symbol]).astype(dtype_of(dtype_text(op.result.type)))
            _renew(program, op, data)
        elif isinstance(op, hlo.CompareOp):
            op.properties.pop("compare_type", None)


def _real(array: Array) -> Array:
    return array.real if np.iscomplexobj(array) else array


__all__ = ["map_elements", "map_sizes", "retype", "settle"]
