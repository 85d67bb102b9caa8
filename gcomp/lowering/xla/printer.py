"""The text of functions: names of values, lines, types and attributes; how an op is written, its writer says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gcomp.ir.native import WeightOp
from gcomp.ir.program import Port
from gcomp.ir.sdy import SHARDING, ShardingAttr
from gcomp.ir.types import Tensor, element_of, shape_of, with_element
from gcomp.lowering.xla.attributes import Texts, string_text

WeightUses = Mapping[str, Sequence[tuple[str, Tensor]]]
"""Function name -> the weights, by name and type, that it and its callees read, in order."""

Writer = Callable[["Printer", Operation, str], str]
"""Of a printer, an op and the indent: the op's text, without the names of its results."""


class Printer:
    """Writes functions line by line, each op as its writer says. Values are numbered within each function."""

    def __init__(self, uses: WeightUses, has_nan: bool, writers: Mapping[str, Writer], otherwise: Writer) -> None:
        """`otherwise` writes the ops that have no writer."""
        self._writers, self._otherwise = writers, otherwise
        self.lines: list[str] = []
        self.texts = Texts()
        self.has_nan = has_nan
        self._uses = uses
        self._names: dict[SSAValue, str] = {}
        self._weights: dict[str, str] = {}
        self._count = 0

    # ---- functions ----

    def main(self, function: FuncOp, inputs: Sequence[Port], outputs: Sequence[Port], aliases: dict[int, int]) -> None:
        """The entry function, always public and named `main`."""
        notes = [_note(port) for port in inputs]
        for argument, result in aliases.items():
            notes[argument] += f", tf.aliasing_output = {result} : i32"
        results = [
            f"{self.texts.type(type)} {{{_note(port)}}}"
            for port, type in zip(outputs, function.function_type.outputs.data, strict=True)
        ]
        self._function(function, "public @main", notes, results)

    def private(self, function: FuncOp) -> None:
        """A function that others call."""
        results = [self.texts.type(type) for type in function.function_type.outputs.data]
        self._function(function, f"private {symbol_text(function.sym_name.data)}", None, results)

    def _function(self, function: FuncOp, head: str, notes: list[str] | None, results: list[str]) -> None:
        self._names.clear()
        self._count = 0
        block = function.body.block
        arguments = [f"{self.name(arg, 'arg')}: {self.texts.type(arg.type)}" for arg in block.args]
        if notes is not None:
            arguments = [f"{a} {{{note}}}" for a, note in zip(arguments, notes, strict=True)]
        self._weights = {}
        for i, (name, type) in enumerate(self._uses[function.sym_name.data]):
            self._weights[name] = f"%w{i}"
            arguments.append(f"%w{i}: {self.texts.type(type)} {{gcomp.weight = {string_text(name)}}}")
        self.lines.append(f"  func.func {head}({', '.join(arguments)}) -> ({', '.join(results)}) {{")
        self.block(block, "    ")
        self.lines.append("  }")

    # ---- values, blocks, ops ----

    def name(self, value: SSAValue, prefix: str = "") -> str:
        """A new name for a value."""
        text = self._names[value] = f"%{prefix}{self._count}"
        self._count += 1
        return text

    def values(self, values: Sequence[SSAValue]) -> str:
        """The names of values, separated by commas."""
        names = self._names
        return ", ".join([names[value] for value in values])

    def block(self, block: Block, indent: str) -> None:
        """The ops of a block, one or more lines each."""
        lines, names, writers = self.lines, self._names, self._writers
        for op in block.ops:
            if isinstance(op, WeightOp):
                names[op.results[0]] = self._weights[op.symbol]
                continue
            text = writers.get(op.name, self._otherwise)(self, op, indent)
            results = op.results
            if len(results) == 1:
                text = f"{self.name(results[0])} = {text}"
            elif results:
                base = f"%{self._count}"
                self._count += 1
                for i, result in enumerate(results):
                    names[result] = f"{base}#{i}"
                text = f"{base}:{len(results)} = {text}"
            lines.append(indent + text)

    def region(self, region: Region, indent: str) -> None:
        """A region's one block, with its arguments."""
        block = region.block
        if block.args:
            arguments = ", ".join([f"{self.name(arg, 'arg')}: {self.texts.type(arg.type)}" for arg in block.args])
            self.lines.append(f"{indent}^bb0({arguments}):")
        self.block(block, indent + "  ")

    def line(self, text: str, indent: str) -> str:
        """Write a line that makes a value which the program does not have; its name."""
        name, self._count = f"%{self._count}", self._count + 1
        self.lines.append(f"{indent}{name} = {text}")
        return name

    def in_one_type(self, op: Operation, indent: str) -> Iterator[str]:
        """The names of an elementwise op's operands in the shape of its result: those of lower rank are repeated."""
        result = op.results[0]
        for value in op.operands:
            name, shape, target = self._names[value], shape_of(value), shape_of(result)
            if shape != target:
                places = ", ".join(str(d) for d in range(len(target) - len(shape), len(target)))
                signature = f"({self.types([value.type])}) -> {self.types([with_element(result, element_of(value))])}"
                name = self.line(f"stablehlo.broadcast_in_dim {name}, dims = [{places}] : {signature}", indent)
            yield name

    # ---- pieces of an op ----

    def head(self, op: Operation) -> str:
        """`"name"(operands) <{properties}>`."""
        return f'"{op.name}"({self.values(op.operands)}){self.properties(op.properties)}'

    def properties(self, properties: Mapping[str, Attribute]) -> str:
        """` <{name = value}>`, or nothing."""
        if not properties:
            return ""
        return f" <{{{', '.join([f'{k} = {self.texts.attribute(k, v)}' for k, v in properties.items()])}}}>"

    def with_weights(self, op: Operation, callee: str) -> tuple[str, str]:
        """The operands and their types of a call, the weights that the callee reads appended."""
        weights = self._uses[callee]
        operands = [self._names[v] for v in op.operands] + [self._weights[name] for name, _ in weights]
        return ", ".join(operands), self.types([*op.operand_types, *(type for _, type in weights)])

    def types(self, types: Sequence[Attribute]) -> str:
        """Types separated by commas."""
        return ", ".join([self.texts.type(type) for type in types])

    def signature(self, op: Operation) -> str:
        """` : (operand types) -> (result types)`."""
        return f" : ({self.types(op.operand_types)}) -> {self.results(op)}"

    def results(self, op: Operation) -> str:
        """The result types, in parentheses unless there is one."""
        types = op.result_types
        return self.texts.type(types[0]) if len(types) == 1 else f"({self.types(types)})"


def _note(port: Port) -> str:
    """What is written beside the type of an input or output."""
    name = f"gcomp.name = {string_text(port.name)}"
    return name if port.sharding is None else f"{name}, {SHARDING} = {ShardingAttr(port.sharding)}"


def symbol_text(name: str) -> str:
    """A reference to a function."""
    return str(SymbolRefAttr(name))
