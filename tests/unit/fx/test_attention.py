"""Attention of torch: values and gradients are eager's, with masks of all kinds and shared heads."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch, an optional extra, is not installed: pip install 'gcomp[torch]'")

import gcomp  # noqa: E402

attention: Any = torch.nn.functional.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def q(heads: int = 4, length: int = 5) -> Any:
    return torch.randn(2, heads, length, 8)


def mask() -> Any:
    """One query sees no key."""
    seen = torch.rand(2, 1, 5, 5) > 0.3
    seen[0, 0, 2] = False
    return seen


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (lambda: (q(), q(4, 6), q(4, 6)), {}),
    "causal": (lambda: (q(), q(), q()), {"is_causal": True}),
    "mask": (lambda: (q(), q(), q()), {"attn_mask": mask()}),
    "bias": (lambda: (q(), q(), q()), {"attn_mask": torch.linspace(-1, 1, 25).reshape(5, 5), "scale": 0.2}),
    "shared heads": (lambda: (q(), q(2), q(2)), {"is_causal": True, "enable_gqa": True}),
    "bf16": (lambda: (q().bfloat16(), q().bfloat16(), q().bfloat16()), {"is_causal": True}),
}


def results(function: Any, inputs: Any) -> list[Any]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = function(*leaves)
    (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
    return [out, *(x.grad for x in leaves)]


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_eagers(case: str) -> None:
    make, options = CASES[case]
    inputs = make()

    def function(*args: Any) -> Any:
        return attention(*args, **options)

    compiled = torch.compile(function, backend="gcomp", fullgraph=True, dynamic=False)
    bound = 2e-2 if case == "bf16" else 1e-5
    for found, wanted in zip(results(compiled, inputs), results(function, inputs), strict=True):
        torch.testing.assert_close(found, wanted, rtol=bound, atol=bound * float(wanted.detach().abs().max()))


def test_attention_to_nothing_is_zero() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any, seen: Any) -> Any:
            return attention(x, x, x, attn_mask=seen)

    x, seen = q(), mask()
    found = gcomp.compile(Net(), x, seen)(x, seen)
    assert (found[0, :, 2] == 0).all()
    torch.testing.assert_close(found, Net()(x, seen), rtol=1e-5, atol=1e-5)
