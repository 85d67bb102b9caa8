"""Models of flax and equinox, and training steps of optax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.jax_programs.table import Made, integers, makes_program, normal


def filled(function: Any, *args: Any) -> Any:
    """What a function that initializes a model would return, filled otherwise: running initializers takes long."""
    shapes = jax.eval_shape(function, *args)
    return jax.tree.map(lambda s: np.abs(normal(*s.shape, scale=0.3)) + 0.01 * len(s.shape), shapes)


@makes_program("flax", ulps=64)
def flax_cnn() -> Made:
    """flax.linen: convolutions, batch norm in training, dropout"""
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            x = nn.Conv(8, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
            x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            return nn.Dense(10)(nn.Dropout(0.5, deterministic=not train)(x))

    net, x = Net(), normal(4, 8, 8, 3)
    variables = filled(lambda key: net.init(key, x, train=False), jax.random.key(0))

    def apply(variables: Any, x: Any, seed: Any) -> Any:
        rngs = {"dropout": jax.random.key(seed)}
        trained = net.apply(variables, x, train=True, mutable=["batch_stats"], rngs=rngs)
        return net.apply(variables, x, train=False), trained

    return apply, (variables, x, integers(3, 4))


@makes_program("flax", ulps=64)
def flax_transformer() -> Made:
    """flax.linen: embedding, layer norm, multi-head attention, gelu; gradients"""
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(32, 16)(tokens)
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4, use_bias=False)(y, mask=nn.make_causal_mask(tokens))
            return nn.Dense(32)(nn.gelu(nn.Dense(32)(nn.RMSNorm()(x))))

    net, tokens = Net(), integers(0, 32, 2, 6)
    params = filled(net.init, jax.random.key(0), tokens)
    return jax.value_and_grad(lambda p, t: jnp.mean(net.apply(p, t) ** 2)), (params, tokens)


@makes_program("flax", ulps=64)
def flax_recurrent() -> Made:
    """flax.linen: an LSTM and a bidirectional GRU by nn.RNN"""
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            both = nn.Bidirectional(nn.RNN(nn.GRUCell(8)), nn.RNN(nn.GRUCell(8)))
            return both(nn.RNN(nn.OptimizedLSTMCell(12))(x))

    net, x = Net(), normal(2, 7, 5)
    return net.apply, (filled(net.init, jax.random.key(0), x), x)


@makes_program("flax", ulps=64)
def flax_nnx() -> Made:
    """flax.nnx: a module split into graph and state"""
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first, self.norm = nnx.Linear(8, 16, rngs=rngs), nnx.LayerNorm(16, rngs=rngs)
            self.second = nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.second(nnx.gelu(self.norm(self.first(x))))

    graph, state = nnx.split(nnx.eval_shape(lambda: Net(nnx.Rngs(0))))
    state = filled(lambda: state)
    return lambda state, x: nnx.merge(graph, state)(x), (state, normal(4, 8))


def parts(make: Any) -> tuple[Any, Any]:
    """The arrays of equinox's modules, and the rest."""
    import equinox as eqx

    shapes = eqx.filter_eval_shape(make)
    arrays, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    return filled(lambda: arrays), static


@makes_program("equinox", ulps=64)
def equinox_mlp() -> Made:
    """equinox: an MLP that is itself an argument, with the gradients of its arrays"""
    import equinox as eqx

    params, static = parts(lambda: eqx.nn.MLP(8, 2, 16, 2, key=jax.random.key(0)))

    def loss(params: Any, x: Any) -> Any:
        return jnp.mean(jax.vmap(eqx.combine(params, static))(x) ** 2)

    return jax.value_and_grad(loss), (params, normal(4, 8))


@makes_program("equinox", ulps=64)
def equinox_sequence() -> Made:
    """equinox: a GRU cell in a scan, multi-head attention, layer norm"""
    import equinox as eqx

    key = jax.random.key(0)
    params, static = parts(
        lambda: (eqx.nn.GRUCell(8, 8, key=key), eqx.nn.MultiheadAttention(2, 8, key=key), eqx.nn.LayerNorm(8))
    )

    def apply(params: Any, x: Any) -> Any:
        cell, attention, norm = eqx.combine(params, static)
        _, states = jax.lax.scan(lambda h, v: (cell(v, h),) * 2, jnp.zeros(8), x)
        return jax.vmap(norm)(states + attention(states, states, states))

    return apply, (params, normal(5, 8))


def _step(optimizer: Any) -> Made:
    import optax

    params = {"w": normal(8, 4), "b": normal(4)}

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step, (params, optimizer.init(params), normal(16, 8), normal(16, 4))


@makes_program("optax", ulps=64)
def optax_adamw() -> Made:
    """A step of AdamW with clipped gradients and a schedule"""
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 50)
    return _step(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-2)))


@makes_program("optax", ulps=64)
def optax_others() -> Made:
    """A step of momentum, of Lion and of Adafactor, one after another"""
    import optax

    return _step(optax.chain(optax.trace(0.9, nesterov=True), optax.lion(1e-3), optax.adafactor(1e-2)))
