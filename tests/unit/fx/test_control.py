"""Higher-order operators through both of torch's doors: the results of eager code, for every branch and length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

from torch._higher_order_ops import associative_scan, scan, while_loop  # noqa: E402
from torch._higher_order_ops.map import map as torch_map  # noqa: E402

import gcomp  # noqa: E402
from gcomp.errors import UnsupportedError  # noqa: E402
from gcomp.frontends.fx import export_module  # noqa: E402
from gcomp.frontends.fx.importer import last_line  # noqa: E402
from tests.support.thinning import swept, thinned  # noqa: E402

nn: Any = torch.nn
AUTO: Any = torch.export.Dim.AUTO


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def two_results(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x * 2, x.mean()), (x,))


def nested(x: Any) -> Any:
    def inner(x: Any) -> Any:
        return torch.cond(x.max() > 1, lambda x: x.sin(), lambda x: x.cos(), (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,))


def counted(x: Any) -> Any:
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), (torch.tensor(0), x))


def until(x: Any) -> Any:
    bound = x.abs().max() * 8
    return while_loop(lambda y: y.abs().sum() < bound, lambda y: (y * 1.25 + 0.1,), (x,))[0]


def summed(x: Any) -> Any:
    return scan(lambda carry, row: (carry + row, carry * row), torch.ones(3), x, dim=0)


def backwards(x: Any) -> Any:
    return scan(lambda carry, row: (carry * 0.5 + row, carry - row), torch.ones(4), x, dim=1, reverse=True)


def mapped(x: Any) -> Any:
    return torch_map(lambda row, y: row * 2 + y, x, torch.ones(3))


def associated(x: Any) -> Any:
    return associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic")


FUNCTIONS: list[Callable[[Any], Any]] = [two_results, nested, counted, until, summed, backwards, mapped, associated]
INPUTS = [torch.linspace(-1, 2, 12).reshape(4, 3), -torch.linspace(-1, 2, 12).reshape(4, 3)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_exported_programs(function: Callable[[Any], Any]) -> None:
    model = gcomp.compile(export_module(function, (INPUTS[0],)))
    for x in INPUTS:
        torch.testing.assert_close(model(x), function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function", thinned(FUNCTIONS, lambda f: f in (nested, until, mapped)), ids=lambda f: f.__name__
)
def test_dynamo(function: Callable[[Any], Any]) -> None:
    run = torch.compile(function, backend="gcomp", fullgraph=True)
    for x in INPUTS:
        torch.testing.assert_close(run(x), function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [mapped, *swept(two_results, counted, summed)], ids=lambda f: f.__name__)
def test_lengths_may_be_symbolic(function: Callable[[Any], Any]) -> None:
    model = gcomp.compile(export_module(function, (INPUTS[0],), ({0: AUTO},)))
    for rows in (2, 4, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(model(x), function(x), rtol=1e-5, atol=1e-5)


def test_a_branch_by_a_symbolic_size() -> None:
    def f(x: Any) -> Any:
        return torch.cond(x.shape[0] > 5, lambda x: x + 1, lambda x: x * 2, (x,))

    model = gcomp.compile(export_module(f, (INPUTS[0],), ({0: torch.export.Dim("n", min=2, max=20)},)))
    for rows in (2, 5, 6, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(model(x), x + 1 if rows > 5 else x * 2)


def test_fractions_of_symbolic_sizes_are_numbers() -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        return x * (n / 3), x + (n / 7 + 0.5) * 2, x.to(torch.float16) - n / 9

    model = gcomp.compile(export_module(f, (INPUTS[0],), ({0: AUTO},)))
    for rows in (2, 4, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(model(x), f(x))


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: self.left(x).relu(), lambda x: self.right(x).tanh(), (x,))


def test_branches_with_parameters() -> None:
    net = Chosen()
    model = gcomp.compile(net, INPUTS[0])
    for x in INPUTS:
        torch.testing.assert_close(model(x), net(x).detach())


def test_gradients_through_branches() -> None:
    net = Chosen()
    run = torch.compile(net, backend="gcomp", fullgraph=True)
    for x in INPUTS:
        found: list[list[Any]] = []
        for module in (run, net):
            net.zero_grad()
            given = x.clone().requires_grad_()
            module(given).square().sum().backward()
            found.append([given.grad, *(p.grad for p in net.parameters())])
        for got, wanted in zip(*found, strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("function", [two_results, *swept(summed, mapped)], ids=lambda f: f.__name__)
def test_gradients_through_scans_and_maps(function: Callable[[Any], Any]) -> None:
    gradients: list[Any] = []
    for run in (torch.compile(function, backend="gcomp", fullgraph=True), function):
        x = INPUTS[0].clone().requires_grad_()
        sum(r.sum() for r in torch.utils._pytree.tree_leaves(run(x))).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)


def test_the_gradient_of_a_loop_of_unknown_length_is_refused() -> None:
    run = torch.compile(until, backend="gcomp", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"while_loop_stack_output[\s\S]*use scan"):
        run(INPUTS[0].clone().requires_grad_()).sum().backward()


@pytest.mark.parametrize("function", [summed, *swept(two_results)], ids=lambda f: f.__name__)
def test_dynamo_with_dynamic_sizes(function: Callable[[Any], Any]) -> None:
    run = torch.compile(function, backend="gcomp", fullgraph=True, dynamic=True)
    for rows in (4, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(run(x), function(x), rtol=1e-5, atol=1e-5)


def test_checkpoints_and_modes_are_looked_through() -> None:
    from torch.utils.checkpoint import checkpoint

    def f(x: Any) -> Any:
        y = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False)
        with torch.no_grad():
            z = x.exp()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            w = x @ x.t()
        return y + z, w

    x = INPUTS[0]
    wanted = f(x)
    for got in (gcomp.compile(export_module(f, (x,)))(x), torch.compile(f, backend="gcomp", fullgraph=True)(x)):
        torch.testing.assert_close(got, wanted, rtol=1e-2, atol=1e-2)
        assert got[1].dtype == torch.bfloat16


def test_regions_that_are_compiled_once() -> None:
    region = torch.compiler.nested_compile_region(lambda x: x.sin() + x)
    run = torch.compile(lambda x: region(region(x)), backend="gcomp", fullgraph=True)
    x = INPUTS[0]
    torch.testing.assert_close(run(x), (x.sin() + x).sin() + (x.sin() + x))


def test_a_number_that_a_loop_carries_is_refused_with_the_way_out() -> None:
    def f(x: Any) -> Any:
        return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 2), (0, x))

    with pytest.raises(UnsupportedError, match=r"while_loop[\s\S]*carries the number 0[\s\S]*torch\.tensor"):
        export_module(f, (INPUTS[0],))


# ---- Python that decides by data ------------------------------------------------------------------------------------


class Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x * 2
        if y.mean() > 0.5:
            return y + 1
        return y - 1


def test_python_branches_break_dynamos_graph_and_go_on() -> None:
    net = Branch()
    run = torch.compile(net, backend="gcomp")
    for x in INPUTS:
        torch.testing.assert_close(run(x), net(x))


@pytest.mark.parametrize(
    "file, shown",
    [
        ("/home/u/torch/model.py", True), ("/home/u/gcomp/model.py", True), ("/home/u/my torch/gcomp.py", True),
        (torch.nn.__file__, False), (gcomp.ops.__file__, False), ("<eval_with_key>.1", False),
        ("/elsewhere/lib/python3.12/site-packages/torch/nn/modules/linear.py", False),
    ],
)  # fmt: skip
def test_lines_of_a_trace_are_the_users_whatever_their_folders_are_called(file: str, shown: bool) -> None:
    trace = f'  File "/home/u/main.py", line 1, in run\n  File "{file}", line 7, in forward\n    x\n'
    assert last_line(trace) == (f"{file}:7" if shown else "/home/u/main.py:1")


def test_python_branches_are_refused_with_their_line_and_the_way_to_write_them() -> None:
    with pytest.raises(UnsupportedError) as caught:
        gcomp.compile(Branch(), INPUTS[0])
    with open(__file__, encoding="utf-8") as file:
        line = next(i for i, text in enumerate(file, 1) if "if y.mean() > 0.5" in text)
    assert f"test_control.py:{line}" in str(caught.value)
    assert "torch.cond(" in str(caught.value)
