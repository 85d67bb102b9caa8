"""The ONNX frontend: `import_onnx` makes a program of an ONNX model, `import_open` one that can be trained."""

from __future__ import annotations

from importlib import import_module

from gcomp.deferring import defer_imports

with defer_imports("sympy", "onnx_ir._symbolic_shapes"):
    # It computes with sizes that are formulas, which gcomp does by itself; sympy takes as long to load as all the rest.
    import_module("onnx_ir")

from gcomp.frontends.onnx.engine.importer import import_onnx, import_open

__all__ = ["import_onnx", "import_open"]
