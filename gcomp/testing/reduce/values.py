"""Simpler values: constants and weights that are 0 or 1 or at least small, and everyday element types."""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, FunctionType, SymbolRefAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dtypes import dtype_of, is_complex, is_float, is_integer
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import encode
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_type, is_tensor, retype, shape_of, static_shape, tensor, tensor_of
from gcomp.reference.interpreter import evaluate_op
from gcomp.testing.reduce.reducer import Edit

Array = np.ndarray[Any, Any]
_SMALL = 16
"""A weight of so many elements or fewer becomes a constant as it is."""
_FEW = 256
"""So many elements at most has a constant that takes the place of an op."""


# ---- constants and weights ----


def sources(program: Program) -> list[hlo.ConstantOp | WeightOp]:
    """The ops that stand for known values."""
    return [op for op in program.ops() if isinstance(op, hlo.ConstantOp | WeightOp)]


def source_count(program: Program) -> int:
    """How many known values there are."""
    return len(sources(program))


def simpler_values(program: Program, index: int) -> list[Edit]:
    """Edits that replace a constant or weight by a simpler constant: 0, 1, its first element, itself if it is small."""
    op = sources(program)[index]
    if isinstance(op, WeightOp):
        return [lambda p, k=k: _simplify(p, index, k) for k in ("0", "1", "first", "itself")]
    attr = op.elements_attr
    kinds = ["0", "1"] if attr.is_splat else ["0", "1", "first", "whole"]
    if attr.is_splat:
        value = attr.splat()
        kinds = [] if _is(value, 0) else ["0"] if _is(value, 1) else ["0", "1", "whole"]
    return [lambda p, k=k: _simplify(p, index, k) for k in kinds]


def _is(value: Any, number: int) -> bool:
    wanted = np.asarray(number).astype(np.asarray(value).dtype)
    return np.asarray(value).tobytes() == wanted.tobytes()


def _simplify(program: Program, index: int, kind: str) -> bool:
    op = sources(program)[index]
    type, shape = tensor_of(op.results[0]), static_shape(op.results[0])
    if shape is None or 0 in shape:
        return False
    if isinstance(op, WeightOp):
        array = (
            program.weights[op.symbol] if op.symbol in program.weights else np.zeros(shape, dtype_of(dtype_text(type)))
        )
    else:
        array = op.elements_attr.array()
    with np.errstate(all="ignore"):
        new = _simpler(array, kind)
    if new is None or (isinstance(op, hlo.ConstantOp) and np.asarray(new).tobytes() == array.tobytes()):
        return False
    constant = hlo.ConstantOp.of(value=ElementsAttr.of(np.broadcast_to(new, shape), type))
    constant.location = op.location
    Rewriter.insert_op(constant, InsertPoint.before(op))
    op.results[0].replace_all_uses_with(constant.results[0])
    Rewriter.erase_op(op)
    return True


def _simpler(array: Array, kind: str) -> Array | None:
    match kind:
        case "0" | "1":
            return np.asarray(int(kind)).astype(array.dtype)
        case "first":
            return np.array(array.reshape(-1)[0], array.dtype)
        case "whole":
            if array.dtype.kind == "c":
                return (_whole(array.real) + 1j * _whole(array.imag)).astype(array.dtype)
            return _whole(array).astype(array.dtype)
        case _:
            return np.array(array) if array.size <= _SMALL else None


def _whole(array: Array) -> Array:
    """Small whole numbers near an array's."""
    near = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=2.0, neginf=-2.0)
    return np.clip(np.round(near), -8, 8)


# ---- what is computed of constants ----


def of_constants(program: Program) -> list[GraphOp]:
    """The ops on constants alone whose result is a small tensor."""
    return [op for op in program.ops() if isinstance(op, GraphOp) and _is_of_constants(op)]


def of_constants_count(program: Program) -> int:
    """The number of ops whose operands are all constants."""
    return len(of_constants(program))


def evaluations(program: Program, index: int) -> list[Edit]:
    """The edit that replaces an op on constants by its result."""
    return [lambda p: _evaluate(of_constants(p)[index])]


def _is_of_constants(op: GraphOp) -> bool:
    if not op.operands or op.regions or not makes_one_small(op):
        return False
    return all(isinstance(v.owner, hlo.ConstantOp) for v in op.operands)


def makes_one_small(op: Operation) -> bool:
    """Whether an op's result is one tensor of few elements, so that a constant may take the op's place."""
    if len(op.results) != 1 or not is_tensor(op.results[0].type):
        return False
    shape = static_shape(op.results[0])
    return shape is not None and prod(shape) <= _FEW


def _evaluate(op: GraphOp) -> bool:
    owners = [v.owner for v in op.operands]
    arrays = [owner.elements_attr.array() for owner in owners if isinstance(owner, hlo.ConstantOp)]
    return put_constant(op, evaluate_op(op, arrays)[0])


def put_constant(op: Operation, value: Any) -> bool:
    """Put a constant, an array or a scalar, in the place of an op of one result."""
    constant = hlo.ConstantOp.of(value=ElementsAttr.of(value, tensor_of(op.results[0])))
    constant.location = op.location
    Rewriter.replace_op(op, constant)
    return True


# ---- element types ----


def simpler_types(program: Program) -> list[Edit]:
    """Edits that replace an element type by an everyday one throughout: floats by f32, integers by i32."""
    found = {dtype_text(v.type) for op in program.ops() for v in op.results if is_tensor(v.type)}
    found |= {port.dtype for port in program.inputs()}
    edits: list[Edit] = []
    for text in sorted(found):
        if is_float(text) and text != "f32":
            edits.append(lambda p, t=text: _replace_element(p, t, "f32"))
        elif is_integer(text) and text not in ("i1", "i32"):
            edits.append(lambda p, t=text: _replace_element(p, t, "i32"))
        elif is_complex(text) and text != "complex<f32>":
            edits.append(lambda p, t=text: _replace_element(p, t, "complex<f32>"))
    return edits


def _replace_element(program: Program, old: str, new: str) -> bool:
    """Replace an element type everywhere, in place."""
    for op in list(program.ops()):
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            retype(value, _retype(value.type, old, new))
        if isinstance(op, hlo.ConstantOp) and dtype_text(op.elements_attr.type) == old:
            with np.errstate(all="ignore"):
                array = op.elements_attr.array().astype(dtype_of(new))
            op.properties["value"] = ElementsAttr.of(array)
        elif isinstance(op, WeightOp) and op.symbol in program.weights and dtype_text(op.result.type) == new:
            array = program.weights[op.symbol]
            if array.dtype != dtype_of(new):
                op.properties["weight"] = SymbolRefAttr(program.weights.add(op.symbol, array.astype(dtype_of(new))))
        elif isinstance(op, hlo.CompareOp) and "compare_type" in op.properties:
            op.properties["compare_type"] = encode("compare_type", _comparison(dtype_text(op.operands[0].type)))
    for function in program.functions():
        function.update_function_type()
    return True


def _comparison(text: str) -> str:
    if is_float(text) or is_complex(text):
        return "FLOAT"
    return "SIGNED" if text[0] == "i" and text != "i1" else "UNSIGNED"


def _retype(type: Attribute, old: str, new: str) -> Attribute:
    if is_tensor(type):
        return tensor(shape_of(type), element_type(new)) if dtype_text(type) == old else type
    if isinstance(type, ArrayAttr):
        return ArrayAttr([_retype(t, old, new) for t in cast("ArrayAttr[Attribute]", type).data])
    if isinstance(type, ParametrizedAttribute) and not isinstance(type, FunctionType):
        return type.new([_retype(t, old, new) for t in type.parameters])
    return type
