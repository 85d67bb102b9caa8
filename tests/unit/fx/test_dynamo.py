"""`torch.compile(backend="gcomp")`: training, mutation, views, dynamic shapes, graph breaks, refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

nn: Any = torch.nn
F: Any = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], **keywords: Any) -> Any:
    return torch.compile(function, backend="gcomp", **keywords)


def test_a_module_gives_what_it_gives_eagerly() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 5)
    )
    net.eval()
    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(compiled(net, fullgraph=True)(x), net(x), rtol=1e-5, atol=1e-5)


def test_training_steps_are_those_of_eager_code() -> None:
    net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    other = copy.deepcopy(net)
    x, y = torch.randn(12, 6), torch.randint(0, 3, (12,))
    losses: list[list[float]] = []
    for model, run in ((net, compiled(net, fullgraph=True)), (other, other)):
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        losses.append([])
        for _ in range(15):
            loss = F.cross_entropy(run(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][-1] < losses[0][0] / 1.2


def test_inputs_and_buffers_are_changed_in_place() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.count += x.sum(0)
            x.mul_(2)
            return self.count * x

    net, x = Counter(), torch.ones(2, 3)
    run = compiled(net, fullgraph=True)
    for step in (1, 2, 3):
        result = run(x)
        torch.testing.assert_close(x, torch.full((2, 3), 2.0**step))
        torch.testing.assert_close(net.count, torch.full((3,), 2.0 * (2**step - 1)))
        torch.testing.assert_close(result, net.count * x)


def test_views_and_strided_inputs() -> None:
    def f(x: Any) -> Any:
        y = x.t()
        return y, y[1:], x.view(-1), x + 1

    x = torch.randn(6, 4)[::2, 1:]
    for got, wanted in zip(compiled(f)(x.contiguous()), f(x.contiguous()), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    torch.testing.assert_close(compiled(lambda x: x * 2 + x.t().sum())(x), x * 2 + x.sum())


def test_results_alias_what_they_alias_eagerly() -> None:
    def several(x: Any, y: Any) -> Any:
        z = x + y
        return z, z, x, y[1:], z.view(-1)

    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    run = compiled(several, fullgraph=True)
    for _ in range(3):
        results = run(x, y)
        for result, expected in zip(results, several(x, y), strict=True):
            torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert results[2] is x
        assert results[3].data_ptr() == y[1:].data_ptr()
        assert results[0] is results[1]
        assert results[4].data_ptr() == results[0].data_ptr()


def test_views_of_what_has_other_strides_share_its_memory() -> None:
    def parts(x: Any, n: Any) -> Any:
        z = x.t() + n
        return z[1:], z[:2], z.sum(), z.flatten()[0], torch.view_as_real(torch.complex(x, x))

    x = torch.arange(6.0).reshape(2, 3)
    for dynamic in (False, True):
        torch._dynamo.reset()
        run = compiled(parts, fullgraph=True, dynamic=dynamic)
        for scale in (1, 2, 3):
            results, expected = run(x * scale, 1.0), parts(x * scale, 1.0)
            for before, after in zip(results, expected, strict=True):
                torch.testing.assert_close(before, after, rtol=0, atol=0)
                assert before.stride() == after.stride()
            results[0].add_(1)
            expected[0].add_(1)
            torch.testing.assert_close(results[1], expected[1], rtol=0, atol=0)


def test_calls_without_wrappers_give_what_those_with_them_do() -> None:
    def scaled(x: Any, w: Any) -> Any:
        return (x @ w).sin(), x.sum()

    x, w = torch.randn(4, 3), nn.Parameter(torch.randn(3, 5))
    run = compiled(scaled, fullgraph=True)
    with torch.no_grad():  # a parameter, and no gradient is asked for
        for factor in (1, 2, 3):
            for result, expected in zip(run(x * factor, w), scaled(x * factor, w), strict=True):
                torch.testing.assert_close(result, expected)
                assert not result.requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(run(x, w)[0], scaled(x, w)[0])
    y = run(x, w)[0]  # now it is
    assert y.requires_grad
    y.sum().backward()
    (expected,) = torch.autograd.grad(scaled(x, w)[0].sum(), [w])
    torch.testing.assert_close(w.grad, expected)
    run(x, w)[0].sum().backward()
    torch.testing.assert_close(w.grad, 2 * expected)


def test_only_graphs_that_need_nothing_skip_the_wrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcomp import dynamo

    found: list[bool] = []
    known = dynamo._is_functional
    monkeypatch.setattr(dynamo, "_is_functional", lambda examples: (found.append(known(examples)), found[-1])[1])

    def changed(x: Any) -> Any:
        x.add_(1)
        return x * 2

    for function, functional in (
        (lambda x: x * 2, True),
        (lambda x: (x * 2, x * 3), True),
        (changed, False),
        (lambda x: x[1:], False),
        (lambda x: (x, x * 2), True),  # Dynamo itself gives the input back
        (lambda x: ((y := x * 2), y[0]), True),
    ):
        compiled(function, fullgraph=True)(torch.ones(3))
        assert found == [functional]
        found.clear()


def test_dynamic_shapes_compile_once() -> None:
    graphs = 0

    def counting(module: Any, examples: Any) -> Any:
        nonlocal graphs
        graphs += 1
        from gcomp.dynamo import backend

        return backend(module, examples)

    run = torch.compile(
        lambda x, w: (x[1:] @ w, x.shape[0] * 2, x.new_zeros(x.shape[0])), backend=counting, dynamic=True
    )
    for rows in (3, 5, 9):
        x, w = torch.randn(rows, 4), torch.randn(4, 2)
        product, number, zeros = run(x, w)
        torch.testing.assert_close(product, x[1:] @ w)
        assert number == 2 * rows and zeros.shape == (rows,)
    assert graphs == 1


def test_a_branch_on_data_breaks_the_graph_and_goes_on() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    run = compiled(f)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(run(x), f(x))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(f, fullgraph=True)(torch.ones(3))


def test_graphs_without_tensors_among_their_inputs() -> None:
    torch.testing.assert_close(compiled(lambda: torch.arange(5) * 2)(), torch.arange(5) * 2)


def test_what_is_not_imported_is_refused_with_its_name_and_line() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="aten::poisson") as caught:
        compiled(lambda x: torch.poisson(x) + 1, fullgraph=True)(torch.ones(4))
    assert "test_dynamo.py" in str(caught.value)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d(4, 8, (3, 2), (2, 3), (1, 0), (1, 2), groups=2),
        nn.Conv1d(4, 4, 3, groups=4), nn.BatchNorm2d(4), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2, ceil_mode=True),
        nn.AvgPool2d((3, 2), (2, 1), (1, 0), count_include_pad=False), nn.GroupNorm(2, 4), nn.Embedding(9, 4),
        nn.LSTM(4, 3, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True),
    ],
    ids=lambda layer: str(layer)[:40],
)  # fmt: skip
def test_gradients_are_those_of_eager_code(layer: Any) -> None:
    kind = type(layer).__name__
    x = torch.randn(2, 4, 9, 8) if "2d" in kind or "Group" in kind else torch.randn(2, 4, 7)
    if kind in ("LSTM", "MultiheadAttention"):
        x = torch.randn(2, 5, 4)
    if kind == "Embedding":
        x = torch.randint(0, 9, (3, 5))
    other = copy.deepcopy(layer)
    inputs = [x] * 3 if kind == "MultiheadAttention" else [x]
    values: list[list[Any]] = []
    for module, run in ((layer, compiled(layer)), (other, other)):
        given = [v.clone().requires_grad_(v.is_floating_point()) for v in inputs]
        result = run(*given)
        result = result[0] if isinstance(result, tuple) else result
        (result * torch.linspace(0, 1, result.numel()).reshape(result.shape)).sum().backward()
        values.append([result, *(v.grad for v in given), *(p.grad for p in module.parameters())])
    for got, wanted in zip(*values, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
