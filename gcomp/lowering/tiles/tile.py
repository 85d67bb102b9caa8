"""The `tile` dialect: the body of one kernel, which a grid of programs runs.

A tile is a tensor of static shape; a scalar is a tile of rank 0. A dimension that is folded is a power of two; Triton
wants powers of two everywhere, which is what its schedules choose. Operands of an elementwise op broadcast as
in NumPy: scalars to any tile, and dimensions of size 1. A buffer is memory that the kernel is given; loads and stores
say where in it by element, and a mask says which lanes of a tile take part.

Three readers give it meaning: `evaluate` runs it on NumPy arrays, `printing` makes Triton source of it, and the
verifiers here say what is well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    AnyTensorTypeConstr,
    ArrayAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoMemoryEffect, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from gcomp.dtypes import DTYPES, bit_width, is_complex, is_float, is_integer
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.types import Tensor, dtype_text, shape_of, tensor
from gcomp.lowering.tiles.functions import FUNCTIONS

HELD = {"i2": "i8", "i4": "i8", "ui2": "ui8", "ui4": "ui8"}
"""Element types of the graph level -> the one that holds their numbers in tiles and in memory."""

MEMORY = frozenset({text for text in DTYPES if not is_complex(text)} - HELD.keys())
"""Element types that memory holds."""

IN_ORDER = "in_order"
"""The attribute of a kernel whose programs read and overwrite what they wrote themselves, as one thread does."""

INDEX = (i32, i64)
"""Element types of positions: i64 where a buffer has more elements than an i32 counts."""

ROLES = ("in", "out", "inout", "scratch", "size")
"""What a kernel's argument is: memory that it reads, writes, or both; memory of its own; a size known at run time."""


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """Memory for elements of one type, row-major and without gaps."""

    name = "tile.buffer"
    element: Attribute = param_def()


def tile(shape: Sequence[int], element: Attribute) -> Tensor:
    """The type of a tile."""
    return tensor(shape, element)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an elementwise op's result. VerifyException where operands do not broadcast."""
    ranked = [shape for shape in shapes if shape]
    if not ranked:
        return ()
    rank = len(ranked[0])
    if any(len(shape) != rank for shape in ranked):
        raise VerifyException(f"tiles of ranks {sorted({len(s) for s in ranked})} do not broadcast")
    found: list[int] = []
    for sizes in zip(*ranked, strict=True):
        greatest = max(sizes)
        if any(size not in (1, greatest) for size in sizes):
            raise VerifyException(f"tiles of shapes {', '.join(map(str, ranked))} do not broadcast")
        found.append(greatest)
    return tuple(found)


def static_shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The shape of a tile."""
    return cast("tuple[int, ...]", shape_of(value))


def element(value: SSAValue) -> str:
    """The element type of a tile or a buffer, as text."""
    type = value.type
    return dtype_text(type.element if isinstance(type, BufferType) else type)


def is_power_of_two(shape: Sequence[int]) -> bool:
    """Whether all dimensions of a shape are powers of two."""
    return all(size > 0 and size & (size - 1) == 0 for size in shape)


class TileOp(IRDLOperation):
    """The base of all: results are tiles."""

    def verify_(self) -> None:
        for result in self.results:
            if any(size < 1 for size in static_shape(result)):
                self.fail(f"a tile has elements, which one of shape {static_shape(result)} has not")
        self.check()

    def check(self) -> None:
        """What holds of the op beyond the forms of its operands."""

    def fail(self, message: str) -> None:
        """Refuse the op."""
        raise VerifyException(f"{self.name}: {message}")

    def expect(self, result: SSAValue, shape: tuple[int, ...], kind: Attribute | None = None) -> None:
        """Refuse the op unless a result has this shape and element type."""
        if static_shape(result) != shape:
            self.fail(f"has a result of shape {static_shape(result)}, expected {shape}")
        if kind is not None and cast(Tensor, result.type).element_type != kind:
            self.fail(f"has a result of {element(result)}, expected {kind}")


def integer_of(value: IntegerAttr[Any]) -> int:
    return value.value.data


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One kernel: a grid of programs (sizes of up to three axes), each of which runs the body.

    The body's arguments are buffers, and sizes (rank-0 integer tiles); `roles` says what each is.
    """

    name = "tile.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    grid = prop_def(ArrayAttr[StringAttr])
    roles = prop_def(ArrayAttr[StringAttr])
    num_warps = prop_def(IntegerAttr)
    num_stages = prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    @property
    def block(self) -> Block:
        """The body's block."""
        return self.body.block

    @property
    def kernel_name(self) -> str:
        """The kernel's name."""
        return self.sym_name.data

    @property
    def grid_sizes(self) -> tuple[str, ...]:
        """The grid's sizes as formulas of the program's symbols."""
        return tuple([size.data for size in self.grid])

    @property
    def argument_roles(self) -> tuple[str, ...]:
        """What each argument is."""
        return tuple([role.data for role in self.roles])

    @property
    def warps(self) -> int:
        """Warps in a program."""
        return integer_of(self.num_warps)

    @property
    def stages(self) -> int:
        """Software pipelining: the number of loop iterations whose loads are in flight at a time."""
        return integer_of(self.num_stages)

    def verify_(self) -> None:
        if not 1 <= len(self.grid) <= 3:
            raise VerifyException(f"tile.kernel: a grid has one to three axes, not {len(self.grid)}")
        if len(self.roles) != len(self.block.args):
            raise VerifyException("tile.kernel: each argument has a role")
        for role, argument in zip(self.argument_roles, self.block.args, strict=True):
            if role not in ROLES:
                raise VerifyException(f"tile.kernel: there is no role {role!r}; there are: {', '.join(ROLES)}")
            if isinstance(argument.type, BufferType) == (role == "size"):
                raise VerifyException(f"tile.kernel: an argument of role {role} cannot have the type {argument.type}")
        if not isinstance(self.block.last_op, YieldOp) or self.block.last_op.operands:
            raise VerifyException("tile.kernel: the body ends with a tile.yield of nothing")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """What a region gives back."""

    name = "tile.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


# ---- values from nothing ------------------------------------------------------------------------------------------


@irdl_op_definition
class ProgramIdOp(TileOp):
    """The program's position along an axis of the grid."""

    name = "tile.program_id"
    axis = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        self.expect(self.result, (), i32)


@irdl_op_definition
class IotaOp(TileOp):
    """0, 1, 2, ... along one dimension of a tile whose other dimensions are 1."""

    name = "tile.iota"
    dimension = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    @property
    def axis(self) -> int:
        """The dimension that counts."""
        return integer_of(self.dimension)

    def check(self) -> None:
        shape = static_shape(self.result)
        if not 0 <= self.axis < len(shape) or any(n != 1 for i, n in enumerate(shape) if i != self.axis):
            self.fail(f"counts along dimension {self.axis} of {shape}, whose other dimensions must be 1")
        if self.result.type.element_type != i32:
            self.fail("counts in i32")


@irdl_op_definition
class ConstantOp(TileOp):
    """A tile filled with one value."""

    name = "tile.constant"
    value = prop_def(ElementsAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        if not self.value.is_splat:
            self.fail("holds one value")
        if self.value.type != self.result.type:
            self.fail(f"holds a {self.value.type} and gives a {self.result.type}")


# ---- values from values -------------------------------------------------------------------------------------------


@irdl_op_definition
class ElementwiseOp(TileOp):
    """A function of `gcomp.lowering.tiles.functions`, on each element; operands broadcast.

    Narrow floats are converted to f32 before, and back after: a kernel says itself where it rounds.
    """

    name = "tile.elementwise"
    function = prop_def(StringAttr)
    operands_ = var_operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    @property
    def function_name(self) -> str:
        """The function's name."""
        return self.function.data

    def check(self) -> None:
        known = FUNCTIONS.get(self.function_name)
        if known is None:
            self.fail(f"there is no function {self.function_name!r}")
            return
        if why := known.refuses([element(v) for v in self.operands]):
            self.fail(f"{self.function_name}: {why}")
        kind = known.result([element(v) for v in self.operands])
        self.expect(self.result, broadcast_shapes(*map(static_shape, self.operands)))
        if element(self.result) != kind:
            self.fail(f"{self.function_name} gives {kind}, not {element(self.result)}")


@irdl_op_definition
class CastOp(TileOp):
    """The same numbers in another type: floats round to nearest even, integers wrap; a float fits the integer type."""

    name = "tile.cast"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        self.expect(self.result, static_shape(self.operand))


@irdl_op_definition
class BitcastOp(TileOp):
    """The same bits in another type of the same width."""

    name = "tile.bitcast"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        self.expect(self.result, static_shape(self.operand))


@irdl_op_definition
class ReshapeOp(TileOp):
    """The elements in row-major order, in another shape."""

    name = "tile.reshape"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        count = 1
        for size in static_shape(self.operand):
            count *= size
        for size in static_shape(self.result):
            count //= size
        if count != 1:
            self.fail(f"{static_shape(self.operand)} does not reshape to {static_shape(self.result)}")


@irdl_op_definition
class BroadcastOp(TileOp):
    """A scalar, or a tile with dimensions of size 1, repeated."""

    name = "tile.broadcast"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        shape = static_shape(self.result)
        if broadcast_shapes(static_shape(self.operand), shape) != shape:
            self.fail(f"{static_shape(self.operand)} does not broadcast to {shape}")


@irdl_op_definition
class TransposeOp(TileOp):
    """The two dimensions of a tile swapped."""

    name = "tile.transpose"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        if len(static_shape(self.operand)) != 2:
            self.fail("takes a tile of rank 2")
        self.expect(self.result, static_shape(self.operand)[::-1])


WORD = 4
"""Bytes that processors multiply together."""
BYTES = ("ui8", "i8", "i32")
"""The element types of such products: left, right, sums."""


@irdl_op_definition
class DotOp(TileOp):
    """`lhs @ rhs + acc` of tiles of rank 2. `precision` is how products of f32 are made: ieee, tf32, tf32x3, or exact.

    With `exact`, each element is one chain of fma's in the type of `acc`, which holds all numbers of the operands'
    type: it starts from the element of `acc`, and k ascends. With the others, no order is said. Integers wrap.

    With `groups`, of which there is one otherwise, so many products lie side by side: each takes k columns of lhs, and
    gives its share of the columns of the result.

    With `words`, `rhs` has words of four bytes: (k / 4, 4 * n), the four terms of a column beside each other, which
    processors multiply by four of a row at a time: unsigned bytes by signed ones, summed in i32.
    """

    name = "tile.dot"
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    acc = operand_def(AnyTensorTypeConstr)
    precision = prop_def(StringAttr)
    groups_attr = opt_prop_def(IntegerAttr, prop_name="groups")
    words = opt_prop_def(UnitAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    @property
    def groups(self) -> int:
        """How many products lie side by side."""
        return 1 if self.groups_attr is None else self.groups_attr.value.data

    PRECISIONS: ClassVar = ("ieee", "tf32", "tf32x3", "exact")

    def check(self) -> None:
        if self.words is not None:
            self._check_words()
            return
        (m, columns), (k, n), groups = static_shape(self.lhs), static_shape(self.rhs), self.groups
        if groups < 1 or n % groups or columns != groups * k or static_shape(self.acc) != (m, n):
            self.fail(f"lhs, rhs and acc have the shapes (m, {groups} * k), (k, n) and (m, n), and {groups} divides n")
        if element(self.lhs) != element(self.rhs) and self._kinds != BYTES:
            self.fail(f"multiplies {element(self.lhs)} by {element(self.rhs)}")
        if self.precision.data not in self.PRECISIONS:
            self.fail(f"there is no precision {self.precision.data!r}")
        kinds = element(self.lhs), element(self.acc)
        if self.precision.data == "exact" and not self._holds(*kinds):
            self.fail(f"exact products of {kinds[0]} are not summed in {kinds[1]}")
        self.expect(self.result, (m, n), cast(Tensor, self.acc.type).element_type)

    @property
    def _kinds(self) -> tuple[str, str, str]:
        return element(self.lhs), element(self.rhs), element(self.acc)

    def _check_words(self) -> None:
        if self._kinds != BYTES:
            self.fail(f"words are of {', '.join(BYTES)}, not of {', '.join(self._kinds)}")
        (m, bytes), (k, columns) = static_shape(self.lhs), static_shape(self.rhs)
        if bytes != WORD * k or columns % WORD or static_shape(self.acc) != (m, columns // WORD):
            self.fail("lhs, rhs and acc have the shapes (m, 4k), (k, 4n) and (m, n)")
        self.expect(self.result, (m, columns // WORD), cast(Tensor, self.acc.type).element_type)

    @staticmethod
    def _holds(kind: str, acc: str) -> bool:
        """Whether chains in a type take all numbers of another; of integers they take what is left after wrapping."""
        if is_float(acc):
            return acc in ("f32", "f64") and is_float(kind) and bit_width(kind) <= bit_width(acc)
        return is_integer(acc) and is_integer(kind)


# ---- memory -------------------------------------------------------------------------------------------------------


@irdl_op_definition
class MemoryOp(IRDLOperation):
    """Memory of a program's own, for so many elements: nothing is in it at first, and it is gone with the program."""

    name = "tile.memory"
    count = prop_def(IntegerAttr)
    result = result_def(BufferType)
    traits = traits_def(NoMemoryEffect())

    @property
    def size(self) -> int:
        """How many elements it holds."""
        return integer_of(self.count)

    def verify_(self) -> None:
        if self.size < 1:
            raise VerifyException(f"tile.memory: holds at least one element, not {self.size}")


class Access(TileOp):
    """Elements of a buffer at `offset`, where `mask` says so."""

    def check_access(self, shape: tuple[int, ...], mask: SSAValue | None) -> None:
        """Refuse what is no access of a tile of this shape. The first operands are the buffer and the offset."""
        buffer, offset = self.operands[:2]
        if not isinstance(buffer.type, BufferType):
            self.fail("reads and writes a buffer")
        if cast(Tensor, offset.type).element_type not in INDEX:
            self.fail(f"an offset is an i32 or i64, not {element(offset)}")
        if static_shape(offset) != shape:
            self.fail(f"has an offset of shape {static_shape(offset)}, expected {shape}")
        if mask is not None and (element(mask) != "i1" or broadcast_shapes(static_shape(mask), shape) != shape):
            self.fail(f"a mask is a tile of i1 that broadcasts to {shape}")


@irdl_op_definition
class LoadOp(Access):
    """Elements of a buffer; where the mask is false, 0. `evict` says how soon they are needed again."""

    name = "tile.load"
    buffer = operand_def()
    offset = operand_def(AnyTensorTypeConstr)
    mask = opt_operand_def(AnyTensorTypeConstr)
    evict = opt_prop_def(StringAttr)
    result = result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        self.check_access(static_shape(self.result), self.mask)
        self.expect(self.result, static_shape(self.offset), cast(BufferType, self.buffer.type).element)


@irdl_op_definition
class StoreOp(Access):
    """Write elements where the mask is true. No two lanes of any program write the same element."""

    name = "tile.store"
    buffer = operand_def()
    offset = operand_def(AnyTensorTypeConstr)
    value = operand_def(AnyTensorTypeConstr)
    mask = opt_operand_def(AnyTensorTypeConstr)

    def check(self) -> None:
        self.check_access(static_shape(self.value), self.mask)
        if cast(Tensor, self.value.type).element_type != cast(BufferType, self.buffer.type).element:
            self.fail(f"writes {element(self.value)} to a buffer of {element(self.buffer)}")


@irdl_op_definition
class AtomicOp(Access):
    """Combine elements of a buffer with a value, one lane at a time in any order: add, max, min, and, or, xor, xchg."""

    name = "tile.atomic"
    function = prop_def(StringAttr)
    buffer = operand_def()
    offset = operand_def(AnyTensorTypeConstr)
    value = operand_def(AnyTensorTypeConstr)
    mask = opt_operand_def(AnyTensorTypeConstr)

    FUNCTIONS: ClassVar = ("add", "max", "min", "and", "or", "xor", "xchg")

    def check(self) -> None:
        self.check_access(static_shape(self.value), self.mask)
        if self.function.data not in self.FUNCTIONS:
            self.fail(f"there is no atomic {self.function.data!r}")


# ---- control ------------------------------------------------------------------------------------------------------


@irdl_op_definition
class ForOp(TileOp):
    """`for i in range(lower, upper, step)` with carried tiles. The region takes i and these, and yields these.

    `flatten` asks for one loop of this one and the one inside, so that loads of the next iteration overlap with it.
    `rolled` keeps a loop of few iterations, which would otherwise be unrolled.
    """

    name = "tile.for"
    lower = operand_def(AnyTensorTypeConstr)
    upper = operand_def(AnyTensorTypeConstr)
    step = prop_def(IntegerAttr)
    flatten = opt_prop_def(UnitAttr)
    rolled = opt_prop_def(UnitAttr)
    carried = var_operand_def(AnyTensorTypeConstr)
    body = region_def("single_block")
    results_ = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(SingleBlockImplicitTerminator(YieldOp))

    @property
    def stride(self) -> int:
        """The step of the index in each iteration."""
        return integer_of(self.step)

    @property
    def block(self) -> Block:
        """The body's block: the index, then what is carried."""
        return self.body.block

    def check(self) -> None:
        types = [v.type for v in self.carried]
        if [r.type for r in self.results] != types or [a.type for a in self.block.args[1:]] != types:
            self.fail("what is carried keeps its types")
        if self.lower.type != self.upper.type or self.block.args[0].type != self.lower.type:
            self.fail("bounds and index have one type")
        last = cast(Operation, self.block.last_op)
        if [v.type for v in last.operands] != types:
            self.fail("the body yields what is carried")
        if self.stride < 1:
            self.fail("counts upward")
