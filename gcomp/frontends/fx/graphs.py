"""Functional fx graphs, as AOTAutograd makes them: flat inputs, some of which are sizes, and flat outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gcomp import dims
from gcomp.dims import Dim, Ranges, Size
from gcomp.errors import InputError, UnsupportedError
from gcomp.frontends.fx import layouts
from gcomp.frontends.fx.context import operator_name
from gcomp.frontends.fx.exported import verify_import
from gcomp.frontends.fx.guards import Guards, environment_of, under
from gcomp.frontends.fx.importer import Importer, attributes_of, check_supported, placed_at
from gcomp.frontends.fx.layouts import Turned, View
from gcomp.frontends.fx.memory import Memory, Stretch
from gcomp.frontends.fx.numbers import Given, symbols_of_program
from gcomp.frontends.fx.torch_api import pytree, torch
from gcomp.frontends.fx.values import size_of, size_of_expression, type_of
from gcomp.ir.builder import Builder
from gcomp.ir.checks import is_marked
from gcomp.ir.program import Program

Sharing = Literal["nothing", "inputs", "all"]
"""Which memory outputs may share: none (gradients, which autograd may keep and add to), that of inputs, or any."""


@dataclass(frozen=True)
class ImportedGraph:
    """The program of a graph; which of its inputs are tensors, and which are sizes; what its outputs are."""

    program: Program
    tensors: tuple[int, ...]
    sizes: Mapping[str, int]
    outputs: tuple[Any, ...]
    """For each output the number of a result, a view (`View`, `Turned`), a size, or a plain value in a tuple."""
    is_random: bool = False
    """Whether a seed is the first input after the tensors."""
    numbers: tuple[Given, ...] = ()
    """The inputs after those, which stand for numbers."""
    data_dependent: Mapping[str, int] = field(default_factory=dict[str, int])
    """Symbols that only data determine -> the results that are their values."""
    is_checked: bool = False
    """Whether it has ops whose indices are to be checked."""
    stretches: tuple[Stretch, ...] = ()
    """The inputs among those that are parts of the memory of the graph's inputs, in order."""

    @property
    def takes_more(self) -> bool:
        """Whether the program has other inputs than tensors of the graph."""
        return self.is_random or bool(self.numbers) or bool(self.stretches)

    def program_inputs(self, inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """The program's inputs, of the graph's; torch's generator is asked for the seed."""
        found = [inputs[i] for i in self.tensors]
        if self.is_random:
            found.append(torch.empty((), dtype=torch.int64).random_().view(torch.uint64))
        for number in self.numbers:
            value = sizes[number.symbol]
            if number.sign * value < 0:
                raise InputError(f"The number {value} is used as a size.", why="A size is at least 0.")
            found.append(
                torch.empty((number.sign * value, 0), dtype=torch.bool) if number.sign else torch.tensor(value)
            )
        for stretch in self.stretches:
            found.insert(stretch.number, stretch.of(inputs[stretch.input], sizes))
        return found

    def graph_outputs(self, results: Sequence[Any], tensors: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """The graph's outputs, of the program's results, of its inputs, and of the values of sizes."""
        sizes = {**sizes, **{symbol: int(results[number]) for symbol, number in self.data_dependent.items()}}
        found: list[Any] = []
        shared: dict[int, Any] = {}
        for output in self.outputs:
            match output:
                case Dim():
                    found.append(dims.evaluate(output, sizes))
                case tuple():
                    found.append(output[0])
                case Turned(result=number):
                    found.append(output.of(as_tensor(results[number])))
                case View(input=int(place)):
                    found.append(output.of(tensors[place], sizes))
                case View(result=number):
                    if number not in shared:
                        shared[number] = output.laid_out(as_tensor(results[number]), sizes)
                    found.append(output.of(shared[number], sizes))
                case _:
                    found.append(as_tensor(results[output]))
        return found


def as_tensor(value: Any) -> Any:
    """A result as a tensor: where no input was one, results are arrays."""
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(value.copy())


def import_graph(
    module: Any, *, sharing: Sharing = "nothing", index_checks: bool = False, visible: int | None = None
) -> ImportedGraph:
    """The program of a functional `torch.fx.GraphModule` whose nodes have fake values.

    Outputs that lie in the same memory in eager mode do so here, as far as `sharing` says. With `index_checks`, ops are
    marked whose indices must be in range. The first `visible` outputs (or all) have the strides that they have in eager
    mode.

    Raises UnsupportedError for operators without importer, and for inputs that are neither tensors nor sizes.
    """
    check_supported(module)
    values = [node.meta.get("val") for node in module.graph.nodes]
    guards = Guards(environment_of(values), size_of_expression)
    with under(guards):
        return _Import(module, guards, sharing=sharing, index_checks=index_checks, visible=visible).run()


class _Import:
    """One graph."""

    def __init__(
        self, module: Any, guards: Guards, *, sharing: Sharing, index_checks: bool, visible: int | None
    ) -> None:
        self.module, self.graph, self.guards = module, module.graph, guards
        self.placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.values = [node.meta["val"] for node in self.placeholders]
        self.tokens = [i for i, node in enumerate(self.placeholders) if _is_token(node)]
        self.tensors = [i for i, v in enumerate(self.values) if isinstance(v, torch.Tensor) and i not in self.tokens]
        self.program = Program.empty([(self.placeholders[i].name, type_of(self.values[i])) for i in self.tensors])
        symbols = {s for node in self.graph.nodes for size in _sizes_of(node) for s in dims.symbols_of(size)}
        self.program.ranges = guards.narrow(Ranges({symbol: guards.range_of(symbol) for symbol in symbols}))
        self.builder = Builder(self.program)
        self.memory = Memory(self.builder, {self.placeholders[i]: i for i in self.tensors})
        self.importer = Importer(self.builder, checked=index_checks, memory=self.memory)
        self.visible = len(self.graph.output_node().args[0]) if visible is None else visible
        self.data_dependent: dict[str, int] = {}
        outputs = self.graph.output_node().args[0][: self.visible] if sharing != "nothing" else ()
        self.shared = layouts.shared_outputs(outputs, inner=sharing == "all")
        self.kept: list[tuple[str, Any]] = []
        self.wholes: dict[Any, int] = {}

    def run(self) -> ImportedGraph:
        given: list[Any] = [None] * len(self.values)
        for i, arg in zip(self.tensors, self.program.block.args, strict=True):
            given[i] = arg
        sizes: dict[str, int] = {}
        for i, value in enumerate(self.values):
            if given[i] is None and i not in self.tokens:
                given[i] = _size(value, self.placeholders[i].name)
                if isinstance(given[i], Dim):
                    sizes[str(given[i])] = i
        results = self.importer.run(self.graph, given, attributes_of(self.module))
        nodes = self.graph.output_node().args[0]
        outputs = [
            self._output(i, node, value, sizes) for i, (node, value) in enumerate(zip(nodes, results, strict=True))
        ]
        program = self.program
        program.finish(self.kept)
        own = {str(size) for i in self.tensors for size in map(size_of, self.values[i].shape)}
        numbers = self.importer.numbers.settle([symbol for symbol in sizes if symbol not in own])
        self.importer.streams.check()
        used = symbols_of_program(program)
        program.ranges = Ranges({symbol: found for symbol, found in program.ranges.items() if symbol in used})
        program.constraints = [*self.builder.constraints, *self.guards.constraints(used)]
        verify_import(program)
        return ImportedGraph(
            program, tuple(self.tensors), sizes, tuple(outputs),
            data_dependent=self.data_dependent, is_random=self.importer.streams.seed is not None,
            numbers=tuple(numbers), is_checked=any(map(is_marked, program.ops())),
            stretches=tuple(self.memory.stretches),
        )  # fmt: skip

    def _output(self, place: int, node: Any, value: Any, sizes: Mapping[str, int]) -> Any:
        if place < self.visible and (whole := self.shared.get(node)) is not None:
            return self._view(node, whole, sizes)
        if isinstance(value, Dim):
            self._need(dims.symbols_of(value), sizes)
            return value
        if not hasattr(value, "owner"):
            return (value,)
        order = layouts.order_of(node.meta["val"]) if place < self.visible else None
        kept = self._keep(value, order)
        return kept if order is None else Turned(kept, layouts.inverse(order))

    def _view(self, node: Any, whole: Any, sizes: Mapping[str, int]) -> View:
        part, all_of_it = node.meta["val"], whole.meta["val"]
        if whole.op == "placeholder":
            place = self.tensors.index(self.placeholders.index(whole))
            view = layouts.view_of(part, all_of_it, input=place, is_placed=layouts.is_placed(node, whole))
        else:
            order = layouts.order_of(all_of_it)
            if whole not in self.wholes:
                self.wholes[whole] = self._keep(self.importer.read(whole), order)
            axes = None if order is None else layouts.inverse(order)
            view = layouts.view_of(part, all_of_it, result=self.wholes[whole], axes=axes)
        self._need(view.symbols, sizes)
        return view

    def _need(self, symbols: Iterable[str], sizes: Mapping[str, int]) -> None:
        """Give the values of symbols that data determine, too."""
        for symbol in sorted(symbols):
            if symbol not in sizes and symbol not in self.data_dependent:
                self.data_dependent[symbol] = self._keep(self.builder.dim(dims.symbol(symbol)), None)

    def _keep(self, value: Any, order: layouts.Order | None) -> int:
        """The number of a result, which has its dimensions in the order of memory."""
        name = f"r{len(self.kept)}"
        self.kept.append((name, value if order is None else self.builder.transpose(value, order)))
        return len(self.kept) - 1


def _is_token(node: Any) -> bool:
    """Whether an input only keeps operators with effects in order; AOTAutograd passes None for it."""
    users = [user for user in node.users if user.op == "call_function"]
    return bool(users) and all(
        operator_name(user.target) == "higher_order::with_effects" and user.args[0] is node for user in users
    )


def _size(value: Any, name: str) -> Size:
    if isinstance(value, torch.SymInt | int):
        return size_of(value)
    raise UnsupportedError(
        f"the graph's input {name} is a {type(value).__name__}",
        why="its inputs are tensors and sizes",
        fix="pass numbers as tensors",
    )


def _sizes_of(node: Any) -> list[Size]:
    """The sizes that a node's value has, or is."""
    found: list[Size] = []
    with placed_at(node):
        for part in pytree.tree_leaves(node.meta.get("val")):
            sizes = part.shape if isinstance(part, torch.Tensor) else [part]
            found += [size_of(size) for size in sizes if isinstance(size, torch.SymInt)]
    return found


__all__ = ["ImportedGraph", "Sharing", "import_graph"]
