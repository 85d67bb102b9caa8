"""Scatters: the result begins as a copy of the operand, and then updates go to where the indices say.

Updates that may meet in one element are applied in the order of their index, as the graph level says it. How depends
on what combines them:

- a single update, or the promise `unique_indices`: each lane reads, combines and writes;
- a sum, maximum, minimum or logic, whose order does not matter (but for the rounding of sums): atomics, in a carrier
  type that has them;
- an update that replaces: first each element learns the last update that reaches it, then that one is written;
- anything else: each element of the result goes over all updates and takes those that reach it.

Processors (`in_turn`) do one update after the other: rows of neighbours in programs that each have some of their
columns, and single elements in one program. Sums of narrow floats are rounded once, and have a carrier there, too.

Elements of updates out of bounds are left out. The operand is copied by a kernel of its own, which does not run where
the result lies over it. A dynamic_update_slice is such a copy, and a box of updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import BlockArgument, SSAValue

from gcomp.analysis.indexing.maps import d
from gcomp.analysis.work import element_bytes
from gcomp.dims import Ranges, Size, product
from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.bits import pack, sign_extend
from gcomp.lowering.tiles.elements.elementwise import apply_region, convert
from gcomp.lowering.tiles.elements.folding import turns
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.functions import kind_of
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Scratch,
    Settings,
    Step,
    blocks_of,
    is_covered,
    power_of_two,
)
from gcomp.lowering.tiles.schedules.loop import along_step, computing, flat
from gcomp.lowering.tiles.schedules.parts import slice_of, whole
from gcomp.lowering.tiles.tile import IN_ORDER, element, static_shape
from gcomp.records import record

ROW = 8
"""Neighbours that are updated together, at least, where that is faster than one after the other."""

Convert = Callable[[TileBuilder, SSAValue], SSAValue]


def scatter(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A scatter kernel's programs."""
    op = next((op for op in launch.block.ops if isinstance(op, hlo.ScatterOp)), None)
    if op is None:
        return _slice(launch, name, ranges, settings)
    problem = _Scatter(launch, op, name, ranges, settings)
    if problem.is_alone():
        return Scheduled((problem.copy(), problem.combine()))
    if settings.get("in_turn", 0) and (update := problem.update_in_turn()) is not None:
        return Scheduled((problem.copy(), update))
    if problem.replaces():
        return problem.replace_elements()
    carrier = problem.carrier()
    return Scheduled((problem.gather(),)) if carrier is None else problem.atomic(carrier)


def _slice(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """The programs of a dynamic_update_slice: what it writes is a box, and all else a copy.

    What else is computed of the whole result asks each element whether it is in the box.
    """
    op = next(op for op in launch.block.ops if isinstance(op, hlo.DynamicUpdateSliceOp))
    operand, update = op.operands[:2]
    shape, sizes = shape_of(operand), shape_of(update)
    if list(launch.returned.operands) != [op.result] or not isinstance(operand, BlockArgument) or shape == sizes:
        return flat(launch, name, ranges, settings)
    copies = ((operand.index, 0),)
    steps = [replace(step, copies=copies)
             for step in computing(launch, name, ranges, settings, {0: whole(operand, op.result)}).steps]  # fmt: skip
    if 0 not in sizes:
        writer = KernelWriter(launch, f"{name}_update", ranges)
        writer.roles[len(writer.inputs)] = "inout"
        # All dimensions after the last one that is cut lie together.
        split = max(k for k, (size, n) in enumerate(zip(sizes, shape, strict=True)) if size != n)
        moved = 2 * product(sizes) * element_bytes(update.type)
        steps.append(replace(along_step(writer, split, settings, {0: slice_of(op)}), moved=moved))
    return Scheduled(tuple(steps))


# ---- carriers of atomics --------------------------------------------------------------------------------------------


@record
class Carrier:
    """The type on which a hardware atomic does a region's update, with the conversions to and from it."""

    function: str
    dtype: str
    encode: Convert
    decode: Convert
    rounds: bool = False
    """Whether only the result is rounded to the elements' type."""


_FUNCTIONS = {"stablehlo.add": "add", "stablehlo.maximum": "max", "stablehlo.minimum": "min", "stablehlo.and": "and",
              "stablehlo.or": "or", "stablehlo.xor": "xor"}  # fmt: skip
_ON_BOOLEANS = {"stablehlo.add": "or", "stablehlo.maximum": "or", "stablehlo.multiply": "and", "stablehlo.or": "or",
                "stablehlo.minimum": "and", "stablehlo.and": "and", "stablehlo.xor": "xor"}  # fmt: skip


def _same(b: TileBuilder, x: SSAValue) -> SSAValue:
    return x


def carrier_of(name: str, dtype: str) -> Carrier | None:
    """How an op on a type is done by atomics; None where it is not."""
    kind = kind_of(dtype)
    if kind == "bool":
        function = _ON_BOOLEANS.get(name)
        if function is None:
            return None
        return Carrier(
            function, "i32", lambda b, x: b.cast(x, "i32"), lambda b, x: b.apply("ne", x, b.constant(0, "i32"))
        )
    function = _FUNCTIONS.get(name)
    if function is None or kind == "complex":
        return None
    if kind in ("signed", "unsigned"):
        if dtype in ("i32", "i64", "ui32", "ui64"):
            return Carrier(function, dtype, _same, _same)
        wide = "i32" if kind == "signed" else "ui32"
        return Carrier(function, wide, lambda b, x: b.cast(x, wide), lambda b, x: b.cast(x, dtype))
    wide = "f64" if dtype == "f64" else "f32"
    if function == "add":
        same = dtype == wide
        return Carrier(
            function, wide, _same if same else lambda b, x: b.cast(x, wide),
            _same if same else lambda b, x: b.cast(x, dtype), rounds=not same,
        )  # fmt: skip
    return _ordering(function, dtype, wide)


def _ordering(function: str, dtype: str, wide: str) -> Carrier:
    """Integers in the order of floats, with NaN beyond all others: greatest of all for max, least for min."""
    width = bit_width(wide)
    integer = f"i{width}"

    def turned(b: TileBuilder, bits: SSAValue) -> SSAValue:
        flipped = b.apply("xor", bits, b.constant((1 << (width - 1)) - 1, integer))
        return b.apply("select", b.apply("lt", bits, b.constant(0, integer)), flipped, bits)

    def encode(b: TileBuilder, x: SSAValue) -> SSAValue:
        x = b.cast(x, wide)
        limits = (1 << (width - 1)) - 1
        nan = b.constant(limits if function == "max" else -limits - 1, integer)
        return b.apply("select", b.apply("ne", x, x), nan, turned(b, b.bitcast(x, integer)))

    def decode(b: TileBuilder, x: SSAValue) -> SSAValue:
        found = b.bitcast(turned(b, x), wide)
        return b.cast(b.apply("select", b.apply("ne", found, found), b.constant(float("nan"), wide), found), dtype)

    return Carrier(function, integer, encode, decode)


# ---- the kernels ----------------------------------------------------------------------------------------------------


@record
class _Target:
    """Where lanes of updates go: the place in the result, and the lanes that are within it."""

    place: SSAValue
    mask: SSAValue | None


class _Scatter:
    def __init__(self, launch: LaunchOp, op: hlo.ScatterOp, name: str, ranges: Ranges, settings: Settings) -> None:
        self.launch, self.op, self.name, self.ranges, self.settings = launch, op, name, ranges, settings
        count = len(op.results)
        self.inputs, self.indices, self.updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
        self.shape, self.update_shape = shape_of(op.results[0]), shape_of(self.updates[0])
        self.kinds = [dtype_text(r.type) for r in op.results]
        self.block = op.update_computation.block
        numbers = op.dimensions
        self.windows = list(numbers.update_window_dims)
        self.scattered = [k for k in range(len(self.update_shape)) if k not in self.windows]
        self.outputs = [(j, list(op.results).index(v)) for j, v in enumerate(launch.returned.operands)]  # type: ignore[arg-type]

    # ---- which way ----

    def is_alone(self) -> bool:
        """Whether no two updates reach one element, and what they combine with is all in the results."""
        if len(self.outputs) < len(self.kinds) and not self.replaces():
            return False
        return bool(self.op.value("unique_indices")) or product(self.update_shape[k] for k in self.scattered) == 1

    def replaces(self) -> bool:
        """Whether an update takes the place of what was there."""
        ops = list(self.block.ops)
        count = len(self.kinds)
        return len(ops) == 1 and list(ops[0].operands) == list(self.block.args[count:])

    def carrier(self) -> Carrier | None:
        """The atomic that combines updates; None where there is none."""
        ops = list(self.block.ops)
        if len(self.kinds) != 1 or len(ops) != 2 or not isinstance(ops[1], ReturnOp):
            return None
        if {*ops[0].operands} != {*self.block.args} or ops[1].operands[0] is not ops[0].results[0]:
            return None
        return carrier_of(ops[0].name, self.kinds[0])

    # ---- writers ----

    def _writer(self, suffix: str, changes: bool = True) -> KernelWriter:
        writer = KernelWriter(self.launch, f"{self.name}{suffix}", self.ranges)
        for j in range(len(writer.outputs) if changes else 0):
            writer.roles[len(writer.inputs) + j] = "inout"
        return writer

    def _flat(self, writer: KernelWriter, count: Size) -> tuple[Frame, Size]:
        """A frame whose first coordinate goes over `count` elements, and the number of blocks."""
        b, frame = writer.b, writer.frame()
        block = self.settings.get("block", 1024)
        block = min(block, power_of_two(count)) if isinstance(count, int) else block
        base = b.multiply(b.program_id(0), b.position(block))
        frame.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
        return frame, blocks_of(count, block)

    def copy(self, encode: Convert = _same, carried: SSAValue | None = None) -> Step:
        """The kernel that copies the operands to the results, or to a carrier."""
        writer = self._writer("", changes=False)
        scratch = writer.scratch(0, ELEMENT_TYPES[carried], "out") if carried else None  # type: ignore[index]
        inputs = [(self.inputs[k], j) for j, k in self.outputs]
        copies = tuple(
            [(v.index, j) for v, j in inputs if isinstance(v, BlockArgument) and v.owner is self.launch.block]
        )
        is_copy = encode is _same and scratch is None and len(copies) == len(inputs)
        return replace(self._write_copy(writer, encode, scratch), copies=copies if is_copy else ())

    def _write_copy(self, writer: KernelWriter, encode: Convert, scratch: SSAValue | None) -> Step:
        frame, grid = self._flat(writer, product(self.shape))
        elements = writer.elements(frame)
        access = frame.access(self.shape, delinearize(d(0), self.shape))
        for j, k in self.outputs:
            found = convert(writer.b, self.op, elements(self.inputs[k], access), self.kinds[k])
            if scratch is None:
                writer.store(j, frame, access, encode(writer.b, found))
            else:
                shape = frame.position(d(0))
                writer.b.store(scratch, shape, encode(writer.b, found), frame.full_mask())
        return writer.step((grid,))

    def combine(self) -> Step:
        """The kernel in which each update reads what is there, and writes what they combine to."""
        writer = self._writer("_update")
        frame, grid = self._flat(writer, product(self.update_shape))
        self._combine(writer, writer.elements(frame), delinearize(d(0), self.update_shape))
        return writer.step((grid,))

    def update_in_turn(self) -> Step | None:
        """The kernel that does one update after the other; None where a carrier is rounded once, or is as fast."""
        if len(self.outputs) < len(self.kinds) and not self.replaces():
            return None
        carrier, split = self.carrier(), self._row()
        row = product(self.update_shape[split:])
        is_short = isinstance(row, int) and row < ROW
        if is_short and self.replaces():
            return self._exchange()
        if carrier is not None and ((carrier.encode is _same and is_short) or carrier.rounds):
            return None
        writer = self._writer("_update")
        b, frame = writer.b, writer.frame()
        block = 4 * self.settings.get("block", 1024)
        block = min(block, power_of_two(row)) if isinstance(row, int) else block
        base = b.multiply(b.program_id(0), b.position(block))
        frame.coordinate(row, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, row, block))
        inner, elements = delinearize(d(0), self.update_shape[split:]), writer.elements(frame)

        def one(turn: Size, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._combine(writer, elements, (*delinearize(turn, self.update_shape[:split]), *inner))
            return []

        turns(elements, product(self.update_shape[:split]), [], one)
        return _in_order(writer.step((blocks_of(row, block),)))

    def _row(self) -> int:
        """The dimension of updates from which on their elements are neighbours in the result, too."""
        split, k = len(self.update_shape), len(self.shape)
        while split and self._window(k - 1) == split - 1:
            split, k = split - 1, k - 1
            if self.update_shape[split] != self.shape[k]:
                break
        return split

    def _exchange(self) -> Step:
        """The kernel that writes one element after the other."""
        writer = self._writer("_update")
        b, frame, count = writer.b, writer.frame(), product(self.update_shape)
        block = self.settings.get("block", 1024)
        block = min(block, power_of_two(count)) if isinstance(count, int) else block
        frame.declare(count)
        elements = writer.elements(frame)

        def some(at: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            frame.bind(0, b.add(at, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
            with elements.scope():
                own = delinearize(d(0), self.update_shape)
                target, values = self._target(elements, own), self._values(elements, own)
                for j, k in self.outputs:
                    value = b.broadcast(pack(b, values[k], self.kinds[k]), static_shape(frame.position(d(0))))
                    b.atomic("xchg", writer.outputs[j], target.place, value, target.mask)
            return []

        b.loop(b.position(0), frame.position(count), block, [], some)
        return _in_order(writer.step((1,)))

    def _combine(self, writer: KernelWriter, elements: Elements, own: Sequence[Size]) -> None:
        """Write what updates at `own` and what is there combine to."""
        b = writer.b
        target, values = self._target(elements, own), self._values(elements, own)
        if not self.replaces():
            there = {
                k: sign_extend(b, b.load(writer.outputs[j], target.place, target.mask), self.kinds[k])
                for j, k in self.outputs
            }
            values = apply_region(b, self.block, [*[there[k] for k in range(len(self.kinds))], *values])
        for j, k in self.outputs:
            b.store(writer.outputs[j], target.place, pack(b, values[k], self.kinds[k]), target.mask)

    def atomic(self, carrier: Carrier) -> Scheduled:
        """Atomics on the result, or on a carrier that is made the result at last."""
        in_place = carrier.dtype == self.kinds[0] and carrier.encode is _same
        number = ELEMENT_TYPES[carrier.dtype]
        first = self.copy(carrier.encode, None if in_place else carrier.dtype)  # type: ignore[arg-type]
        writer = self._writer("_update")
        b = writer.b
        frame, grid = self._flat(writer, product(self.update_shape))
        elements = writer.elements(frame)
        buffer = writer.outputs[0] if in_place else writer.scratch(0, number, "inout")
        own = delinearize(d(0), self.update_shape)
        target = self._target(elements, own)
        # Each lane is an update, also where all have one value and one place.
        value = b.broadcast(carrier.encode(b, self._values(elements, own)[0]), static_shape(frame.position(d(0))))
        b.atomic(carrier.function, buffer, target.place, value, target.mask)
        second = writer.step((grid,))
        if in_place:
            return Scheduled((first, second))
        writer = self._writer("_finish", changes=False)
        frame, grid = self._flat(writer, product(self.shape))
        found = writer.b.load(writer.scratch(0, number, "in"), frame.position(d(0)), frame.full_mask())
        access = frame.access(self.shape, delinearize(d(0), self.shape))
        writer.store(0, frame, access, carrier.decode(writer.b, found))
        return Scheduled((first, second, writer.step((grid,))), (Scratch(number, product(self.shape)),))

    def replace_elements(self) -> Scheduled:
        """The last update of each element is found by its number, and written."""
        first = self._writer("", changes=False)
        number = first.b.index
        winners = first.scratch(0, number, "out")
        frame, grid = self._flat(first, product(self.shape))
        elements = first.elements(frame)
        access = frame.access(self.shape, delinearize(d(0), self.shape))
        for j, k in self.outputs:
            found = convert(first.b, self.op, elements(self.inputs[k], access), self.kinds[k])
            first.store(j, frame, access, found)
        first.b.store(winners, frame.position(d(0)), first.b.constant(-1, number), frame.full_mask())
        steps = [first.step((grid,))]
        for last in (False, True):
            writer = self._writer("_write" if last else "_number")
            b = writer.b
            frame, grid = self._flat(writer, product(self.update_shape))
            elements = writer.elements(frame)
            own, place = delinearize(d(0), self.update_shape), frame.position(d(0))
            target = self._target(elements, own)
            if not last:
                b.atomic("max", writer.scratch(0, number, "inout"), target.place, place, target.mask)
            else:
                wins = b.apply("eq", b.load(writer.scratch(0, number, "in"), target.place, target.mask), place)
                values = self._values(elements, own)
                for j, k in self.outputs:
                    value = pack(b, values[k], self.kinds[k])
                    b.store(writer.outputs[j], target.place, value, b.both(target.mask, wins))
            steps.append(writer.step((grid,)))
        return Scheduled(tuple(steps), (Scratch(number, product(self.shape)),))

    # ---- one lane for an element of the updates ----

    def _values(self, elements: Elements, own: Sequence[Size]) -> list[SSAValue]:
        """The updates at `own`."""
        frame = elements.frame
        access = frame.access(self.update_shape, own)
        return [
            convert(elements.b, self.op, elements(v, access), kind)
            for v, kind in zip(self.updates, self.kinds, strict=True)
        ]

    def _target(self, elements: Elements, own: Sequence[Size]) -> _Target:
        """Where the updates at `own` go."""
        b, frame = elements.b, elements.frame
        mask = frame.full_mask()
        place: SSAValue | None = None
        for k, size in enumerate(self.shape):
            at = self._start(elements, k, own)
            offset = self._offset(k, own)
            here = b.add(at, frame.position(offset)) if at is not None else frame.position(offset)
            if at is not None:
                inside = b.apply("and", b.apply("ge", here, b.position(0)), b.apply("lt", here, frame.position(size)))
                mask = b.both(mask, inside)
            elif self._window(k) is not None and not frame.holds(size - 1 - offset):
                mask = b.both(mask, b.apply("lt", here, frame.position(size)))
            place = here if place is None else b.add(b.multiply(place, frame.position(size)), here)
        return _Target(b.position(0) if place is None else place, mask)

    def _window(self, k: int) -> int | None:
        """The dimension of the updates along which a window lies in dimension k of the result."""
        numbers = self.op.dimensions
        joined = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        kept = [i for i in range(len(self.shape)) if i not in joined]
        return self.windows[kept.index(k)] if k in kept else None

    def _batch(self, own: Sequence[Size]) -> list[Size]:
        """The index of the update's index vector, without the dimension that the vectors lie along."""
        return [own[i] for i in self.scattered]

    def _offset(self, k: int, own: Sequence[Size]) -> Size:
        """What an update's index adds in dimension k of the result."""
        numbers = self.op.dimensions
        found: Size = 0
        if k in numbers.input_batching_dims:
            axis = numbers.scatter_indices_batching_dims[list(numbers.input_batching_dims).index(k)]
            found = self._batch(own)[axis - (axis > numbers.index_vector_dim)]
        window = self._window(k)
        return found if window is None else found + own[window]

    def _start(self, elements: Elements, k: int, own: Sequence[Size]) -> SSAValue | None:
        """The index in dimension k that the index vector of an update holds, brought near the result's bounds."""
        numbers = self.op.dimensions
        if k not in numbers.scatter_dims_to_operand_dims:
            return None
        frame = elements.frame
        place = self._batch(own)
        shape = shape_of(self.indices)
        component = list(numbers.scatter_dims_to_operand_dims).index(k)
        if numbers.index_vector_dim < len(shape):
            place.insert(numbers.index_vector_dim, component)
        index = elements(self.indices, frame.access(shape, place))
        window = self._window(k)
        return bound_index(frame, index, 1 if window is None else self.update_shape[window], self.shape[k])

    # ---- one lane for an element of the result ----

    def gather(self) -> Step:
        """Each element of the result takes all updates that reach it, in their order."""
        writer = self._writer("", changes=False)
        b = writer.b
        frame, grid = self._flat(writer, product(self.shape))
        elements = writer.elements(frame)
        access = frame.access(self.shape, delinearize(d(0), self.shape))
        start = [
            convert(b, self.op, elements(v, access), kind) for v, kind in zip(self.inputs, self.kinds, strict=True)
        ]
        # Dimensions of the updates up to the last scattered one are gone over; where in the others, the element says.
        depth = max(self.scattered, default=-1) + 1

        def body(turn: Size, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            own: list[Size] = [*delinearize(turn, self.update_shape[:depth])]
            hits, rest = self._hits(elements, own, access.indices, depth)
            read = frame.access(self.update_shape, [*own, *rest])
            items = [
                convert(b, self.op, elements(v, read), kind) for v, kind in zip(self.updates, self.kinds, strict=True)
            ]
            after = apply_region(b, self.block, [*values, *items])
            if hits is None:
                return [b.broadcast(a, static_shape(v)) for a, v in zip(after, values, strict=True)]
            return [
                b.broadcast(
                    b.apply("select", b.broadcast(hits, static_shape(v)), b.broadcast(a, static_shape(v)), v),
                    static_shape(v),
                )
                for a, v in zip(after, values, strict=True)
            ]

        lanes = static_shape(frame.position(d(0)))
        count = product(self.update_shape[:depth])
        found: Sequence[SSAValue] = [b.broadcast(v, lanes) for v in start]
        if 0 not in self.update_shape:
            found = turns(elements, count, found, body)
        for j, k in self.outputs:
            writer.store(j, frame, access, found[k])
        return writer.step((grid,))

    def _hits(
        self, elements: Elements, own: Sequence[Size], indices: Sequence[Size], depth: int
    ) -> tuple[SSAValue | None, list[Size]]:
        """The elements that an update reaches, and the places in the update's last dimensions that belong to them."""
        b, frame = elements.b, elements.frame
        rest: dict[int, Size] = {}
        mask: SSAValue | None = None
        padded = [*own, *[0] * (len(self.update_shape) - depth)]
        for k in range(len(self.shape)):
            start = self._start(elements, k, padded)
            window = self._window(k)
            here = frame.position(indices[k])
            offset = b.position(0) if start is None else start
            if window is None or window < depth:
                at = b.add(offset, frame.position(self._offset(k, padded)))
                mask = b.both(mask, b.apply("eq", here, at))
                continue
            size = self.update_shape[window]
            inner = b.apply("subtract", here, offset)
            inside = b.apply("and", b.apply("ge", inner, b.position(0)), b.apply("lt", inner, frame.position(size)))
            mask = b.both(mask, inside)
            kept = b.apply("maximum", b.apply("minimum", inner, frame.position(size - 1)), b.position(0))
            rest[window] = 0 if size == 1 else d(frame.coordinate(size, kept))
        return mask, [rest[i] for i in range(depth, len(self.update_shape))]


def _in_order(step: Step) -> Step:
    step.kernel.attributes[IN_ORDER] = UnitAttr()
    return step


def bound_index(frame: Frame, index: SSAValue, window: Size, extent: Size) -> SSAValue:
    """An index as a position, no further outside than where nothing of a window is inside."""
    b = frame.b
    kind = element(index)
    if kind_of(kind) == "unsigned":
        if kind == "ui64":
            index = b.bitcast(b.apply("minimum", index, b.constant((1 << 63) - 1, kind)), "i64")
        else:
            index = b.cast(index, "i64")
        kind = "i64"
    position = element(b.position(0))
    if bit_width(kind) < bit_width(position):
        index, kind = b.cast(index, position), position
    low, high = (b.cast(frame.position(s), kind) for s in (0 - window, extent))
    return b.cast(b.apply("minimum", b.apply("maximum", index, low), high), position)


__all__ = ["carrier_of", "scatter"]
