"""The StableHLO project's C++ reference interpreter, as jaxlib ships it: the second opinion on every op.

It runs in a worker because it aborts the process on what it does not model (cholesky, rng_bit_generator, batch_norm,
custom_call, ...) and dies on integer division by zero. CHLO ops are first expanded by StableHLO's own pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_integer, real_of
from gcomp.testing.oracles.process import WorkerOracle

Array = np.ndarray[Any, Any]


class Oracle(WorkerOracle):
    """`Oracle().run(text, inputs)`: the outputs as the C++ reference interpreter computes them, or an OracleFailure."""

    EVALUATOR = "stablehlo_cpp"


def make_evaluator() -> Callable[[str, Sequence[Array]], list[Array]]:
    """The evaluator, for the worker process; imports jaxlib."""
    return _Evaluator().evaluate


class _Evaluator:
    """Element types that jaxlib cannot hand to Python cross inside `@main`, a wrapper that carries them bit for bit."""

    def __init__(self) -> None:
        self._ir: Any = import_module("jaxlib.mlir.ir")
        self._stablehlo: Any = import_module("jaxlib.mlir.dialects.stablehlo")
        self._stablehlo.register_stablehlo_passes()
        passes = cast(Any, import_module("jaxlib.mlir.passmanager")).PassManager
        self._context: Any = cast(Any, import_module("jax._src.interpreters.mlir")).make_ir_context()

        with self._context:
            self._expand: Any = passes.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))")

    def evaluate(self, text: str, inputs: Sequence[Array]) -> list[Array]:
        ir = self._ir
        with self._context, ir.Location.unknown(self._context):
            module = ir.Module.parse(text)
            if "chlo." in text:
                self._expand.run(module.operation)
            main = self._main(module)
            takes = [_Port(ir.RankedTensorType(t)) for t in main.type.inputs]
            gives = [_Port(ir.RankedTensorType(t)) for t in main.type.results]
            if not all(port.readable for port in (*takes, *gives)):
                main.attributes["sym_name"] = ir.StringAttr.get(_INNER)
                main.attributes["sym_visibility"] = ir.StringAttr.get("private")
                # The generic form: the pretty printer writes a dynamic_slice of rank 0 that it cannot read.
                inner = module.operation.get_asm(print_generic_op_form=True)
                head, tail = inner.rsplit("})", 1)
                module = ir.Module.parse(f"{head}{_wrapper(takes, gives)}}}){tail}")
            pairs = zip(takes, inputs, strict=True)
            arguments = [self._attribute(*part) for port, array in pairs for part in port.split(array)]
            results = iter([np.array(r) for r in self._stablehlo.eval_module(module, arguments)])
            return [port.join(results) for port in gives]

    def _main(self, module: Any) -> Any:
        functions = [op for op in module.body.operations if op.operation.name == "func.func"]
        named = [f for f in functions if f.name.value == "main"]
        return named[0] if named else functions[0]

    def _attribute(self, element: str, array: Array) -> Any:
        buffer = np.ascontiguousarray(array)
        if buffer.dtype.kind != "b":
            buffer = buffer.view(f"u{buffer.dtype.itemsize}")
        type = self._ir.Type.parse(element)
        return self._ir.DenseElementsAttr.get(buffer, type=type, shape=list(array.shape))


_INNER = "gcomp.wrapped"


class _Port:
    """An argument or result of the wrapped function, and the readable tensors that carry it."""

    def __init__(self, type: Any) -> None:
        self.element, self.shape = str(type.element_type), tuple(type.shape)
        self.dtype = dtype_of(self.element)
        self.type = self.tensor(self.element)
        self.readable = self.element in ("f16", "f32", "f64", "i1") or (
            is_integer(self.element) and bit_width(self.element) >= 8
        )

    def tensor(self, element: str) -> str:
        return f"tensor<{''.join(f'{s}x' for s in self.shape)}{element}>"

    def carriers(self) -> list[tuple[str, str]]:
        """(op, type) of each tensor that carries a result."""
        if self.readable:
            return []
        if is_complex(self.element):
            part = self.tensor(real_of(self.element))
            return [("real", part), ("imag", part)]
        width = bit_width(self.element)
        if width < 8:
            return [("convert", self.tensor({"i": "i8", "u": "ui8", "f": "f32"}[self.element[0]]))]
        return [("bitcast_convert", self.tensor(f"ui{width}"))]

    def split(self, array: Array) -> list[tuple[str, Array]]:
        """(element type, data) of each tensor that carries an argument."""
        if is_complex(self.element):
            return [(real_of(self.element), np.array(part)) for part in (array.real, array.imag)]
        return [(self.element, array)]

    def join(self, carried: Iterator[Array]) -> Array:
        """The result from what carried it."""
        first = next(carried)
        if is_complex(self.element):
            result = np.empty(self.shape, self.dtype)
            result.real, result.imag = first, next(carried)
            return result
        if 0 in self.shape:
            # An empty buffer has lost its type.
            return np.zeros(self.shape, self.dtype)
        return first.astype(self.dtype) if bit_width(self.element) < 8 else first.view(self.dtype)


def _wrapper(takes: Sequence[_Port], gives: Sequence[_Port]) -> str:
    """A main that calls the inner function, complex arguments put together and odd results carried."""
    parameters: list[str] = []
    body: list[str] = []
    for i, port in enumerate(takes):
        if is_complex(port.element):
            part = port.tensor(real_of(port.element))
            parameters += [f"%r{i}: {part}", f"%i{i}: {part}"]
            body.append(f"%a{i} = stablehlo.complex %r{i}, %i{i} : {port.type}")
        else:
            parameters.append(f"%a{i}: {port.type}")
    arguments, types = ", ".join(f"%a{i}" for i in range(len(takes))), ", ".join(p.type for p in takes)
    body.append(
        f'%out:{len(gives)} = func.call @"{_INNER}"({arguments}) : ({types}) -> ({", ".join(p.type for p in gives)})'
    )
    names: list[str] = []
    results: list[str] = []
    for i, port in enumerate(gives):
        for op, type in port.carriers():
            body.append(f"%c{len(names)} = stablehlo.{op} %out#{i} : ({port.type}) -> {type}")
            names.append(f"%c{len(names)}")
            results.append(type)
        if port.readable:
            names.append(f"%out#{i}")
            results.append(port.type)
    body.append(f"return {', '.join(names)} : {', '.join(results)}")
    return f"func.func public @main({', '.join(parameters)}) -> ({', '.join(results)}) {{ {chr(10).join(body)} }}\n"
