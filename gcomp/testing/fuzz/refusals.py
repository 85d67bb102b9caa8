"""What a transformation may refuse: op by op, the reason and when it is one. Any other refusal is a mistake.

A door that counted every refusal as `not supported` would be silent where a mistake makes a compiler refuse what it
should do. The conditions here are not those of the code: they say of an op, and of nothing else, what may be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import bit_width, is_complex, is_float
from gcomp.errors import UnsupportedError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import dtype_text, is_tensor, shape_of
from gcomp.ir.walking import walk
from gcomp.padding.rows import ROWS

Condition = Callable[[Any], bool]
Reasons = Mapping[str, Condition]
"""Words of a reason -> whether an op may be refused for it."""


@dataclass(frozen=True)
class Refusals:
    """Reasons by op class, and those of any op."""

    of: Mapping[type[Operation], Reasons]
    any: Reasons

    def allow(self, program: Program, error: UnsupportedError) -> bool:
        """Whether some op of a program may be refused as an error says."""
        said = str(error)
        for op in [inner for function in program.functions() for inner in walk(function)]:
            if op.name not in said:
                continue
            reasons = {**self.any, **self.of.get(type(op), {})}
            if any(words in said and condition(op) for words, condition in reasons.items()):
                return True
        return False


def _is_symbolic(size: Size) -> bool:
    return bool(dims.symbols_of(size))


def _sizes(op: Operation) -> Sequence[Size]:
    return [size for v in (*op.operands, *op.results) if is_tensor(v.type) for size in shape_of(v)]


def _any(sizes: Iterable[Size]) -> bool:
    return any(map(_is_symbolic, sizes))


# ---- XLA -------------------------------------------------------------------------------------------------------------


def _texts(op: Operation) -> Sequence[str]:
    return [dtype_text(v.type) for v in (*op.operands, *op.results) if is_tensor(v.type)]


def _is_of(test: Callable[[str], bool]) -> Condition:
    return lambda op: any(map(test, _texts(op)))


def _is_one_of(*ops: type[Operation]) -> Condition:
    return lambda op: isinstance(op, ops)


def _folds_types(op: Operation) -> bool:
    floats = {dtype_text(v.type) for v in op.results if is_tensor(v.type) and is_float(dtype_text(v.type))}
    return len(floats) > 1


def _has_no_elements(op: Operation) -> bool:
    return isinstance(op, hlo.GatherOp) and 0 in sizes_of(op.slice_sizes)


_OF_XLA: Reasons = {
    "only sizes that are formulas": _is_one_of(
        hlo.DynamicBroadcastInDimOp, hlo.DynamicConvOp, hlo.DynamicGatherOp, hlo.DynamicIotaOp, hlo.DynamicPadOp,
        hlo.DynamicReshapeOp, hlo.RealDynamicSliceOp, hlo.SetDimensionSizeOp,
    ),
    "is not a dimension of any input": _is_one_of(
        hlo.DynamicBroadcastInDimOp, hlo.DynamicConvOp, hlo.DynamicGatherOp, hlo.DynamicIotaOp, hlo.DynamicPadOp,
        hlo.DynamicReshapeOp, hlo.RealDynamicSliceOp, hlo.SetDimensionSizeOp,
    ),
    "quantized types are not lowered": _is_one_of(hlo.UniformQuantizeOp, hlo.UniformDequantizeOp),
    "write it as dot_general": _is_one_of(hlo.EinsumOp),
    "write it as a reduction or a transposition": _is_one_of(hlo.UnaryEinsumOp),
    "XLA broadcasts leading dimensions only": lambda op: "broadcast_dimensions" in op.properties,
    "that is empty or uses values": _is_one_of(chlo.ScanOp),
    "a composite with regions": _is_one_of(hlo.CompositeOp),
    "XLA has no tensors of": _is_of(lambda text: text.startswith(("f6", "!", "quant"))),
    "complex": _is_of(is_complex),
    "slices of no elements": _has_no_elements,
    "it for": _is_of(lambda text: text != "i1" and bit_width(text) < 8),
    "elements of 2 bits": _is_of(lambda text: text != "i1" and bit_width(text) == 2),
    "does not widen what it scatters": lambda op: isinstance(op, hlo.SelectAndScatterOp) and len({*_texts(op)}) > 1,
    "over padding that takes more": lambda op: isinstance(op, hlo.SelectAndScatterOp)
    and any(n < 0 for pair in op.window()["padding"] for n in pair),
    "one update only where nothing is indexed": _is_one_of(hlo.ScatterOp),
    "together; convert": _folds_types,
}  # fmt: skip
"""What XLA may refuse."""


def xla_may_refuse(program: Program, said: str) -> bool:
    """Whether XLA may refuse a program as is said: some op of it, before any pass, is what the reason is about."""
    ops = [inner for function in program.functions() for inner in walk(function)]
    reasons = [condition for words, condition in _OF_XLA.items() if words in said]
    return any(condition(op) for condition in reasons for op in ops)


# ---- padding --------------------------------------------------------------------------------------------------------


def _has_groups(op: Any) -> bool:
    return op.value("feature_group_count") > 1 or op.value("batch_group_count") > 1


def _sizes_of_kernel_are_symbolic(op: Any) -> bool:
    shape: Sequence[Size] = shape_of(op.rhs)
    places: Sequence[int] = op.dimensions.kernel_spatial_dimensions
    return _any([shape[i] for i in places])


def _windows_are_symbolic(op: Any) -> bool:
    shape: Sequence[Size] = shape_of(op.updates[0])
    places: Sequence[int] = op.dimensions.update_window_dims
    return _any([shape[i] for i in places])


def _has_no_index(op: Any) -> bool:
    return not op.dimensions.scatter_dims_to_operand_dims


def _reaches_behind(op: Any) -> bool:
    """Whether windows reach beyond the end, or what adds up has no neutral element."""
    padding: Sequence[tuple[int, int]] = op.window()["padding"]
    return any(high > 0 for _, high in padding) or applied_op(op.scatter) is None


def _may_repeat(op: Any) -> bool:
    given: Sequence[Size] = shape_of(op.operands[0])
    places: Sequence[int] = op.value("broadcast_dimensions")
    shape: Sequence[Size] = shape_of(op.results[0])
    return any(_is_symbolic(size) and size != shape[place] for size, place in zip(given, places, strict=True))


def _is_narrow(op: Operation) -> bool:
    """Whether it is of floats of a few bits, some of which have no zero and no least value."""
    texts = {dtype_text(v.type) for v in op.operands if is_tensor(v.type)}
    return any(is_float(text) and bit_width(text) <= 8 for text in texts)


def _may_shrink(op: Operation) -> bool:
    """Whether a size of it may be less for greater symbols: it has a difference, or a remainder."""
    sizes = [str(size) for size in _sizes(op)]
    sizes += [str(size) for part in op.properties.values() for size in [part] if "-" in str(size)]
    return any("-" in text or "mod" in text for text in sizes)


def _has_body(op: Operation) -> bool:
    return bool(op.regions)


def _has_symbolic_parts(op: Any) -> bool:
    return _any(sizes_of(op.slice_sizes))


def _has_a_row_that_refuses(op: Operation) -> bool:
    row = ROWS.get(type(op))
    return row is not None and row.kind == "refused"


def _always(op: Operation) -> bool:
    return True


_MIXING: Sequence[type[Operation]] = (
    hlo.BatchNormTrainingOp, hlo.BatchNormGradOp, hlo.FftOp, hlo.CholeskyOp, hlo.TriangularSolveOp, chlo.RaggedDotOp,
    hlo.BitcastConvertOp,
)  # fmt: skip
_MIXED: Reasons = {"it reads elements that are not at the result's own place": _always}
_PARTS: Reasons = {"does not fit everywhere in a longer dimension": _has_symbolic_parts}

PADDING = Refusals(
    {
        hlo.ConvolutionOp: {
            "its groups divide": _has_groups, "the size of its kernel": _sizes_of_kernel_are_symbolic,
            "has no zero": _is_narrow,
        },
        hlo.DotGeneralOp: {"has no zero": _is_narrow},
        hlo.DotOp: {"has no zero": _is_narrow},
        hlo.ScatterOp: {
            "it puts windows of a padded size": _windows_are_symbolic, "its updates have no index": _has_no_index,
        },
        hlo.GatherOp: _PARTS,
        hlo.DynamicSliceOp: _PARTS,
        hlo.SelectAndScatterOp: {"its windows reach into padding": _reaches_behind},
        hlo.SliceOp: {"its start": _may_shrink},
        hlo.PadOp: {"its padding": _may_shrink},
        hlo.BroadcastInDimOp: {"is repeated depends on the length": _may_repeat},
        hlo.DynamicBroadcastInDimOp: {"is repeated depends on the length": _may_repeat},
        hlo.DynamicGatherOp: {"its slice sizes are run-time values": _always},
        hlo.SortOp: {"has no value that is less": _is_narrow},
        chlo.TopKOp: {"has no value that is less": _is_narrow},
        **dict.fromkeys(_MIXING, _MIXED),
    },
    {
        "may be less for a longer input": _may_shrink,
        "which says a padded size": _has_body,
        "its sizes are known at run time only": lambda op: "_" in map(str, _sizes(op)),
        "": _has_a_row_that_refuses,
    },
)  # fmt: skip
"""What padding may refuse."""

__all__ = ["PADDING", "Refusals", "xla_may_refuse"]
