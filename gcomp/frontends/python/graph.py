"""Graphs that are defined before they run: placeholders, variables, and every node by name and line.

    with Graph() as graph:
        x = placeholder("float32", ("batch", 3), name="x")
        w = variable(np.zeros((3, 2), np.float32), name="w")
        y = ops.softmax(x @ w)

Operations go into the graph of their operands; those without traced operands into the graph of the `with`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, LocationAttr, NameLoc
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import DimError, Size
from gcomp.dtypes import text_of
from gcomp.errors import UsageError, did_you_mean
from gcomp.ir import locations
from gcomp.ir.types import shape_of, tensor
from gcomp.tensors.eager import Array
from gcomp.tensors.lifting import array_of
from gcomp.tensors.operation import VOCABULARY, operation
from gcomp.tensors.promotion import DTypeLike, element_text
from gcomp.tensors.site import SITE, place_here, where_here
from gcomp.tensors.tensor import ArrayLike, Tensor
from gcomp.tensors.tracing import OPEN, Trace

DimSpec = int | str | Size | None
"""A size of a placeholder: a number, a name (or formula) of symbols, or None for a symbol of its own."""


class Variable(Tensor):
    """A node whose value a session keeps from run to run. Within a run it does not change."""

    __slots__ = ("initial", "name")

    def __init__(self, graph: Graph, value: SSAValue, name: str, initial: Array) -> None:
        super().__init__(graph, value)
        self.name, self.initial = name, initial

    def assign(self, value: ArrayLike) -> Update:
        """The node of a new value: a run that fetches it ends with the variable at that value."""
        return assign(self, value)


class Update(Tensor):
    """A node that, when it is fetched, becomes a variable's value at the end of the run."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable, value: SSAValue) -> None:
        super().__init__(variable.builder, value)
        self.variable = variable


@operation
def assign(variable: Variable, value: ArrayLike) -> Update:
    """The node of a variable's next value, of its type."""
    from gcomp.tensors.lifting import cast_value, lift_operands

    b, (found,) = lift_operands(value, b=variable.builder)
    if shape_of(found) != variable.shape:
        raise UsageError(
            f"the variable {variable.name!r} has the shape {variable.shape}, and its next value {shape_of(found)}"
        )
    return Update(variable, cast_value(b, found, variable.element))


class Graph(Trace):
    """A graph under construction. It only grows: what a session compiled of it stays right."""

    kind = "graph"

    def __init__(self, dims: Mapping[str, Any] | None = None) -> None:
        """`dims` gives ranges to symbolic sizes, as in `gcomp.compile`."""
        super().__init__()
        self.dims = dict(dims or {})
        self.placeholders: dict[str, Tensor] = {}
        self.variables: dict[str, Variable] = {}
        self.nodes: dict[str, Tensor] = {}
        """Every node by its name: the user's, or the operation's with a number."""
        self._counts: dict[str, int] = {}
        self._places: dict[str, LocationAttr] = {}
        self._entered = ExitStack()

    def __enter__(self) -> Graph:
        self._entered.enter_context(self.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.close()

    # ---- nodes ----

    def placeholder(self, dtype: DTypeLike, shape: Sequence[DimSpec] = (), name: str | None = None) -> Tensor:
        """A node whose value each run is given."""
        sizes = [self._size(s) for s in shape]
        node = Tensor(self, self.add_input(tensor(sizes, element_text(dtype))))
        own = self._unique_name(node, name, "placeholder")
        self.placeholders[own] = node
        return node

    def variable(self, initial: ArrayLike, name: str | None = None, dtype: DTypeLike = None) -> Variable:
        """A node whose value a session keeps, from this one on."""
        array = initial.numpy() if isinstance(initial, Tensor) and not initial.is_traced else array_of(initial)
        array = np.array(array if dtype is None else array.astype(element_dtype(dtype)))
        value = self.add_input(tensor(array.shape, text_of(array.dtype)))
        node = Variable(self, value, "", array)
        node.name = self._unique_name(node, name, "variable")
        self.variables[node.name] = node
        return node

    def _size(self, spec: DimSpec) -> Size:
        if spec is None:
            self._counts["dim"] = self._counts.get("dim", 0) + 1
            return dims.symbol(f"dim_{self._counts['dim']}")
        try:
            size = dims.parse(spec) if isinstance(spec, str) else spec
        except DimError as error:
            raise UsageError(f"{spec!r} is no size", where=where_here(), why=str(error)) from None
        if isinstance(size, int) and size < 0:
            raise UsageError(f"a size is {size}", where=where_here(), fix="name it for a symbolic size, or pass None")
        return size

    def name(self, node: Tensor, name: str) -> Tensor:
        """Give a node a name of yours; it keeps the one it had."""
        self._unique_name(node, name, "")
        return node

    def _unique_name(self, node: Tensor, name: str | None, default: str) -> str:
        if name is None:
            name = self._next(default)
        elif name in self.nodes:
            raise UsageError(
                f"the graph has a node {name!r} already",
                where=where_here(),
                why=f"it was made at {locations.describe(self._places[name])}",
            )
        self.nodes[name] = node
        self._places[name] = SITE.location or place_here(name)
        return name

    def _next(self, base: str) -> str:
        while True:
            count = self._counts.get(base, 0)
            self._counts[base] = count + 1
            name = f"{base}_{count}" if count else base
            if name not in self.nodes:
                return name

    def made(self, name: str, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, Tensor) and value.builder is self and len(self._blocks) == 1:
                self._unique_name(value, None, name)

    def apply(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The operation of a name: `graph.apply("softmax", x, axis=0)`."""
        if name not in VOCABULARY:
            raise UsageError(f"there is no operation {name!r}", where=where_here(), fix=did_you_mean(name, VOCABULARY))
        with self.open():
            return VOCABULARY[name](*args, **kwargs)

    # ---- what a user may call a node ----

    def node(self, key: object) -> Tensor:
        """A node: itself, by its name, or as the last one that a line made (`"model.py:12"`)."""
        if isinstance(key, Tensor):
            if key.builder is not self:
                raise UsageError("a tensor is no node of this graph", where=where_here(), why=repr(key))
            return key
        if isinstance(key, str):
            found = self.nodes[key] if key in self.nodes else self._on_line(key)
            if found is not None:
                return found
            raise UsageError(f"the graph has no node {key!r}", where=where_here(), fix=did_you_mean(key, self.nodes))
        raise UsageError(f"a {type(key).__name__} is no node", where=where_here(), fix="pass a tensor or a node's name")

    def _on_line(self, key: str) -> Tensor | None:
        file, colon, line = key.rpartition(":")
        if not colon or not line.isdigit():
            return None
        for name in reversed(self.nodes):
            place = self._places[name]
            inner = place.location if isinstance(place, NameLoc) else place
            if isinstance(inner, FileLineColLoc) and inner.line.data == int(line):
                path = inner.filename.data
                if path == file or Path(path).name == file:
                    return self.nodes[name]
        return None

    def name_of(self, value: SSAValue) -> str:
        """A node's first name."""
        return next((n for n, t in self.nodes.items() if t.value is value), "node")

    def describe(self, node: Tensor) -> str:
        """A node for an error message."""
        name = self.name_of(node.value)
        return f"{name} ({locations.describe(self._places[name])})" if name in self._places else name


def element_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The NumPy dtype of what names an element type."""
    from gcomp.dtypes import dtype_of

    return dtype_of(element_text(dtype))


def current() -> Graph:
    """The graph of the innermost `with`. UsageError outside of any."""
    graph = OPEN.traces[-1] if OPEN.traces else None
    if not isinstance(graph, Graph):
        raise UsageError("no graph is open", where=where_here(), fix="write `with gcomp.graph.Graph() as graph:`")
    return graph


def placeholder(dtype: DTypeLike, shape: Sequence[DimSpec] = (), name: str | None = None) -> Tensor:
    """A node of the open graph whose value each run is given."""
    return current().placeholder(dtype, shape, name)


def variable(initial: ArrayLike, name: str | None = None, dtype: DTypeLike = None) -> Variable:
    """A node of the open graph whose value a session keeps, from this one on."""
    return current().variable(initial, name, dtype)


def name(node: Tensor, name: str) -> Tensor:
    """A node with a name of yours, by which it can be fetched and fed."""
    return current().name(node, name)
