"""torch modules through torch.export: values, structures, symbolic dims, weights, what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402
from gcomp.errors import InputError, UnsupportedError  # noqa: E402
from gcomp.frontends.fx import export_module  # noqa: E402
from tests.support.thinning import swept  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional


def close(got: Any, wanted: Any) -> None:
    if torch.is_tensor(wanted):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        close(list(got.values()), list(wanted.values()))
    elif isinstance(wanted, tuple | list):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for x, y in zip(got, wanted, strict=True):
            close(x, y)
    else:
        assert got == wanted


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.register_buffer("shift", torch.ones(1))

    def forward(self, x: Any) -> Any:
        h = self.norm(self.linear(x))
        y = F.scaled_dot_product_attention(h, h, h, is_causal=True)
        return {"y": y[:, 1:] * 2 + self.shift, "rest": (x.sum(), None, 3), "places": F.gelu(y).argmax(-1)}


def test_a_module_gives_what_it_gives_eagerly_in_its_own_structure() -> None:
    torch.manual_seed(0)
    block, x = Block().eval(), torch.randn(2, 3, 4)
    close(gcomp.compile(block, x)(x), block(x))
    close(gcomp.compile(torch.export.export(block, (x,)))(x), block(x))


def test_symbolic_dims_keep_torchs_ranges() -> None:
    torch.manual_seed(1)
    block = Block().eval()
    dim = torch.export.Dim
    shapes = {"x": {0: dim("batch", min=1, max=16), 1: dim.AUTO}}
    model = gcomp.compile(export_module(block, (torch.randn(2, 3, 4),), shapes))
    for batch, length in ((1, 2), (16, 5), (3, 9)):
        x = torch.randn(batch, length, 4)
        close(model(x), block(x))
    with pytest.raises(InputError, match="outside its range"):
        model(torch.randn(17, 3, 4))


def test_composites_are_found() -> None:
    text = export_module(Block().eval(), (torch.randn(2, 3, 4),)).text()
    assert all(f'"gcomp.{name}"' in text for name in ("layer_norm", "attention", "gelu")), text


def test_parameters_are_weights_and_ops_have_the_modules_names() -> None:
    program = export_module(Block().eval(), (torch.randn(2, 3, 4),))
    assert set(program.weights) == {"linear.weight", "linear.bias", "norm.weight", "norm.bias", "shift"}
    text = program.text(locations=True)
    assert '"linear"' in text and "test_exported.py" in text


def test_a_module_that_changes_its_buffers_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"changes its buffers.*num_batches_tracked"):
        export_module(nn.BatchNorm1d(3), (torch.randn(4, 3),))


def test_operators_that_decide_by_data_when_exported_are_refused() -> None:
    """torch raises errors of its fake tensors there, which are no mistakes of gcomp's."""

    def decides(x: Any, y: Any) -> Any:
        return x + 1 if torch.equal(x, y) else y

    def least_squares(x: Any, y: Any) -> Any:
        return torch.linalg.lstsq(x, y)[0]

    for function in (decides, least_squares):
        with pytest.raises(UnsupportedError, match="does not capture"):
            export_module(function, (torch.eye(3), torch.eye(3)))


def test_an_overload_that_gives_another_type_is_refused() -> None:
    """`mm.dtype` sums in f32 and keeps it, which a product of bf16 does not."""

    class Widened(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.mm(x, x, out_dtype=torch.float32)

    exported = torch.export.export(Widened(), (torch.ones(4, 4, dtype=torch.bfloat16),))
    with pytest.raises(UnsupportedError, match=r"aten::mm\.dtype") as error:
        gcomp.compile(exported)
    assert "gcomp computes bf16 where torch gives f32" in str(error.value)


def test_python_deciding_by_data_is_refused_with_a_way_out() -> None:
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.mean() > 0.5 else -x

    with pytest.raises(UnsupportedError, match="does not capture") as caught:
        export_module(Branch(), (torch.randn(3),))
    assert "torch.cond" in str(caught.value)


def promote(x: Any, y: Any) -> Any:
    return x + y, x * 2, y / 3, x // 2, x % 3, x < y, torch.where(x > 1, x, y), x - 1.5, torch.maximum(x, y)


LEFT = [torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("right", [torch.float32, *swept(torch.int16, torch.bfloat16)])
def test_types_are_promoted_as_torch_does(right: Any) -> None:
    def of_all(y: Any, *left: Any) -> Any:
        return [promote(x, y) for x in left]

    y, left = torch.tensor([3, 2, 1], dtype=right), [torch.tensor([1, 2, 7], dtype=dtype) for dtype in LEFT]
    got, wanted = gcomp.compile(export_module(of_all, (y, *left)))(y, *left), of_all(y, *left)
    for dtype, some, others in zip(LEFT, got, wanted, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.dtype == other.dtype, dtype
            torch.testing.assert_close(
                one, other, rtol=1e-2, atol=1e-2, msg=lambda said, dtype=dtype: f"{dtype}: {said}"
            )


def test_division_and_remainder_by_all_signs() -> None:
    x = torch.tensor([7.5, -7.5, 7.5, -7.5, 0.0, -0.0, 1.0, 6.0, -6.0])
    y = torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 0.1, 3.0, 3.0])

    def f(x: Any, y: Any) -> Any:
        return (
            x // y,
            x % y,
            torch.fmod(x, y),
            torch.div(x, y, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="floor"),
        )

    for left, right in ((x, y), (x.int(), torch.where(y.int() == 0, 1, y.int()))):
        for got, wanted in zip(
            gcomp.compile(export_module(f, (left, right)))(left, right), f(left, right), strict=True
        ):
            assert torch.equal(got, wanted), (got, wanted)


CONVOLUTIONS: list[Any] = [
    nn.Conv1d(4, 6, 3, 2, 1),
    nn.Conv2d(4, 8, (3, 2), (2, 1), (1, 0), (1, 2), groups=2),
    nn.Conv3d(4, 4, 2, groups=4),
    nn.Conv2d(4, 6, (3, 4), padding="same", dilation=(1, 2)),
    nn.Conv1d(4, 6, 3, padding="valid"),
    nn.ConvTranspose1d(4, 6, 3, 2, 1, 1),
    nn.ConvTranspose2d(4, 6, 3, (2, 3), 1, (1, 0), groups=2, dilation=(1, 2)),
]


@pytest.mark.parametrize("layer", CONVOLUTIONS, ids=str)
def test_convolutions(layer: Any) -> None:
    torch.manual_seed(2)
    spatial = layer.weight.ndim - 2
    x = torch.randn(2, 4, *(7, 6, 5)[:spatial])
    close(gcomp.compile(export_module(layer, (x,)))(x), layer(x))


def test_slices_are_changed_in_place_whatever_their_strides() -> None:
    def f(x: Any) -> Any:
        y = torch.einsum("bih,jih->bji", x, x).permute(2, 0, 1) + 0
        z = torch.einsum("bnih,bnjh->nbij", x.unsqueeze(0), x.unsqueeze(0))
        z[..., 1:, :-1] *= y.sum()
        y[1:3] += 1
        y[..., ::2] = 7
        y[-1, :, 0] = x[0, 0, 0]
        y[:, 5:] = 3
        return y, z

    x = torch.randn(4, 3, 5)
    close(gcomp.compile(export_module(f, (x,)))(x), f(x))


def test_a_bound_of_a_slice_may_be_a_symbolic_size() -> None:
    def f(x: Any, y: Any) -> Any:
        n = y.shape[0]
        return x[:n], x[n:], x[-n:], x[1:-1], x[: n - 1], x[:64], torch.cat([x[:-1], x[-1:]])

    shapes = ({0: torch.export.Dim("m", min=8, max=63)}, {0: torch.export.Dim("n", min=3, max=8)})
    model = gcomp.compile(export_module(f, (torch.randn(9, 2), torch.randn(4)), shapes))
    for m, n in ((8, 3), (9, 4), (63, 8)):
        x, y = torch.randn(m, 2), torch.randn(n)
        close(model(x, y), f(x, y))


def test_pools_and_running_sums_along_symbolic_sizes() -> None:
    def f(x: Any) -> Any:
        return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), x.cumsum(-1), x.cumprod(2)

    dim = torch.export.Dim("width", min=4, max=50)
    model = gcomp.compile(export_module(f, (torch.randn(1, 2, 7, 8),), ({2: torch.export.Dim.AUTO, 3: dim},)))
    for height, width in ((7, 8), (4, 4), (9, 13)):
        x = torch.randn(1, 2, height, width)
        close(model(x), f(x))


def test_greater_and_less_of_two_tensors() -> None:
    x, y = torch.tensor([[1, -5], [7, 2]]), torch.tensor([3, -9])
    got = gcomp.compile(export_module(lambda x, y: (torch.max(x, y), torch.min(x, y)), (x, y)))(x, y)
    close(got, (torch.max(x, y), torch.min(x, y)))


class Transposed(nn.Module):
    def forward(self, x: Any, weight: Any) -> Any:
        return F.conv_transpose2d(x, weight)


def test_padding_that_depends_on_a_kernel_of_unknown_size_is_refused() -> None:
    x, weight = torch.ones(1, 2, 4, 4), torch.ones(2, 3, 2, 2)
    sizes = ({}, {2: torch.export.Dim("k", min=2, max=4)})
    with pytest.raises(UnsupportedError, match="padding depends on a symbolic size"):
        gcomp.compile(torch.export.export(Transposed(), (x, weight), dynamic_shapes=sizes))


def test_a_user_is_not_warned_of_what_torch_does_with_its_own_classes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        export_module(torch.nn.Linear(2, 3), (torch.ones(1, 2),))


def test_a_function_of_tensors_is_torchs() -> None:
    """It was traced by JAX, which ended in a TypeError of its own."""

    def scaled(x: Any, y: Any) -> Any:
        return torch.sin(x) * y

    x, y = torch.randn(3), torch.tensor(2.0)
    torch.testing.assert_close(gcomp.compile(scaled, x, y)(x, y), scaled(x, y))


def test_what_torchs_own_definitions_do_not_export_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="does not capture the model"):
        gcomp.compile(lambda x: torch.combinations(x, 3), torch.arange(5.0))
