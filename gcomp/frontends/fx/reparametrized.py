"""Weights made of others: the gradient of weight normalization, and values rounded as quantization would round them."""

from __future__ import annotations

from typing import Any

from gcomp.frontends.fx.definitions import defines


@defines("_weight_norm_interface_backward")
def _(grad_w: Any, saved_v: Any, saved_g: Any, saved_norms: Any, dim: int) -> Any:
    """Of `g * v / norm(v)`, whose norms are along all dimensions but one."""
    others = [d for d in range(saved_v.dim()) if d != dim % saved_v.dim()]
    norms = saved_norms.to(saved_v.dtype)
    along = (grad_w * saved_v).sum(others, keepdim=True)
    return saved_g / norms * (grad_w - saved_v * (along / (norms * norms))), along / norms


@defines("fake_quantize_per_channel_affine_cachemask")
def _(self: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:
    shape = [1] * self.dim()
    shape[axis] = self.shape[axis]
    scale, zero = scale.reshape(shape), zero_point.reshape(shape)
    found = (self * (1 / scale)).round() + zero
    mask = (found >= quant_min) & (found <= quant_max)
    return ((found.clamp(quant_min, quant_max) - zero) * scale).to(self.dtype), mask
