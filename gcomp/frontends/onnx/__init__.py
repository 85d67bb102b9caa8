"""The ONNX frontend: `import_onnx` makes a program of an ONNX model, `import_open` one that can be trained."""

from __future__ import annotations

from gcomp.frontends.onnx.importer import import_onnx, import_open

__all__ = ["import_onnx", "import_open"]
