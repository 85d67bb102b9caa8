"""What schedules share: the kernel they write, the frames they compute in, and the description of a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.analysis.overwriting import Overwriting
from gcomp.dims import Ranges, Size, ceildiv, product, symbol
from gcomp.dtypes import is_complex
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.composites import is_trusted
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.build import TileBuilder, integer
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.bits import pack
from gcomp.lowering.tiles.frames import Frame
from gcomp.lowering.tiles.tile import BufferType, ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from gcomp.records import record

MOST_SMALL = (1 << 31) - (1 << 16)
"""Positions of so many elements fit an i32, those beyond the last that blocks reach included."""


@record
class Binding:
    """What an argument of a tile kernel is: the `index`-th input, output or scratch buffer of the launch, or a size."""

    kind: str
    """`input`, `output`, `scratch` or `size`."""
    index: int = 0
    size: Size = 0


@record
class Step:
    """One kernel of a launch, and what its arguments are.

    `copies` are pairs (operand, result): the kernel does no more than to copy these, and nothing where they lie in the
    same place. `moved` are the bytes that it reads and writes, where these are not all of its buffers.
    """

    kernel: KernelOp
    bindings: tuple[Binding, ...]
    grid: tuple[Size, ...]
    copies: tuple[tuple[int, int], ...] = ()
    moved: Size | None = None


@record
class Scratch:
    """Memory that lives between the steps of a launch."""

    element: Attribute
    count: Size


@record
class Scheduled:
    """The kernels that a launch becomes, in order; `form` says which of a schedule's ways it took, where it has
    several."""

    steps: tuple[Step, ...]
    scratch: tuple[Scratch, ...] = ()
    form: str = ""


@record
class Settings:
    """What a schedule may choose, by name; a schedule takes what it knows, and has a default for each."""

    values: Mapping[str, int] = field(default_factory=dict[str, int])

    def get(self, name: str, default: int) -> int:
        """A choice."""
        return self.values.get(name, default)


class KernelWriter:
    """Writes one tile kernel for (a part of) a launch."""

    def __init__(self, launch: LaunchOp, name: str, ranges: Ranges, refused: frozenset[str] = frozenset()) -> None:
        self.launch = launch
        self.name = name
        self.ranges = ranges
        self.block = Block()
        self.bindings: list[Binding] = []
        self.roles: list[str] = []
        self.b = TileBuilder(self.block, i64 if self._is_large() else i32)
        self.b.refused = refused
        self.b.location = launch.location
        self.inputs: dict[SSAValue, SSAValue] = {}
        for i, argument in enumerate(launch.block.args):
            self.inputs[argument] = self._buffer(argument, "in", Binding("input", i))
        self.outputs = [
            self._buffer(result, "out", Binding("output", j), self.launch.returned.operands[j].name_hint)
            for j, result in enumerate(launch.results)
        ]
        self._sizes: dict[str, SSAValue] = {}
        self._overwriting = Overwriting(launch)
        self._overwritten: dict[SSAValue, Sequence[SSAValue]] = {}

    def _is_large(self) -> bool:
        """Whether positions may not fit an i32."""
        inner = [result for op in self.launch.block.ops for result in op.results]
        for value in (*self.launch.operands, *self.launch.results, *inner):
            high = self.ranges.bounds(product(shape_of(value)))[1]
            if high is None or high > MOST_SMALL:
                return True
        return False

    def _buffer(self, value: SSAValue, role: str, binding: Binding, hint: str | None = None) -> SSAValue:
        dtype = dtype_text(value.type)
        held = tile.HELD.get(dtype, dtype)
        if held not in tile.MEMORY:
            raise self._unheld(value, dtype)
        element = ELEMENT_TYPES[held]
        return self._argument(BufferType(element), role, binding, value.name_hint or hint)

    def _unheld(self, value: SSAValue, dtype: str) -> UnsupportedError:
        """The error for a type that kernels do not have: it names the op that reads or makes a value of it."""
        inside = self.launch.returned.operands[value.index] if isinstance(value, OpResult) else value
        users = [use.operation for use in inside.uses]
        op = inside.owner if isinstance(inside, OpResult) else users[0] if users else self.launch
        without = ", and complex-to-pairs has no formula for this op" if is_complex(dtype) else ""
        return UnsupportedError(
            f"{op.name} of {dtype} cannot be computed in a kernel",
            where=where(op), why=f"there is no {dtype} in a kernel{without}", fix="convert it to another type before",
        )  # fmt: skip

    def _argument(self, type: Attribute, role: str, binding: Binding, hint: str | None) -> SSAValue:
        argument = self.block.insert_arg(type, len(self.block.args))
        argument.name_hint = hint
        self.bindings.append(binding)
        self.roles.append(role)
        return argument

    def scratch(self, index: int, element: Attribute, role: str) -> SSAValue:
        """A scratch buffer of the launch, as an argument."""
        return self._argument(BufferType(element), role, Binding("scratch", index), f"scratch{index}")

    def symbol(self, name: str) -> SSAValue:
        """The value of a symbol of the program, as an argument."""
        if name.startswith("$"):
            raise UnsupportedError(
                f"an element of the {self.launch.kind_name} kernel {self.launch.label_name} has no place",
                where=where(self.launch),
                why="where it lies depends on symbolic sizes in a way that has no formula",
                fix="give more of the symbols sizes",
            )
        if name not in self._sizes:
            type = tile.tile((), self.b.index)
            self._sizes[name] = self._argument(type, "size", Binding("size", 0, symbol(name)), name)
        return self._sizes[name]

    def frame(self) -> Frame:
        """A new frame, without coordinates."""
        return Frame(self.b, self.ranges, self.symbol)

    def elements(self, frame: Frame) -> Elements:
        """The elements of the launch's values, in a frame."""
        return Elements(frame, self.inputs)

    @property
    def values(self) -> Sequence[SSAValue]:
        """The values of the launch's body that are its results."""
        return self.launch.returned.operands

    def store(
        self, j: int, frame: Frame, access: IndexingMap, found: SSAValue, coordinates: Iterable[str] | None = None
    ) -> None:
        """Write elements of the j-th result, where all coordinates (or those given) are within their extents."""
        place = frame.place(access.shape, access.indices)
        mask = frame.full_mask() if coordinates is None else frame.mask((), coordinates)
        found = pack(self.b, found, dtype_text(self.launch.results[j].type))
        self.b.store(self.outputs[j], frame.position(place), found, mask)

    def step(self, grid: Sequence[Size], warps: int = 4, stages: int = 2) -> Step:
        """The kernel, done."""
        self.b.insert(YieldOp.create())
        self._read_before(self.block)
        kernel = KernelOp.create(
            properties={
                "sym_name": StringAttr(self.name),
                "grid": ArrayAttr([StringAttr(str(size)) for size in grid]),
                "roles": ArrayAttr([StringAttr(role) for role in self.roles]),
                "num_warps": integer(warps),
                "num_stages": integer(stages),
            },
            regions=[Region(self.block)],
        )
        kernel.location = self.launch.location
        return Step(kernel, tuple(self.bindings), tuple(grid))

    def _read_before(self, block: Block) -> None:
        """Read operands before a result is written that may lie over them (`Overwriting`), for other results too."""
        position = {op: n for n, op in enumerate(block.ops)}
        later: list[LoadOp] = []
        for op in reversed(list(block.ops)):
            if isinstance(op, ForOp):
                # Results of reductions that lie over operands are written in one pass: what loops read is no matter.
                later.clear()
                self._read_before(op.regions[0].block)
            elif isinstance(op, LoadOp):
                later.append(op)
            elif isinstance(op, StoreOp) and (below := self._below(op.buffer)):
                loads = [load for load in later if load.buffer in below]
                needed = {inner for load in loads for inner in _dependencies(load, op, position)}
                for inner in sorted(needed, key=position.__getitem__):
                    inner.detach()
                    block.insert_op_before(inner, op)

    def _below(self, buffer: SSAValue) -> Sequence[SSAValue]:
        """The inputs over which the memory plan may have put an output."""
        if buffer not in self._overwritten:
            j = self.outputs.index(buffer) if buffer in self.outputs else None
            inputs = enumerate(self.inputs.values())
            found = [] if j is None else [value for i, value in inputs if self._overwriting.may(i, j)]
            self._overwritten[buffer] = found
        return self._overwritten[buffer]


def _dependencies(op: Operation, since: Operation, position: Mapping[Operation, int]) -> set[Operation]:
    """An op and what it depends on, of its block and after another op in it."""
    found: set[Operation] = set()
    pending = [op]
    while pending:
        current = pending.pop()
        if position.get(current, -1) > position[since] and current not in found:
            found.add(current)
            pending += [v.owner for v in current.operands if isinstance(v.owner, Operation)]
    return found


Schedule = Callable[[LaunchOp, str, Ranges, Settings], Scheduled]
"""Of a launch, the name for its kernels, what is known of symbols, and choices: its kernels."""


def blocks_of(extent: Size, block: int) -> Size:
    """How many blocks cover an extent."""
    return ceildiv(extent, block)


def is_covered(frame: Frame, extent: Size, block: int) -> bool:
    """Whether blocks cover an extent without reaching beyond it."""
    return extent != 0 and (block == 1 or frame.ranges.divisible(extent, block) is True)


def check_trusted(op: hlo.CompositeOp) -> None:
    """Raises UnsupportedError where a composite is decomposed into something else than what its name stands for."""
    table = op.symbol_table()
    if table is None or not is_trusted(Program(table), op):  # type: ignore[arg-type]
        raise UnsupportedError(
            f"{op.composite_name} is decomposed into something else here than what the name stands for",
            where=where(op), fix="inline the composite (inline-composites) before kernels are made",
        )  # fmt: skip


def power_of_two(size: int) -> int:
    """The least power of two that is at least this."""
    return 1 << max(0, size - 1).bit_length()


__all__ = [
    "MOST_SMALL", "Binding", "KernelWriter", "Schedule", "Scheduled", "Scratch", "Settings", "Step", "blocks_of",
    "check_trusted", "is_covered", "power_of_two",
]  # fmt: skip
