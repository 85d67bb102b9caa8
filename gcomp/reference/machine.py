"""The machine under the interpreter: runs blocks by their plans, and is the `Scope` of every row.

Frames are generators on an explicit stack: a row that enters a region yields the entry, and gets the results back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, Protocol, Self, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import dtype_of
from gcomp.errors import GcompError, InternalError, InvalidModelError, UnsupportedError
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_of
from gcomp.ir.locations import where
from gcomp.ir.op import GraphOp
from gcomp.ir.sdy import meshes_of
from gcomp.ir.types import UNKNOWN, dtype_text, shape_of, static_shape, tensor_of
from gcomp.reference.bodies import batch_body, is_elementwise, scalar_body
from gcomp.reference.lockstep import Running, run_in_lockstep
from gcomp.reference.plan import Step, make_plan, make_step
from gcomp.reference.table import (
    MEANINGS,
    Array,
    DType,
    Entry,
    Exchange,
    Meaning,
    Place,
    Request,
    Value,
    result_dtypes,
)  # fmt: skip
from gcomp.sharding import Mesh

Observer = Callable[[Operation, Sequence[Value]], None]
"""Called after each op with its results (not inside the bodies of folds, sorts and scatters)."""

Frame = Generator[Request, list[Value], list[Value]]
_NOTHING: Mapping[SSAValue, Value] = {}
_UNKNOWN_SIZE = -1
_FAULTS = (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""What an array function may raise on sizes that do not fit, or for a bug."""
_SIZED_BY_OPERANDS = frozenset(
    ("stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_conv", "stablehlo.dynamic_gather",
     "stablehlo.dynamic_iota", "stablehlo.dynamic_pad", "stablehlo.dynamic_reshape", "stablehlo.real_dynamic_slice")
)  # fmt: skip
"""Ops whose operands say what size the result has: these may contradict it, whatever the types."""


_SIZES = {
    "stablehlo.dynamic_broadcast_in_dim": (1,), "stablehlo.dynamic_gather": (2,), "stablehlo.dynamic_iota": (0,),
    "stablehlo.dynamic_pad": (2, 3, 4), "stablehlo.dynamic_reshape": (1,), "stablehlo.rng": (2,),
}  # fmt: skip
"""The operands that say how large a result is."""
_MOST_ELEMENTS = 1 << 26
"""Elements of a result that such operands may ask for in a run whose steps are bounded."""


class Arrays(Protocol):
    """Weights by name."""

    def __contains__(self, name: object, /) -> bool: ...

    def __getitem__(self, name: str, /) -> Array: ...


class Machine:
    """Runs blocks of one module. Plans are made once: the module must not change between runs."""

    def __init__(
        self,
        module: ModuleOp | None,
        weights: Arrays,
        *,
        observer: Observer | None = None,
        max_steps: int | None = None,
    ) -> None:
        self._module, self._weights = module, weights
        self._observer, self._max_steps = observer, max_steps
        self.sink: Callable[[str], object] | None = None
        """What takes the lines that the program prints; None: nobody."""
        self.place: Place | None = None
        self._meanings: Mapping[type[Operation], Meaning] = MEANINGS
        self._functions: dict[str, FuncOp] | None = None
        self._plans: dict[tuple[Block, bool], list[Step]] = {}
        self._elementwise: dict[Block, bool] = {}
        self._captured: Mapping[SSAValue, Value] = _NOTHING
        self._within_body = 0
        self._sizes: Mapping[str, int] = {}
        self._steps = self._draws = 0
        self._shapes: dict[SSAValue, tuple[int, ...]] = {}
        self._dtypes: dict[SSAValue, DType] = {}
        self._properties: dict[Operation, Mapping[str, Any]] = {}

    def reset(self, sizes: Mapping[str, int]) -> None:
        """Begin a run with these values of the symbols."""
        self._steps = self._draws = 0
        if sizes != self._sizes:
            self._sizes = sizes
            self._shapes.clear()
            self._properties.clear()

    # ---- what rows ask for (`Scope`) ----

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        found = self._shapes.get(value)
        if found is None:
            found = tuple([s if isinstance(s, int) else self._size(s) for s in shape_of(value)])
            self._shapes[value] = found
        return found

    def _size(self, size: Size) -> int:
        try:
            return _UNKNOWN_SIZE if size == UNKNOWN else dims.evaluate(size, self._sizes)
        except dims.DimError as error:  # a symbol that no input has
            raise InvalidModelError(f"the size {size} is not known", why=str(error)) from None

    def dtype(self, value: SSAValue | Attribute) -> DType:
        text = dtype_text(value.type if isinstance(value, SSAValue) else value)
        try:
            return dtype_of(text)
        except KeyError:
            raise UnsupportedError(f"the element type {text} has no reference meaning") from None

    def data(self, array: Array) -> Array:
        return array

    def weight(self, name: str, op: Operation) -> Array:
        if name not in self._weights:
            raise InvalidModelError(
                f"there is no weight @{name}", where=where(op), fix="add it to the program's weights"
            )
        return self._weights[name]

    def function(self, name: str, op: Operation) -> FuncOp:
        if self._functions is None:
            ops = self._module.body.block.ops if self._module is not None else ()
            self._functions = {f.sym_name.data: f for f in ops if isinstance(f, FuncOp)}
        found = self._functions.get(name)
        if found is None or found.body.blocks.first is None:
            raise InvalidModelError(f"there is no function @{name} with a body", where=where(op))
        return found

    def properties(self, op: Operation) -> Mapping[str, Any]:
        found = self._properties.get(op)
        if found is None:
            found = self._properties[op] = self._decoded(cast(GraphOp, op))
        return found

    def _decoded(self, op: GraphOp) -> dict[str, Any]:
        decoded: dict[str, Any] = {}
        for name, value in op.attributes_dict().items():
            if name in SIZE_PROPERTIES:
                decoded[name] = [dims.evaluate(s, self._sizes) for s in sizes_of(op.properties[name])]
            elif name.endswith("dimension_numbers"):
                decoded.update(value._asdict())
            else:
                decoded[name] = value
        return decoded

    def bind(self, op: Operation, shapes: Sequence[tuple[int, ...]]) -> None:
        raise UnsupportedError(f"{op.name} runs only as a part of a program", where=where(op))

    def write(self, line: str) -> None:
        if self.sink is not None:
            self.sink(line)

    def draw(self) -> int:
        self._draws += 1
        return self._draws - 1

    def enter(self, region: Region, args: Sequence[Value] = ()) -> Entry:
        return Entry(region.block, args, self._captured)

    def body(self, region: Region) -> Callable[..., list[Array]]:
        entry = self.enter(region)
        if self._runs_elementwise(entry.block):
            return batch_body(self._run_body, entry)
        return scalar_body(self._run_body, entry, result_dtypes(region, self))

    def _runs_elementwise(self, block: Block) -> bool:
        found = self._elementwise.get(block)
        if found is None:
            found = self._elementwise[block] = is_elementwise(block, self._callee)
        return found

    def _callee(self, op: CallOp) -> Block | None:
        return self.function(op.callee.string_value(), op).body.block

    def meshes(self) -> Mapping[str, Mesh]:
        return {} if self._module is None else meshes_of(self._module)

    def spread(self, op: Operation, region: Region, args: Sequence[Sequence[Value]]) -> list[list[Value]]:
        self._refuse_in_body(op)
        devices = [self.at(Place(1, len(args), 0, i)) for i in range(len(args))]
        running = [device.running(device.enter(region, a)) for device, a in zip(devices, args, strict=True)]
        return run_in_lockstep(devices, running)

    def at(self, place: Place) -> Self:
        """The same machine as one of several devices; what was found out of the module is shared."""
        device = copy(self)
        device.place, device._observer = place, None
        return device

    # ---- running ----

    def _run_body(self, entry: Entry, *, batched: bool = False) -> list[Value]:
        previous, self._within_body = self._captured, self._within_body + 1
        try:
            return self.run_entry(entry, batched=batched)
        finally:
            self._captured, self._within_body = previous, self._within_body - 1

    def run_entry(self, entry: Entry, *, batched: bool = False) -> list[Value]:
        """Run a block to its end; the values that it returns."""
        return self._drive(self._frame(entry, batched), batched)

    def run_op(
        self, op: Operation, args: Sequence[Value], captured: Mapping[SSAValue, Value] = _NOTHING
    ) -> list[Value]:
        """Run one op, whose regions use no other outer values than these; its results."""
        return self._drive(
            self._step(make_step(op, self._meanings), list(args), captured, batched=False), batched=False
        )

    def running(self, entry: Entry) -> Running:
        """A run of a block, which stops where all devices do something together, and is sent what comes of it there."""
        return self._run_frames(self._frame(entry, False), False)

    def _drive(self, first: Frame, batched: bool) -> list[Value]:
        """Run a frame to its end, where no other device is waited for."""
        try:
            waiting = next(self._run_frames(first, batched))
        except StopIteration as done:
            return done.value
        self._refuse_in_body(waiting.op)
        raise UnsupportedError(
            f"{waiting.op.name} is run by several devices together, and this is one", where=where(waiting.op),
            fix="run it inside of a manual computation, or the program by interpret_on_devices",
        )  # fmt: skip

    def _refuse_in_body(self, op: Operation) -> None:
        if self._within_body:
            raise UnsupportedError(
                f"{op.name} is run by several devices together, and stands in the body of an op", where=where(op)
            )

    def _run_frames(self, first: Frame, batched: bool) -> Running:
        stack = [first]
        reply: list[Value] | None = None
        while True:
            try:
                request = stack[-1].send(cast("list[Value]", reply))
            except StopIteration as done:
                stack.pop()
                reply = cast("list[Value]", done.value)
                if not stack:
                    return reply
            else:
                reply = None
                if isinstance(request, Exchange):
                    reply = yield request
                else:
                    stack.append(self._frame(request, batched))

    def _frame(self, entry: Entry, batched: bool) -> Frame:
        env = dict(entry.captured)
        env.update(zip(entry.block.args, entry.args, strict=True))
        observer = None if self._within_body else self._observer
        for step in self._plan(entry.block, batched):
            args = [env[v] for v in step.operands]
            # What ends a block counts too: a loop may hold nothing else.
            self._count(step.op)
            if step.returns:
                return args
            captured = {v: env[v] for v in step.captures} if step.captures else _NOTHING
            if step.meaning.enters:
                results = yield from self._step(step, args, captured, batched=batched)
            else:
                results = self._results(step, args, captured, batched)
            env.update(zip(step.results, results, strict=True))
            for value in step.dead:
                env.pop(value, None)
            if observer is not None:
                observer(step.op, results)
        raise InternalError("a block has no terminator")

    def _plan(self, block: Block, batched: bool) -> list[Step]:
        found = self._plans.get((block, batched))
        if found is None:
            found = self._plans[block, batched] = make_plan(block, self._meanings, batched=batched)
        return found

    def _results(
        self, step: Step, args: list[Value], captured: Mapping[SSAValue, Value], batched: bool
    ) -> Sequence[Value]:
        """The checked results of a step that enters no region in a frame of its own."""
        self._captured = captured
        if step.op.name in _SIZES and self._max_steps is not None:
            _check_sizes(step.op, args)
        try:
            results = cast("Sequence[Value]", step.meaning.row(step.op, args, self))
        except GcompError:
            raise
        except _FAULTS as error:
            _refuse(step.op, error)
        self._check(step, results, batched)
        return results

    def _step(self, step: Step, args: list[Value], captured: Mapping[SSAValue, Value], *, batched: bool) -> Frame:
        """The checked results of any step, as a frame that yields what its row enters."""
        if not step.meaning.enters:
            return list(self._results(step, args, captured, batched))
        running = cast("Generator[Request, list[Value], Sequence[Value]]", step.meaning.row(step.op, args, self))
        reply: list[Value] | None = None
        while True:
            self._captured = captured
            try:
                request = running.send(cast("list[Value]", reply))
            except StopIteration as done:
                results = cast("Sequence[Value]", done.value)
                break
            except GcompError:
                raise
            except _FAULTS as error:
                _refuse(step.op, error)
            reply = yield request
        self._check(step, results, batched)
        return list(results)

    def _count(self, op: Operation) -> None:
        self._steps += 1
        if self._max_steps is not None and self._steps > self._max_steps:
            raise UnsupportedError(
                f"the program did not end within {self._max_steps} steps", where=where(op), fix="raise max_steps"
            )

    def _check(self, step: Step, results: Sequence[Value], batched: bool) -> None:
        """Refuse results whose shape or dtype is not what the op's type says."""
        if len(results) != len(step.results):
            raise InternalError(f"{step.op.name} gave {len(results)} results", where=where(step.op))
        for value, result in zip(step.results, results, strict=True):
            expected = self._shapes.get(value)
            if expected is None:
                if not isinstance(value.type, TensorType):
                    continue
                expected = self.shape(value)
            dtype = self._dtypes.get(value)
            if dtype is None:
                dtype = self._dtypes[value] = self.dtype(value)
            if result.dtype != dtype or not (batched or _fits(result.shape, expected)):
                raise InvalidModelError(
                    f"{step.op.name} gave {result.dtype.name}{list(result.shape)}, but its type is {tensor_of(value)}",
                    where=where(step.op),
                    why=f"that is {dtype.name}{list(expected)} here",
                )


def _fits(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    if shape == expected:
        return True
    return len(shape) == len(expected) and all(e in (s, _UNKNOWN_SIZE) for s, e in zip(shape, expected, strict=True))


def _check_sizes(op: Operation, args: Sequence[Value]) -> None:
    """Refuse what would need memory without bounds: operands that say sizes may hold anything."""
    wanted = [max(1, abs(int(n))) for i in _SIZES[op.name] for n in np.asarray(args[i]).reshape(-1)]
    if math.prod(wanted) > _MOST_ELEMENTS:
        raise UnsupportedError(f"{op.name} is asked for an array that is too large", where=where(op), why=str(wanted))


def _refuse(op: Operation, error: BaseException) -> NoReturn:
    """Say that an op's operands do not suit it (where sizes are only known now), or that gcomp is wrong."""
    static = op.name not in _SIZED_BY_OPERANDS and all(
        static_shape(v) is not None for v in (*op.operands, *op.results) if isinstance(v.type, TensorType)
    )
    why = f"{type(error).__name__}: {error}"
    if isinstance(error, dims.DimError):
        raise UnsupportedError(f"{op.name} needs the size of a symbolic dimension", where=where(op), why=why) from error
    if isinstance(error, MemoryError):
        raise UnsupportedError(f"{op.name} needs more memory than there is", where=where(op), why=why) from error
    if static:
        raise InternalError(f"the reference cannot evaluate {op.name}", where=where(op), why=why) from error
    raise InvalidModelError(f"{op.name} is not defined for these sizes", where=where(op), why=why) from error
