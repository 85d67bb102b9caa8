"""The ONNX frontend: `import_onnx` makes a program of an ONNX model."""

from __future__ import annotations

from gcomp.frontends.onnx.importer import import_onnx

__all__ = ["import_onnx"]
