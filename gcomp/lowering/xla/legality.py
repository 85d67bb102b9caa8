"""What XLA takes: every op of the graph level but those listed here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from gcomp import dims
from gcomp.dtypes import bit_width, is_complex, is_float
from gcomp.ir.attributes import sizes_of
from gcomp.ir.chlo.structural import ScanOp
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import WeightOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.sdy import ManualComputationOp
from gcomp.ir.stablehlo.conversion import BitcastConvertOp
from gcomp.ir.stablehlo.elementwise import CompareOp
from gcomp.ir.stablehlo.indexing import GatherOp, ScatterOp
from gcomp.ir.stablehlo.reduction import SelectAndScatterOp
from gcomp.ir.structures import GatherDimensions
from gcomp.ir.types import ELEMENT_TYPES, Tensor, dtype_text, element_of, shape_of
from gcomp.lowering.xla.folds import unindexed_dimension
from gcomp.runtime.xla import custom_calls, structure_check

_COLLECTIVE = "it is of replicas, and the devices of a mesh are partitions"
_OUTSIDE = "it is of one device, and stands outside of a manual computation"
_ASYNCHRONOUS = "XLA starts ops between devices only; write the op in its body by itself"
_DATA_DEPENDENT = (
    "its result's size is given by a value; only sizes that are formulas of the inputs' sizes can be compiled"
)
_STREAM = "it talks to a host stream that does not exist"
_QUANTIZED = "quantized types are not lowered yet; write the arithmetic on integers out"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("stablehlo.cross-replica-sum", "stablehlo.replica_id"), _COLLECTIVE),
    **dict.fromkeys(("stablehlo.async_done", "stablehlo.async_start"), _ASYNCHRONOUS),
    **dict.fromkeys(("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send"), _STREAM),
    **dict.fromkeys(
        ("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_conv", "stablehlo.dynamic_gather",
         "stablehlo.dynamic_iota", "stablehlo.dynamic_pad", "stablehlo.dynamic_reshape",
         "stablehlo.real_dynamic_slice", "stablehlo.set_dimension_size"),
        _DATA_DEPENDENT,
    ),
    "stablehlo.einsum": "XLA ends the process for some; write it as dot_general",
    "stablehlo.unary_einsum": "XLA does not have it; write it as a reduction or a transposition",
    "gcomp.print": "it has no place among the prints of the program; gcomp.compile gives it one",
    "gcomp.host": "it runs on the host, between device parts",
    **dict.fromkeys(("gcomp.view_as_complex", "gcomp.view_as_real"), "it is for GPUs: XLA has complex numbers"),
    "chlo.ragged_dot": "XLA does not have it on the CPU; the pass expand-chlo writes it as masked dots",
    **dict.fromkeys(("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"), _QUANTIZED),
}  # fmt: skip
"""Op name -> why XLA does not get it."""

DIALECTS = frozenset(("builtin", "func", "stablehlo", "chlo", "sdy", "gcomp"))

NOT_COMPLEX = frozenset(
    ("stablehlo.cbrt", "chlo.bessel_i1e", "chlo.digamma", "chlo.erf", "chlo.erf_inv", "chlo.erfc", "chlo.lgamma",
     "chlo.next_after", "chlo.polygamma", "chlo.zeta")
)  # fmt: skip
"""Ops that XLA does not have for complex numbers."""

PADDED = frozenset(
    ("stablehlo.pad", "stablehlo.convolution", "stablehlo.reduce_window", "stablehlo.select_and_scatter")
)
"""Ops whose padding may be of any size, if only the result fits."""

ORDERED = frozenset(
    ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.clamp", "stablehlo.compare", "chlo.broadcast_maximum",
     "chlo.broadcast_minimum")
)  # fmt: skip
"""Ops that may ask which of two numbers is greater."""

FOLDS = frozenset(("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"))
"""Ops whose body's floats must be of one type."""

REFUSED_ELEMENTS = frozenset(("f6E2M3FN", "f6E3M2FN"))
"""Element types that XLA does not have."""


def problem_of(op: Operation) -> str | None:
    """Why XLA cannot take an op, or None."""
    if (why := REFUSED.get(op.name)) is not None and not (isinstance(op, PrintOp) and op.results):
        return why
    if op.name.partition(".")[0] not in DIALECTS:
        return "it is not an op of the graph level"
    if op.name in structure_check.SPREAD and not _is_manual(op):
        return _OUTSIDE
    if op.name == "stablehlo.custom_call":
        target = op.properties["call_target_name"]
        if isinstance(target, StringAttr) and custom_calls.refused_targets([target.data]):
            return f"the custom function {target.data!r} is not one that gcomp calls"
    if op.name.startswith("chlo.broadcast_") and "broadcast_dimensions" in op.properties:
        return "XLA broadcasts leading dimensions only; write the broadcast out"
    if isinstance(op, ScanOp) and (op.scan_size() == 0 or _captures(op)):
        return "XLA takes no scan that is empty or uses values from outside; the pass expand-chlo writes it as a loop"
    if op.name == "stablehlo.composite" and op.regions:
        return "XLA does not take a composite with regions"
    if op.name in PADDED and any(abs(n) >= structure_check.MAX_NUMBER for n in _numbers(op)):
        return "XLA counts its padding in 64 bits, and would end the process"
    for result in op.results:
        if (why := type_problem(result.type)) is not None:
            return why
    if op.name in NOT_COMPLEX and is_complex(dtype_text(op.results[0].type)):
        return "XLA does not have it for complex numbers"
    if (
        isinstance(op, BitcastConvertOp)
        and op.operand.type != op.result.type
        and is_complex(dtype_text(op.result.type))
    ):
        return "XLA ends the process over the bits of complex numbers"
    if op.name in ORDERED and is_complex(dtype_text(op.operands[0].type)) and _orders(op):
        return "XLA orders complex numbers by their real parts only"
    if isinstance(op, GatherOp):
        numbers: GatherDimensions = op.value("dimension_numbers")
        sizes = sizes_of(op.slice_sizes)
        if any(sizes[d] == 0 for d in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)):
            return "XLA ends the process over slices of no elements whose dimensions the result does not have"
    return _fold_problem(op)


def _is_manual(op: Operation) -> bool:
    """Whether an op is written for one device of a mesh. Functions are written for those that call them."""
    around = op.parent_op()
    while around is not None and not isinstance(around, ManualComputationOp | FuncOp):
        around = around.parent_op()
    return isinstance(around, ManualComputationOp) or (isinstance(around, FuncOp) and around.sym_name.data != "main")


def _orders(op: Operation) -> bool:
    """Whether an op looks for more than equality."""
    return not isinstance(op, CompareOp) or op.value("comparison_direction") not in ("EQ", "NE")


def _fold_problem(op: Operation) -> str | None:
    """Why XLA cannot take an op that folds or sorts, or None."""
    text = dtype_text(op.results[0].type) if op.results else ""
    packed = text in ELEMENT_TYPES and text != "i1" and bit_width(text) < 8
    if op.name == "chlo.top_k" and packed:
        return f"XLA does not have it for {text}; convert to 8 bits"
    if op.name == "stablehlo.select_and_scatter" and element_of(op.operands[0]) != element_of(op.results[0]):
        return "XLA does not widen what it scatters; convert the operands"
    if isinstance(op, SelectAndScatterOp) and _cuts_all(op):
        return "XLA ends the process over padding that takes more than there is"
    if isinstance(op, ScatterOp) and unindexed_dimension(op) == -1:
        return "XLA applies one update only where nothing is indexed; write it as a reduction"
    if op.name in ("stablehlo.sort", "stablehlo.reduce"):
        two = [bit_width(dtype_text(v.type)) == 2 for v in op.operands]
        if op.name == "stablehlo.sort" and any(two):
            return "XLA sorts elements of 2 bits as if they were bytes, beyond their end; convert to 8 bits"
        if op.name == "stablehlo.reduce" and two[0] and not all(two):
            return "XLA does not fold elements of 2 bits before wider ones; put these first, or convert to 8 bits"
    if op.name in FOLDS:
        texts = {text for value in op.results if is_float(text := dtype_text(value.type))}
        if len(texts) > 1:
            return f"XLA does not fold {' and '.join(sorted(texts))} together; convert to one of them"
    return None


def _cuts_all(op: SelectAndScatterOp) -> bool:
    """Whether negative padding takes more elements of a dimension than it has, as far as sizes are known."""
    padded = zip(shape_of(op.operands[0]), op.window()["padding"], strict=True)
    return any(isinstance(size, int) and size + low + high < 0 for size, (low, high) in padded)


def _captures(op: Operation) -> bool:
    """Whether the regions of an op use values from outside, or weights, which are that in the target's text."""
    inner = [i for region in op.regions for i in region.walk()]
    known = {v for i in inner for v in i.results} | {
        arg for i in (op, *inner) for region in i.regions for block in region.blocks for arg in block.args
    }
    return any(isinstance(i, WeightOp) or any(v not in known for v in i.operands) for i in inner)


def _numbers(op: Operation) -> Iterator[int]:
    """The integers in the lists and tables of an op's properties."""
    for attribute in op.properties.values():
        if isinstance(attribute, DenseArrayBase):
            yield from cast("DenseArrayBase[IntegerType]", attribute).get_values()
        elif isinstance(attribute, ElementsAttr):
            yield from (int(n) for n in attribute.array().reshape(-1))


@lru_cache(maxsize=8192)
def type_problem(type: Attribute) -> str | None:
    """Why XLA cannot hold a value of a type, or None."""
    if not isinstance(type, TensorType):
        return None
    tensor = cast(Tensor, type)
    text = dtype_text(tensor)
    if text not in ELEMENT_TYPES or text in REFUSED_ELEMENTS:
        return f"XLA has no tensors of {text}"
    if any("_" in dims.symbols_of(size) for size in shape_of(tensor)):
        return "its result has a size that nothing is known about"
    return None
