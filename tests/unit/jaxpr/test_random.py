"""Random numbers: bit for bit JAX's, under both styles of keys and all its generators."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

import gcomp
from gcomp.frontends.jaxpr import import_jax

from .agreement import Group, agree, together

IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")
SWEPT = ["threefry2x32", *[pytest.param(i, marks=pytest.mark.slow) for i in IMPLEMENTATIONS[1:]]]
P = np.array([0.2, 0.3, 0.5], np.float32)
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)

# Integers, and floats that are made of bits by exact operations.
EXACT: Group = {
    "bits of 8": lambda k: random.bits(k, (5,), "uint8"),
    "bits of 16": lambda k: random.bits(k, (5,), "uint16"),
    "bits of 32": lambda k: random.bits(k, (5, 3), "uint32"),
    "uniform": lambda k: random.uniform(k, (3, 5)),
    "one uniform": lambda k: random.uniform(k),
    "no uniform": lambda k: random.uniform(k, (0, 3)),
    "bf16": lambda k: random.uniform(k, (7,), jnp.bfloat16),
    "f16": lambda k: random.uniform(k, (7,), jnp.float16),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (9,)),
    "randint": lambda k: random.randint(k, (6,), -5, 100),
    "randint of 8 bits": lambda k: random.randint(k, (6,), -128, 127, jnp.int8),
    "rademacher": lambda k: random.rademacher(k, (6,)),
    "permutation": lambda k: random.permutation(k, 10),
    "permuted rows": lambda k: random.permutation(k, jnp.arange(12).reshape(3, 4), axis=1, independent=True),
    "choice": lambda k: random.choice(k, 10, (4,)),
    "choice without replacement": lambda k: random.choice(k, 10, (4,), replace=False),
    "choice by weight": lambda k: random.choice(k, 3, (4,), p=jnp.asarray(P)),
    "fold_in": lambda k: random.fold_in(k, 7),
    "batch of folds": lambda k: jax.vmap(random.fold_in, (None, 0))(k, jnp.arange(3)),
    "split": lambda k: random.split(k, 5),
    "clone": lambda k: random.clone(random.split(k)[0]),
    "vmap": lambda k: jax.vmap(lambda q: random.uniform(q, (3,)))(random.split(k, 4)),
}
ROUNDED: Group = {
    "normal": lambda k: random.normal(k, (4, 3)),
    "complex normal": lambda k: random.normal(k, (4,), jnp.complex64),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (5,)),
    "categorical": lambda k: random.categorical(k, jnp.log(P), shape=(8,)),
    "categorical once each": lambda k: random.categorical(k, jnp.log(P), shape=(2,), replace=False),
    "gumbel": lambda k: random.gumbel(k, (4,)),
    "exponential": lambda k: random.exponential(k, (4,)),
    "laplace": lambda k: random.laplace(k, (4,)),
    "logistic": lambda k: random.logistic(k, (4,)),
    "cauchy": lambda k: random.cauchy(k, (4,)),
    "pareto": lambda k: random.pareto(k, 2.0, (4,)),
    "weibull_min": lambda k: random.weibull_min(k, 1.0, 2.0, (4,)),
    "lognormal": lambda k: random.lognormal(k, shape=(4,)),
    "maxwell": lambda k: random.maxwell(k, (4,)),
    "rayleigh": lambda k: random.rayleigh(k, 2.0, (4,)),
    "triangular": lambda k: random.triangular(k, 0.0, 1.0, 3.0, (4,)),
    "wald": lambda k: random.wald(k, 2.0, (4,)),
    "geometric": lambda k: random.geometric(k, 0.3, (5,)),
    "orthogonal": lambda k: random.orthogonal(k, 3),
    "multivariate_normal": lambda k: random.multivariate_normal(k, jnp.zeros(2), COVARIANCE, (3,)),
    "glorot": lambda k: jax.nn.initializers.glorot_uniform()(k, (4, 3)),
}
REJECTING: Group = {
    "gamma": lambda k: random.gamma(k, jnp.array([0.5, 2.0, 3.0])),
    "loggamma": lambda k: random.loggamma(k, jnp.array([0.5, 2.0])),
    "beta": lambda k: random.beta(k, 2.0, 3.0, (2,)),
    "t": lambda k: random.t(k, 3.0, (2,)),
    "dirichlet": lambda k: random.dirichlet(k, jnp.array([1.0, 2.0, 3.0]), (2,)),
    "chisquare": lambda k: random.chisquare(k, 3.0, shape=(2,)),
    "f": lambda k: random.f(k, 3.0, 4.0, shape=(2,)),
    "binomial": lambda k: random.binomial(k, 10.0, 0.4, (3,)),
    "multinomial": lambda k: random.multinomial(k, 10.0, jnp.asarray(P)),
    "ball": lambda k: random.ball(k, 3, shape=(2,)),
    "generalized_normal": lambda k: random.generalized_normal(k, 1.5, (3,)),
    "double_sided_maxwell": lambda k: random.double_sided_maxwell(k, 0.0, 1.0, (3,)),
    "gradient": lambda k: jax.grad(lambda a: random.gamma(k, a))(2.5),
}
# Operations on typed keys as elements.
KEYS: Group = {
    "where": lambda k: jnp.where(jnp.array([True, False]), random.split(k, 2), random.split(random.fold_in(k, 1), 2)),
    "where scalar": lambda k: jnp.where(random.uniform(k) < 2, k, random.fold_in(k, 1)),
    "strides": lambda k: random.split(k, (2, 3))[1, ::2],
    "index": lambda k: jnp.concatenate([random.split(k, 2), random.split(k, 3)])[jnp.array([3, 0])],
    "set": lambda k: random.split(k, 3).at[1].set(k),
    "shapes": lambda k: random.split(k, (2, 3)).T.reshape(3, 2, 1).squeeze(2)[::-1],
    "stacked": lambda k: jnp.stack([k, random.fold_in(k, 1)]),
    "broadcast": lambda k: jnp.broadcast_to(k, (2, 2)),
    "data": lambda k: random.key_data(random.wrap_key_data(random.key_data(k), impl=random.key_impl(k))),
    "scan": lambda k: jax.lax.scan(lambda c, _: (random.split(c)[0], random.uniform(c)), k, None, length=4),
    "cond": lambda k: jax.lax.cond(random.bernoulli(k), lambda: k, lambda: random.fold_in(k, 1)),
    "equal": lambda k: random.split(k, 2) == random.split(k, 2)[::-1],
}


@pytest.mark.parametrize("implementation", SWEPT)
def test_bits_are_equal(implementation: str) -> None:
    agree(together(EXACT), random.key(42, impl=implementation), ulps=0)


@pytest.mark.parametrize("implementation", SWEPT)
def test_keys_are_values(implementation: str) -> None:
    agree(together(KEYS), random.key(42, impl=implementation), ulps=0)


@pytest.mark.parametrize("implementation", SWEPT)
def test_distributions(implementation: str) -> None:
    agree(together(ROUNDED), random.key(7, impl=implementation), ulps=16)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_distribution_by_rejection(implementation: str) -> None:
    agree(REJECTING["gamma"], random.key(3, impl=implementation), ulps=64)


@pytest.mark.slow
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_distributions_by_rejection(implementation: str) -> None:
    agree(together(REJECTING), random.key(3, impl=implementation), ulps=64)


def test_keys_that_are_plain_integers() -> None:
    rows = {name: EXACT[name] for name in ("bits of 32", "uniform", "permutation", "fold_in", "split", "vmap")}
    agree(together({**rows, "poisson": lambda k: random.poisson(k, 3.0, (3,))}), random.PRNGKey(42), ulps=0)


def test_seeds_are_inputs_too() -> None:
    def draw(seed: Any) -> Any:
        return [random.key_data(random.key(seed, impl=i)) for i in IMPLEMENTATIONS], random.bits(random.key(seed))

    with jax.enable_x64(True):
        agree(draw, np.int64(-3))
        agree(lambda k: random.bits(k, (5,), "uint64"), random.key(1))


def test_bits_of_the_older_threefry() -> None:
    with jax.threefry_partitionable(False):
        agree(together({name: EXACT[name] for name in ("bits of 8", "uniform", "split")}), random.key(0), ulps=0)


@pytest.mark.parametrize("algorithm", list(jax.lax.RandomAlgorithm))
def test_the_generator_of_xla(algorithm: Any) -> None:
    def draw(state: Any) -> Any:
        bits = ("uint8", "uint16", "uint32", "uint64")
        return [jax.lax.rng_bit_generator(state, (3, 5), dtype=b, algorithm=algorithm) for b in bits]

    with jax.enable_x64(True):
        agree(draw, np.arange(4, dtype=np.uint32))


@pytest.mark.parametrize("module", ["philox2x32", "philox4x32", "threefry4x32"])
def test_the_other_counter_based_generators(module: str) -> None:
    import importlib

    importlib.import_module(f"jax._src.random.{module}")
    with jax.enable_x64(False):
        agree(lambda k: (random.bits(k, (3, 5)), random.split(k)), random.key(5, impl=module), ulps=0)


def test_numbers_from_hidden_state_lie_between_their_bounds() -> None:
    program = import_jax(lambda a, b: jax.lax.rng_uniform(a, b, (50,)), np.float32(2), np.float32(3))
    model = gcomp.compile(program, target="xla:cpu")
    x = model(np.float32(2), np.float32(3))
    assert x.shape == (50,) and (x >= 2).all() and (x < 3).all() and len(np.unique(x)) > 40


def test_numbers_for_a_batch_of_symbolic_size() -> None:
    (n,) = jax.export.symbolic_shape("n")
    draw = lambda x: random.uniform(random.key(0), x.shape)  # noqa: E731
    model = gcomp.compile(import_jax(draw, jax.ShapeDtypeStruct((n, 3), np.float32)))
    for count in (1, 5):
        x = np.zeros((count, 3), np.float32)
        np.testing.assert_array_equal(model(x), draw(x))
