"""fx graphs to graph-level programs: node by node, each by its operator's importer (`registry`)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.errors import GcompError, InternalError, UnsupportedError
from gcomp.frontends.fx import guards, registry
from gcomp.frontends.fx.context import NodeContext, operator_name
from gcomp.frontends.fx.memory import Memory
from gcomp.frontends.fx.numbers import READ_FROM_DATA, Numbers
from gcomp.frontends.fx.streams import Streams
from gcomp.frontends.fx.torch_api import TORCH_FOLDER, pytree, torch, without_modes
from gcomp.frontends.fx.values import ELEMENTS, array_of, size_of
from gcomp.ir import locations
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, shape_of
from gcomp.owners import is_foreign

_INSTALLED_TORCH = re.compile(r"[\\/](site|dist)-packages[\\/]torch[\\/]")
_PLACE = re.compile(r'File "([^"]+)", line (\d+), in ')


class Importer:
    """One graph's import: what stands for each node, which is an SSA value, a list of them, or a plain value.

    `numbers`, `streams` and `memory` are of the whole program, of which a graph within a graph is a part. With
    `checked`, ops are marked whose indices torch does not let be out of range (`gcomp.ir.checks`).
    """

    def __init__(
        self, builder: Builder, outer: Importer | None = None, *, checked: bool = False, memory: Memory | None = None
    ) -> None:
        self.builder = builder
        self.env: dict[Any, Any] = {}
        self.checked = checked if outer is None else outer.checked
        self.numbers = Numbers(builder) if outer is None else outer.numbers
        self.streams = Streams(builder) if outer is None else outer.streams
        self.memory = memory if outer is None else outer.memory

    def run(self, graph: Any, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Import a graph's nodes; what its output node returns. `attributes` are what `get_attr` nodes name."""
        given = iter(inputs)
        for node in graph.nodes:
            match node.op:
                case "placeholder":
                    self.env[node] = next(given)
                case "get_attr":
                    self.env[node] = attributes[node.target]
                case "call_function":
                    with placed_at(node):
                        self.env[node] = found = self._node(node)
                    if isinstance(found, SSAValue):
                        self.builder.program.names.setdefault(node.name, cast(SSAValue, found))
                case "output":
                    return self.read(node.args[0])
                case _:
                    raise UnsupportedError(f"gcomp does not import an fx node of kind {node.op}", where=place_of(node))
        return ()

    def inline(self, module: Any, operands: Sequence[Any], where: str) -> Any:
        """Import a nested graph, applied to the imported values of its inputs."""
        for node, given in zip(_placeholders(module.graph), operands, strict=True):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and size_of(value) != given:
                raise UnsupportedError(
                    f"the graph's input {node.name} is a number that changes from call to call",
                    where=where, fix="pass it as a tensor: torch.tensor(number)",
                )  # fmt: skip
        return Importer(self.builder, self).run(module.graph, operands, attributes_of(module))

    def call(self, node: Any, place: int) -> Any:
        """Import the operator that is an argument of a node at a place, on the arguments after it."""
        value = value_of(node)
        return self._node(_Called(node, node.args[place], node.args[place + 1 :], value if place else value[1]))

    def read(self, value: Any) -> Any:
        """What stands for an argument: nodes replaced, in lists and dicts too."""
        if isinstance(value, torch.fx.Node):
            found = self.env[value]
            if isinstance(found, torch.Tensor):
                # A tensor that the graph holds: a constant, made where it is used. Dynamo's modes make others fake.
                with without_modes():
                    return self.builder.constant(array_of(found))
            return found
        if isinstance(value, torch.SymInt):
            return size_of(value)
        return pytree.tree_map(self.read, value) if isinstance(value, list | tuple | dict) else value

    def _node(self, node: Any) -> Any:
        if node.target in _PYTHON:
            return _PYTHON[node.target](*self.read(node.args))
        value = node.meta.get("val")
        if _is_size(value) and operator_name(node.target) not in READ_FROM_DATA:
            return size_of(value)
        where = place_of(node)
        ctx = NodeContext(self, node, where)
        importer = registry.lookup(ctx.operator)
        if importer is None:
            raise unsupported_error({ctx.operator: [where]})
        with self.builder.at(_location(node)):
            results = _translate(ctx, importer, value)
        if _is_size(value):
            return size_of(value)
        if isinstance(value, tuple | list) or "val" not in node.meta:
            return [results] if isinstance(results, SSAValue) else list(results)
        return results if isinstance(results, SSAValue) or not results else results[0]


@contextmanager
def placed_at(node: Any) -> Generator[None]:
    """What is refused inside the `with` without saying where, such as a size, is refused at a node."""
    try:
        yield
    except UnsupportedError as error:
        error.where = error.where or place_of(node)
        raise


def value_of(node: Any) -> Any:
    """A node's fake value; where torch did not write it down, the parts that are used."""
    if "val" in node.meta:
        return node.meta["val"]
    parts = {user.args[1]: value_of(user) for user in node.users if user.target is operator.getitem}
    return tuple(parts.get(i) for i in range(max(parts, default=-1) + 1))


class _Called:
    """A node for an operator that another node's operator calls."""

    def __init__(self, node: Any, target: Any, args: Sequence[Any], value: Any) -> None:
        self.name, self.kwargs, self.target, self.args = node.name, node.kwargs, target, args
        self.meta = {**node.meta, "val": value}


def _translate(ctx: NodeContext, importer: registry.Importer, value: Any) -> registry.Results:
    """An importer's results for a node's fake value. What the layers below refuse is said of the node."""
    try:
        results = importer(ctx)
        _check_types(ctx, results, value)
        return _as_torch_says(ctx.b, results, value)
    except GcompError:
        raise
    except (VerifyException, dims.DimError) as error:
        why = str(error).strip().splitlines()[-1]
        raise UnsupportedError(f"gcomp does not import this {ctx.operator}", where=ctx.where, why=why) from error
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise InternalError(f"gcomp failed to import a {ctx.operator}", where=ctx.where, why=why) from error


def _check_types(ctx: NodeContext, results: registry.Results, value: Any) -> None:
    """Refuse results of other types than torch's: the overload means more than the operator that it is taken for."""
    wanted: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else [value]
    for result, one in zip([results] if isinstance(results, SSAValue) else results, wanted, strict=False):
        _check_type(ctx, result, one)


def _check_type(ctx: NodeContext, result: SSAValue | None, wanted: Any) -> None:
    if result is None or not isinstance(wanted, torch.Tensor):  # Tokens, which order effects, are nothing.
        return
    own, torchs = dtype_text(result.type), ELEMENTS.get(wanted.dtype)
    if torchs is not None and own != torchs:
        why = f"gcomp computes {own} where torch gives {torchs}"
        raise UnsupportedError(f"gcomp does not import this {ctx.operator}", where=ctx.where, why=why)


def _as_torch_says(b: Builder, results: registry.Results, value: Any) -> registry.Results:
    """Results in the shapes that torch gives them, which take into account which sizes its guards make equal."""
    if guards.current().is_trivial:
        return results
    wanted: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else [value]
    if isinstance(results, SSAValue):
        return _reshape_like(b, results, wanted[0])
    return [_reshape_like(b, result, one) for result, one in zip(results, wanted, strict=False)]


def _reshape_like(b: Builder, result: SSAValue | None, wanted: Any) -> Any:
    if result is None or not isinstance(wanted, torch.Tensor):  # Tokens, which order effects, are nothing.
        return result
    shape = tuple(size_of(size) for size in wanted.shape)
    return result if len(shape) != len(shape_of(result)) else b.reshape(result, shape)


_PYTHON: Mapping[Any, Callable[..., Any]] = {
    operator.getitem: operator.getitem,
}
"""Python functions of values that are known while importing. (Those of sizes have their result in the node.)"""


def attributes_of(module: Any) -> Mapping[str, Any]:
    """What the `get_attr` nodes of a module's graph name: tensors and graphs that the module holds."""
    return {node.target: _attribute(module, node.target) for node in module.graph.nodes if node.op == "get_attr"}


def _attribute(module: Any, target: str) -> Any:
    for name in target.split("."):
        module = getattr(module, name)
    return module


def _placeholders(graph: Any) -> list[Any]:
    return [node for node in graph.nodes if node.op == "placeholder"]


# ---- places ---------------------------------------------------------------------------------------------------------


def line_of(node: Any) -> tuple[str, int] | None:
    """The file and line of the user's code that a node comes from, where torch kept it."""
    lines = _lines(node.meta.get("stack_trace") or "")
    return lines[-1] if lines else None


def last_line(trace: str) -> str | None:
    """The last line of the user's code in the text of a traceback."""
    lines = _lines(trace)
    return f"{lines[-1][0]}:{lines[-1][1]}" if lines else None


def _lines(trace: str) -> list[tuple[str, int]]:
    return [(file, int(line)) for file, line in _PLACE.findall(trace) if not _is_torchs(file)]


def _is_torchs(file: str) -> bool:
    """Whether a line of code is none that a user could look at: torch's (a saved program's was installed elsewhere),
    gcomp's, Python's, or generated."""
    return file.startswith("<") or not is_foreign(file, TORCH_FOLDER) or bool(_INSTALLED_TORCH.search(file))


def module_of(node: Any) -> str:
    """The module that a node belongs to: `encoder.layers.0.attention`."""
    stack = node.meta.get("nn_module_stack")
    return cast(str, list(stack.values())[-1][0]) if stack else ""


def place_of(node: Any) -> str:
    """A node's place, for people."""
    parts = [f"{line[0]}:{line[1]}" if (line := line_of(node)) else "", module_of(node), f"node {node.name}"]
    return ", ".join(part for part in parts if part)


def _location(node: Any) -> LocationAttr:
    line, module = line_of(node), module_of(node)
    inside = None if line is None else _line(*line)
    operator_of = locations.named_location(operator_name(node.target), inside)
    return locations.named_location(module, operator_of) if module else operator_of


@lru_cache(1024)
def _line(file: str, line: int) -> LocationAttr:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(0))


# ---- what cannot be imported ----------------------------------------------------------------------------------------


def check_supported(module: Any) -> None:
    """One UnsupportedError for all operators that have no importer, in the module's graph and those that it holds."""
    missing: dict[str, list[str]] = {}
    for graph in (m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule)):
        for node in graph.nodes:
            if node.op != "call_function" or node.target in _PYTHON or _is_size(node.meta.get("val")):
                continue
            if registry.lookup(name := operator_name(node.target)) is None:
                missing.setdefault(name, []).append(place_of(node))
    if missing:
        raise unsupported_error(missing)


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt | int) and not isinstance(value, bool)


def unsupported_error(missing: Mapping[str, Sequence[str]]) -> UnsupportedError:
    """The error for operators that have no importer, with the places that use them."""
    lines = [f"{name}: {'; '.join(dict.fromkeys(places))}" for name, places in sorted(missing.items())]
    reasons = [f"{name}: {why}" for name in sorted(missing) if (why := registry.reason(name))]
    return UnsupportedError(
        "gcomp does not import these operators:\n    " + "\n    ".join(lines),
        why="; ".join(reasons) or "they have no importer, and torch has no decomposition of them",
        fix="compute them outside of the model; docs/generated/torch_operators.md lists what gcomp imports",
    )
