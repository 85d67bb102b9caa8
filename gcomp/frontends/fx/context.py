"""What an importer sees of the node that it imports: arguments by the names of the schema, the builder, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, cast

from xdsl.ir import Operation, SSAValue

from gcomp.dims import Dim, Ranges, Size
from gcomp.errors import UnsupportedError
from gcomp.frontends.fx.memory import Memory
from gcomp.frontends.fx.numbers import Numbers
from gcomp.frontends.fx.streams import Streams
from gcomp.frontends.fx.torch_api import prims_common, torch
from gcomp.frontends.fx.values import element_text, size_of, type_of
from gcomp.ir.builder import Builder
from gcomp.ir.checks import mark
from gcomp.ir.host import HostOp
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of


class Importer(Protocol):
    """What imports a graph, as those see it that import its nodes."""

    builder: Builder
    checked: bool
    """Whether ops are marked whose indices torch does not let be out of range."""
    numbers: Numbers
    streams: Streams
    memory: Memory | None
    """What it reads of the memory of inputs; None where the program is given no more than their elements."""

    def read(self, value: Any) -> Any:
        """The value of an argument: nodes, also those in lists and dicts, are replaced by their imported values."""
        ...

    def call(self, node: Any, place: int) -> Any:
        """Import the operator that is an argument of a node at a place, on the arguments after it."""
        ...

    def inline(self, module: Any, operands: Sequence[Any], where: str) -> Any:
        """Import a nested graph, applied to the imported values of its inputs."""
        ...


class NodeContext:
    """One node being imported. `ctx["self"]` is an argument as a tensor; `ctx.arg("dim")` any argument.

    Arguments have the names of the operator's schema, and its defaults. Tensors are SSA values, sizes `Size`s.
    """

    def __init__(self, importer: Importer, node: Any, where: str) -> None:
        self.importer, self.node, self.where = importer, node, where
        self.b: Builder = importer.builder
        self._sources: dict[str, Any] = _by_name(node)

    @property
    def ranges(self) -> Ranges:
        """The ranges of the symbols."""
        return self.b.program.ranges

    @property
    def operator(self) -> str:
        """The operator's name: `aten::add.Tensor`."""
        return operator_name(self.node.target)

    # ---- arguments ----

    def arg(self, name: str, default: Any = None) -> Any:
        """An argument: tensors as SSA values, symbolic sizes as `Size`s, in lists too; `default` where it is None."""
        found = self.importer.read(self._sources.get(name))
        return default if found is None else found

    def __getitem__(self, name: str) -> SSAValue:
        value: Any = self.arg(name)
        if not isinstance(value, SSAValue):
            self.unsupported(f"its argument {name} is {value!r}, not a tensor")
        return cast(SSAValue, value)

    def integer(self, name: str, default: int) -> int:
        """An argument that must be a number when the graph is imported."""
        return self._fixed(name, self.arg(name, default))

    def integers(self, name: str) -> list[int]:
        """An argument that must be numbers, or one number, when the graph is imported."""
        found = self.arg(name)
        values: Sequence[Any] = cast("Sequence[Any]", found) if isinstance(found, list | tuple) else [found]
        return [self._fixed(name, value) for value in values]

    def _fixed(self, name: str, value: Any) -> int:
        if not isinstance(value, int):
            self.unsupported(f"its {name} is symbolic: {value}", "make it a constant, or call with dynamic=False")
        return value

    def has(self, name: str) -> bool:
        """Whether an optional argument is given."""
        return self._sources.get(name) is not None

    def fake(self, name: str) -> Any:
        """torch's own idea of an argument: a fake tensor, a symbolic number, or a plain value."""
        source: Any = self._sources.get(name)
        return source.meta["val"] if self._is_node(source) else source

    def _is_node(self, source: Any) -> bool:
        return isinstance(source, torch.fx.Node)

    def shape(self, name: str = "self") -> tuple[Size, ...]:
        """The shape of a tensor argument."""
        return shape_of(self[name])

    def rank(self, name: str = "self") -> int:
        """The rank of a tensor argument."""
        return rank_of(self[name])

    def dtype(self, name: str = "self") -> str:
        """The element type of a tensor argument."""
        return dtype_text(self[name].type)

    def axis(self, name: str = "dim", rank: int | None = None) -> int:
        """An axis argument, counted from the front (of `self`, unless a rank is given); a scalar has the axis 0."""
        rank = max(1, self.rank()) if rank is None else rank
        return int(self.arg(name)) % rank

    def axes(self, name: str = "dim") -> list[int]:
        """A list of axes, counted from the front; all of them where none are given."""
        rank, given = self.rank(), self.arg(name)
        if given is None or given == []:
            return list(range(rank))
        axes: list[int] = [given] if isinstance(given, int) else list(given)
        return sorted({a % rank for a in axes}) if rank else []

    def scalar(self, value: Any, element: str) -> SSAValue:
        """A number as a tensor of rank 0: a Python number, or a symbolic size; a tensor is converted."""
        if isinstance(value, SSAValue):
            return self.b.convert(cast(SSAValue, value), element)
        if isinstance(value, Dim):
            return self.b.convert(self.b.dim(value), element)
        return self.b.full((), value, element)

    def host(
        self, function: str, operands: Sequence[SSAValue], types: Sequence[Tensor], **config: Any
    ) -> Sequence[SSAValue]:
        """The results of a host step, whose sizes bind the symbols in `types`. UnsupportedError in loops, branches."""
        if self.b.point.block is not self.b.program.block:
            self.unsupported("the host computes it, inside of a loop or a branch", "move it out")
        return self.b.emit_all(HostOp, *operands, types=types, function=function, config=config)

    def inline(self, module: Any, operands: Sequence[Any]) -> Any:
        """What a graph that the node holds returns for operands: SSA values, sizes, plain values."""
        return self.importer.inline(module, operands, self.where)

    # ---- results ----

    def raising(self, result: SSAValue) -> SSAValue:
        """The result of an op whose indices torch does not let be out of range: that is checked, if so asked."""
        if self.importer.checked:
            mark(cast(Operation, result.owner))
        return result

    def val(self, index: int = 0) -> Any:
        """torch's own idea of a result."""
        value: Any = self.node.meta["val"]
        return cast("Sequence[Any]", value)[index] if isinstance(value, tuple | list) else value

    def out_type(self, index: int = 0) -> Tensor:
        """The type of a result."""
        return type_of(self.val(index))

    def out_shape(self, index: int = 0) -> tuple[Size, ...]:
        """The shape of a result."""
        return shape_of(self.out_type(index))

    def out_dtype(self, index: int = 0) -> str:
        """The element type of a result."""
        return element_text(self.val(index).dtype)

    def sizes(self, name: str) -> list[Size]:
        """A list of sizes."""
        return [size_of(s) for s in self.arg(name, [])]

    # ---- promotion ----

    def promote(self, *names: str, kind: str = "DEFAULT") -> list[SSAValue]:
        """Arguments (tensors and numbers) in the element type that torch computes in, in their common shape.

        `kind` is one of torch's `ELEMENTWISE_TYPE_PROMOTION_KIND`.
        """
        kinds: Any = prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND
        fakes = [self.fake(name) for name in names]
        # The other type is the wider one that torch computes narrow ones in: each op here rounds once anyway.
        _, dtype = prims_common.elementwise_dtypes(*fakes, type_promotion_kind=getattr(kinds, kind))
        result = element_text(dtype)
        tensors = [self.scalar(self.arg(name), result) for name in names]
        shape = self.b.broadcast_shape(*(shape_of(t) for t in tensors))
        return [self.b.broadcast_to(t, shape) for t in tensors]

    # ---- errors ----

    def unsupported(self, why: str, fix: str | None = None) -> NoReturn:
        """Refuse the node."""
        raise UnsupportedError(f"gcomp does not import this {self.operator}", where=self.where, why=why, fix=fix)


def operator_name(target: Any) -> str:
    """An operator's name: `aten::add.Tensor`, `higher_order::cond`; a Python function's own."""
    name = getattr(target, "name", None)
    if not callable(name):
        return f"python::{getattr(target, '__name__', target)}"
    return f"higher_order::{name()}" if isinstance(target, torch._ops.HigherOrderOperator) else cast(str, name())


def _by_name(node: Any) -> dict[str, Any]:
    """The arguments by the names of the operator's schema, with its defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {**{str(i): value for i, value in enumerate(node.args)}, **node.kwargs}
    found: dict[str, Any] = {}
    args: Sequence[Any] = node.args
    for i, argument in enumerate(schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            found[argument.name] = args[i]
        else:
            found[argument.name] = node.kwargs.get(argument.name, argument.default_value)
    return found
