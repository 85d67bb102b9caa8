"""How results lie in memory, and guards that make symbolic sizes equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from gcomp import dims  # noqa: E402
from tests.support.thinning import swept  # noqa: E402

nn: Any = torch.nn
X = torch.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.t() + 1,
    "a view of an inner value": lambda x: (x + 1).permute(1, 0),
    "with gaps": lambda x: (x + 1)[::2, 1:],
    "repeated": lambda x: (x + 1)[:, :1].expand(3, 4),
    "views of an input": lambda x: (x[1:, 1:], x.t(), x * 2),
    "a product": lambda x: torch.einsum("ij,kj->ki", x, x),
    "channels last": lambda x: x.reshape(1, 3, 2, 2).to(memory_format=torch.channels_last) * 2,
    "filled": lambda x: torch.empty_like(x.t()).fill_(3),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_results_have_the_strides_of_eager_code(name: str, dynamic: bool) -> None:
    run = torch.compile(LAYOUTS[name], backend="gcomp", fullgraph=True, dynamic=dynamic)
    for got, wanted in zip(*(v if isinstance(v, tuple) else (v,) for v in (run(X), LAYOUTS[name](X))), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
        assert got.stride() == wanted.stride()


def test_channels_last_stays_in_training() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    y = torch.compile(net, backend="gcomp")(x)
    assert y.is_contiguous(memory_format=torch.channels_last)
    (found,) = torch.autograd.grad(y.sum(), x)
    (expected,) = torch.autograd.grad(net(x).sum(), x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert found.stride() == expected.stride()


def test_gradients_share_no_memory_with_what_came_in() -> None:
    x, slope = X.clone().requires_grad_(), torch.ones(4, 3)
    torch.compile(lambda x: x.t(), backend="gcomp")(x).backward(slope)
    slope.fill_(7)
    torch.testing.assert_close(x.grad, torch.ones(3, 4))


@pytest.mark.parametrize("train", [True, *swept(False)])
def test_a_network_that_flattens_symbolic_sizes_is_compiled_under_torchs_guards(train: bool) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 5)).train(train)
    run = torch.compile(net, backend="gcomp", dynamic=True)
    for batch, size in ((2, 8), (3, 9)):
        x = torch.randn(batch, 3, size, size)
        torch.testing.assert_close(run(x), net(x), rtol=1e-4, atol=1e-5)
        if train:
            net.zero_grad()
            run(x).sum().backward()
            found = net[0].weight.grad.clone()
            net.zero_grad()
            net(x).sum().backward()
            torch.testing.assert_close(found, net[0].weight.grad, rtol=1e-3, atol=1e-4)


def test_the_guards_are_constraints_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp import dynamo

    programs: list[Any] = []
    known = dynamo.compile_with
    monkeypatch.setattr(dynamo, "compile_with", lambda program, *a: (programs.append(program), known(program, *a))[1])
    net = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 5)).eval()
    with torch.no_grad():
        torch.compile(net, backend="gcomp", dynamic=True)(torch.randn(2, 1, 8, 12))
    assert any("24" in f"{c.lhs} {c.rhs}" and c.kind == "eq" for c in programs[0].constraints)


@pytest.mark.parametrize(
    "size, zero, expected",
    [
        ("8*a^2 - 16*a + 8", "8*a^2 - 16*a - 64", "72"),
        ("8*n*a*b", "8*a*b - 192", "192*n"),
        ("floordiv(s, 2) + 1", "floordiv(s, 2) - 4", "5"),
        ("a + b", "2*a - 6", "b + 3"),
        ("a", "b - 3", "a"),
        ("n", "n - 5*floordiv(n, 5)", "n"),
        ("10*floordiv(n, 5) + 2", "n - 5*floordiv(n, 5)", "2*n + 2"),
        ("5*m*floordiv(n, 5)", "n - 5*floordiv(n, 5)", "m*n"),
        ("2*floordiv(n + 1, 2)", "2*floordiv(n + 1, 2) - n - 1", "n + 1"),
        ("n*floordiv(n, 5)", "n*m - 5*floordiv(n, 5)", "n*floordiv(n, 5)"),
    ],
)
def test_a_size_reduced_by_an_equation_has_its_value_where_that_holds(size: str, zero: str, expected: str) -> None:
    assert dims.reduce_modulo(dims.parse(size), dims.parse(zero)) == dims.parse(expected)
