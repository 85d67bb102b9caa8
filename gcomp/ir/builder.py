"""Building graph-level IR: one method per thing that frontends and passes do all the time.

A builder inserts at a point and stamps every op with its current location. Methods take and return SSA values; shapes
may be symbolic; result types are inferred. Whatever has no method is built with `emit(hlo.SomeOp, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Constraint, Size
from gcomp.dtypes import dtype_of, is_complex, is_float, is_integer, is_narrow_float, text_of
from gcomp.ir import locations
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import differ_always, dtype_text, element_of, rank_of, shape_of, tensor, with_shape

Array = np.ndarray[Any, Any]

INLINE_BYTES = 1024
"""Constants up to this size stand in the IR; larger ones become weights."""


class Builder:
    """Inserts ops into a program at a point (by default at the end of `main`)."""

    decomposes = False
    """Whether composites are built as the ops that they stand for."""

    def __init__(self, program: Program, point: InsertPoint | Block | None = None) -> None:
        self.program = program
        self.point = point if isinstance(point, InsertPoint) else InsertPoint.at_end(point or program.block)
        self.location: LocationAttr = locations.UNKNOWN
        self.constraints: list[Constraint] = []
        """Constraints that broadcasting of unrelated symbolic sizes brought up, for the program to check."""

    @contextmanager
    def at(self, location: LocationAttr) -> Generator[None]:
        """Stamp ops with `location` inside the block."""
        previous, self.location = self.location, location
        try:
            yield
        finally:
            self.location = previous

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert at the end of `block` inside the `with`."""
        previous, self.point = self.point, InsertPoint.at_end(block)
        try:
            yield
        finally:
            self.point = previous

    # ---- any op ----

    def insert(self, op: Operation) -> Operation:
        """Insert an op."""
        if op.location == locations.UNKNOWN:
            op.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def emit(self, op: type[GraphOp], *operands: SSAValue, types: Sequence[Attribute] | None = None,
             regions: Sequence[Region] = (), **properties: Any) -> SSAValue:  # fmt: skip
        """Build and insert an op; its first result."""
        return self.insert(op.of(*operands, types=types, regions=regions, **properties)).results[0]

    def emit_all(self, op: type[GraphOp], *operands: SSAValue, types: Sequence[Attribute] | None = None,
                 regions: Sequence[Region] = (), **properties: Any) -> Sequence[SSAValue]:  # fmt: skip
        """Build and insert an op; all its results."""
        return self.insert(op.of(*operands, types=types, regions=regions, **properties)).results

    # ---- values from nothing ----

    def constant(self, value: Any, element: str | None = None) -> SSAValue:
        """A constant of an array or scalar (of the element type `element`); large ones become weights."""
        array = np.asarray(value) if element is None else np.asarray(value, dtype_of(element))
        if array.nbytes > INLINE_BYTES and array.size > 1 and not _uniform(array):
            return self.weight("constant", array)
        return self.emit(hlo.ConstantOp, value=ElementsAttr.of(array))

    def full(self, shape: Sequence[Size], value: Any, element: Attribute | str) -> SSAValue:
        """A tensor filled with a scalar; symbolic shapes broadcast it."""
        scalar = self.emit(hlo.ConstantOp, value=ElementsAttr.of(value, tensor((), element)))
        return self.broadcast(scalar, shape, ()) if shape else scalar

    def full_like(self, x: SSAValue, value: Any) -> SSAValue:
        """A tensor of the type of `x` filled with a scalar."""
        return self.full(shape_of(x), value, element_of(x))

    def scalar_like(self, x: SSAValue, value: Any) -> SSAValue:
        """A rank 0 tensor of the element type of `x`."""
        return self.full((), value, element_of(x))

    def weight(self, name: str, array: Array) -> SSAValue:
        """A new weight of the program."""
        return self.read_weight(self.program.weights.add(name, array))

    def read_weight(self, name: str) -> SSAValue:
        """A weight that the program has."""
        array = self.program.weights[name]
        return self.insert(WeightOp.read(name, tensor(array.shape, text_of(array.dtype)))).results[0]

    def dim(self, size: Size, element: str = "i64") -> SSAValue:
        """The value of a size as a rank 0 tensor."""
        if isinstance(size, int):
            return self.constant(size, element)
        return self.insert(DimOp.read(size, element)).results[0]

    def iota(self, shape: Sequence[Size], dimension: int, element: str = "i64") -> SSAValue:
        """Indices along a dimension."""
        return self.emit(hlo.IotaOp, types=(tensor(shape, element),), iota_dimension=dimension)

    # ---- movement ----

    def broadcast(self, x: SSAValue, shape: Sequence[Size], dimensions: Sequence[int]) -> SSAValue:
        """broadcast_in_dim; no op when nothing changes."""
        if tuple(shape) == shape_of(x) and list(dimensions) == list(range(len(shape))):
            return x
        return self.emit(hlo.BroadcastInDimOp, x, types=(with_shape(x, shape),), broadcast_dimensions=list(dimensions))

    def broadcast_to(self, x: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """NumPy's broadcasting: trailing dimensions align. Raises VerifyException for a shape of a lower rank."""
        if rank_of(x) > len(shape):
            raise VerifyException(f"a tensor of rank {rank_of(x)} does not broadcast to {tuple(shape)}")
        return self.broadcast(x, shape, range(len(shape) - rank_of(x), len(shape)))

    def reshape(self, x: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """Reshape; no op when nothing changes. Raises VerifyException for a shape of another number of elements."""
        if tuple(shape) == (old := shape_of(x)):
            return x
        if differ_always(dims.product(old), dims.product(shape)):
            raise VerifyException(f"a tensor of shape {old} does not reshape to {tuple(shape)}")
        return self.emit(hlo.ReshapeOp, x, types=(with_shape(x, shape),))

    def transpose(self, x: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Transpose; no op when nothing changes."""
        if list(permutation) == list(range(rank_of(x))):
            return x
        return self.emit(hlo.TransposeOp, x, permutation=list(permutation))

    def slice(
        self, x: SSAValue, starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[int] | None = None
    ) -> SSAValue:
        """A static slice (sizes may be symbolic); no op when it takes all."""
        steps = list(strides or [1] * rank_of(x))
        if tuple(limits) == shape_of(x) and all(s == 0 for s in starts) and all(s == 1 for s in steps):
            return x
        return self.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=steps)

    def take(self, x: SSAValue, starts: Sequence[Size], counts: Sequence[Size], strides: Sequence[int]) -> SSAValue:
        """The slice of `counts` elements per dimension from `starts` by `strides`; every count is at least 1."""
        limits = [start + (n - 1) * step + 1 for start, n, step in zip(starts, counts, strides, strict=True)]
        return self.slice(x, starts, limits, strides)

    def slice_axis(self, x: SSAValue, axis: int, start: Size, limit: Size, stride: int = 1) -> SSAValue:
        """A slice along one axis."""
        starts: list[Size] = [0] * rank_of(x)
        limits, strides = list(shape_of(x)), [1] * rank_of(x)
        starts[axis], limits[axis], strides[axis] = start, limit, stride
        return self.slice(x, starts, limits, strides)

    def pad(self, x: SSAValue, value: SSAValue, low: Sequence[Size], high: Sequence[Size],
            interior: Sequence[int] | None = None) -> SSAValue:  # fmt: skip
        """Pad; no op when nothing changes."""
        gaps = list(interior or [0] * rank_of(x))
        if all(p == 0 for p in (*low, *high, *gaps)):
            return x
        return self.emit(
            hlo.PadOp, x, value, edge_padding_low=list(low), edge_padding_high=list(high), interior_padding=gaps
        )

    def concatenate(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """Concatenate; one operand is itself."""
        return values[0] if len(values) == 1 else self.emit(hlo.ConcatenateOp, *values, dimension=axis)

    def convert(self, x: SSAValue, element: Attribute | str) -> SSAValue:
        """Convert to an element type; no op when it has it."""
        target = tensor(shape_of(x), element)
        return x if target == x.type else self.emit(hlo.ConvertOp, x, types=(target,))

    def widen(self, x: SSAValue) -> SSAValue:
        """A tensor of floats narrower than f32 in f32; any other is itself."""
        return self.convert(x, "f32") if is_narrow_float(dtype_text(x.type)) else x

    # ---- arithmetic ----

    def broadcast_shape(self, *shapes: Sequence[Size]) -> tuple[Size, ...]:
        """NumPy's broadcast shape; relations between unrelated symbols are noted in `constraints`."""
        rank = max((len(s) for s in shapes), default=0)
        result: list[Size] = [1] * rank
        for shape in shapes:
            for i, size in enumerate(shape, start=rank - len(shape)):
                known = result[i]
                result[i], kind = dims.broadcast_dim(known, size)
                if kind is not None:
                    self.constraints.append(Constraint(kind, known, size, locations.describe(self.location)))
        return tuple(result)

    def binary(self, op: type[GraphOp], x: SSAValue, y: SSAValue, **properties: Any) -> SSAValue:
        """A binary op on operands of one element type, with NumPy's broadcasting."""
        shape = self.broadcast_shape(shape_of(x), shape_of(y))
        return self.emit(op, self.broadcast_to(x, shape), self.broadcast_to(y, shape), **properties)

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x + y, broadcasting."""
        return self.binary(hlo.AddOp, x, y)

    def subtract(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x - y, broadcasting."""
        return self.binary(hlo.SubtractOp, x, y)

    def multiply(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x * y, broadcasting."""
        return self.binary(hlo.MultiplyOp, x, y)

    def divide(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x / y, broadcasting."""
        return self.binary(hlo.DivideOp, x, y)

    def maximum(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The larger, broadcasting."""
        return self.binary(hlo.MaximumOp, x, y)

    def minimum(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The smaller, broadcasting."""
        return self.binary(hlo.MinimumOp, x, y)

    def compare(self, x: SSAValue, y: SSAValue, direction: str) -> SSAValue:
        """Compare, broadcasting; the comparison type follows from the element type."""
        return self.binary(hlo.CompareOp, x, y, comparison_direction=direction, compare_type=comparison_type(x))

    def select(self, pred: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        """Select, broadcasting all three."""
        shape = self.broadcast_shape(shape_of(pred), shape_of(on_true), shape_of(on_false))
        return self.emit(hlo.SelectOp, *[self.broadcast_to(v, shape) for v in (pred, on_true, on_false)])

    def scale(self, x: SSAValue, factor: float) -> SSAValue:
        """x times a scalar."""
        return self.multiply(x, self.full((), factor, element_of(x)))

    # ---- contraction and reduction ----

    def dot(
        self, x: SSAValue, y: SSAValue, dimensions: DotDimensions, element: Attribute | str | None = None
    ) -> SSAValue:
        """dot_general, of the operands' element type unless `element` says otherwise."""
        op = hlo.DotGeneralOp.of(x, y, types=(x.type,), dot_dimension_numbers=dimensions)
        shape = op.result_shape()
        op.drop_all_references()
        result = tensor(shape, element_of(x) if element is None else element)
        return self.emit(hlo.DotGeneralOp, x, y, types=(result,), dot_dimension_numbers=dimensions)

    def convolution(
        self, x: SSAValue, kernel: SSAValue, element: Attribute | str | None = None, **properties: Any
    ) -> SSAValue:
        """A convolution of the operands' element type unless `element` says otherwise."""
        op = hlo.ConvolutionOp.of(x, kernel, types=(x.type,), **properties)
        result = tensor(op.result_shape(), element_of(x) if element is None else element)
        op.drop_all_references()
        return self.emit(hlo.ConvolutionOp, x, kernel, types=(result,), **properties)

    def matmul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """NumPy's matmul for operands of rank 1 or more."""
        rank_x, rank_y = rank_of(x), rank_of(y)
        if rank_x == 1:
            return self._drop_axis(self.matmul(self.reshape(x, (1, *shape_of(x))), y), -2 if rank_y > 1 else -1)
        if rank_y == 1:
            return self._drop_axis(self.matmul(x, self.reshape(y, (*shape_of(y), 1))), -1)
        if rank_y == 2:
            return self.dot(x, y, DotDimensions((), (), (rank_x - 1,), (0,)))
        batch = self.broadcast_shape(shape_of(x)[:-2], shape_of(y)[:-2])
        x = self.broadcast_to(x, (*batch, *shape_of(x)[-2:]))
        y = self.broadcast_to(y, (*batch, *shape_of(y)[-2:]))
        axes, n = tuple(range(len(batch))), len(batch)
        return self.dot(x, y, DotDimensions(axes, axes, (n + 1,), (n,)))

    def _drop_axis(self, x: SSAValue, axis: int) -> SSAValue:
        shape = list(shape_of(x))
        del shape[axis]
        return self.reshape(x, shape)

    def reduce(self, op: type[GraphOp], x: SSAValue, axes: Sequence[int], *, keepdims: bool = False) -> SSAValue:
        """Fold `axes` with a binary op from its identity."""
        init = self.full((), identity(op, dtype_text(x.type)), element_of(x))
        folded = self.insert(hlo.ReduceOp.apply(op, x, init, sorted(axes))).results[0]
        if not keepdims:
            return folded
        return self.reshape(folded, [1 if i in axes else s for i, s in enumerate(shape_of(x))])

    def mean(self, x: SSAValue, axes: Sequence[int], *, keepdims: bool = False) -> SSAValue:
        """The mean over `axes`: the sum divided by the count."""
        total = self.reduce(hlo.AddOp, x, axes, keepdims=keepdims)
        count = dims.product([shape_of(x)[a] for a in axes])
        return self.divide(total, self.convert(self.dim(count), element_of(x)))

    # ---- regions ----

    def region(
        self, arguments: Sequence[Attribute], body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
    ) -> Region:
        """A region of one block: `body` gets its arguments, builds inside it, and says what it returns."""
        block = Block(arg_types=arguments)
        with self.inside(block):
            self.insert(hlo.ReturnOp.of(*body(block.args)))
        return Region(block)


def _uniform(array: Array) -> bool:
    raw, item = array.tobytes(), array.dtype.itemsize
    return raw == raw[:item] * array.size


def comparison_type(x: SSAValue) -> str:
    """The comparison type for the operand's element type."""
    text = dtype_text(x.type)
    if is_float(text) or is_complex(text):
        return "FLOAT"
    return "SIGNED" if text[0] == "i" and text != "i1" else "UNSIGNED"


def lowest(text: str) -> Any:
    """The least value of an element type (minus infinity where there is one)."""
    return _extreme(text, -1)


def highest(text: str) -> Any:
    """The greatest value of an element type (infinity where there is one)."""
    return _extreme(text, 1)


def _extreme(text: str, sign: int) -> Any:
    import ml_dtypes

    if text == "i1":
        return sign > 0
    if is_integer(text):
        info = ml_dtypes.iinfo(dtype_of(text))
        return info.max if sign > 0 else info.min
    if is_complex(text):
        # Complex numbers are ordered by their real parts, and those that are equal by their imaginary ones.
        return complex(sign * np.inf, sign * np.inf)
    infinite = np.asarray(sign * np.inf).astype(dtype_of(text))
    if np.isinf(infinite.astype(np.float64)):
        return infinite
    limits: Any = cast(Any, ml_dtypes.finfo)(dtype_of(text))
    return limits.max if sign > 0 else limits.min


IDENTITIES: dict[type[GraphOp], Callable[[str], Any]] = {
    hlo.AddOp: lambda _: 0,
    hlo.MultiplyOp: lambda _: 1,
    hlo.MaximumOp: lowest,
    hlo.MinimumOp: highest,
    hlo.AndOp: lambda t: -1 if t[0] == "i" and t != "i1" else highest(t),
    hlo.OrOp: lambda _: 0,
    hlo.XorOp: lambda _: 0,
}


def identity(op: type[GraphOp], text: str) -> Any:
    """The value that a binary op leaves unchanged. KeyError for an op without one."""
    return IDENTITIES[op](text)
