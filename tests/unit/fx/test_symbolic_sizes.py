"""torch models of symbolic sizes: what guards say of sizes, and that inputs keep the symbols that they bind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from gcomp.errors import InputError, UnsupportedError  # noqa: E402
from gcomp.frontends.fx import export_module  # noqa: E402

F: Any = torch.nn.functional
Dim: Any = torch.export.Dim
AUTO: Any = Dim.AUTO


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(x.shape[0] // 5, 5).sum(0),
        lambda x: x.reshape(5, x.shape[0] // 5) * x.shape[0],
        lambda x: x.view(x.shape[0] // 5, 5).flatten() + x,
    ],
)
def test_a_size_that_is_a_multiple_is_bound(function: Callable[[Any], Any]) -> None:
    run = torch.compile(function, backend="gcomp", dynamic=True)
    for size in (15, 5, 35, 10):
        x = torch.randn(size)
        torch.testing.assert_close(run(x), function(x))


def exported(function: Callable[..., Any], rows: tuple[int, ...], *sizes: Any) -> gcomp.Model:
    """A function of tensors of some rows of 3, whose numbers of rows are `sizes`."""
    tensors = tuple(torch.randn(n, 3) for n in rows)
    return gcomp.compile(export_module(function, tensors, tuple({0: size} for size in sizes)))


def accepts(model: gcomp.Model, *rows: int) -> bool:
    try:
        model(*(torch.ones(n, 3) for n in rows))
    except InputError:
        return False
    return True


N = Dim("n", min=2, max=64)


@pytest.mark.parametrize(
    ("function", "size", "rows"),
    [
        (lambda x, y: x + y, N, lambda n: n),
        (lambda x, y: x[::2] + y, 2 * N, lambda n: 2 * n),
        (lambda x, y: x[1:] + y, N + 1, lambda n: n + 1),
    ],
)
def test_sizes_that_are_said_to_be_related_keep_their_ranges(
    function: Callable[..., Any], size: Any, rows: Callable[[int], int]
) -> None:
    model = exported(function, (rows(5), 5), size, N)
    assert [accepts(model, rows(n), n) for n in (2, 5, 64, 65, 1)] == [True, True, True, False, False]
    assert not accepts(model, rows(5) + 1, 5)


def test_the_range_of_a_size_that_a_guard_defines_holds() -> None:
    model = exported(lambda x, y: x[::2] + y, (10, 5), AUTO, Dim.DYNAMIC(min=4, max=9))
    assert [accepts(model, *pair) for pair in ((7, 4), (18, 9), (6, 3), (20, 10), (8, 5))] == [True, True] + 3 * [False]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b: torch.linalg.solve(a, b), [(3, 3), (3, 2)]),
        (lambda a, b: torch.linalg.solve(a, b, left=False), [(3, 3), (2, 3)]),
        (lambda b, a: torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mT + torch.eye(3))), [(3, 2), (3, 3)]),
        (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), [(3, 3), (3, 2)]),
    ],
)
def test_systems_of_any_batch(function: Callable[..., Any], shapes: list[tuple[int, int]]) -> None:
    n = Dim("n", min=0, max=64)
    example = tuple(torch.randn(5, *shape) for shape in shapes)
    model = gcomp.compile(export_module(function, example, ({0: n}, {0: n})))
    for batch in (5, 1, 0):
        given = [torch.randn(batch, *shape) for shape in shapes]
        torch.testing.assert_close(model(*given), function(*given), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("factor", "keywords"),
    [
        (0.5, {"mode": "nearest"}),
        (1.5, {"mode": "nearest"}),
        (2, {"mode": "bilinear", "align_corners": True}),
        (0.75, {"mode": "bilinear"}),
    ],
)
def test_images_are_scaled_by_factors(factor: float, keywords: dict[str, Any]) -> None:
    def scaled(x: Any) -> Any:
        return F.interpolate(x, scale_factor=factor, **keywords)

    run = torch.compile(scaled, backend="gcomp", dynamic=True)
    model = gcomp.compile(export_module(scaled, (torch.randn(1, 2, 6, 7),), ({2: AUTO, 3: AUTO},)))
    for rows, columns in ((6, 7), (4, 9), (16, 5)):
        x = torch.randn(1, 2, rows, columns)
        for call in (run, model):
            torch.testing.assert_close(call(x), scaled(x), rtol=1e-5, atol=1e-5)


def test_a_size_that_is_rounded_from_a_float_is_refused_at_its_node() -> None:
    def scaled(x: Any) -> Any:
        return F.interpolate(x, scale_factor=1.3)

    with pytest.raises(UnsupportedError, match=r"rounded from a float[\s\S]*node trunc[\s\S]*1\.3\d*\*ToFloat"):
        export_module(scaled, (torch.randn(1, 1, 5, 6),), ({2: AUTO},))


@pytest.mark.parametrize("rounded", [math.floor, math.ceil, math.trunc])
@pytest.mark.parametrize("by", [2, 3, 7, -3])
def test_quotients_of_sizes_are_rounded_exactly(by: int, rounded: Any) -> None:
    def numbers(x: Any) -> Any:
        return x + rounded((x.shape[0] - 5) / by) + rounded((x.shape[0] * 3 - x.shape[1]) / by) * 100

    model = gcomp.compile(export_module(numbers, (torch.zeros(4, 6),), ({0: AUTO, 1: AUTO},)))
    for shape in ((4, 6), (2, 30), (11, 2), (5, 15), (1024, 3)):
        x = torch.zeros(*shape)
        torch.testing.assert_close(model(x), numbers(x))


def test_elements_rotate_along_any_size() -> None:
    def rotated(x: Any) -> Any:
        return x.roll(2, 0) + x.roll(-1, 1) + x.roll((3, -4), (0, 1)) + x.roll(1)

    run = torch.compile(rotated, backend="gcomp", dynamic=True)
    for shape in ((5, 4), (2, 3), (1, 7), (3, 1), (0, 2), (8, 0)):
        x = torch.randn(*shape)
        torch.testing.assert_close(run(x), rotated(x))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("shape", "padding"), [((2, 3, 4), (1, 2)), ((1, 2, 3, 5), (0, 3, 2, 1))])
def test_gradients_of_replicated_edges(shape: tuple[int, ...], padding: tuple[int, ...], dynamic: bool) -> None:
    def padded(x: Any) -> Any:
        return F.pad(x, padding, mode="replicate")

    run = torch.compile(padded, backend="gcomp", dynamic=dynamic)
    for last in (shape[-1], 2, 7) if dynamic else shape[-1:]:
        x = torch.randn(*shape[:-1], last)
        found, wanted = (x.clone().requires_grad_() for _ in range(2))
        for given, call in ((found, run), (wanted, padded)):
            (call(given) ** 2).sum().backward()
        torch.testing.assert_close(found.grad, wanted.grad)


@pytest.mark.parametrize(
    "function", [lambda x: x[::2] * 2, lambda x: x[1::3] * 2, lambda x: x[2:-1:2] * 2, lambda x: x[:5:4] * 2]
)
def test_gradients_of_every_so_many_th_element(function: Callable[[Any], Any]) -> None:
    run = torch.compile(function, backend="gcomp", dynamic=True)
    for rows in (7, 3, 16, 4, 5):
        x = torch.randn(rows, 2)
        found, wanted = (x.clone().requires_grad_() for _ in range(2))
        for given, call in ((found, run), (wanted, function)):
            (call(given) ** 2).sum().backward()
        torch.testing.assert_close(found.grad, wanted.grad)


@pytest.mark.parametrize(
    ("function", "shape", "said"),
    [
        (lambda x, k: x[::k] * 2, (7,), "step"),
        (lambda x, k: F.conv1d(x, torch.ones(2, 2, 3), stride=k), (1, 2, 12), "stride"),
        (lambda x, k: F.conv1d(x, torch.ones(2, 2, 3), dilation=k), (1, 2, 12), "dilation"),
        (lambda x, k: F.conv_transpose1d(x, torch.ones(2, 2, 3), stride=k), (1, 2, 5), "stride"),
    ],
)
def test_a_number_that_is_a_symbol_is_refused_with_the_line(
    function: Callable[..., Any], shape: tuple[int, ...], said: str
) -> None:
    run = torch.compile(function, backend="gcomp", dynamic=True)
    refusal = rf"UnsupportedError[\s\S]*test_symbolic_sizes\.py[\s\S]*its {said} is symbolic"
    with pytest.raises(Exception, match=refusal):
        run(torch.randn(shape), 3)


def test_the_place_in_an_order_may_be_a_symbol() -> None:
    run = torch.compile(lambda x, k: x.kthvalue(k)[0], backend="gcomp", dynamic=True)
    x = torch.randn(7)
    for k in (3, 2, 7):
        assert run(x, k) == x.kthvalue(k)[0]


def holds_at_sizes(function: Callable[..., Any], sizes: dict[int, Any], *shapes: tuple[int, ...]) -> None:
    """Whether a function of one tensor, exported at the first shape, is computed at all of them."""
    model = gcomp.compile(export_module(function, (torch.randn(shapes[0]),), (sizes,)), target="cpu")
    for shape in shapes:
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(model(x.numpy())), function(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda x, norm: torch.fft.fftn(x, dim=(1, 2), norm=norm).real,
        lambda x, norm: torch.fft.ifft(torch.fft.fft(x), norm=norm).real,
        lambda x, norm: torch.fft.rfft(x, norm=norm).abs(),
        lambda x, norm: torch.fft.irfft(torch.fft.rfft(x) * 2, n=x.shape[-1], norm=norm),
    ],
)
def test_a_transform_takes_a_symbolic_length(transform: Callable[[Any, str], Any], norm: str) -> None:
    holds_at_sizes(lambda x: transform(x, norm), {1: AUTO, 2: AUTO}, (2, 5, 8), (2, 4, 9), (2, 16, 5))


@pytest.mark.parametrize("kernel, stride, padding", [(3, 2, 1), (2, 2, 0), (3, 2, 0)])
@pytest.mark.parametrize("pool", [F.avg_pool2d, F.max_pool2d])
def test_windows_that_begin_inside_a_symbolic_size_may_end_outside(
    pool: Callable[..., Any], kernel: int, stride: int, padding: int
) -> None:
    def pooled(x: Any) -> Any:
        return pool(x, kernel, stride, padding, ceil_mode=True)

    holds_at_sizes(pooled, {2: AUTO, 3: AUTO}, (1, 3, 13, 17), (1, 3, 12, 18), (1, 3, 31, 9))


def test_a_bound_that_a_guard_keeps_from_being_negative_counts_from_the_front() -> None:
    holds_at_sizes(lambda x: x + torch.arange(24.0)[max(0, 24 - x.shape[0]) :], {0: AUTO}, (10,), (3,), (23,))
