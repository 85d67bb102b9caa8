"""`gcomp.onnx_backend`, by the name that it had first and that tools may still give."""

from __future__ import annotations

from gcomp.onnx_backend import (
    GcompBackend,
    GcompRep,
    is_compatible,
    prepare,
    run_model,
    run_node,
    supports_device,
)

__all__ = ["GcompBackend", "GcompRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
