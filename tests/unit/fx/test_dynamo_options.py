"""What `torch.compile(backend="gcomp")` may be told: modes, options, checks of indices, and falling back to eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from gcomp.dynamo import FallbackWarning  # noqa: E402
from gcomp.errors import CheckError, UsageError  # noqa: E402

F: Any = torch.nn.functional
Failed: Any = torch._dynamo.exc.BackendCompilerFailed
X = torch.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **keywords: Any) -> Any:
    return torch.compile(function, backend="gcomp", fullgraph=True, **keywords)


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead", "max-autotune"])
def test_torchs_modes_are_taken(mode: str | None) -> None:
    torch.testing.assert_close(compiled(lambda x: x + 1, mode=mode)(X), X + 1)


@pytest.mark.parametrize(
    "keywords, message",
    [
        ({"mode": "fastest"}, "no mode 'fastest'"),
        ({"options": {"falback": True}}, "did you mean 'fallback'"),
        ({"options": {"dims": {"n": 3}}}, "no option 'dims'"),
        ({"options": {"index_checks": 1}}, "'index_checks' is 1"),
        ({"options": {"target": "triton:sm_90", "index_checks": True}}, "checks are not compiled"),
    ],
)
def test_what_there_is_not_is_refused_by_its_name(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(Failed, match=message):
        compiled(lambda x, i: x[i], **keywords)(X, torch.tensor([0]))


def test_options_of_compile_are_passed_on() -> None:
    run = compiled(lambda x: x.log(), options={"checks": ("nan",), "verify": "each"})
    torch.testing.assert_close(run(X + 1), (X + 1).log())
    with pytest.raises(CheckError, match="makes a NaN"):
        run(-X - 1)


OUTSIDE: dict[str, tuple[Callable[..., Any], Any]] = {
    "index": (lambda x, i: x[i], [1, 3]),
    "index from the end": (lambda x, i: x[i], [-4]),
    "embedding": (lambda x, i: F.embedding(i, x), [0, 3]),
    "embedding of a negative": (lambda x, i: F.embedding(i, x), [-1]),
    "index_select": (lambda x, i: x.index_select(0, i), [3]),
    "gather": (lambda x, i: x.gather(0, i.reshape(1, -1)), [0, 3]),
    "scatter": (lambda x, i: x.scatter(0, i.reshape(1, -1), 1.0), [-1]),
    "index_put": (lambda x, i: x.index_put((i,), torch.tensor(1.0)), [3]),
    "index_add": (lambda x, i: x.index_add(0, i, x[:1]), [-1]),
    "take": (lambda x, i: x.take(i), [12]),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), [0, 4, 1]),
    "one_hot": (lambda x, i: F.one_hot(i, 4) * x.sum(), [0, 4]),
    "one_hot of a negative": (lambda x, i: F.one_hot(i, 4) * x.sum(), [-1, 2]),
    "max_unpool1d": (lambda x, i: F.max_unpool1d(x[:, :2], i.expand(3, 2), 2), [-1]),
    "max_unpool2d": (lambda x, i: F.max_unpool2d(x[None, :, :2], i.expand(1, 3, 2), 2), [24]),
    "max_unpool3d": (lambda x, i: F.max_unpool3d(x.reshape(1, 3, 2, 2), i.expand(1, 3, 2, 2), 2), [96]),
    "in a branch": (lambda x, i: torch.cond(x.sum() > 0, lambda x, i: x[i], lambda x, i: -x[i], (x, i)), [5]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_range_raises_where_eager_torch_does(name: str) -> None:
    function, index = OUTSIDE[name]
    with pytest.raises((IndexError, RuntimeError)):
        function(X, torch.tensor(index))
    with pytest.raises(IndexError, match="out of range") as caught:
        compiled(function)(X, torch.tensor(index))
    assert "test_dynamo_options.py" in str(caught.value)


def test_an_index_in_range_is_taken_as_ever_and_the_check_can_be_left_out() -> None:
    run = compiled(lambda x, i: (x[i], x[:, i], F.embedding(i + 3, x)))
    for got, wanted in zip(run(X, torch.tensor([-1, -3])), (X[[-1, -3]], X[:, [-1, -3]], X[[2, 0]]), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    with pytest.raises(IndexError):
        run(X, torch.tensor([-1, 3]))
    unchecked = torch.compile(lambda x, i: x[i] * 2, backend="gcomp", options={"index_checks": False})
    torch.testing.assert_close(unchecked(X, torch.tensor([7])), X[2:] * 2)


def test_gradients_of_what_is_indexed_check_the_forward_graph() -> None:
    table, run = torch.nn.Embedding(5, 3), compiled(lambda w, i: F.embedding(i, w).sum())
    run(table.weight, torch.tensor([1, 4, 1])).backward()
    assert table.weight.grad.sum(1).tolist() == [0, 6, 0, 0, 3]
    with pytest.raises(IndexError):
        run(table.weight, torch.tensor([1, 5, 1]))


def test_what_is_not_compiled_runs_in_eager_mode_if_that_is_asked_for() -> None:
    def function(x: Any) -> Any:
        return (torch.poisson(x.detach() * 0) + x.sin()).sum()

    with pytest.raises(Failed, match="aten::poisson"):
        compiled(function)(X)
    torch._dynamo.reset()
    x = X.clone().requires_grad_()
    run = compiled(function, options={"fallback": True})
    with pytest.warns(FallbackWarning, match="aten::poisson"):
        run(x).backward()
    torch.testing.assert_close(x.grad, X.cos())


def test_falling_back_hides_no_wrong_option() -> None:
    with pytest.raises(Failed) as caught:
        compiled(lambda x: x + 1, options={"fallback": True, "pipeline": "no-such-pass"})(X)
    assert isinstance(caught.value.__cause__ or caught.value.inner_exception, UsageError)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_maxima_go_back_to_where_they_were(spatial: int) -> None:
    pool, unpool = (getattr(F, f"max_{kind}{spatial}d") for kind in ("pool", "unpool"))

    def put_back(x: Any) -> Any:
        places = pool(x.detach(), 2, return_indices=True)[1]
        corner = x[(..., *(slice(size // 2) for size in x.shape[2:]))]
        return unpool(corner, places, 2) * x

    x = torch.randn(2, 3, *(4, 6, 2)[:spatial], generator=torch.Generator().manual_seed(0), requires_grad=True)
    torch.testing.assert_close(compiled(put_back)(x), put_back(x))
    (got,) = torch.autograd.grad(compiled(put_back)(x).square().sum(), x)
    (want,) = torch.autograd.grad(put_back(x).square().sum(), x)
    torch.testing.assert_close(got, want)
