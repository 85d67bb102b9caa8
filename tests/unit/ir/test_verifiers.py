"""Programs that break one constraint of the specification each are refused, and the error cites the constraint."""

from __future__ import annotations

from functools import cache

import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib

from gcomp.errors import VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir import text
from gcomp.ir.program import Program
from tests.support.samples import sample

from . import broken_structured_programs as structured
from . import broken_tensor_programs as tensors

BAD: list[tuple[str, str]] = [
    *((row[0], sample(f"stablehlo.{row[0].rpartition('-')[0]}", *row[1:])) for row in tensors.STABLEHLO),
    *((row[0], sample(f"stablehlo.{row[0].rpartition('-')[0]}", *row[1:])) for row in structured.STABLEHLO),
    *((row[0], sample(f"chlo.{row[0].rpartition('-')[0]}", *row[1:])) for row in tensors.CHLO),
    *structured.PROGRAMS,
]
each_bad_program = pytest.mark.parametrize(
    ("constraint", "program"), BAD, ids=[f"{constraint} {number}" for number, (constraint, _) in enumerate(BAD)]
)

STRICTER = frozenset((
    "compare-C3", "compare-C4", "reduce-C2", "reduce-C6", "reduce_window-C3", "select_and_scatter-C1",
    "select_and_scatter-C3", "scatter-C6", "dynamic_broadcast_in_dim-C7", "dynamic_conv-C2", "dynamic_iota-C2",
    "rng_bit_generator-I2", "rng_bit_generator-C2", "broadcast_add-C1", "broadcast_add-C2", "all_gather-C",
    "all_gather-C5", "reduce_scatter-C",
))  # fmt: skip
"""Constraints that jaxlib does not check in every program that breaks them."""


@cache
def context() -> jaxlib.Context:
    return mlir.make_ir_context()


@each_bad_program
def test_refused_with_the_constraint(constraint: str, program: str) -> None:
    module = text.parse_module(program)
    with pytest.raises(VerificationError) as refused:
        text.verify_module(module)
    assert f"{constraint}:" in str(refused.value)


@each_bad_program
def test_jaxlib_refuses_it_too(constraint: str, program: str) -> None:
    if constraint not in STRICTER:
        with pytest.raises(jaxlib.MLIRError):
            jaxlib.Module.parse(program, context()).operation.verify()


def test_dimensions_of_a_convolution_are_each_named_once() -> None:
    """Text says so by itself; a pass that builds the record may name one twice, or one that there is not."""
    program = Program.parse("""
func.func @main(%x: tensor<1x1x1xf32>) -> tensor<1x1x1xf32> {
  %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x1xf32>, tensor<1x1x1xf32>)
    -> tensor<1x1x1xf32>
  return %0 : tensor<1x1x1xf32>
}""")
    op = next(op for op in program.ops() if isinstance(op, hlo.ConvolutionOp))
    right = op.dimensions
    for constraint, wrong in (("C13", {"input_batch_dimension": 1}), ("C18", {"kernel_input_feature_dimension": -1}),
                              ("C20", {"output_feature_dimension": -2})):  # fmt: skip
        op.properties["dimension_numbers"] = op.encode_property("dimension_numbers", right._replace(**wrong))
        with pytest.raises(VerificationError, match=f"convolution-{constraint}"):
            program.verify()
