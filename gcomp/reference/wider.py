"""A program evaluated in wider precision: every float is an f64, every complex number a complex<f64>.

This stands for the exact result where a rewrite may reassociate (E2): the errors of the original and of the rewritten
program are measured against it. Rounding to a narrower float (`convert`) does nothing here; `reduce_precision`, which
is asked for by name, still rounds; a `bitcast_convert` reads the bits of the declared type.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from gcomp.dtypes import DTYPES, dtype_of, is_complex, is_float, text_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.machine import Observer
from gcomp.reference.numpy.conversion import bitcast_convert, convert
from gcomp.reference.table import Array, DType, Meaning, Scope, Value

_F64, _C128 = DTYPES["f64"], DTYPES["complex<f64>"]


def widest_type(dtype: DType) -> DType:
    """The widest dtype of the same kind: f64 for floats, complex<f64> for complex numbers; others unchanged."""
    text = text_of(dtype)
    if is_complex(text):
        return _C128
    return _F64 if is_float(text) else dtype


def _bitcast(op: hlo.BitcastConvertOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The bits that the narrow value has."""
    source, target = (dtype_of(dtype_text(v.type)) for v in (op.operands[0], op.results[0]))
    return (scope.data(bitcast_convert(convert(args[0], dtype=source), dtype=target)),)


class WiderInterpreter(Interpreter):
    """An interpreter whose floats are all f64; inputs are in the program's own types, outputs in the wide ones."""

    def __init__(self, program: Program, *, observer: Observer | None = None, max_steps: int | None = None) -> None:
        super().__init__(program, observer=observer, max_steps=max_steps)
        self._meanings = {**self._meanings, hlo.BitcastConvertOp: Meaning(_bitcast, elementwise=True)}

    def dtype(self, value: SSAValue | Attribute) -> DType:
        return widest_type(super().dtype(value))

    def data(self, array: Array) -> Array:
        wide = widest_type(array.dtype)
        return array if wide == array.dtype else convert(array, dtype=wide)


def interpret_wider(program: Program, inputs: Sequence[Array], *, max_steps: int | None = None) -> list[Array]:
    """The outputs of a program, evaluated in wider precision throughout (floats come back as f64)."""
    return WiderInterpreter(program, max_steps=max_steps).run(inputs)
