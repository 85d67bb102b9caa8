"""The value that a fold starts from changes nothing: for every element type, the edges included."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import dtype_of, is_complex
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import ELEMENT_TYPES, tensor
from gcomp.reference.contract import compare
from gcomp.reference.interpreter import interpret
from gcomp.reference.values import edges

FOLDS: tuple[type[GraphOp], ...] = (
    hlo.AddOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp, hlo.AndOp, hlo.OrOp, hlo.XorOp,
)  # fmt: skip


@pytest.mark.parametrize("text", ELEMENT_TYPES)
@pytest.mark.parametrize("op", FOLDS, ids=lambda op: op.name.partition(".")[2])
def test_folding_one_element_gives_the_element(op: type[GraphOp], text: str) -> None:
    adds = op in (hlo.AddOp, hlo.MultiplyOp)
    if ELEMENT_TYPES[text] not in op.ELEMENTS or (adds and (is_complex(text) or text == "f8E8M0FNU")):
        return  # Complex products of infinities, and a type without zero, have no identity.
    values = edges(text)
    program = Program.empty([("x", tensor(values.shape, text))])
    b = Builder(program)
    start = b.full(values.shape, identity(op, text), text)
    program.finish([("r", b.emit(op, start, program.block.args[0]))])
    result = interpret(program, [values])[0]
    assert result.dtype == dtype_of(text)
    assert not compare(values, result, Exactness.E1)


def test_complex_numbers_are_folded_from_below_all_of_them() -> None:
    values = np.array([complex(-np.inf, -5), complex(-np.inf, -np.inf)], np.complex64)
    program = Program.empty([("x", tensor((2,), "complex<f32>"))])
    program.finish([("r", Builder(program).reduce(hlo.MaximumOp, program.block.args[0], (0,)))])
    assert interpret(program, [values])[0] == values[0]
