"""What XLA's compiler for GPUs needs otherwise: products as exact as elsewhere, and nothing that it does not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from gcomp.dtypes import bit_width, is_integer
from gcomp.errors import UnsupportedError
from gcomp.ir.chlo.structural import ScanOp
from gcomp.ir.enums import PrecisionAttr
from gcomp.ir.locations import where
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.contraction import ConvolutionOp, DotGeneralOp
from gcomp.ir.stablehlo.extension import CustomCallOp
from gcomp.ir.stablehlo.reduction import ReduceOp
from gcomp.ir.stablehlo.sorting import SortOp
from gcomp.ir.types import dtype_text
from gcomp.runtime.xla.custom_calls import is_of_host

_ROUNDED = ("f32", "complex<f32>")
"""Results of products whose operands XLA may round to 10 bits (TF32), where nothing is said of their precision."""


def suit_gpu(program: Program) -> None:
    """Change a program in place. Raises UnsupportedError, which names what XLA does not compile for GPUs."""
    for op in program.ops():
        if (why := _problem(op)) is not None:
            raise UnsupportedError(
                f"XLA does not run {op.name} on GPUs.", where=where(op), why=why, fix="Compile for xla:cpu or cpu."
            )
        if isinstance(op, DotGeneralOp | ConvolutionOp) and dtype_text(op.result.type) in _ROUNDED:
            _compute_in_full(op)


def _problem(op: Operation) -> str | None:
    look = _LOOKS.get(type(op))
    return None if look is None else look(op)


def _calls_host(op: CustomCallOp) -> str | None:
    target = op.call_target_name.data
    return f"{target} is a function of the processor's" if is_of_host(target) else None


def _convolves_integers(op: ConvolutionOp) -> str | None:
    return "it has no convolutions of integers there" if is_integer(dtype_text(op.result.type)) else None


def _has_parts_of_bytes(op: SortOp | ReduceOp) -> str | None:
    """Over the several values of which XLA's compiler fails, or ends the process."""
    texts = [dtype_text(type) for type in op.result_types]
    narrow = next((text for text in texts if text != "i1" and bit_width(text) < 8), None)
    if narrow is None or (isinstance(op, ReduceOp) and len(texts) == 1):
        return None
    return f"it takes no {narrow} there, which is less than a byte"


_LOOKS: Mapping[type[Operation], Callable[[Any], str | None]] = {
    PrintOp: lambda op: "what is printed is written by the processor",
    ScanOp: lambda op: "its compiler for GPUs does not know it; the pass expand-chlo writes it as a loop",
    CustomCallOp: _calls_host,
    ConvolutionOp: _convolves_integers,
    SortOp: _has_parts_of_bytes,
    ReduceOp: _has_parts_of_bytes,
}
"""Op class -> why one of its ops is not taken, or None."""


def _compute_in_full(op: DotGeneralOp | ConvolutionOp) -> None:
    """Let a product have the precision of its type, if it says no other."""
    said = cast(tuple[str, ...], op.value("precision_config") or ())
    if (isinstance(op, DotGeneralOp) and op.algorithm is not None) or any(name != "DEFAULT" for name in said):
        return
    op.precision_config = ArrayAttr([PrecisionAttr("HIGHEST")] * 2)


__all__ = ["suit_gpu"]
