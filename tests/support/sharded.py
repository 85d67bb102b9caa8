"""Functions of JAX for a mesh of eight devices, which a process that has them runs (`tests.support.devices`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Array = Any
BOTH = ("data", "model")


def mesh(order: tuple[int, ...] = ()) -> Mesh:
    """Eight devices, four along `data` and two along `model`, in an order of their own if one is given."""
    devices = np.array([jax.devices()[i] for i in order or range(8)]).reshape(4, 2)
    return Mesh(devices, BOTH, axis_types=(AxisType.Auto, AxisType.Auto))


def mapped(function: Any, ins: Any, outs: Any, axes: tuple[str, ...] = BOTH, check: bool = True) -> Any:
    """A function for each device, on the mesh."""

    def run(*args: Array) -> Any:
        options = {"mesh": mesh(), "in_specs": ins, "out_specs": outs, "axis_names": set(axes), "check_vma": check}
        return jax.shard_map(function, **options)(*args)

    return run


def placed(x: Array, *spec: Any) -> Array:
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P(*spec)))


def nested(x: Array, w: Array) -> Array:
    """A computation along one axis inside of one along the other."""

    def inner(y: Array, v: Array) -> Array:
        return lax.psum(jnp.sin(y @ v), "model")

    def outer(y: Array, v: Array) -> Array:
        here = jax.sharding.get_abstract_mesh()
        along = jax.shard_map(
            inner, mesh=here, in_specs=(P(None, "model"), P("model")), out_specs=P(), axis_names={"model"}
        )
        return along(y, v) + lax.pmean(y, "data")

    return mapped(outer, (P("data"), P()), P("data"), ("data",))(x, w)


def looped(x: Array, w: Array) -> Array:
    """A ring: in each round, every device passes on what it has."""

    def each(y: Array, v: Array) -> Array:
        def round(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            total, passed = state
            return total + jnp.tanh(passed @ v), lax.ppermute(passed, "data", [(k, (k + 1) % 4) for k in range(4)])

        return lax.fori_loop(0, 3, round, (y * 0, y))[0]

    return mapped(each, (P(BOTH), P()), P(BOTH), check=False)(x, w)


def constrained(x: Array, w: Array) -> Array:
    """No manual computation: values that lie where they are told."""
    h = placed(jnp.tanh(x @ w), "data", P.UNCONSTRAINED)
    return placed(h @ w.T, "data", "model") * 2 + placed(x.sum(1, keepdims=True), BOTH)


def tensor_parallel(x: Array, w: Array) -> Array:
    """Two dense layers, the first cut by columns and the second by rows."""
    h = jax.nn.gelu(placed(x, "data") @ placed(w, None, "model"))
    return placed(h @ placed(w.T, "model"), "data")


def heads(x: Array, w: Array) -> Array:
    """Attention of two heads, one on each device of an axis, over images of the other."""
    q, k, v = (placed((x @ turned).reshape(8, 2, 4), "data", "model") for turned in (w, w.T, w * 2))
    weights = jax.nn.softmax(jnp.einsum("nhd,mhd->hnm", q, k) / 2, axis=-1)
    return placed(jnp.einsum("hnm,mhd->nhd", placed(weights, "model"), v).reshape(8, 8), "data", "model")


def normalized(x: Array, w: Array) -> Array:
    """Rows that lie on several devices, less their mean, over their deviation."""
    x = placed(x, None, BOTH)
    apart = x - x.mean(-1, keepdims=True)
    return placed(apart * lax.rsqrt((apart * apart).mean(-1, keepdims=True) + 1e-5) * w[0], "data")


def looked_up(x: Array, w: Array) -> Array:
    """Rows of a table that is cut by rows, and how likely each is by its logits."""
    numbers = jnp.argmax(x, axis=1)
    rows = placed(placed(w, "model")[numbers], "data")
    logits = rows @ placed(w, "model").T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), numbers[:, None], 1)


def mixed(x: Array, w: Array) -> Array:
    """Two experts, which rows are sent to and back."""

    def each(y: Array, v: Array) -> Array:
        sent = lax.all_to_all(y, "model", 0, 0, tiled=True)
        return lax.all_to_all(jax.nn.relu(sent @ v), "model", 0, 0, tiled=True)

    return mapped(each, (P("data"), P("model")), P("data"), check=False)(
        x.repeat(2, 0), jnp.concatenate([w, -w])
    )  # fmt: skip


def layers(x: Array, w: Array) -> Array:
    """Layers whose weights lie in parts, each gathered where it is used, scanned over."""
    stacked = placed(jnp.stack([w, w.T, w + 1]) / 8, None, "data", "model")

    def step(h: Array, v: Array) -> tuple[Array, Array]:
        return placed(jnp.tanh(h @ placed(v, None, None)) + h, "data"), h.sum()

    return lax.scan(step, placed(x, "data"), stacked)[0]


def stepped(x: Array, w: Array) -> Array:
    """New weights of a step of gradient descent, cut as the old ones, by a batch that is cut."""

    def loss(v: Array) -> Array:
        return jnp.square(jnp.tanh(placed(x, BOTH) @ v) - 0.5).mean()

    old = placed(w, None, "model")
    return placed(old - 0.1 * jax.grad(loss)(old), None, "model")


def convolved(x: Array, w: Array) -> Array:
    """A batch of images, of which each device has its own."""
    images, kernel = placed(x.reshape(8, 1, 2, 4), BOTH), w.reshape(4, 1, 4, 4)[:, :, :2, :2]
    return placed(lax.conv_general_dilated(images, kernel, (1, 1), "SAME"), "data", "model")


@dataclass(frozen=True)
class Case:
    """A function of two f32 arrays of 8x8, whether it has a derivative, and whether XLA sums what gcomp writes in the
    same order (it has two libraries for convolutions, and gcomp says which)."""

    function: Callable[[Array, Array], Any]
    differentiable: bool = True
    to_the_bit: bool = True


CASES: dict[str, Case] = {
    "sum": Case(mapped(lambda x, w: lax.psum(jnp.sin(x @ w), "data"), (P("data"), P()), P())),
    "sum of an axis": Case(mapped(lambda x, w: lax.psum(jnp.sin(x @ w), "data"), (P("data"), P()), P(), ("data",))),
    "sum of a product": Case(
        mapped(lambda x, w: lax.psum(x @ w, "model"), (P("data", "model"), P("model")), P("data"))
    ),
    "mean of all": Case(mapped(lambda x, w: lax.pmean((x @ w) ** 2, BOTH), (P(BOTH), P()), P())),
    "largest": Case(mapped(lambda x, w: lax.pmax(x * w, BOTH), (P("data"), P("data")), P(), BOTH), False),
    "least": Case(mapped(lambda x, w: lax.pmin(x * w, "model"), (P("model"), P("model")), P(), BOTH, False), False),
    "gathered": Case(
        mapped(
            lambda x, w: jnp.sin(lax.all_gather(x, "model", axis=1, tiled=True) @ w),
            (P("data", "model"), P()), P("data"), check=False,
        )
    ),
    "gathered as one more dimension": Case(
        mapped(lambda x, w: lax.all_gather(x * w, "data"), (P("data"), P("data")), P(None, None), check=False)
    ),
    "scattered": Case(
        mapped(
            lambda x, w: jnp.sin(lax.psum_scatter(x @ w, "model", scatter_dimension=1, tiled=True)),
            (P("data", "model"), P("model")), P("data", "model"),
        )
    ),
    "exchanged": Case(
        mapped(
            lambda x, w: jnp.sin(lax.all_to_all(x, "model", 0, 1, tiled=True)) + w.sum(),
            (P("data", "model"), P()), P(BOTH),
        )
    ),
    "exchanged in place": Case(
        mapped(
            lambda x, w: lax.all_to_all(x, "model", 1, 1, tiled=True) * w, (P("data", "model"), P("data", "model")),
            P("data", "model"),
        )
    ),
    "permuted": Case(
        mapped(
            lambda x, w: jnp.sin(lax.ppermute(x, "data", [(0, 1), (1, 2)])) * x + w,
            (P("data", "model"), P("data", "model")), P("data", "model"),
        )
    ),
    "numbered": Case(
        mapped(
            lambda x, w: x * lax.axis_index("data") + w * lax.axis_index("model") + lax.axis_index(BOTH),
            (P("data"), P("data")), P(BOTH), check=False,
        )
    ),
    "nested": Case(nested, False),  # JAX's own gradient of it does not lower
    "looped": Case(looped),
    "constrained": Case(constrained),
    "tensor parallel": Case(tensor_parallel),
    "heads": Case(heads),
    "normalized": Case(normalized),
    "looked up": Case(looked_up),
    "experts": Case(mixed),
    "layers": Case(layers),
    "a step": Case(stepped),
    "convolved": Case(convolved, to_the_bit=False),
    "reduced in integers": Case(
        mapped(lambda x, w: lax.psum((x * 8).astype(jnp.int32), BOTH), (P(BOTH), P()), P()), False
    ),
}  # fmt: skip


def operands() -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(7)
    return tuple(rng.normal(size=(8, 8)).astype(np.float32) for _ in range(4))


def evaluated(name: str) -> dict[str, Any]:
    """By JAX, on the devices: the program's text, its results, and products with its derivative forward and back."""
    function, (x, w, tx, tw) = CASES[name].function, operands()
    told: dict[str, Any] = {"text": jax.jit(function, keep_unused=True).lower(x, w).as_text()}
    result = jax.jit(function)(x, w)
    told["result"] = np.asarray(result)
    if CASES[name].differentiable:
        cotangent = np.random.default_rng(9).normal(size=result.shape).astype(np.float32)
        told["cotangent"] = cotangent
        told["back"] = [np.asarray(g) for g in jax.jit(lambda x, w: jax.vjp(function, x, w)[1](cotangent))(x, w)]
        told["forward"] = np.asarray(jax.jit(lambda *v: jax.jvp(function, v[:2], v[2:])[1])(x, w, tx, tw))
    return told
