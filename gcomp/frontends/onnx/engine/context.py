"""What an importer sees of the node that it imports: operands, attributes, known values, the builder, and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, cast

import onnx_ir
from xdsl.ir import SSAValue

from gcomp.dims import Constraint, Dim, Ranges, Size, exact_div, floordiv, narrowed
from gcomp.dims.binding import ConstraintKind
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx.engine.evaluation import evaluate
from gcomp.frontends.onnx.engine.parameters import Opening
from gcomp.frontends.onnx.engine.scopes import DataDependentSymbols, Scope
from gcomp.frontends.onnx.engine.streams import Streams
from gcomp.frontends.onnx.model.containers import AnyValue, NamesValue, SequenceValue, kind_of
from gcomp.frontends.onnx.model.reading import tensor_array
from gcomp.frontends.onnx.model.values import ELEMENTS, Array, Value, size_list
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, rank_of, shape_of


def label(node: onnx_ir.Node) -> str:
    """A node's name, or one made of its operator and first output."""
    outputs = [o.name for o in node.outputs if o.name]
    return node.name or f"{node.op_type}:{outputs[0] if outputs else ''}"


class Importer(Protocol):
    """What importers of nodes see of the import: the program being built, and facts about its symbols."""

    builder: Builder
    ranges: Ranges
    data_dependent: DataDependentSymbols
    opening: Opening
    streams: Streams
    short: dict[Dim, Dim]

    def run_body(self, ctx: NodeContext, graph: onnx_ir.Graph, arguments: Sequence[AnyValue]) -> list[AnyValue]:
        """Import a node's subgraph at the builder's point, with its inputs bound; the values of its outputs."""
        ...

    def run_again(
        self, ctx: NodeContext, given: Mapping[onnx_ir.Value, AnyValue], wanted: onnx_ir.Value
    ) -> AnyValue | None:
        """Import once more what computes a value of the node's graph from other values."""
        ...

    def expand(self, ctx: NodeContext) -> Sequence[SSAValue | AnyValue | None]:
        """Import a node by ONNX's own definition of its operator as a function."""
        ...


class NodeContext:
    """One node being imported. `ctx[i]` is operand i as a tensor; `ctx.known(i)` its value where it is known."""

    def __init__(self, importer: Importer, scope: Scope, node: onnx_ir.Node, opset: int,
                 values: Sequence[AnyValue | None], where: str) -> None:  # fmt: skip
        self.importer = importer
        self.scope = scope
        self.node = node
        self.op_type = node.op_type
        self.opset = opset
        self.values = values
        self.where = where
        self.b: Builder = importer.builder

    # ---- operands ----

    def has(self, index: int) -> bool:
        """Whether an (optional) operand is given."""
        return index < len(self.values) and self.values[index] is not None

    def any_value(self, index: int) -> AnyValue:
        """A required operand: a tensor, a sequence or an optional. Raises InvalidModelError when it is missing."""
        value = self.values[index] if index < len(self.values) else None
        if value is None:
            self.invalid(f"{self.op_type} needs an input {index}", "it is missing")
        return value

    def value(self, index: int) -> Value:
        """A required operand that is a tensor. Raises InvalidModelError when it is missing or something else."""
        value = self.any_value(index)
        if isinstance(value, NamesValue):
            self.unsupported(f"its input {index} holds strings, and gcomp computes on numbers")
        if not isinstance(value, Value):
            self.invalid(f"input {index} is {kind_of(value)}", "a tensor is expected")
        return value

    def sequence(self, index: int) -> SequenceValue:
        """A required operand that is a sequence. Raises InvalidModelError when it is missing or something else."""
        value = self.any_value(index)
        if not isinstance(value, SequenceValue):
            self.invalid(f"input {index} is {kind_of(value)}", "a sequence is expected")
        return value

    def __getitem__(self, index: int) -> SSAValue:
        return self.value(index).read(self.b)

    def get(self, index: int) -> SSAValue | None:
        """An optional operand as a tensor."""
        return self[index] if self.has(index) else None

    def operands(self) -> list[SSAValue]:
        """All operands, as tensors."""
        return [self[i] for i in range(len(self.values))]

    def element(self, index: int = 0) -> str:
        """The element type text of an operand."""
        return self.value(index).element

    def shape(self, index: int = 0) -> tuple[Size, ...]:
        """The shape of an operand."""
        return self.value(index).shape

    def rank(self, index: int = 0) -> int:
        """The rank of an operand."""
        return len(self.shape(index))

    # ---- known values ----

    def known_value(self, index: int) -> Array | None:
        """The operand's known value: constants, or an object array of sizes; None when it depends on data."""
        return self.evaluate(self.value(index))

    def evaluate(self, value: Value) -> Array | None:
        """A value's constants or sizes; None when it depends on data."""
        if value.known is None and value.ssa is not None:
            value.known = evaluate(self.b.program, value.ssa)
        return value.known

    def constant(self, index: int, role: str) -> Array:
        """The operand's constants. Raises UnsupportedError when they depend on data or on symbolic sizes."""
        known = self.known_value(index)
        if known is None or known.dtype == object:
            self.data_dependent(role)
        return known

    def scalar(self, index: int, role: str) -> Any:
        """The one constant of an operand, as a Python number."""
        constant = self.constant(index, role)
        if constant.size != 1 or constant.ndim > 1:
            self.invalid(f"the {role} has shape {constant.shape}", "it must be one number")
        return constant.reshape(()).item()

    def ints_of(self, index: int, role: str) -> list[int]:
        """The operand's integers, none of them symbolic. Raises UnsupportedError when they depend on data."""
        known = self.known_value(index)
        if known is None:
            self.data_dependent(role)
        if known.ndim > 1:
            self.invalid(f"the {role} has rank {known.ndim}", "a list of numbers is expected")
        sizes = size_list(known)
        if any(isinstance(s, Dim) for s in sizes):
            self.unsupported(f"the {role} depends on symbolic sizes: {', '.join(map(str, sizes))}")
        return cast("list[int]", sizes)

    def axes(self, attribute: str, index: int, rank: int) -> list[int] | None:
        """Axes from an attribute (older opsets) or from an input (newer), made non-negative; None when absent."""
        axes = self.integers(attribute)
        if axes is None and self.has(index):
            axes = self.ints_of(index, attribute)
        return None if axes is None else self.distinct([self.axis(a, rank) for a in axes])

    def axis(self, axis: int, rank: int) -> int:
        """An axis made non-negative. Raises InvalidModelError when it is out of range."""
        if not -rank <= axis < rank:
            self.invalid(f"axis {axis} is out of range", f"the tensor has rank {rank}")
        return axis % rank

    def distinct(self, axes: list[int]) -> list[int]:
        """The axes. Raises InvalidModelError when one is repeated."""
        if len(set(axes)) != len(axes):
            self.invalid("an axis is named twice", f"the axes are {axes}")
        return axes

    # ---- attributes ----

    def attribute(self, name: str) -> onnx_ir.Attr | None:
        """An attribute; references to the attributes of a function are resolved."""
        attr = self.node.attributes.get(name)
        if attr is not None and attr.is_ref():
            attr = self.scope.attributes.get(str(attr.ref_attr_name))
        return attr

    def _attribute_of_type(self, name: str, kind: onnx_ir.AttributeType, default: Any) -> Any:
        attr = self.attribute(name)
        if attr is None:
            return default
        if attr.type != kind:
            self.invalid(f"attribute {name} has type {attr.type.name}", f"{kind.name} is expected")
        return attr.value

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return self._attribute_of_type(name, onnx_ir.AttributeType.INT, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that says yes or no. Raises InvalidModelError for anything but 0 and 1.

        ONNX leaves other numbers open: in ONNX Runtime `keepdims=2` is no, in the reference evaluator it is yes.
        """
        number = self.integer(name, default)
        if number not in (0, 1):
            self.invalid(f"attribute {name} is {number}", "it must be 0 or 1")
        return bool(number)

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute."""
        return self._attribute_of_type(name, onnx_ir.AttributeType.FLOAT, default)

    def string(self, name: str, default: str = "") -> str:
        """A string attribute."""
        return self._attribute_of_type(name, onnx_ir.AttributeType.STRING, default)

    def integers(self, name: str) -> list[int] | None:
        """A list of integers, or None when absent."""
        value = self._attribute_of_type(name, onnx_ir.AttributeType.INTS, None)
        return None if value is None else list(value)

    def numbers(self, name: str) -> list[float] | None:
        """A list of floats, or None when absent."""
        value = self._attribute_of_type(name, onnx_ir.AttributeType.FLOATS, None)
        return None if value is None else list(value)

    def strings(self, name: str) -> list[str] | None:
        """A list of strings, or None when absent."""
        value = self._attribute_of_type(name, onnx_ir.AttributeType.STRINGS, None)
        return None if value is None else list(value)

    def tensor(self, name: str) -> Array | None:
        """A tensor attribute, or None when absent."""
        value = self._attribute_of_type(name, onnx_ir.AttributeType.TENSOR, None)
        return None if value is None else tensor_array(value, f"{self.where}, attribute `{name}`")

    def graph(self, name: str) -> onnx_ir.Graph:
        """A graph attribute. Raises InvalidModelError when it is absent."""
        value = self._attribute_of_type(name, onnx_ir.AttributeType.GRAPH, None)
        if value is None:
            self.invalid(f"{self.op_type} needs the graph {name}", "it is missing")
        return value

    def dtype(self, name: str, default: str | None = None) -> str:
        """An attribute that holds an ONNX dtype (in opset 1 its name), as an element type text."""
        attr = self.attribute(name)
        if attr is not None and attr.type == onnx_ir.AttributeType.STRING:
            named = onnx_ir.DataType.__members__.get(self.string(name).upper(), -1)
            return self.element_text(int(named))
        if attr is None and default is not None:
            return default
        return self.element_text(self.integer(name, -1))

    def element_text(self, number: int) -> str:
        """The element type text of an ONNX dtype's number."""
        try:
            return ELEMENTS[onnx_ir.DataType(number)]
        except (KeyError, ValueError):
            self.unsupported(f"dtype {number} is not a number type")

    # ---- results ----

    @property
    def result_count(self) -> int:
        """How many results the node lists."""
        return len(self.node.outputs)

    def wants(self, index: int) -> bool:
        """Whether the node names its result `index`."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index].name)

    # ---- sizes ----

    @property
    def ranges(self) -> Ranges:
        """What is known about the symbols."""
        return self.importer.ranges

    def require(self, kind: ConstraintKind, lhs: Size, rhs: Size) -> None:
        """Note a relation between sizes that must hold at every call; it may be relied on from here on."""
        constraint = Constraint(kind, lhs, rhs, self.where)
        self.b.constraints.append(constraint)
        self.importer.ranges = narrowed(self.ranges, [constraint])

    def at_most(self, a: Size, b: Size) -> bool:
        """Whether a <= b for all values of the symbols."""
        return self.ranges.less_equal(a, b) is True

    def lesser(self, a: Size, b: Size) -> Size:
        """The minimum, simplified by what is known of the symbols."""
        return self.ranges.lesser(a, b)

    def greater(self, a: Size, b: Size) -> Size:
        """The maximum, simplified by what is known of the symbols."""
        return self.ranges.greater(a, b)

    def restate(self, x: SSAValue, sizes: Mapping[int, Size]) -> SSAValue:
        """`x` with some dims written as other sizes, which they must equal: now, or by a constraint at every call."""
        shape = list(shape_of(x))
        if (last := max(sizes, default=-1)) >= len(shape):
            self.invalid(f"a tensor has rank {len(shape)}", f"at least {last + 1} is expected to fit the other inputs")
        for axis, size in sizes.items():
            if shape[axis] == size:
                continue
            equal = self.ranges.equal(shape[axis], size)
            if equal is False:
                self.invalid(f"a dim has size {shape[axis]}", f"{size} is expected to fit the other inputs")
            if equal is None:
                self.require("eq", shape[axis], size)
            shape[axis] = size
        return self.b.reshape(x, shape)

    def vector(self, index: int, size: Size) -> SSAValue:
        """An operand of rank 1 that holds one number for each of `size` channels."""
        if self.rank(index) != 1:
            self.invalid(f"input {index} has rank {self.rank(index)}", f"one number for each of {size} is expected")
        return self.restate(self[index], {0: size})

    def match_dims(self, x: SSAValue, axis: int, y: SSAValue, other: int) -> tuple[SSAValue, SSAValue]:
        """Two tensors with a dim of each written alike: as a number if one of them is."""
        a, c = shape_of(x)[axis], shape_of(y)[other]
        size = c if isinstance(c, int) else a
        return self.restate(x, {axis: size}), self.restate(y, {other: size})

    def matmul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """NumPy's matmul."""
        x, y = self.match_dims(x, rank_of(x) - 1, y, max(rank_of(y) - 2, 0))
        return self.b.matmul(x, y)

    def divide_size(self, size: Size, by: int, what: str) -> Size:
        """A size divided by a number that must divide it: now, or by a constraint at every call."""
        exact = exact_div(size, by) if by > 0 else None
        if exact is not None:
            return exact
        if by < 1 or self.ranges.divisible(size, by) is False:
            self.invalid(f"{size} {what}", f"they are not a multiple of {by}")
        self.require("divides", by, size)
        return floordiv(size, by)

    def static(self, size: Size, role: str) -> int:
        """A size that must be a number. Raises UnsupportedError when it is symbolic."""
        if isinstance(size, Dim):
            self.unsupported(f"the {role} is symbolic ({size})")
        return size

    # ---- short cuts ----

    def wide(self, x: SSAValue, compute: Callable[[SSAValue], SSAValue]) -> SSAValue:
        """Compute on f32 instead of f16, bf16 or narrower, and convert back."""
        wide = self.b.widen(x)
        return compute(x) if wide is x else self.b.convert(compute(wide), element_of(x))

    # ---- errors ----

    def invalid(self, what: str, why: str) -> NoReturn:
        """Refuse the model."""
        raise InvalidModelError(f"{self.op_type}: {what}", where=self.where, why=why)

    def unsupported(self, why: str, fix: str | None = None) -> NoReturn:
        """Say that gcomp does not import this form of the node."""
        raise UnsupportedError(f"gcomp does not import this {self.op_type}", where=self.where, why=why, fix=fix)

    def need_constants(self, role: str) -> None:
        """Called where a role of the node depends on data: it is imported anew if parameters could be constants."""
        self.importer.opening.need(self.values, f"it is the {role} of a {self.op_type}")

    def data_dependent(self, role: str) -> NoReturn:
        """Say that a result's size would depend on data."""
        self.need_constants(role)
        self.unsupported(
            f"the {role} depends on the data, so that result shapes are not known before it runs",
            fix=f"export the model with a constant {role}, or compute it from shapes only",
        )
