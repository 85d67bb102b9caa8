"""Sizes and numbers that data determine: through torch.compile and torch.export; ints that change between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from gcomp.errors import InputError, UnsupportedError  # noqa: E402

X = torch.tensor([[0.0, 1, 2, 0], [3, 0, 0, 3], [0, 1, 2, 0]])
I = torch.tensor([2, 0, 1])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **keywords: Any) -> Any:
    return torch.compile(function, backend="gcomp", fullgraph=True, **keywords)


def assigned(x: Any, places: Any, value: Any) -> Any:
    y = x.clone()
    y[places] = value
    return y


def counted(x: Any, **keywords: Any) -> Any:
    return torch.unique(x, return_inverse=True, return_counts=True, **keywords)


DATA: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "nonzero": (lambda x: (torch.nonzero(x), torch.nonzero(x).shape[0]), X, -X),
    "nonzero of a scalar": (torch.nonzero, X[0, 1], X[0, 0]),
    "its columns": (lambda x: torch.nonzero(x, as_tuple=True), X, X * 0),
    "masked_select": (lambda x: x.masked_select(x[0] > 0) * 2, X, X * 0),
    "a mask": (lambda x: (x[x > 1] + 1, x[x > 1].sum() * x[x > 1].shape[0]), X, X * 0),
    "a mask of rows": (lambda x: x[x[:, 0] > 1], X, X + 2),
    "a mask of columns": (lambda x: x[:, x[0] > 0], X, X - 1),
    "a mask assigned to": (lambda x: assigned(x, x > 1, x[x > 1] * 10), X, X * 0),
    "columns assigned to": (lambda x: assigned(x, (slice(None), x[0] > 0), 7.0), X, X * 0),
    "a mask beside a number": (lambda x: assigned(x, (x[:, 0] < 1, 1), 7.0), X, X + 2),
    "unique": (lambda x: (x.unique(), *counted(x)), X, X * 0),
    "unique rows": (lambda x: counted(x, dim=0), X, X * 0),
    "runs": (lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), X, X * 0),
    "runs of rows": (lambda x: torch.unique_consecutive(x, return_counts=True, dim=0), X, X * 0),
    "repeated": (lambda i: (torch.repeat_interleave(X, i, dim=0), torch.repeat_interleave(i)), I, I * 2),
    "counts": (lambda i: (torch.bincount(i), torch.bincount(i, i * 0.5, minlength=4)), I, I * 3),
    "a number": (lambda i: X * i[0].item() + i[1].item(), I, -I),
    "a float": (lambda x: x[0] * x[1, 0].item(), X, -X),
    "a size": (lambda i: X[: i[0].item()] * i[0].item(), I, I.flip(0)),
    "where a part starts": (lambda i: X.narrow(1, i, 2), I[1], I[0]),
    "parts": (lambda i: [y + 1 for y in torch.tensor_split(X, i, 1)], I[2:], I[:1]),
    "parts that are views": (lambda i: torch.tensor_split(X, i[1:], 1), I, I + 1),
}


@pytest.mark.parametrize("name", DATA)
def test_results_are_those_of_eager_code(name: str) -> None:
    function, *inputs = DATA[name]
    run = compiled(function)
    for x in inputs:
        results, expected = run(x), function(x)
        listed = [list(v) if isinstance(v, tuple | list) else [v] for v in (results, expected)]
        assert len(listed[0]) == len(listed[1])
        for got, wanted in zip(*listed, strict=True):
            if isinstance(wanted, torch.Tensor):
                torch.testing.assert_close(got, wanted, rtol=0, atol=0)
            else:
                assert got == wanted


def test_gradients_flow_through_a_mask() -> None:
    run = compiled(lambda x: (x[x > 0] ** 2).sum() * x[x > 0].shape[0])
    for values in ([1.0, -2, 3], [-1.0, -2, 3]):
        x, y = (torch.tensor(values, requires_grad=True) for _ in range(2))
        run(x).backward()
        ((y[y > 0] ** 2).sum() * y[y > 0].shape[0]).backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_an_exported_module_has_sizes_of_data() -> None:
    class Chosen(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[x > 1] * x.shape[0], x * x[0, 1].long().item()

    model = gcomp.compile(Chosen(), X)
    for x in (X, X * 2, X * 0):
        for got, wanted in zip(model(x), Chosen()(x), strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def test_a_size_that_is_negative_and_a_size_in_a_branch_are_refused() -> None:
    run = compiled(lambda i: X[: i[0].item()] + 1)
    with pytest.raises(InputError, match=r"number read at .*test_data_dependent.py.* is \[-2\]"):
        run(-I)

    class Branch(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x[x > 1].sum(), lambda x: x.sum(), (x,))

    with pytest.raises(UnsupportedError, match="loop or a branch"):
        gcomp.compile(Branch(), X)


# ---- ints that change from call to call -----------------------------------------------------------------------------


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from gcomp import dynamo

    found, known = list[int](), dynamo.compile_graph
    monkeypatch.setattr(dynamo, "compile_graph", lambda *a, **k: (found.append(1), known(*a, **k))[1])
    return found


@pytest.mark.parametrize(
    "function, numbers, graphs",
    [
        (lambda x, n: x[:n].sum() * n, (3, 4, 7, 2), 1),
        (lambda x, n: x * n + n // 3 + (n % 4) * 2 - max(n, 2), (3, -4, 5, -7), 1),
        (lambda x, n: (x[:n] * n, x[n:].sum()), (-2, -3, -7), 1),
        (lambda x, n: x[: 2 * n].sin().sum() * n, (2, 3, 4), 2),
    ],
    ids=["as a size", "as a value", "from the end", "with a gradient"],
)
def test_a_changing_int_is_one_graph(
    function: Callable[..., Any], numbers: tuple[int, ...], graphs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counting(monkeypatch)
    run = compiled(function, dynamic=True)
    for n in numbers:
        x, y = (torch.arange(20.0, requires_grad=graphs == 2) for _ in range(2))
        got, wanted = run(x, n), function(y, n)
        torch.testing.assert_close(got, wanted)
        if graphs == 2:
            got.backward()
            wanted.backward()
            torch.testing.assert_close(x.grad, y.grad)
    assert len(made) == graphs


def test_elements_that_a_mask_broadcasts_are_refused() -> None:
    """torch says that there are at most three."""

    class Masked(torch.nn.Module):
        def forward(self, x: Any, mask: Any) -> Any:
            return torch.masked_select(x, mask)

    exported = torch.export.export(Masked(), (X[:, :1], torch.ones(3, 4, dtype=torch.bool)))
    with pytest.raises(UnsupportedError, match="which mask broadcasts") as error:
        gcomp.compile(exported)
    assert "masked_select" in str(error.value)
