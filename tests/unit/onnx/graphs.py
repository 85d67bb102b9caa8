"""Small ONNX models from ONNX's own text form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser

from gcomp.frontends.onnx import import_onnx
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret


def model(graph: str, opset: int = 20, functions: str = "", imports: str = "") -> onnx.ModelProto:
    """A model of the graph `(inputs) => (outputs) <initializers> { nodes }`."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}{imports}]>'
    return onnx.parser.parse_model(f"{head} g {graph} {functions}")


def imported(graph: str, opset: int = 20, **options: Any) -> Program:
    """The program of a graph, which `import_onnx` has verified."""
    return import_onnx(model(graph, opset), **options)


def results(program: Program, *inputs: Any) -> list[Any]:
    """The reference interpreter's outputs."""
    return interpret(program, [np.asarray(x) for x in inputs])


def op_names(program: Program) -> list[str]:
    """The names of the ops of `main`, in order."""
    return [op.name for op in program.block.ops]


def shapes(program: Program) -> list[list[str]]:
    """The outputs' shapes, as texts."""
    return [[str(s) for s in port.shape] for port in program.outputs()]


def numbers(*shape: int) -> Any:
    """f32 numbers of a shape, all different and of both signs."""
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.float32) * 7 % 23 - 11).reshape(shape)


__all__: Sequence[str] = ("imported", "model", "numbers", "op_names", "results", "shapes")
