"""What a transformation may refuse: op by op, the reason and when it is one. Any other refusal is a mistake.

A door that counted every refusal as `not supported` would be silent where a mistake makes a compiler refuse what it
should do. The conditions here are not those of the code: they say of an op, and of nothing else, what may be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import bit_width, is_float
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


def _any(sizes: Sequence[Size]) -> bool:
    return any(map(_is_symbolic, sizes))


# ---- padding --------------------------------------------------------------------------------------------------------


def _has_groups(op: Any) -> bool:
    return op.value("feature_group_count") > 1 or op.value("batch_group_count") > 1


def _sizes_of_kernel_are_symbolic(op: Any) -> bool:
    shape = shape_of(op.rhs)
    return _any([shape[i] for i in op.dimensions.kernel_spatial_dimensions])


def _windows_are_symbolic(op: Any) -> bool:
    shape = shape_of(op.updates[0])
    return _any([shape[i] for i in op.dimensions.update_window_dims])


def _has_no_index(op: Any) -> bool:
    return not op.dimensions.scatter_dims_to_operand_dims


def _reaches_behind(op: Any) -> bool:
    """Whether windows reach beyond the end, or what adds up has no neutral element."""
    return any(high > 0 for _, high in op.window()["padding"]) or applied_op(op.scatter) is None


def _may_repeat(op: Any) -> bool:
    pairs = zip(shape_of(op.operands[0]), op.value("broadcast_dimensions"), strict=True)
    return any(_is_symbolic(size) and size != shape_of(op.results[0])[place] for size, place in pairs)


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


def _always(op: Operation) -> bool:
    return True


_MIXED = {"it reads elements that are not at the result's own place": _always}
_PARTS = {"does not fit everywhere in a longer dimension": lambda op: _any(sizes_of(op.slice_sizes))}

PADDING = Refusals(
    {
        hlo.ConvolutionOp: {
            "its groups divide": _has_groups, "the size of its kernel": _sizes_of_kernel_are_symbolic,
            "has no zero": _is_narrow,
        },
        hlo.DotGeneralOp: {"has no zero": _is_narrow},
        hlo.DotOp: {"has no zero": _is_narrow},
        hlo.ScatterOp: {"it puts windows of a padded size": _windows_are_symbolic, "its updates have no index": _has_no_index},
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
        **{op: _MIXED for op in (
            hlo.BatchNormTrainingOp, hlo.BatchNormGradOp, hlo.FftOp, hlo.CholeskyOp, hlo.TriangularSolveOp,
            chlo.RaggedDotOp, hlo.BitcastConvertOp,
        )},
    },
    {
        "may be less for a longer input": _may_shrink,
        "which says a padded size": _has_body,
        "its sizes are known at run time only": lambda op: "_" in map(str, _sizes(op)),
        "": lambda op: (row := ROWS.get(type(op))) is not None and row.kind == "refused",
    },
)  # fmt: skip
"""What padding may refuse."""

__all__ = ["PADDING", "Refusals"]
