# pyright: basic
"""The bytes of a small model that torch saved, for `gcomp fuzz --what files` to break."""

from __future__ import annotations

import io
import warnings
from functools import cache


@cache
def torch_file() -> bytes:
    """A `.pt2` file: a linear layer with a norm, for any number of rows, with a constant."""
    import torch

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)
            self.register_buffer("shift", torch.arange(4.0))

        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            y = self.norm(self.linear(x)) * scale + self.shift
            return {"y": y.reshape(-1, 2), "places": y.argmax(-1), "rows": y * x.shape[0]}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        rows = torch.export.Dim("rows", min=2, max=64)
        given = torch.ones(5, 3), torch.ones(())
        exported = torch.export.export(Small().eval(), given, dynamic_shapes=({0: rows}, None))
        target = io.BytesIO()
        torch.export.save(exported, target)
    return target.getvalue()
