"""Random operators under `torch.compile`: torch's distributions, moved by torch's generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from gcomp.errors import UnsupportedError  # noqa: E402
from gcomp.frontends.fx.exported import export_module  # noqa: E402

F: Any = torch.nn.functional
N = 20_000
ONES = torch.ones(N)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any]) -> Any:
    return torch.compile(function, backend="gcomp", fullgraph=True)


DRAWN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "uniform": (torch.rand_like, lambda u: u),
    "uniform in bfloat16": (lambda x: torch.rand(N, dtype=torch.bfloat16), lambda u: u),
    "from -1 to 3": (lambda x: torch.empty_like(x).uniform_(-1, 3), lambda u: 4 * u - 1),
    "normal": (torch.randn_like, lambda u: 2**0.5 * torch.erfinv(2 * u - 1)),
    "normal of 1 and 3": (lambda x: torch.normal(x, 3 * x), lambda u: 1 + 3 * 2**0.5 * torch.erfinv(2 * u - 1)),
    "exponential": (lambda x: torch.empty_like(x).exponential_(2.0), lambda u: -torch.log(1 - u) / 2),
    "integers": (lambda x: torch.randint(-3, 5, (N,)), lambda u: torch.floor(8 * u) - 3),
    "bernoulli": (lambda x: torch.bernoulli(x * 0.3), lambda u: (u >= 0.7).float()),
    "permutation": (lambda x: torch.randperm(N), lambda u: N * u),
    "categories": (
        lambda x: torch.multinomial(torch.tensor([1.0, 0.0, 3.0]), N, replacement=True),
        lambda u: 2 * (u >= 0.25).float(),
    ),
}
"""A function that draws N numbers, and the quantiles of their distribution."""


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_have_the_distribution(name: str) -> None:
    draw, quantile = DRAWN[name]
    run = compiled(draw)
    found = run(ONES).double().sort().values
    # The greatest distance of the distributions' functions is at most 2.2 / sqrt(N) but in one of 10,000 runs, and the
    # seed is fixed: between values so far apart each way, in probability, must a sorted number lie.
    slack, places = 2.2 / N**0.5, (torch.arange(N, dtype=torch.float64) + 0.5) / N
    step = {torch.bfloat16: 1 / 128}.get(draw(ONES).dtype, 1e-6)
    assert (found >= quantile((places - slack).clamp(min=0)).double() - step).all()
    assert (found <= quantile((places + slack).clamp(max=1 - 1e-12)).double() + step).all()


def test_torchs_seed_moves_them_and_makes_them_come_again() -> None:
    run = compiled(lambda x: (torch.rand_like(x), torch.rand_like(x)))
    torch.manual_seed(7)
    first, second = run(ONES), run(ONES)
    torch.manual_seed(7)
    again = run(ONES)
    drawn = [*first, *second]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])
    assert all(abs(torch.corrcoef(torch.stack(drawn)).fill_diagonal_(0)).max() < 0.05 for _ in range(1))


def test_a_transformers_layer_trains_with_dropout() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.4, batch_first=True).train()
    run, x = torch.compile(layer, backend="gcomp"), torch.randn(2, 5, 8)
    results: list[list[Any]] = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        layer.zero_grad()
        y = run(x)
        y.square().sum().backward()
        results.append([y.detach(), *(p.grad.clone() for p in layer.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(results[0], results[1], strict=True))
    assert not torch.equal(results[0][0], results[2][0])
    layer.eval()
    torch.testing.assert_close(run(x), layer(x), rtol=1e-4, atol=1e-5)


def test_the_gradient_goes_where_dropout_let_through() -> None:
    run, x = compiled(lambda x: F.dropout(x, 0.3) * 2), ONES.clone().requires_grad_()
    y = run(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach(), rtol=0, atol=0)
    assert set(y.tolist()) == {0.0, y.max().item()} and y.max().item() == pytest.approx(2 / 0.7)
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.015)
    for rate, expected in ((0.0, ONES), (1.0, ONES * 0)):
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(lambda x, p=rate: F.dropout(x, p))(ONES), expected)


def test_what_is_checkpointed_is_dropped_again_alike() -> None:
    from torch.utils.checkpoint import checkpoint

    def block(y: Any) -> Any:
        return F.dropout(y.sin(), 0.5).cos()

    run, x = compiled(lambda x: checkpoint(block, x, use_reentrant=False)), torch.ones(100, requires_grad=True)
    y = run(x)
    y.sum().backward()
    kept = (y != 1).float()
    torch.testing.assert_close(x.grad, -torch.sin(2 * torch.sin(x)) * 2 * torch.cos(x) * kept)
    assert 20 < kept.sum() < 80


def test_an_exported_program_takes_the_seed_as_an_input() -> None:
    import gcomp

    class Noisy(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.rand_like(x)

    model = gcomp.compile(Noisy(), ONES[:9])
    first, again, other = model(ONES[:9]), model(ONES[:9], seed=0), model(ONES[:9], seed=1)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_numbers_in_a_loop_would_be_the_same_in_each_turn_and_are_refused() -> None:
    from torch._higher_order_ops.map import map as mapped

    with pytest.raises(UnsupportedError, match="inside of a loop"):
        export_module(lambda x: mapped(lambda y: y + torch.rand_like(y), x), (torch.ones(3, 2),))
