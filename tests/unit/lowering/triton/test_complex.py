"""Programs of complex numbers on GPUs: computed with their parts, taken and returned as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.pairs.table import FUNCTIONS
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.interpreter import interpret
from gcomp.targets.base import target_named
from gcomp.testing.plans import PlanRunner

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0, dtype: type[Any] = np.complex64) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype)


def agree(text: str, inputs: Sequence[Array]) -> None:
    """Run a program's plan and the reference on the same inputs."""
    expected = interpret(Program.parse(text), inputs)
    program = Program.parse(text)
    PassManager(parse_pipeline(target_named("triton:sm_90").pipeline())).run(program)
    for old, new in zip(expected, PlanRunner(program).run(inputs), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_allclose(new, old, rtol=2e-5, atol=2e-6)


ROTARY = """
func.func @main(%x: tensor<2x3x8xf32>, %t: tensor<3x4xcomplex<f32>>) -> tensor<2x3x8xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
  %1 = stablehlo.slice %0 [0:2, 0:3, 0:4, 0:1] : (tensor<2x3x4x2xf32>) -> tensor<2x3x4x1xf32>
  %2 = stablehlo.slice %0 [0:2, 0:3, 0:4, 1:2] : (tensor<2x3x4x2xf32>) -> tensor<2x3x4x1xf32>
  %3 = stablehlo.reshape %1 : (tensor<2x3x4x1xf32>) -> tensor<2x3x4xf32>
  %4 = stablehlo.reshape %2 : (tensor<2x3x4x1xf32>) -> tensor<2x3x4xf32>
  %5 = stablehlo.complex %3, %4 : tensor<2x3x4xcomplex<f32>>
  %6 = stablehlo.broadcast_in_dim %t, dims = [1, 2] : (tensor<3x4xcomplex<f32>>) -> tensor<2x3x4xcomplex<f32>>
  %7 = stablehlo.multiply %5, %6 : tensor<2x3x4xcomplex<f32>>
  %8 = stablehlo.real %7 : (tensor<2x3x4xcomplex<f32>>) -> tensor<2x3x4xf32>
  %9 = stablehlo.imag %7 : (tensor<2x3x4xcomplex<f32>>) -> tensor<2x3x4xf32>
  %10 = stablehlo.reshape %8 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %11 = stablehlo.reshape %9 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %12 = stablehlo.concatenate %10, %11, dim = 3 : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x2xf32>
  %13 = stablehlo.reshape %12 : (tensor<2x3x4x2xf32>) -> tensor<2x3x8xf32>
  return %13 : tensor<2x3x8xf32>
}"""
"""Rotary embeddings as Llama's first code has them."""


def test_rotary_embeddings_as_complex_products() -> None:
    agree(ROTARY, [np.random.default_rng(1).standard_normal((2, 3, 8)).astype(np.float32), numbers(3, 4)])


def test_what_is_taken_and_returned_is_complex() -> None:
    agree(
        """
func.func @main(%a: tensor<3x4xcomplex<f32>>, %b: tensor<4x5xcomplex<f32>>)
    -> (tensor<3x5xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3x5xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4xcomplex<f32>>, tensor<4x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
  %1 = stablehlo.exponential %0 : tensor<3x5xcomplex<f32>>
  %2 = stablehlo.abs %1 : (tensor<3x5xcomplex<f32>>) -> tensor<3x5xf32>
  return %1, %a, %0, %2 : tensor<3x5xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x5xcomplex<f32>>, tensor<3x5xf32>
}""",  # noqa: E501
        [numbers(3, 4), numbers(4, 5, seed=1)],
    )


@pytest.mark.parametrize("length", [8, 97, 120, 263])
def test_spectra(length: int) -> None:
    half = length // 2 + 1
    agree(
        f"""
func.func @main(%x: tensor<2x{length}xf32>) -> (tensor<2x{half}xf32>, tensor<2x{length}xf32>) {{
  %0 = stablehlo.fft %x, type = RFFT, length = [{length}] : (tensor<2x{length}xf32>) -> tensor<2x{half}xcomplex<f32>>
  %1 = stablehlo.abs %0 : (tensor<2x{half}xcomplex<f32>>) -> tensor<2x{half}xf32>
  %2 = stablehlo.fft %0, type = IRFFT, length = [{length}] : (tensor<2x{half}xcomplex<f32>>) -> tensor<2x{length}xf32>
  return %1, %2 : tensor<2x{half}xf32>, tensor<2x{length}xf32>
}}""",
        [np.random.default_rng(0).standard_normal((2, length)).astype(np.float32)],
    )


@pytest.mark.parametrize("length", [0, 1, 2, 7, 40])
def test_spectra_of_symbolic_lengths(length: int) -> None:
    agree(
        """module attributes {gcomp.ranges = {n = "0..40"}} {
func.func @main(%x: tensor<2x?xf32, ["2", "n"]>)
    -> (tensor<2x?xcomplex<f32>, ["2", "floordiv(n, 2) + 1"]>, tensor<2x?xf32, ["2", "n"]>,
        tensor<2x?xcomplex<f32>, ["2", "n"]>, tensor<2x?xcomplex<f32>, ["2", "n"]>) {
  %0 = stablehlo.fft %x, type = RFFT, length = ["n"]
    : (tensor<2x?xf32, ["2", "n"]>) -> tensor<2x?xcomplex<f32>, ["2", "floordiv(n, 2) + 1"]>
  %1 = stablehlo.fft %0, type = IRFFT, length = ["n"]
    : (tensor<2x?xcomplex<f32>, ["2", "floordiv(n, 2) + 1"]>) -> tensor<2x?xf32, ["2", "n"]>
  %2 = stablehlo.complex %x, %1 : tensor<2x?xcomplex<f32>, ["2", "n"]>
  %3 = stablehlo.fft %2, type = FFT, length = [2, "n"]
    : (tensor<2x?xcomplex<f32>, ["2", "n"]>) -> tensor<2x?xcomplex<f32>, ["2", "n"]>
  %4 = stablehlo.fft %3, type = IFFT, length = ["n"]
    : (tensor<2x?xcomplex<f32>, ["2", "n"]>) -> tensor<2x?xcomplex<f32>, ["2", "n"]>
  return %0, %1, %3, %4
    : tensor<2x?xcomplex<f32>, ["2", "floordiv(n, 2) + 1"]>, tensor<2x?xf32, ["2", "n"]>,
      tensor<2x?xcomplex<f32>, ["2", "n"]>, tensor<2x?xcomplex<f32>, ["2", "n"]>
}
}""",
        [np.random.default_rng(0).standard_normal((2, length)).astype(np.float32)],
    )


def test_loops_carry_complex_numbers() -> None:
    agree(
        """
func.func @main(%z: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %c = stablehlo.constant dense<[(0.1,0.2), (-0.3,0.4), (0.5,-0.6), (0.0,0.7)]> : tensor<4xcomplex<f32>>
  %0, %1 = stablehlo.while(%i = %zero, %v = %z) : tensor<i32>, tensor<4xcomplex<f32>>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    %4 = stablehlo.multiply %v, %c : tensor<4xcomplex<f32>>
    stablehlo.return %3, %4 : tensor<i32>, tensor<4xcomplex<f32>>
  }
  return %1, %0 : tensor<4xcomplex<f32>>, tensor<i32>
}""",
        [numbers(4)],
    )


def test_folds_and_scatters_of_complex_numbers() -> None:
    agree(
        """
func.func @main(%z: tensor<4x3xcomplex<f32>>, %i: tensor<2x1xi32>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) {
  %zero = stablehlo.constant dense<(0.0,0.0)> : tensor<complex<f32>>
  %one = stablehlo.constant dense<(1.0,0.0)> : tensor<complex<f32>>
  %0 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  %1 = stablehlo.reduce(%z init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<4x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  %u = stablehlo.slice %z [0:2, 0:3] : (tensor<4x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
  %2 = "stablehlo.scatter"(%z, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
    %s = stablehlo.add %a, %b : tensor<complex<f32>>
    stablehlo.return %s : tensor<complex<f32>>
  }) : (tensor<4x3xcomplex<f32>>, tensor<2x1xi32>, tensor<2x3xcomplex<f32>>) -> tensor<4x3xcomplex<f32>>
  return %0, %1, %2 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<4x3xcomplex<f32>>
}""",  # noqa: E501
        [numbers(4, 3), np.asarray([[2], [0]], np.int32)],
    )


def test_factorizations_of_complex_matrices_are_host_steps() -> None:
    matrix = numbers(3, 3, dtype=np.complex128)
    agree(
        """
func.func @main(%a: tensor<3x3xcomplex<f64>>) -> tensor<3x3xcomplex<f64>> {
  %0 = stablehlo.add %a, %a : tensor<3x3xcomplex<f64>>
  %1 = stablehlo.cholesky %0, lower = true : tensor<3x3xcomplex<f64>>
  %2 = stablehlo.multiply %1, %1 : tensor<3x3xcomplex<f64>>
  return %2 : tensor<3x3xcomplex<f64>>
}""",
        [matrix @ matrix.conj().T + 3 * np.eye(3)],
    )


@pytest.mark.parametrize("op", sorted(FUNCTIONS, key=lambda op: op.name), ids=lambda op: op.name)
def test_functions(op: type[GraphOp]) -> None:
    count = len(op.get_irdl_definition().operands)
    arguments = ", ".join(f"%a{i}: tensor<7xcomplex<f32>>" for i in range(count))
    names = ", ".join(f"%a{i}" for i in range(count))
    part = op.name == "stablehlo.abs"
    result = "tensor<7xf32>" if part else "tensor<7xcomplex<f32>>"
    types = ", ".join(["tensor<7xcomplex<f32>>"] * count)
    type = f"{types} -> {result}" if op.name.startswith("chlo.") else f"({types}) -> {result}" if part else result
    agree(
        f"""
func.func @main({arguments}) -> {result} {{
  %0 = {op.name} {names} : {type}
  return %0 : {result}
}}""",
        [numbers(7, seed=seed) for seed in range(count)],
    )
