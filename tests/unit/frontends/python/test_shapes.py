"""Operations that move, fold, contract and order elements: NumPy's values, at once and traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp import ops
from gcomp.errors import GcompError, UnsupportedError, UsageError

from .agreement import ALL, FLOATS, REALS, agree, array, at_once

RNG = np.random.default_rng(0)
X = array(RNG, (3, 4, 5), "float32")
Y = array(RNG, (4, 6), "int32")
M = array(RNG, (4, 4), "float64", edges=False)
V = array(RNG, (7,), "int64")
CUBE = np.arange(60, dtype=np.int32).reshape(3, 4, 5)

MOVEMENT: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "reshape": (lambda x: x.reshape(5, -1), lambda x: x.reshape(5, -1), (X,)),
    "reshape to no elements": (lambda x: x.reshape((0, 4)), lambda x: x.reshape((0, 4)), (np.ones((2, 0)),)),
    "ravel": (ops.ravel, np.ravel, (X,)),
    "flatten": (lambda x: ops.flatten(x, 1), lambda x: x.reshape(3, 20), (X,)),
    "transpose": (ops.transpose, np.transpose, (X,)),
    "transpose by axes": (lambda x: x.transpose(1, -1, 0), lambda x: x.transpose(1, 2, 0), (X,)),
    "T": (lambda x: x.T, lambda x: x.T, (X,)),
    "swapaxes": (lambda x: ops.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), (X,)),
    "moveaxis": (lambda x: ops.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (X,)),
    "moveaxis of two": (lambda x: ops.moveaxis(x, (0, 1), (2, 0)), lambda x: np.moveaxis(x, (0, 1), (2, 0)), (X,)),
    "squeeze": (ops.squeeze, np.squeeze, (X[:1, :, :1],)),
    "squeeze one": (lambda x: ops.squeeze(x, -1), lambda x: np.squeeze(x, -1), (X[:1, :, :1],)),
    "expand_dims": (lambda x: ops.expand_dims(x, (0, -1)), lambda x: np.expand_dims(x, (0, -1)), (Y,)),
    "broadcast_to": (lambda x: ops.broadcast_to(x, (2, 4, 6)), lambda x: np.broadcast_to(x, (2, 4, 6)), (Y,)),
    "concatenate": (lambda x, y: ops.concatenate([x, y], -1), lambda x, y: np.concatenate([x, y], -1), (Y, M)),
    "stack": (lambda x, y: ops.stack([x, y], 1), lambda x, y: np.stack([x, y], 1), (Y, Y + 1)),
    "split": (lambda x: ops.split(x, 3, 1), lambda x: np.split(x, 3, 1), (Y,)),
    "split at indices": (lambda x: ops.split(x, [1, -2], 1), lambda x: np.split(x, [1, -2], 1), (Y,)),
    "tile": (lambda x: ops.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), (Y,)),
    "tile less": (lambda x: ops.tile(x, 2), lambda x: np.tile(x, 2), (X,)),
    "repeat": (lambda x: ops.repeat(x, 3, -1), lambda x: np.repeat(x, 3, -1), (Y,)),
    "repeat all": (lambda x: ops.repeat(x, 2), lambda x: np.repeat(x, 2), (Y,)),
    "flip": (ops.flip, np.flip, (Y,)),
    "flip one": (lambda x: ops.flip(x, 1), lambda x: np.flip(x, 1), (X,)),
    "roll": (lambda x: ops.roll(x, 2, 1), lambda x: np.roll(x, 2, 1), (Y,)),
    "roll all": (lambda x: ops.roll(x, -5), lambda x: np.roll(x, -5), (Y,)),
    "pad": (lambda x: ops.pad(x, ((1, 0), (0, 2)), 7), lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=7), (Y,)),
    "pad by edges": (lambda x: ops.pad(x, (1, 2), mode="edge"), lambda x: np.pad(x, (1, 2), mode="edge"), (Y,)),
    "pad by mirror": (lambda x: ops.pad(x, 2, mode="reflect"), lambda x: np.pad(x, 2, mode="reflect"), (Y,)),
    "tril": (lambda x: ops.tril(x, 1), lambda x: np.tril(x, 1), (X,)),
    "triu": (lambda x: ops.triu(x, -1), lambda x: np.triu(x, -1), (X,)),
    "diagonal": (ops.diagonal, np.diagonal, (M,)),
    "meshgrid": (ops.meshgrid, lambda x, y: np.meshgrid(x, y, indexing="ij"), (V, V[:2])),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    function, expected, args = MOVEMENT[name]
    agree(function, expected, *args)


def test_trace() -> None:
    agree(ops.trace, np.trace, M, exact=False)


# ---- reductions -----------------------------------------------------------------------------------------------------

EXACT_FOLDS = {"max": REALS, "min": REALS, "any": ALL, "all": ALL, "argmax": REALS, "argmin": REALS}


@pytest.mark.parametrize("name", EXACT_FOLDS)
def test_exact_folds(name: str) -> None:
    for i, dtype in enumerate(EXACT_FOLDS[name]):
        x = array(np.random.default_rng(i), (3, 4, 2), dtype)
        axis = [None, 0, -1][i % 3]
        agree(lambda x, a=axis: getattr(ops, name)(x, a), lambda x, a=axis: getattr(np, name)(x, a), x)
        agree(lambda x: getattr(ops, name)(x, 1, keepdims=True), lambda x: getattr(np, name)(x, 1, keepdims=True), x)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_sums(name: str) -> None:
    for i, dtype in enumerate(REALS):
        x = array(np.random.default_rng(i), (3, 4, 2), dtype, edges=dtype not in FLOATS)
        axis = [None, 0, -1][i % 3]
        exact = np.dtype(dtype).kind in "biu"
        function, expected = getattr(ops, name), getattr(np, name)
        agree(lambda x, a=axis: function(x, a), lambda x, a=axis: expected(x, a), x, exact=exact, roundings=8)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means(name: str) -> None:
    for i, dtype in enumerate(("bool", "int8", "int64", *FLOATS)):
        x = array(np.random.default_rng(i), (3, 4, 2), dtype, edges=False)
        for axis in (None, (0, -1)):
            function, expected = getattr(ops, name), getattr(np, name)
            agree(lambda x, a=axis: function(x, a), lambda x, a=axis: expected(x, a), x, exact=False)
    agree(lambda x: ops.var(x, ddof=1), lambda x: np.var(x, ddof=1), M, exact=False)
    z = array(np.random.default_rng(9), (3, 4), "complex64")
    agree(lambda x: ops.var(x, 0), lambda x: np.var(x, 0), z, exact=False)


def test_several_axes_and_counts() -> None:
    agree(lambda x: x.max((0, 2)), lambda x: x.max((0, 2)), X)
    agree(lambda x: ops.count_nonzero(x, 1), lambda x: np.count_nonzero(x, 1), Y)
    agree(lambda x: ops.sum(x, (0, 1), "float64"), lambda x: x.sum((0, 1), "float64"), CUBE)
    agree(lambda x: ops.cumsum(x, 1, reverse=True), lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1], CUBE)


# ---- contraction ----------------------------------------------------------------------------------------------------

EINSUMS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((3, 4), (4, 5)), "ij,jk": ((3, 4), (4, 5)), "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "...ij,...jk->...ik": ((2, 3, 4), (1, 4, 5)), "ii->i": ((4, 4),), "ii": ((4, 4),), "ij->ji": ((3, 4),),
    "ij->": ((3, 4),), "i,j->ij": ((3,), (4,)), "i,i": ((3,), (3,)), "ij,ij->i": ((3, 4), (3, 4)),
    "ab,bc,cd->ad": ((2, 3), (3, 4), (4, 5)), "...a->...": ((2, 3, 4),), "ij,k->": ((3, 4), (2,)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)), "iij->j": ((3, 3, 2),), "ij,jj->i": ((2, 3), (3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts: str) -> None:
    rng = np.random.default_rng(1)
    integers = [array(rng, shape, "int32", edges=False) for shape in EINSUMS[subscripts]]
    agree(lambda *xs: ops.einsum(subscripts, *xs), lambda *xs: np.einsum(subscripts, *xs), *integers)
    floats = [x.astype(np.float32) / 3 for x in integers]
    agree(lambda *xs: ops.einsum(subscripts, *xs), lambda *xs: np.einsum(subscripts, *xs), *floats, exact=False)


@pytest.mark.parametrize("left, right", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)),
                                         ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((0, 4), (4, 2))])  # fmt: skip
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for dtype in ("int64", "float32", "float64"):
        rng = np.random.default_rng(2)
        x, y = array(rng, left, dtype, edges=False), array(rng, right, dtype, edges=False)
        agree(lambda x, y: x @ y, lambda x, y: x @ y, x, y, exact=dtype == "int64")


def test_products() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(-5, 5, shape) for shape in ((3, 4), (2, 4, 5), (4,)))
    agree(ops.dot, np.dot, a, b)
    agree(ops.inner, np.inner, a, c)
    agree(ops.outer, np.outer, a, c)
    agree(lambda x, y: ops.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), a, c)
    agree(lambda x, y: ops.tensordot(x, y, ([1], [1])), lambda x, y: np.tensordot(x, y, ([1], [1])), a, b)
    agree(ops.dot, np.dot, a, np.int64(3))


# ---- indexing -------------------------------------------------------------------------------------------------------

INDICES: dict[str, Any] = {
    "integer": 1, "negative": -1, "slice": slice(1, 3), "step": (slice(None), slice(None, None, 2)),
    "reverse": (slice(None, None, -1), slice(3, 0, -2)), "far": (slice(-10, 10), slice(5, 1)),
    "ellipsis": (..., 2), "new": (None, 1, None, slice(1, 2)), "integers": (0, -1, 3),
    "list": ([0, 2, -1],), "array": (slice(None), np.array([[0, 1], [-1, 2]])),
    "two arrays": (np.array([0, 1]), np.array([3, -1])), "broadcast": (np.array([[0], [2]]), np.array([1, 3])),
    "apart": (np.array([0, 2]), slice(None), np.array([1, 4])), "with integer": (1, slice(None), np.array([1, 4])),
    "array, new and slice": (slice(None), np.array([0, 3]), None, slice(1, 4)), "empty": (np.array([], np.int64),),
    "new between": (np.array([0, 1]), None, np.array([1, 2])), "unsigned": (np.array([0, 2], np.uint8),),
    "NumPy integer": (np.int32(2), slice(0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_getitem(name: str) -> None:
    agree(lambda x: x[INDICES[name]], lambda x: x[INDICES[name]], CUBE)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("how", ["set", "add", "multiply", "max"])
def test_changed_copies(name: str, how: str) -> None:
    index = INDICES[name]

    def expected(x: Any) -> Any:
        x = x.copy()
        if how == "set":
            x[index] = 7
        else:
            {"add": np.add, "multiply": np.multiply, "max": np.maximum}[how].at(x, index, 7)
        return x

    agree(lambda x: getattr(x.at[index], how)(7), expected, CUBE)


def test_indices_that_are_traced() -> None:
    i, j = np.array([2, 0, -1]), np.array([[1], [3]])
    agree(lambda x, i: x[i], lambda x, i: x[i], CUBE, i)
    agree(lambda x, i, j: x[i, :, j], lambda x, i, j: x[i, :, j], CUBE, i, j)
    agree(lambda x, i: x[i[0], 1:3], lambda x, i: x[i[0], 1:3], CUBE, i)
    agree(lambda x, i: x.at[i].add(x[i]), lambda x, i: x + x, CUBE, np.array([2, 0, 1]))
    agree(lambda x, i: ops.take(x, i, 1), lambda x, i: np.take(x, i, 1), CUBE, i)
    agree(lambda x, i: ops.take(x, i), lambda x, i: np.take(x, i), CUBE, i)
    order = np.argsort(X, 1)
    agree(lambda x, o: ops.take_along_axis(x, o, 1), lambda x, o: np.take_along_axis(x, o, 1), X, order)
    agree(lambda x, i: ops.dynamic_slice(x, (i, 1, 0), (2, 2, 5)), lambda x, i: x[1:3, 1:3], CUBE, np.int32(7))


def test_repeated_indices_add_up() -> None:
    x, i = np.zeros(4), np.array([1, 1, 3, 1])
    assert at_once(lambda x, i: x.at[i].add(1), x, i)[0].tolist() == [0, 3, 0, 1]


def test_indices_that_are_refused() -> None:
    x = ops.asarray(CUBE)
    for index in (3, -4, (0, 0, 0, 0), (..., ...), 1.5, "a", slice(0, 2, 0)):
        with pytest.raises(UsageError, match=r"test_shapes\.py"):
            x[index]
    with pytest.raises(UnsupportedError, match="boolean mask"):
        x[CUBE > 3]
    with pytest.raises(UnsupportedError, match="boolean mask"):
        x[x > 3]
    with pytest.raises(UsageError, match=r"x\.at\[index\]\.set"):
        x[0] = 1


# ---- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REALS)
def test_sorting(dtype: str) -> None:
    x = array(np.random.default_rng(4), (4, 9), dtype)
    agree(ops.sort, np.sort, x)
    agree(lambda x: ops.sort(x, 0), lambda x: np.sort(x, 0), x)
    agree(lambda x: ops.argsort(x, 1), lambda x: np.argsort(x, 1, kind="stable"), x)
    agree(lambda x: ops.sort(x, None), lambda x: np.sort(x, None), x)


def test_greatest() -> None:
    x = array(np.random.default_rng(5), (3, 8), "float32", edges=False)
    agree(lambda x: ops.top_k(x, 3), lambda x: (-np.sort(-x)[:, :3], np.argsort(-x, kind="stable")[:, :3]), x)
    a, v = np.sort(V), np.arange(-4, 5)
    for side in ("left", "right"):
        agree(lambda a, v, s=side: ops.searchsorted(a, v, s), lambda a, v, s=side: np.searchsorted(a, v, s), a, v)


# ---- creation -------------------------------------------------------------------------------------------------------

MADE: dict[str, tuple[Any, Any]] = {
    "zeros": (lambda: ops.zeros((2, 3), "int32"), lambda: np.zeros((2, 3), "int32")),
    "ones": (lambda: ops.ones(3), lambda: np.ones(3)),
    "full": (lambda: ops.full((2,), 7), lambda: np.full((2,), 7)),
    "arange": (lambda: ops.arange(5), lambda: np.arange(5)),
    "arange by step": (lambda: ops.arange(9, 2, -3), lambda: np.arange(9, 2, -3)),
    "arange of floats": (lambda: ops.arange(0.5, 2, 0.25), lambda: np.arange(0.5, 2, 0.25)),
    "arange of a type": (lambda: ops.arange(4, dtype="float32"), lambda: np.arange(4, dtype="float32")),
    "linspace": (lambda: ops.linspace(0, 1, 7), lambda: np.linspace(0, 1, 7)),
    "eye": (lambda: ops.eye(3, 4, 1), lambda: np.eye(3, 4, 1)),
    "asarray": (lambda: ops.asarray([[1, 2], [3, 4]]), lambda: np.asarray([[1, 2], [3, 4]])),
}


@pytest.mark.parametrize("name", MADE)
def test_creation(name: str) -> None:
    made, expected = MADE[name]
    agree(made, expected)


def test_creation_like() -> None:
    agree(ops.zeros_like, np.zeros_like, Y)
    agree(lambda x: ops.ones_like(x, float), lambda x: np.ones_like(x, float), Y)
    agree(lambda x: ops.full_like(x, 2.7), lambda x: np.full_like(x, 2.7), Y)
    agree(lambda x: ops.one_hot(x, 3), lambda x: (x[:, None] == np.arange(3)).astype(np.float32), V)
    agree(lambda x: ops.asarray([x[0], x[1] + 1]), lambda x: np.asarray([x[0], x[1] + 1]), V)


# ---- what is wrong ------------------------------------------------------------------------------------------------

WRONG = {
    "add": lambda: ops.add(np.ones(3), np.ones(4)),
    "matmul": lambda: ops.matmul(np.ones((2, 3)), np.ones((2, 3))),
    "reshape": lambda: ops.reshape(np.ones(6), (4, -1)),
    "reshape twice": lambda: ops.reshape(np.ones(6), (-1, -1)),
    "axis": lambda: ops.sum(np.ones(3), 1),
    "axis twice": lambda: ops.sum(np.ones((3, 3)), (0, -2)),
    "no elements": lambda: ops.max(np.ones((0, 3)), 0),
    "stack": lambda: ops.stack([np.ones(2), np.ones(3)]),
    "concatenate": lambda: ops.concatenate([np.ones((2, 2)), np.ones((2, 3))]),
    "split": lambda: ops.split(np.ones(5), 2),
    "einsum": lambda: ops.einsum("ij,jk->il", np.ones((2, 2)), np.ones((2, 2))),
    "einsum terms": lambda: ops.einsum("ij", np.ones((2, 2)), np.ones((2, 2))),
    "broadcast_to": lambda: ops.broadcast_to(np.ones((2, 3)), (3,)),
    "squeeze": lambda: ops.squeeze(np.ones((2, 1)), 0),
    "top_k": lambda: ops.top_k(np.ones(3), 4),
    "pad mode": lambda: ops.pad(np.ones(3), 1, mode="wrap"),
    "dtype": lambda: ops.zeros(3, "float33"),
    "strings": lambda: ops.add("a", 1),
    "objects": lambda: ops.add(np.array([object()]), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_says_where(name: str) -> None:
    with pytest.raises(GcompError, match=r"test_shapes\.py:\d+"):
        WRONG[name]()
