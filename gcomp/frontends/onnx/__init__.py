"""The ONNX frontend: `import_onnx` makes a program of an ONNX model, `import_open` one that can be trained."""

from __future__ import annotations

from importlib import import_module

from gcomp.deferring import defer_imports

with defer_imports(
    # Sizes that are formulas: gcomp computes with them by itself, and sympy takes as long to load as all the rest.
    "sympy", "onnx_ir._symbolic_shapes",
    # Models as JSON and as text, and messages without protobuf's extension module.
    "google.protobuf.json_format", "google.protobuf.text_format", "google.protobuf.internal.python_message",
    # What is done with models besides reading them.
    "onnx.compose", "onnx.gen_proto", "onnx.parser", "onnx.printer", "onnx.utils", "onnx.version_converter",
    "onnx_ir.passes", "onnx_ir.schemas", "onnx_ir.tape",
):  # fmt: skip
    import_module("onnx_ir")

from gcomp.frontends.onnx.engine.importer import import_onnx, import_open

__all__ = ["import_onnx", "import_open"]
