"""`as_strided` reads the memory that a chain of views begins with, as in eager torch: in the graph, and for results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from tests.support.thinning import swept  # noqa: E402

View = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def random_view(choice: random.Random, x: Any) -> View:
    """A view of tensors that lie as `x` does, in a memory that may be larger."""
    kinds: list[Callable[[], View | None]] = [
        partial(_sliced, choice, x), partial(_permuted, choice, x), partial(_selected, choice, x),
        partial(_part, choice, x), partial(_repeated, choice, x), partial(_windows, choice, x),
        partial(_strided, choice, x),
    ]  # fmt: skip
    return choice.choice(kinds)() or _strided(choice, x)


def _sliced(choice: random.Random, x: Any) -> View | None:
    dims = [d for d in range(x.ndim) if x.shape[d] > 1]
    if not dims:
        return None
    d = choice.choice(dims)
    start = choice.randrange(x.shape[d])
    index = (slice(None),) * d + (slice(start, choice.randint(start + 1, x.shape[d]), choice.randint(1, 2)),)
    return lambda y: y[index]


def _permuted(choice: random.Random, x: Any) -> View:
    order = choice.sample(range(x.ndim), x.ndim)
    return lambda y: y.permute(order)


def _selected(choice: random.Random, x: Any) -> View | None:
    if not x.ndim:
        return None
    d = choice.randrange(x.ndim)
    at = choice.randrange(x.shape[d])
    return lambda y: y.select(d, at)


def _part(choice: random.Random, x: Any) -> View | None:
    if not x.ndim:
        return None
    d = choice.randrange(x.ndim)
    at = choice.randrange(len(x.split(2, d)))
    return lambda y: y.split(2, d)[at]


def _repeated(choice: random.Random, x: Any) -> View:
    return lambda y: y.unsqueeze(0).expand(2, *y.shape)


def _windows(choice: random.Random, x: Any) -> View | None:
    if not x.ndim:
        return None
    d = choice.randrange(x.ndim)
    size = choice.randint(1, x.shape[d])
    return lambda y: y.unfold(d, size, 1)


def _strided(choice: random.Random, x: Any) -> View:
    """From the view's start, or from an element of the memory on; nowhere beyond its end."""
    start = choice.choice([None, choice.randrange(x.untyped_storage().nbytes() // x.element_size())])
    left = x.untyped_storage().nbytes() // x.element_size() - 1 - (x.storage_offset() if start is None else start)
    sizes, strides = [], []
    for _ in range(choice.randint(0, 3)):
        sizes.append(choice.randint(1, 4))
        strides.append(choice.randint(0, left // max(1, sizes[-1] - 1)) if sizes[-1] > 1 else 1)
        left -= (sizes[-1] - 1) * strides[-1]
    return lambda y: y.as_strided(sizes, strides, start)


def random_chain(choice: random.Random, x: Any) -> list[View]:
    """Views of views of tensors that lie as `x` does, of which the last is by strides."""
    chain: list[View] = []
    for _ in range(choice.randint(0, 3)):
        chain.append(random_view(choice, x))
        x = chain[-1](x)
    return [*chain, _strided(choice, x)]


def follow(chain: list[View], x: Any) -> Any:
    for view in chain:
        x = view(x)
    return x


@pytest.mark.parametrize("seed", [*range(6), *swept(*range(6, 40))])
def test_views_of_views_by_strides_are_eager_torchs(seed: int) -> None:
    choice = random.Random(seed)
    layout = choice.choice([lambda x: x, lambda x: x.t(), lambda x: x[:, 1:]])
    memory = torch.arange(40.0)
    # The same part of another memory, from another element on; and as large, since both begin with the same views.
    inputs = [layout(memory[first : first + 15].reshape(5, 3)) for first in (0, 4)]
    outer = [random_chain(choice, inputs[1]) for _ in range(2)]
    inner = [random_chain(choice, layout(torch.zeros(5, 3)) + 1) for _ in range(3)]

    def run(x: Any) -> list[list[Any]]:
        y = x + 1
        read = [follow(chain, x) * 2 for chain in outer] + [follow(chain, y) * 2 for chain in inner]
        return [[*(follow(chain, y) for chain in inner[:2]), follow(outer[0], x)], read]

    compiled = torch.compile(run, backend="gcomp", fullgraph=True, dynamic=False)
    for x in inputs:
        found, expected = compiled(x), run(x)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert [view.stride() for view in found[0]] == [view.stride() for view in expected[0]]


def beyond(x: Any) -> Any:
    return (x + 1)[:2].as_strided((2, 3), (4, 1))


OTHERS: dict[str, Callable[[Any], Any]] = {
    "behind a view's end": lambda x: (beyond(x), beyond(x) * 2),
    "before a view": lambda x: (x + 1)[2:].as_strided((3, 2), (2, 1), 0) * 2,
    "as other numbers of the same memory": lambda x: (
        (x + 1).view(torch.int32)[1:].as_strided((2, 2), (3, 1), 0) + 1,
        torch.view_as_real(torch.complex(x, x + 1))[1:].as_strided((2, 2), (4, 1), 1) * 2,
        torch.complex(x, x + 1).conj()[1:].as_strided((2, 2), (2, 1), 0) * 2,
    ),
    "of what a branch is given": lambda x: torch.cond(
        x[0, 0] > 0, lambda y: y[1:].as_strided((2,), (2,)) * 2, lambda y: y[1:].as_strided((2,), (1,)) * 3, (x + 1,)
    ),
    "nothing": lambda x: (x + 1)[1:].as_strided((0, 2), (1, 1)) * 2,
}


@pytest.mark.parametrize("name", OTHERS)
def test_strides_over_the_memory_of_a_view(name: str) -> None:
    x = torch.arange(9.0).reshape(3, 3)
    found = torch.compile(OTHERS[name], backend="gcomp", fullgraph=True, dynamic=False)(x)
    torch.testing.assert_close(found, OTHERS[name](x), rtol=0, atol=0)


def test_strides_of_symbolic_sizes() -> None:
    def rows(x: Any) -> list[Any]:
        rows, columns = x.shape
        last = (x + 1)[:1].as_strided((rows - 1, columns), (columns, 1), columns)
        return [last * 2, last, x.as_strided((rows - 1, columns), (columns, 1), columns) * 2]

    run = torch.compile(rows, backend="gcomp", fullgraph=True, dynamic=True)
    memory = torch.arange(40.0)
    for x in (memory[:15].reshape(5, 3), memory[4:24].reshape(5, 4), memory[2:30].reshape(4, 7)):
        torch.testing.assert_close(run(x), rows(x), rtol=0, atol=0)


def test_memory_around_an_input_is_refused_where_the_program_is_given_arrays() -> None:
    class Around(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.as_strided((3, 2), (2, 1))

    x = torch.arange(6.0)[:4]
    with pytest.raises(gcomp.UnsupportedError, match="elements 0 to 5 of memory of which x is only a part"):
        gcomp.compile(Around(), x)


def test_memory_around_a_view_as_another_type_is_refused() -> None:
    run = torch.compile(lambda x: (x + 1)[1:].view(torch.int32).as_strided((2,), (1,), 0) * 2, backend="gcomp")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="elements 0 to 1 of memory of which view is"):
        run(torch.zeros(3))
