"""Whatever JAX lowers, gcomp exports to text that XLA compiles to the same results, bit for bit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from gcomp.errors import GcompError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.runtime.model import Model

NHWC = ("NHWC", "HWIO", "NHWC")


def _floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _ints(*shape):
    return np.random.default_rng(0).integers(0, 5, size=shape).astype(np.int32)


_spd = (lambda a: a @ a.T + 6 * np.eye(6, dtype=np.float32))(_floats(6, 6))
_low = np.tril(_spd)
_i2 = np.int32(2)


def _pool(x, init, op, padding):
    return lax.reduce_window(x, np.float32(init), op, (1, 2, 2, 1), (1, 2, 2, 1), padding)


CASES = {
    "erf": (jax.scipy.special.erf, _floats(4, 5)),
    "erf_inv": (lambda x: lax.erf_inv(x * 0.1), _floats(4, 5)),
    "erfc": (lax.erfc, _floats(4)),
    "lgamma": (lax.lgamma, _floats(4)),
    "digamma": (lax.digamma, _floats(4)),
    "tan": (jnp.tan, _floats(4)),
    "asin": (lambda x: jnp.arcsin(x * 0.1), _floats(4)),
    "sinh": (jnp.sinh, _floats(4)),
    "cosh": (jnp.cosh, _floats(4)),
    "asinh": (jnp.arcsinh, _floats(4)),
    "acosh": (lambda x: jnp.arccosh(abs(x) + 1), _floats(4)),
    "atanh": (lambda x: jnp.arctanh(x * 0.1), _floats(4)),
    "next_after": (jnp.nextafter, _floats(4), _floats(4)[::-1].copy()),
    "zeta": (lambda x: jax.scipy.special.zeta(x + 9, x + 9), _floats(4)),
    "polygamma": (lambda x: jax.scipy.special.polygamma(2, abs(x) + 1), _floats(4)),
    "bessel_i1e": (jax.scipy.special.i1e, _floats(4)),
    "top_k": (lambda x: lax.top_k(x, 3), _floats(4, 7)),
    "square": (jnp.square, _floats(4)),
    "sort": (jnp.sort, _floats(4, 5)),
    "argsort": (jnp.argsort, _floats(4, 5)),
    "sort complex": (lambda x: jnp.sort(lax.complex(x, -x)), _floats(5)),
    "argmax": (lambda x: jnp.argmax(x, 1), _floats(4, 5)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), _floats(4, 5)),
    "cumlogsumexp": (lax.cumlogsumexp, _floats(4, 5)),
    "gather": (lambda x, i: x[i], _floats(5, 3), _ints(2, 2)),
    "scatter": (lambda x, i: x.at[i].add(1.0), _floats(5, 3), _ints(2)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2)), _floats(5, 4), _i2),
    "dynamic_update_slice": (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i, i)), _floats(5, 4), _i2),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (2, 1), [(1, 2), (0, 0)], None, (1, 2), NHWC),
        _floats(2, 9, 9, 4),
        _floats(3, 3, 4, 8),
    ),
    "grouped convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4),
        _floats(2, 4, 9, 9),
        _floats(8, 1, 3, 3),
    ),
    "transposed convolution": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        _floats(2, 9, 9, 4),
        _floats(3, 3, 4, 8),
    ),
    "max pool": (lambda x: _pool(x, -np.inf, lax.max, "SAME"), _floats(2, 9, 9, 4)),
    "max pool gradient": (jax.grad(lambda x: _pool(x, -np.inf, lax.max, "VALID").sum()), _floats(2, 8, 8, 4)),
    "average pool": (lambda x: _pool(x, 0, lax.add, "SAME"), _floats(2, 9, 9, 4)),
    "fft": (jnp.fft.fft, _floats(4, 8)),
    "rfft": (jnp.fft.rfft, _floats(4, 8)),
    "irfft": (lambda x: jnp.fft.irfft(lax.complex(x, x)), _floats(4, 8)),
    "cholesky": (jnp.linalg.cholesky, _spd),
    "triangular_solve": (lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), _low, _floats(6, 2)),
    "qr": (jnp.linalg.qr, _floats(5, 3)),
    "eigh": (jnp.linalg.eigh, _spd),
    "svd": (lambda x: jnp.linalg.svd(x)[1], _floats(5, 3)),
    "inverse": (jnp.linalg.inv, _spd),
    "eigvals": (jnp.linalg.eigvals, _floats(4, 4)),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x)), _floats(4)),
    "if": (lambda x: lax.cond(x[0] > 0, lambda x: x + 1, lambda x: x - 1, x), _floats(4)),
    "case": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(1), _floats(4)),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), _floats(6, 3)),
    "normal": (lambda: jax.random.normal(jax.random.key(3), (5,)),),
    "rng_bit_generator": (lambda: jax.random.bits(jax.random.key(3, impl="rbg"), (5,)),),
    "permutation": (lambda: jax.random.permutation(jax.random.key(0), 9),),
    "pad": (lambda x: lax.pad(x, np.float32(0), ((1, -1, 2), (0, 3, 0))), _floats(4, 5)),
    "reverse": (lambda x: x[::-1], _floats(4, 5)),
    "clamp": (lambda x: jnp.clip(x, -0.5, 0.5), _floats(4)),
    "concatenate": (lambda x: jnp.concatenate([x, x * 2], 1), _floats(4, 3)),
    "iota": (lambda x: x + jnp.arange(4, dtype=np.float32), _floats(4)),
    "bitcast_convert": (lambda x: lax.bitcast_convert_type(x, np.int8), _floats(4)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), _floats(4)),
    "complex": (lambda x: lax.complex(x, x) * 2, _floats(4)),
    "bf16": (lambda x: x.astype("bfloat16") @ x.astype("bfloat16").T, _floats(4, 5)),
    "f8": (lambda x: x.astype("float8_e4m3fn").astype("float32"), _floats(9)),
    "i4": (lambda x: (x.astype("int4") * 2).astype("int32"), _ints(9)),
    "u8": (lambda x: lax.population_count(x.astype("uint8")) + lax.clz(x.astype("uint8")), _ints(4)),
    "bool": (lambda x: jnp.array([True, False, True]) & (x > 0), _floats(3)),
    "is_finite": (jnp.isfinite, _floats(4)),
    "dot precision": (
        lambda x, y: jnp.einsum("bij,bjk->bik", x, y, precision="highest"),
        _floats(2, 3, 4),
        _floats(2, 4, 5),
    ),
    "dot algorithm": (lambda x: lax.dot(x, x.T, precision=lax.DotAlgorithmPreset.F32_F32_F32), _floats(4, 5)),
    "gelu": (jax.nn.gelu, _floats(4)),
    "softmax": (jax.nn.softmax, _floats(4, 5)),
    "logsumexp gradient": (jax.grad(lambda x: jax.nn.logsumexp(jnp.sin(x) @ x.T)), _floats(4, 4)),
    "relu": (jax.nn.relu, _floats(5)),
    "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), _floats(5)),
    "optimization_barrier": (lambda x: lax.optimization_barrier((x, x + 1)), _floats(3)),
    "composite": (lax.composite(lambda x: jnp.sin(x) * 2, name="my.op"), _floats(3)),
    "map": (lambda x: lax.map(lambda v: v * 2, x), _floats(3)),
    "large constant": (lambda x: x + np.arange(600, dtype=np.float32).reshape(2, 300) * 1.1, _floats(2, 300)),
    "approx_max_k": (lambda x: lax.approx_max_k(x, 3), _floats(30)),
}


@pytest.mark.parametrize("name", CASES)
def test_exported_text_computes_what_jax_computes(name):
    function, *arguments = CASES[name]
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    expected = jax.tree.leaves(lowered.compile()(*arguments))
    program = Program.parse(lowered.as_text())
    before = program.text()
    # With XLA's default options, which JAX uses too, so that the bits must agree.
    model = Model(lower(program, options={}), {})
    assert program.text() == before
    for got, want in zip(model(*arguments), expected, strict=True):
        want = np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert got.tobytes() == want.tobytes()


def test_callbacks_into_python_are_refused():
    spec = jax.ShapeDtypeStruct((3,), np.float32)
    text = jax.jit(lambda x: jax.pure_callback(lambda v: v, spec, x)).lower(_floats(3)).as_text()
    with pytest.raises(GcompError) as error:
        lower(Program.parse(text))
    if isinstance(error.value, UnsupportedError):
        assert "callback" in str(error.value)
