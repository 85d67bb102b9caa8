"""Functional fx graphs, as AOTAutograd makes them: flat inputs, some of which are sizes, and flat outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

from gcomp import dims
from gcomp.dims import Dim, Range, Ranges, Size
from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.context import operator_name
from gcomp.frontends.fx.importer import Importer, attributes_of, check_supported
from gcomp.frontends.fx.torch_api import torch
from gcomp.frontends.fx.values import range_of, size_of, type_of
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program


@dataclass(frozen=True)
class View:
    """An output in memory that it shares with others: part of a result, laid out as in eager mode."""

    result: int
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size
    dtype: Any
    whole: tuple[tuple[Size, ...], tuple[Size, ...]]
    """Shape and strides of all of the result."""

    def of(self, result: Any, sizes: Mapping[str, int]) -> Any:
        """The part of a tensor."""
        shape, strides = _values(self.shape, sizes), _values(self.strides, sizes)
        return result.view(self.dtype).as_strided(shape, strides, dims.evaluate(self.offset, sizes))

    def laid_out(self, result: Any, sizes: Mapping[str, int]) -> Any:
        """All of the result, with its strides in eager mode."""
        shape, strides = _values(self.whole[0], sizes), _values(self.whole[1], sizes)
        if result.stride() == strides:
            return result
        return torch.empty_strided(shape, strides, dtype=result.dtype).copy_(result)


def _values(numbers: Sequence[Size], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([dims.evaluate(number, sizes) for number in numbers])


@dataclass(frozen=True)
class ImportedGraph:
    """The program of a graph; which of its inputs are tensors, and which are sizes; what its outputs are."""

    program: Program
    tensors: tuple[int, ...]
    sizes: Mapping[str, int]
    outputs: tuple[Any, ...]
    """For each output the number of a result, a view of one, a size, or a plain value in a tuple."""

    def arranged(self, results: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """The graph's outputs, of the program's results and of the values of sizes."""
        found: list[Any] = []
        shared: dict[int, Any] = {}
        for output in self.outputs:
            match output:
                case Dim():
                    found.append(dims.evaluate(output, sizes))
                case tuple():
                    found.append(output[0])
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


def import_graph(module: Any, *, sharing: bool = False) -> ImportedGraph:
    """The program of a functional `torch.fx.GraphModule` whose nodes have fake values.

    With `sharing`, outputs that lie in the same memory in eager mode do so here.

    Raises UnsupportedError for operators without importer, and for inputs that are neither tensors nor sizes.
    """
    check_supported(module)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = [node.meta["val"] for node in placeholders]
    tokens = [i for i, node in enumerate(placeholders) if _is_token(node)]
    tensors = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor) and i not in tokens]
    program = Program.empty([(placeholders[i].name, type_of(values[i])) for i in tensors])
    program.ranges = Ranges(_ranges(values))
    builder = Builder(program)
    given: list[Any] = [None] * len(values)
    for i, arg in zip(tensors, program.block.args, strict=True):
        given[i] = arg
    sizes: dict[str, int] = {}
    for i, value in enumerate(values):
        if given[i] is None and i not in tokens:
            given[i] = _size(value, placeholders[i].name)
            if isinstance(given[i], Dim):
                sizes[str(given[i])] = i
    importer = Importer(builder)
    results = importer.run(module.graph, given, attributes_of(module))
    outputs: list[Any] = []
    kept: list[tuple[str, Any]] = []
    shared, wholes = _shared(module.graph) if sharing else dict[Any, Any](), dict[Any, int]()
    for node, value in zip(module.graph.output_node().args[0], results, strict=True):
        if (whole := shared.get(node)) is not None:
            if whole not in wholes:
                wholes[whole] = len(kept)
                kept.append((f"r{len(kept)}", importer.read(whole)))
            outputs.append(_view(wholes[whole], node.meta["val"], whole.meta["val"]))
        elif hasattr(value, "owner"):
            outputs.append(len(kept))
            kept.append((f"r{len(kept)}", value))
        else:
            outputs.append(value if isinstance(value, Dim) else (value,))
    program.finish(kept)
    program.constraints = builder.constraints
    program.verify("as imported")
    return ImportedGraph(program, tuple(tensors), sizes, tuple(outputs))


def _shared(graph: Any) -> dict[Any, Any]:
    """The outputs that share memory with other outputs, and the nodes that make all of that memory.

    AOTAutograd rebuilds views of inputs, and where gradients flow those of inner values; the others it leaves to us.
    """
    groups: dict[Any, list[Any]] = {}
    for node in dict.fromkeys(graph.output_node().args[0]):
        if isinstance(node, torch.fx.Node) and _is_plain(node.meta.get("val")):
            groups.setdefault(_maker(node), []).append(node)
    return {
        node: maker
        for maker, nodes in groups.items()
        if len(nodes) > 1 and maker.op == "call_function" and _is_plain(maker.meta.get("val"))
        for node in nodes
    }


def _maker(node: Any) -> Any:
    """The node whose result a view is of, or the node itself: operators' schemas say which are views."""
    while True:
        operator = node.args[0] if node.target is getitem else node
        if operator.op != "call_function" or not isinstance(operator.target, torch._ops.OpOverload):
            return node
        returns = operator.target._schema.returns
        if not returns or returns[0].alias_info is None:
            return node
        node = operator.args[0]


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor that is described by strides and nothing else."""
    return (
        isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_conj() and not value.is_neg()
    )


def _view(result: int, part: Any, whole: Any) -> View:
    def sizes(values: Sequence[Any]) -> tuple[Size, ...]:
        return tuple([size_of(value) for value in values])

    layout = sizes(whole.shape), sizes(whole.stride())
    return View(result, sizes(part.shape), sizes(part.stride()), size_of(part.storage_offset()), part.dtype, layout)


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


def _ranges(values: Sequence[Any]) -> dict[str, Range]:
    """What torch knows of the symbols of fake inputs."""
    known: dict[str, Range] = {}
    for value in values:
        for size in value.shape if isinstance(value, torch.Tensor) else [value]:
            if isinstance(size, torch.SymInt) and not isinstance(found := size_of(size), int):
                environment = size.node.shape_env
                for symbol in dims.symbols_of(found):
                    bounds = {s.name: b for s, b in environment.var_to_range.items()}.get(symbol)
                    known[symbol] = Range(0) if bounds is None else range_of(bounds)
    return known


__all__ = ["ImportedGraph", "import_graph"]
