"""Text goes from gcomp to jaxlib and back, in pretty and in generic form, without changing its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib

from gcomp.ir import text
from gcomp.ir.chlo import CHLO
from gcomp.ir.stablehlo import STABLEHLO
from tests.support.samples import WITHOUT_JAXLIB, samples

SAMPLES = samples()
each_sample = pytest.mark.parametrize("name", SAMPLES)


@cache
def context() -> jaxlib.Context:
    return mlir.make_ir_context()


def read(program: str) -> jaxlib.Module:
    module = jaxlib.Module.parse(program, context())
    module.operation.verify()
    return module


def pretty(program: str) -> str:
    """The program as jaxlib prints it; default values are left out."""
    return read(program).operation.get_asm()


def generic(program: str) -> str:
    """The program as jaxlib prints it with every property that it has."""
    return read(program).operation.get_asm(print_generic_op_form=True)


DEFAULTS = {
    "stablehlo.cholesky": ("lower = false",),
    "stablehlo.sort": ("dimension = -1 : i64", "is_stable = false"),
    "stablehlo.gather": ("indices_are_sorted = false",),
    "stablehlo.dynamic_gather": ("indices_are_sorted = false",),
    "stablehlo.scatter": ("indices_are_sorted = false", "unique_indices = false"),
    "stablehlo.composite": ("composite_attributes = {}", "version = 0 : i32"),
    "stablehlo.custom_call": (
        "api_version = 1 : i32", "called_computations = []", "has_side_effect = false", "output_operand_aliases = []",
    ),
    "stablehlo.send": ("is_host_transfer = false",),
    "stablehlo.recv": ("is_host_transfer = false",),
    "stablehlo.infeed": ('infeed_config = ""',),
    "stablehlo.outfeed": ('outfeed_config = ""',),
    "chlo.top_k": ("is_stable = true",),
    "chlo.scan": ("is_reverse = false",),
}  # fmt: skip
"""The properties that mean the same whether they are written or not; gcomp always has them."""


def without_defaults(program: str) -> str:
    """The text without properties that have their default values."""
    lines: list[str] = []
    for line in program.splitlines():
        for default in next((DEFAULTS[op] for op in DEFAULTS if f'"{op}"' in line), ()):
            line = re.sub(rf"(?<=[{{ ]){re.escape(default)}(, |(?=}}))", "", line)
        lines.append(line.replace(", }>", "}>").replace(" <{}>", ""))
    return "\n".join(lines)


def meaning(program: str) -> str:
    """A text that two programs share exactly if they are the same."""
    return without_defaults(generic(program))


def reprint(program: str, generic: bool = False) -> str:
    """The program as gcomp prints it."""
    module = text.parse_module(program)
    text.verify_module(module)
    return text.print_module(module, generic=generic)


@each_sample
def test_gcomp_reads_what_jaxlib_prints_and_jaxlib_reads_it_back(name: str) -> None:
    sample = SAMPLES[name]
    expected = meaning(sample)
    for source in (sample, pretty(sample), generic(sample)):
        assert meaning(reprint(source)) == expected
        assert meaning(reprint(source, generic=True)) == expected


@each_sample
def test_printing_is_a_fixed_point(name: str) -> None:
    for form in (False, True):
        once = reprint(SAMPLES[name], generic=form)
        assert reprint(once, generic=form) == once


def normal(program: str) -> list[str]:
    """The words of a program with its values numbered in order of appearance and its numbers read."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match.group(), f"%{len(numbers)}")

    program = re.sub(r"%[\w]+(#\d+)?(:\d+)?", number, program)
    program = re.sub(r"-?\d+\.\d+(e[+-]\d+)?", lambda m: repr(float(m.group())), program)
    return program.replace("func.return", "return").replace("builtin.module", "module").split()


@each_sample
def test_the_pretty_form_is_jaxlibs(name: str) -> None:
    expected = pretty(SAMPLES[name])
    if re.search(r"%\w+(:\d|, %\w+ =)|attributes|\{\w+ = .*, \w+ = ", expected):
        return  # results are named one by one, and attributes are printed in the order in which they came
    if ", , sizes" in expected:
        return  # jaxlib cannot read this text of its own
    assert normal(without_defaults(reprint(expected))) == normal(without_defaults(expected))


def test_every_op_has_a_sample() -> None:
    everything = "\n".join(SAMPLES.values())
    names = {op.name for dialect in (STABLEHLO, CHLO) for op in dialect.operations}
    assert {name for name in names if f'"{name}"' not in everything} == WITHOUT_JAXLIB


def test_quantized_programs_are_read() -> None:
    program = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 2.000000e+00:15>>
  %r = stablehlo.uniform_dequantize %q : (tensor<2x!quant.uniform<i8:f32, 2.000000e+00:15>>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}"""
    once = reprint(program)
    assert reprint(once) == once
    assert "!quant.uniform<i8:f32, 2.000000e+00:15>" in once


def test_an_unstable_top_k_stays_one() -> None:
    program = """func.func @main(%x: tensor<5xf32>) -> tensor<3xf32> {
  %v, %i = chlo.top_k(%x, k = 3, is_stable = false) : tensor<5xf32> -> (tensor<3xf32>, tensor<3xi32>)
  func.return %v : tensor<3xf32>
}"""
    once = reprint(program)
    assert "is_stable = false" in once
    assert reprint(once) == once
    assert "is_stable = false" in pretty(once)


def _jax_programs() -> dict[str, str]:
    x = jnp.ones((4, 5), jnp.float32)
    programs: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "sorting and scattering": (lambda v: (jnp.argsort(v, 1), jnp.cumsum(v, 0), v.at[:, 2].add(1.0)), (x,)),
        "loops": (lambda v: jax.lax.fori_loop(0, 7, lambda i, c: jax.lax.cond(i > 3, jnp.sin, jnp.cos, c), v), (x,)),
        "while": (lambda v: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, v), (x,)),
        "scan": (lambda v: jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(5), v), (x,)),
        "linear algebra": (lambda v: jnp.linalg.cholesky(v @ v.T + jnp.eye(4)), (x,)),
        "random numbers": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3,)), (jnp.zeros(2, jnp.uint32),)),
        "special functions": (lambda v: (jax.lax.erf_inv(v), jax.lax.lgamma(v), jax.lax.top_k(v, 2)), (x,)),
        "gradients": (jax.grad(lambda v: jax.nn.gelu(v @ v.T).sum() + jax.nn.softmax(v).max()), (x,)),
        "convolution": (
            jax.grad(lambda v, w: jax.lax.conv(v, w, (2, 1), "SAME").sum(), 1),
            (jnp.ones((2, 3, 8, 8)), jnp.ones((4, 3, 3, 3))),
        ),
        "pooling": (
            jax.grad(lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (2, 2), (2, 1), "VALID").sum()),
            (x,),
        ),
        "fourier": (lambda v: jnp.fft.irfft(jnp.fft.rfft(v)), (x,)),
    }
    return {name: jax.jit(function).lower(*args).as_text() for name, (function, args) in programs.items()}


def test_programs_of_jax_are_read() -> None:
    for name, program in _jax_programs().items():
        for form in (False, True):
            assert meaning(reprint(program, generic=form)) == meaning(program), name
