"""Sample programs of each op, and what jaxlib's parser and verifier say to the texts that gcomp writes for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp

from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.text import parse_module, print_module
from gcomp.lowering.xla.export import export
from gcomp.runtime.template import Template
from tests.support.samples import samples

_NATIVE = """
func.func @main(%x: tensor<?xf32, ["n"]>, %c: tensor<i32>) -> (tensor<4xf32>, tensor<i64>) {
  %w = "gcomp.weight"() <{weight = @"layer.0/bias"}> : () -> tensor<4xf32>
  %d = "gcomp.dim"() <{size = "2*n + 1"}> : () -> tensor<i64>
  %p = "gcomp.print"(%c, %x) <{format = "x {shape} {{}}"}> : (tensor<i32>, tensor<?xf32, ["n"]>) -> tensor<i32>
  return %w, %d : tensor<4xf32>, tensor<i64>
}
"""
_SIZES = (3, 0)
"""What symbolic and unknown sizes are tried to be; 0 makes any two products of them equal."""


@cache
def _samples() -> dict[str, str]:
    return {**samples(), "gcomp": _NATIVE}


@cache
def samples_of(op: str) -> tuple[str, ...]:
    """The sample programs of an op; of one that has none to itself, a program that holds it."""
    own = tuple(text for name, text in _samples().items() if name.partition(" ")[0] == op)
    return own or tuple(text for text in _samples().values() if f'"{op}"' in text)[:1]


@cache
def ir_problem(text: str) -> str | None:
    """Why jaxlib does not take the IR text of a program, in pretty or generic form."""
    module = parse_module(text)
    return next((why for generic in (False, True) if (why := _refusal(print_module(module, generic=generic)))), None)


@cache
def export_problem(text: str) -> str | None:
    """Why jaxlib does not take the export text of a program, for any sizes that its dimensions may have."""
    template = Template(_export(text))
    refusals = [_refusal(template.fill(dict.fromkeys(template.symbols, size))) for size in _SIZES]
    return refusals[0] if all(refusals) else None


def _export(text: str) -> str:
    """The export text of all functions, below an empty main: ops that XLA does not get have one too."""
    module = parse_module(text)
    program = Program(module)
    main = program.main
    main.properties.update(sym_name=StringAttr("sample"), sym_visibility=StringAttr("private"))
    empty = FuncOp("main", ((), ()))
    empty.body.block.add_op(ReturnOp())
    module.body.block.add_op(empty)
    uses = {f.sym_name.data: list(_weights(f)) for f in program.functions()}
    return export(program, uses, ())


def _weights(function: FuncOp) -> Iterator[tuple[str, object]]:
    for op in function.walk():
        if isinstance(op, WeightOp):
            yield op.symbol, op.result.type


@cache
def _context() -> jaxlib.Context:
    return mlir.make_ir_context()


def _refusal(text: str) -> str | None:
    try:
        jaxlib.Module.parse(text, _context()).operation.verify()
    except (jaxlib.MLIRError, ValueError) as error:
        return str(error).splitlines()[-1]
    return None
