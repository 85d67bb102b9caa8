"""Gradients of what torch leaves as operators of their own: eager torch's, through `torch.compile(backend="gcomp")`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402

F: Any = torch.nn.functional
MODES = ["bilinear", "nearest", "bicubic"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def same_as_eager(function: Callable[..., Any], *inputs: Any) -> None:
    """Results of a function (a list) and the gradients of a weighted sum of them are those of eager torch."""
    found: list[list[Any]] = []
    for run in (torch.compile(function, backend="gcomp", fullgraph=True, dynamic=False), function):
        given = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
        results = run(*given)
        total = sum((r * torch.linspace(-1, 2, r.numel()).reshape(r.shape)).sum() for r in results)
        leaves = [x for x in given if x.requires_grad]
        found.append([*results, *torch.autograd.grad(total, leaves)])
    for got, wanted in zip(*found, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-4, equal_nan=True)


def leaf(*shape: int) -> Any:
    return torch.randn(shape, requires_grad=True)


def grid_of(*shape: int) -> Any:
    """Places inside and outside of an image; some of them exactly on its edges."""
    places = torch.rand(shape) * 3 - 1.5
    edges = torch.tensor([-1.0, 1.0, 0.0])[torch.arange(places.numel()) % 3].reshape(shape)
    return torch.where(torch.rand(shape) < 0.2, edges, places).requires_grad_()


@pytest.mark.parametrize(
    ("spatial", "padding", "modes"),
    [
        (2, "border", ["bilinear"]),
        (2, "reflection", ["bicubic"]),
        (3, "zeros", ["bilinear"]),
        *(
            pytest.param(spatial, padding, MODES[: 5 - spatial], marks=pytest.mark.slow)
            for spatial, padding in itertools.product((2, 3), ("zeros", "border", "reflection"))
        ),
    ],
)
def test_of_samples_on_a_grid(spatial: int, padding: str, modes: list[str]) -> None:
    def sampled(x: Any, grid: Any) -> list[Any]:
        return [
            F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=aligned)
            for mode, aligned in itertools.product(modes, (False, True))
        ]

    same_as_eager(sampled, leaf(2, 3, *(4, 5, 3)[:spatial]), grid_of(2, *(3, 4, 2)[:spatial], spatial))


def test_of_samples_where_only_the_image_or_only_the_grid_has_one() -> None:
    def sampled(x: Any, grid: Any) -> list[Any]:
        return [F.grid_sample(x, grid, align_corners=False)]

    same_as_eager(sampled, leaf(1, 2, 4, 5), grid_of(1, 3, 3, 2).detach())
    torch._dynamo.reset()
    same_as_eager(sampled, leaf(1, 2, 4, 5).detach(), grid_of(1, 3, 3, 2))


def test_of_samples_of_any_sizes() -> None:
    def sampled(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)

    run = torch.compile(sampled, backend="gcomp", fullgraph=True, dynamic=True)
    for size in (4, 6):
        x, grid = leaf(2, 3, size, size + 1), grid_of(2, size, 3, 2)
        results = [torch.autograd.grad(f(x, grid).square().sum(), [x, grid]) for f in (run, sampled)]
        torch.testing.assert_close(*results, rtol=1e-5, atol=1e-4)


def test_of_samples_in_half_precision() -> None:
    x, grid = leaf(1, 2, 4, 5).bfloat16(), grid_of(1, 3, 3, 2).bfloat16()
    sampled = torch.compile(lambda x, grid: F.grid_sample(x, grid, align_corners=False), backend="gcomp")
    torch.testing.assert_close(sampled(x, grid), F.grid_sample(x, grid, align_corners=False), rtol=0.02, atol=0.02)


def test_of_a_spatial_transformer() -> None:
    def transformed(x: Any, theta: Any) -> list[Any]:
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return [F.grid_sample(x, grid, align_corners=False)]

    same_as_eager(transformed, leaf(2, 3, 5, 6), leaf(2, 2, 3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_of_bags_of_rows(mode: str, padding_idx: int | None) -> None:
    indices, offsets = torch.tensor([1, 2, 4, 5, 4, 2, 9, 1]), torch.tensor([0, 3, 3, 7])

    def bags(table: Any, weights: Any) -> list[Any]:
        common = {"mode": mode, "padding_idx": padding_idx}
        found = [F.embedding_bag(indices, table, offsets, **common)]
        if mode == "sum":
            ends = torch.cat([offsets, torch.tensor([8])])
            found.append(F.embedding_bag(indices, table, offsets, per_sample_weights=weights, **common))
            found.append(F.embedding_bag(indices, table, ends, include_last_offset=True, **common))
        return found

    same_as_eager(bags, leaf(10, 3), leaf(8) if mode == "sum" else leaf(8).detach())


def test_of_rows_by_how_often_they_are_used() -> None:
    # Eager torch divides by the counts of other rows (docs/guides/upstream_bugs.md), but not for single rows.
    table, indices = leaf(6, 2), torch.tensor([[1, 1, 1], [5, 2, 2]])

    def of(function: Callable[..., Any]) -> Any:
        return torch.autograd.grad((function() * torch.tensor([1.0, 3.0])).sum(), [table])[0]

    bags = torch.compile(
        lambda: F.embedding_bag(indices, table, mode="sum", scale_grad_by_freq=True), backend="gcomp", fullgraph=True
    )
    torch.testing.assert_close(of(bags), of(lambda: F.embedding(indices, table, scale_grad_by_freq=True).sum(1)))


def test_a_sparse_gradient_is_refused() -> None:
    table = torch.nn.EmbeddingBag(10, 3, sparse=True)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="sparse=False"):
        torch.compile(table, backend="gcomp")(torch.tensor([[1, 2]])).sum().backward()


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_of_distances(p: float) -> None:
    def distances(x: Any, y: Any) -> list[Any]:
        return [torch.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist"), F.pdist(y[0], p=p)]

    x, y = torch.randn(1, 4, 3), torch.randn(2, 5, 3)
    y[0, 1], y[1, 2, 0] = x[0, 2], x[0, 0, 0]  # a distance of 0, and a difference of 0
    y[0, 3] = y[0, 0]
    same_as_eager(distances, x.requires_grad_(), y.requires_grad_())


def test_of_pooling_of_volumes() -> None:
    def pooled(x: Any) -> list[Any]:
        found = F.max_pool3d(x, 3, 2, padding=1, ceil_mode=True)
        values, places = F.max_pool3d(x, (1, 2, 3), return_indices=True)
        found = [found, values, F.max_unpool3d(values, places, (1, 2, 3), output_size=x.shape[2:])]
        return [
            *found,
            F.adaptive_avg_pool3d(x, (2, 3, 2)),
            F.adaptive_avg_pool3d(x, 1),
            F.max_pool3d(x, 2, 1, dilation=2),
        ]

    same_as_eager(pooled, leaf(2, 2, 4, 5, 6))


@pytest.mark.parametrize(
    ("spatial", "keywords"),
    [
        (1, {"stride": 2, "padding": 1}),
        (2, {"stride": (2, 3), "padding": (0, 2), "output_padding": (1, 0), "groups": 2}),
        (2, {"stride": 1, "dilation": (2, 3), "output_padding": (1, 2)}),
        (3, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 4}),
    ],
)  # fmt: skip
def test_of_transposed_convolutions(spatial: int, keywords: dict[str, Any]) -> None:
    transposed = getattr(F, f"conv_transpose{spatial}d")
    groups = keywords.get("groups", 1)

    def run(x: Any, weight: Any, bias: Any) -> list[Any]:
        return [transposed(x, weight, bias, **keywords)]

    same_as_eager(run, leaf(2, 4, *(5, 4, 3)[:spatial]), leaf(4, 2, *(3, 4, 2)[:spatial]), leaf(2 * groups))


def test_of_normalized_weights() -> None:
    def normalized(v: Any, rows: Any, columns: Any) -> list[Any]:
        return [torch._weight_norm(v, rows, 0), torch._weight_norm(v, columns, 1)]

    same_as_eager(normalized, leaf(3, 4), leaf(3, 1), leaf(1, 4))


def test_of_what_is_scattered_by_a_mask() -> None:
    mask = torch.tensor([[True], [False], [True]])

    def scattered(x: Any, source: Any) -> list[Any]:
        return [x.masked_scatter(mask, source), x.masked_scatter(x > 0, source)]

    same_as_eager(scattered, leaf(3, 2), leaf(7))


def test_of_segments() -> None:
    lengths = torch.tensor([2, 0, 3])

    def reduced(x: Any) -> list[Any]:
        found = [torch.segment_reduce(x, how, lengths=lengths, initial=2.0) for how in ("sum", "mean", "prod")]
        return [*found, *(torch.segment_reduce(x[:, 0], how, lengths=lengths[[0, 2]]) for how in ("max", "min"))]

    # With two zeros in a product, and one, and equal maxima.
    values = [[1.0, 2.0], [3.0, 0.0], [2.0, 0.0], [2.0, 0.0], [-1.0, 4.0]]
    same_as_eager(reduced, torch.tensor(values, requires_grad=True))


def test_of_windows_at_random_places() -> None:
    samples = torch.rand(2, 3, 2), torch.rand(2, 3, 3)

    def pooled(image: Any, volume: Any) -> list[Any]:
        planes = torch.ops.aten.fractional_max_pool2d(image, [2, 3], [4, 3], samples[0])[0]
        return [planes, F.fractional_max_pool3d(volume, (2, 3, 1), output_size=(3, 4, 2), _random_samples=samples[1])]

    same_as_eager(pooled, leaf(2, 3, 7, 6), leaf(2, 3, 6, 7, 5))
    # With samples for more images than there are.
    same_as_eager(pooled, leaf(1, 3, 7, 6), leaf(3, 6, 7, 5))


def test_of_resizing_with_lanczos() -> None:
    def resized(x: Any) -> list[Any]:
        sizes = ((3, 9), (7, 4), (1, 1))
        return [F.interpolate(x, size=size, mode="lanczos", antialias=True) for size in sizes]

    same_as_eager(resized, leaf(1, 2, 7, 6))


def test_of_values_as_if_quantized() -> None:
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 3, 100], dtype=torch.int32)

    def rounded(x: Any) -> list[Any]:
        return [torch.fake_quantize_per_channel_affine(x * 20, scale, zero, 0, 0, 255)]

    same_as_eager(rounded, leaf(3, 40))


def test_of_margins_with_labels_that_end_early() -> None:
    target = torch.tensor([[1, 0, -1], [2, -1, 0], [-1, 1, 2]])

    def losses(x: Any) -> list[Any]:
        each = [F.multilabel_margin_loss(x, target, reduction=how) for how in ("none", "mean", "sum")]
        return [*each, F.multilabel_margin_loss(x[1], target[1])]

    same_as_eager(losses, leaf(3, 3))
    loss = torch.nn.MultiLabelMarginLoss(reduction="none")
    x = leaf(3, 3).detach()
    torch.testing.assert_close(gcomp.compile(loss, x, target)(x, target), loss(x, target))


def test_of_what_a_mask_selects() -> None:
    def selected(x: Any) -> Any:
        return x.masked_select(x > 0) * 2

    run = torch.compile(selected, backend="gcomp", fullgraph=True)
    x = leaf(5)
    for sign in (1, -1):
        torch.testing.assert_close(*(torch.autograd.grad(f(x * sign).square().sum(), [x]) for f in (run, selected)))
    negative = (-x.abs()).detach().requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(run(negative).sum(), [negative])[0], torch.zeros(5))


def test_of_what_a_mask_selects_from_one_number() -> None:
    for mask in (torch.tensor(True), torch.tensor([[True, False, True]])):

        def selected(x: Any, source: Any, mask: Any = mask) -> list[Any]:
            return [x.masked_select(mask) * 2, x.expand(mask.shape).masked_scatter(mask, source)]

        same_as_eager(selected, leaf(), leaf(3))


def test_of_determinants() -> None:
    # Their factors lie column by column in memory, and the gradient takes their diagonal by strides.
    same_as_eager(lambda x: [torch.linalg.det(x), torch.linalg.slogdet(x)[1]], leaf(2, 3, 3))


def test_of_a_sign() -> None:
    same_as_eager(lambda x: [torch.sgn(x), x * torch.sgn(x)], leaf(5))
