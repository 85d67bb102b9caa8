"""Random bits and keys. Keys are held as the integers that they stand for, so most of it is JAX's own arithmetic.

The bits are JAX's, bit for bit: of threefry and the other counter-based generators by definition, of `rbg` because the
generator of XLA is the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports, imports_definitions
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import tensor

_prng: Any = import_module("jax._src.random.prng")
_core: Any = import_module("jax._src.random.core")
_philox2x32: Any = import_module("jax._src.random.philox2x32")
_philox4x32: Any = import_module("jax._src.random.philox4x32")
_threefry2x32: Any = import_module("jax._src.random.threefry2x32")
_threefry4x32: Any = import_module("jax._src.random.threefry4x32")


# ---- keys -----------------------------------------------------------------------------------------------------------


@imports("random_wrap", "random_unwrap", "random_clone", "to_edtype", "from_edtype")
def same(ctx: EqnContext) -> Results:
    """Keys and the integers that hold them are one."""
    return ctx.operands


def _seed(seeds: Any, *, impl: Any) -> Any:
    return _prng.random_seed_impl_base(seeds, impl=impl)


def _split(keys: Any, *, shape: tuple[int, ...]) -> Any:
    return _prng.random_split_impl_base(keys.dtype._impl, _prng.random_unwrap(keys), keys.ndim, shape=shape)


def _fold_in(keys: Any, data: Any) -> Any:
    return _prng.random_fold_in_impl_base(keys.dtype._impl, _prng.random_unwrap(keys), data, keys.shape)


def _bits(keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
    base = _prng.random_unwrap(keys)
    return _prng.random_bits_impl_base(keys.dtype._impl, base, keys.ndim, bit_width=bit_width, shape=shape)


def _gamma(keys: Any, alpha: Any, *, log_space: bool) -> Any:
    return _core._gamma_impl(keys, alpha, log_space=log_space, use_vmap=True)


_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "philox2x32": _philox2x32._philox2x32_lowering,
    "philox4x32": _philox4x32._philox4x32_lowering,
    "random_bits": _bits,
    "random_fold_in": _fold_in,
    "random_gamma": _gamma,
    "random_seed": _seed,
    "random_split": _split,
    # In a loop over the rounds, as JAX has it on CPUs: unrolled, XLA takes long to compile it.
    "threefry2x32": _threefry2x32._threefry2x32_lowering,
    "threefry4x32": _threefry4x32._threefry4x32_lowering,
}
"""Primitive -> the JAX function of the operands and parameters that it stands for."""

imports_definitions(_DEFINITIONS)


# ---- bits -----------------------------------------------------------------------------------------------------------


@imports("iota_2x32_shape")
def iota_2x32_shape(ctx: EqnContext) -> Results:
    """The place of each element in row-major order, as the upper and the lower half of 64 bits."""
    b, shape = ctx.b, ctx.out_shape()
    counts = b.reshape(b.iota((dims.product(shape),), 0, "ui64"), shape)
    upper = b.emit(hlo.ShiftRightLogicalOp, counts, b.full(shape, 32, "ui64"))
    return b.convert(upper, "ui32"), b.convert(counts, "ui32")


_ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")
"""By the number of JAX's enumeration."""


@imports("rng_bit_generator")
def rng_bit_generator(ctx: EqnContext) -> Results:
    """The next state of XLA's generator, and bits. Its state is ui64[2], for which a ui32[4] may stand."""
    b, state = ctx.b, ctx[0]
    packed = ctx.dtype() == "ui32"
    if packed:
        state = _cast(ctx, b.reshape(state, (2, 2)), (2,), "ui64")
    after, bits = b.emit_all(
        hlo.RngBitGeneratorOp, state, types=(state.type, ctx.out_type(1)),  # pyright: ignore[reportArgumentType]
        rng_algorithm=_ALGORITHMS[int(ctx.params["algorithm"])],
    )  # fmt: skip
    if packed:
        after = b.reshape(_cast(ctx, after, (2, 2), "ui32"), (4,))
    return after, bits


def _cast(ctx: EqnContext, x: SSAValue, shape: tuple[int, ...], element: str) -> SSAValue:
    return ctx.b.emit(hlo.BitcastConvertOp, x, types=(tensor(shape, element),))


@imports("rng_uniform")
def rng_uniform(ctx: EqnContext) -> Results:
    """Uniform numbers between scalars from hidden state: each execution gives others."""
    shape = ctx.out_shape()
    sizes = [ctx.b.reshape(ctx.b.dim(size), (1,)) for size in shape]
    whole = ctx.b.concatenate(sizes, 0) if sizes else ctx.b.full((0,), 0, "i64")
    return ctx.b.emit(hlo.RngOp, ctx[0], ctx[1], whole, types=(ctx.out_type(),), rng_distribution="UNIFORM")
