"""Define and run: build a graph of operations, then run any part of it.

    with gcomp.graph.Graph() as graph:
        x = gcomp.graph.placeholder("float32", ("batch", 3), name="x")
        w = gcomp.graph.variable(np.zeros((3, 2), np.float32), name="w")
        y = ops.softmax(x @ w)

    session = gcomp.graph.Session(graph)
    session.run(y, {x: images})

Any node can be fetched, and any node fed. What runs is the part of the graph between the two, compiled once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gcomp.dims import symbols_of
from gcomp.driver import compile_with
from gcomp.errors import InputError, UsageError, did_you_mean
from gcomp.frontends.python.graph import Graph, Update, Variable, name, placeholder, variable
from gcomp.gradients import grad
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ops.arithmetic import add
from gcomp.ops.control import cond, fori_loop, scan, switch, while_loop
from gcomp.ops.reduction import sum as sum_
from gcomp.options import OF_A_CALL, Options
from gcomp.runtime.lru import Lru
from gcomp.runtime.model import Model
from gcomp.tensors import trees
from gcomp.tensors.lifting import array_of
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import name_of
from gcomp.tensors.site import where_here
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import Argument, Trace, Value

__all__ = ["Graph", "Session", "Update", "Variable", "cond", "fori_loop", "gradients", "name", "placeholder", "scan",
           "switch", "variable", "while_loop"]  # fmt: skip

Array = np.ndarray[Any, Any]
_MODELS = 256
"""How many combinations of fetches and feeds one session keeps models for."""


@dataclass(frozen=True)
class _Entry:
    """A compiled combination of fetches and feeds, and the variables that it reads."""

    model: Model
    reads: tuple[Variable, ...]


class Session:
    """Runs parts of a graph, and keeps the values of its variables."""

    def __init__(self, graph: Graph, **options: Any) -> None:
        """`options` are those of `gcomp.compile` (`target`, `pipeline`, `verify`, `memory_budget`, ...)."""
        self.graph = graph
        self._options = Options.of_keywords(options, "Session", OF_A_CALL)
        self._state: dict[Value, Array] = {}
        self._entries: Lru[Any, _Entry] = Lru(_MODELS)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._state.clear()

    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
        """The values of fetches (a node, a node's name, or a nested structure of them), as NumPy arrays.

        `feeds` gives values to placeholders, or to any other nodes, whose own computation does not run then. A fetched
        `Update` sets its variable afterwards. Raises InputError for feeds that are missing or do not fit.
        """
        leaves, structure = trees.flatten(fetches)
        nodes = [self.graph.node(leaf) for leaf in leaves]
        given = self._values_of_feeds(feeds or {})
        key = (tuple(node.value for node in nodes), tuple(given))
        entry = self._entries.get(key, lambda: self._compile(nodes, given))
        results = entry.model.flat([*given.values(), *(self.value(v) for v in entry.reads)])
        self._update(nodes, results)
        return trees.unflatten(structure, results)

    def value(self, variable: Variable | str) -> Array:
        """A variable's value now."""
        own = self._variable(variable)
        return self._state.get(own.value, own.initial)

    def set(self, variable: Variable | str, value: Any) -> None:
        """Set a variable's value."""
        own, array = self._variable(variable), np.array(value)
        if array.shape != own.initial.shape:
            raise InputError(
                f"the variable {own.name!r} has the shape {own.initial.shape}, and the value {array.shape}",
                where=where_here(),
            )
        self._state[own.value] = array.astype(own.initial.dtype)

    def program(self, fetches: Any, feeds: Any = None) -> Program:
        """The program from placeholders (or the nodes `feeds`) to fetches, the variables' values of now as weights."""
        leaves = [self.graph.node(leaf) for leaf in trees.flatten(fetches)[0]]
        own = self.graph.placeholders
        if feeds is None:
            needed = set(self.graph.missing([n.value for n in leaves], []))
            inputs = [(n, t.value) for n, t in own.items() if t.value in needed]
        else:
            inputs = [(self._label(t), t.value) for t in map(self.graph.node, trees.flatten(feeds)[0])]
        self._check_missing(leaves, [value for _, value in inputs])
        fixed = {v.value: (n, self.value(v)) for n, v in self.graph.variables.items()}
        taken = {value for _, value in inputs}
        return self.graph.extract(
            inputs, self._outputs(leaves), {v: a for v, a in fixed.items() if v not in taken}, prints="needed"
        )

    def model(self, fetches: Any, feeds: Any = None) -> Model:
        """The compiled model of `program(fetches, feeds)`, which can be saved."""
        program = self.program(fetches, feeds)
        return compile_with(program, (), replace(self._options, dims=self._ranges(program)))

    # ---- one combination ----

    def _values_of_feeds(self, feeds: Mapping[Any, Any]) -> dict[Value, Array]:
        found: dict[Value, Array] = {}
        for key, value in feeds.items():
            node = self.graph.node(key)
            if node.value in found:
                raise UsageError(f"the node {self.graph.describe(node)} is fed twice", where=where_here())
            found[node.value] = self._feed_array(node, value)
        return found

    def _feed_array(self, node: Tensor, value: Any) -> Array:
        """A fed value as an array of the node's element type. InputError where it is not."""
        array = array_of(value)
        if array.dtype == node.dtype:
            return array
        if not hasattr(value, "dtype") and np.can_cast(array.dtype, node.dtype, "same_kind"):
            return array.astype(node.dtype)
        raise InputError(
            f"the feed of {self.graph.describe(node)} has the element type {array.dtype.name}",
            where=where_here(),
            why=f"the node has {name_of(node.element)}",
            fix=f"convert it: `.astype({name_of(node.element)!r})`",
        )

    def _compile(self, nodes: list[Tensor], given: Mapping[Value, Array]) -> _Entry:
        by_value = {v.value: v for v in self.graph.variables.values()}
        needed = self.graph.missing([n.value for n in nodes], list(given))
        reads = tuple(by_value[v] for v in needed if v in by_value)
        self._check_missing(nodes, [*given, *by_value])
        inputs = [(self._label(Tensor(self.graph, v)), v) for v in given] + [(v.name, v.value) for v in reads]
        program = self.graph.extract(_unique(inputs), self._outputs(nodes), prints="needed")
        self._check_symbols(program)
        return _Entry(compile_with(program, (), replace(self._options, dims=self._ranges(program))), reads)

    def _check_missing(self, nodes: list[Tensor], given: list[Value]) -> None:
        fixed = [v.value for v in self.graph.variables.values()]
        if missing := self.graph.missing([n.value for n in nodes], [*given, *fixed]):
            listed = ", ".join(self.graph.describe(Tensor(self.graph, v)) for v in missing)
            raise InputError(f"no value was fed for {listed}", where=where_here(), fix="add it to the feeds")

    def _check_symbols(self, program: Program) -> None:
        """Refuse a program with a symbol that none of its inputs has."""
        bound = {s for port in program.inputs() for size in port.shape for s in symbols_of(size)}
        used = {
            s
            for op in program.ops()
            for result in op.results
            if is_tensor(result.type)
            for size in shape_of(result)
            for s in symbols_of(size)
        }
        if open_ := sorted(used - bound):
            raise InputError(
                f"the size {open_[0]!r} is not known", where=where_here(), fix="feed a node whose shape has it"
            )

    def _outputs(self, nodes: list[Tensor]) -> list[tuple[str, Value]]:
        return _unique([(self._label(node), node.value) for node in nodes])

    def _label(self, node: Tensor) -> str:
        return self.graph.name_of(node.value)

    def _ranges(self, program: Program) -> dict[str, Any]:
        known = {s for port in program.inputs() for size in port.shape for s in symbols_of(size)}
        return {name: spec for name, spec in self.graph.dims.items() if name in known}

    # ---- variables ----

    def _variable(self, variable: Variable | str) -> Variable:
        if isinstance(variable, Variable):
            return cast(Variable, self.graph.node(variable))
        if variable not in self.graph.variables:
            raise UsageError(
                f"the graph has no variable {variable!r}",
                where=where_here(),
                fix=did_you_mean(variable, self.graph.variables),
            )
        return self.graph.variables[variable]

    def _update(self, nodes: list[Tensor], results: list[Array]) -> None:
        updates = [(node, result) for node, result in zip(nodes, results, strict=True) if isinstance(node, Update)]
        by_variable: dict[str, Tensor] = {}
        for node, _ in updates:
            other = by_variable.setdefault(node.variable.name, node)
            if other.value is not node.value:
                raise UsageError(
                    f"two updates of the variable {node.variable.name!r} are fetched in one run", where=where_here()
                )
        for node, result in updates:
            self._state[node.variable.value] = result


def gradients(outputs: Tensor | Sequence[Tensor], nodes: Sequence[Tensor]) -> list[Tensor]:
    """The derivatives, in nodes, of the sum of all elements of outputs: nodes again, of the types of `nodes`.

    Works on any traced tensors, inside of `gcomp.function` too. Raises UnsupportedError, with the line that made it,
    for an operation that has no derivative.
    """
    given = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    trace = given[0].builder if given else None
    if not isinstance(trace, Trace) or any(one.builder is not trace for one in [*given, *nodes]):
        raise UsageError(
            "gradients are those of traced tensors, all of one graph or function",
            where=where_here(),
            fix="build the outputs in a Graph, or compute them inside of `gcomp.function`",
        )
    with trace.open():
        return _gradients(trace, given, nodes)


@operation
def _gradients(trace: Trace, outputs: Sequence[Tensor], nodes: Sequence[Tensor]) -> list[Tensor]:
    """The program of the gradient, as ops of the trace."""
    trace.refuse_regions()
    total = functools.reduce(add, [sum_(one) for one in outputs])
    found: list[Tensor] = []
    for group in _independent(nodes):
        given = [(f"x{i}", node.value) for i, node in enumerate(group)]
        others = trace.missing([total.value], [value for _, value in given])
        inputs = [*given, *((f"other{i}", value) for i, value in enumerate(others))]
        program = trace.extract(inputs, [("total", total.value)])
        derived = grad(program, wrt=[label for label, _ in given], of="total")
        found += [Tensor(trace, value) for value in trace.inline(derived, [value for _, value in inputs])]
    return found


def _independent(nodes: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    """Groups of nodes that do not depend on one another: all inputs of a graph are one group, other nodes one each."""
    return [nodes] if all(isinstance(node.value, Argument) for node in nodes) else [[node] for node in nodes]


def _unique(named: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Names made different where two are the same."""
    taken: set[str] = set()
    found: list[tuple[str, Value]] = []
    for base, value in named:
        label, count = base, 1
        while label in taken:
            label, count = f"{base}_{count}", count + 1
        taken.add(label)
        found.append((label, value))
    return found
