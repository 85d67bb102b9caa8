"""Importers of com.microsoft: weights of a few bits, packed into bytes, with a scale for each block.

They stay packed in memory. What the program holds is their unpacking: shifts and masks, then the scaling, in f32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_float, is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.gathering import take, wrap_indices
from gcomp.ir.types import dtype_text, rank_of, shape_of

COLUMNS = 64
"""Columns of weights that are unpacked together: bytes of a line of a cache."""


def unpack_bits(ctx: NodeContext, x: SSAValue, bits: int, *, high_first: bool = False) -> SSAValue:
    """Bytes as the numbers of `bits` bits in them, along the last dim; the lowest bits are the first number."""
    b, shape, count = ctx.b, shape_of(x), 8 // bits
    if count == 1:
        return x
    wide = (*shape, count)
    shifts = [i * bits for i in range(count)]
    shift = b.constant(np.array(shifts[::-1] if high_first else shifts, np.uint8))
    spread = b.broadcast(x, wide, range(len(shape)))
    parts = b.emit(hlo.ShiftRightLogicalOp, spread, b.broadcast(shift, wide, (len(shape),)))
    masked = b.emit(hlo.AndOp, parts, b.full(wide, (1 << bits) - 1, "ui8"))
    return b.reshape(masked, (*shape[:-1], shape[-1] * count))


def _bits(ctx: NodeContext, default: int = 4) -> int:
    bits = ctx.integer("bits", default)
    if bits not in (2, 4, 8):
        ctx.unsupported(
            f"bits is {bits}: numbers of this width do not fill bytes", fix="pack weights in 2, 4 or 8 bits"
        )
    return bits


def _block_size(ctx: NodeContext, default: int = 0) -> int:
    size = ctx.integer("block_size", default)
    if size < 16 or size & (size - 1):
        ctx.invalid(f"block_size is {size}", "a power of two, from 16 on, is expected")
    return size


def _reshape_operand(ctx: NodeContext, index: int, shape: tuple[int, ...]) -> SSAValue:
    """An operand of a shape, or flattened, as older exporters wrote it."""
    given = ctx.shape(index)
    if given not in (shape, (math.prod(shape),)):
        ctx.invalid(f"input {index} has shape {given}", f"{shape} is expected")
    return ctx.b.reshape(ctx[index], shape)


# ---- matrix products -----------------------------------------------------------------------------------------------


@contrib(
    "MatMulNBits",
    "A:T B:ui8 scales:T zero_points:any? g_idx:i32[1]? bias:T[1]?",
    "K! N! accuracy_level bits block_size! weight_prepacked",
)
def matmul_nbits(ctx: NodeContext) -> Results:
    """MatMulNBits: A (..., K) times the transpose of the packed weights (N, K), plus bias.

    `accuracy_level` allows a backend to compute less exactly, and is ignored. `g_idx` names each row's block.
    """
    if ctx.integer("weight_prepacked"):
        ctx.unsupported("its weights are laid out for one kind of GPU", fix="export with weight_prepacked = 0")
    blocks = _Blocks.of(ctx, positive(ctx, "N"), positive(ctx, "K"))
    if not ctx.has(4) and ctx.rank() and dims.product(ctx.shape()[:-1]) == 1:
        return [_add_bias(ctx, blocks.filled(ctx).row_product(ctx, blocks.n), 5)]
    return [_product(ctx, blocks.weights(ctx), 0, 5)]


def _product(ctx: NodeContext, weights: SSAValue, contracted: int, bias: int) -> SSAValue:
    """Operand 0 times f32 weights, summed in f32, of the operand's dtype."""
    b, rank = ctx.b, ctx.rank()
    if not rank:
        ctx.invalid("A has rank 0", "rank 1 or more is expected")
    x = ctx.restate(b.convert(ctx[0], "f32"), {rank - 1: shape_of(weights)[contracted]})
    return _add_bias(ctx, b.dot(x, weights, DotDimensions((), (), (rank - 1,), (contracted,))), bias)


def _add_bias(ctx: NodeContext, y: SSAValue, bias: int) -> SSAValue:
    """f32 sums plus an optional bias, in the dtype of operand 0."""
    b = ctx.b
    if ctx.has(bias):
        vector = b.convert(ctx.vector(bias, shape_of(y)[-1]), "f32")
        y = b.add(y, b.broadcast(vector, shape_of(y), (rank_of(y) - 1,)))
    return b.convert(y, ctx.element())


@dataclass(frozen=True)
class _Blocks:
    """The weights of MatMulNBits, with columns of the product last: loops over them read consecutive memory.

    What the file holds by rows is transposed, which is folded into weights that are known.
    """

    n: int
    k: int
    size: int
    bits: int
    packed: SSAValue
    """(blocks, bytes, N)."""
    scale: SSAValue
    """(blocks, N), in f32."""
    zero: SSAValue
    """(blocks, N) or one number, in f32."""

    @staticmethod
    def of(ctx: NodeContext, n: int, k: int) -> _Blocks:
        """What the operands hold, N columns of K weights."""
        b, bits, size = ctx.b, _bits(ctx), _block_size(ctx)
        count = -(-k // size)
        packed = b.transpose(_reshape_operand(ctx, 1, (n, count, size * bits // 8)), (1, 2, 0))
        scale = b.convert(b.transpose(_reshape_operand(ctx, 2, (n, count)), (1, 0)), "f32")
        zero = _zero_points(ctx, n, count, bits)
        middle = b.full((), 1 << (bits - 1), "f32")
        return _Blocks(n, k, size, bits, packed, scale, middle if zero is None else b.transpose(zero, (1, 0)))

    @property
    def count(self) -> int:
        """How many blocks a column has."""
        return -(-self.k // self.size)

    def weights(self, ctx: NodeContext) -> SSAValue:
        """The weights, (K, N), in f32."""
        b = ctx.b
        parts = [b.reshape(v, (self.count, self._bytes, 1, self.n)) for v in self._planes(ctx)]
        quantized = b.reshape(b.concatenate(parts, 2), (self.count * self.size, self.n))
        quantized = b.convert(b.slice_axis(quantized, 0, 0, self.k), "f32")
        return b.multiply(b.subtract(quantized, self._each(ctx, self.zero)), self._each(ctx, self.scale))

    @property
    def _bytes(self) -> int:
        return self.size * self.bits // 8

    def _each(self, ctx: NodeContext, parameter: SSAValue) -> SSAValue:
        """One parameter for each weight, (K, N); `g_idx` names each row's block."""
        b = ctx.b
        if not shape_of(parameter):
            return b.broadcast(parameter, (self.k, self.n), ())
        if ctx.has(4):
            return take(b, parameter, wrap_indices(b, ctx.vector(4, self.k), self.count), 0)
        spread = b.broadcast(parameter, (self.count, self.size, self.n), (0, 2))
        return b.slice_axis(b.reshape(spread, (self.count * self.size, self.n)), 0, 0, self.k)

    def _planes(self, ctx: NodeContext) -> list[SSAValue]:
        """The first weights of all bytes, the second ones, ...: each (blocks, bytes, N), still in 8 bits."""
        b, like, bits = ctx.b, self.packed, self.bits
        planes = [
            b.emit(hlo.ShiftRightLogicalOp, like, b.full(shape_of(like), shift, "ui8")) if shift else like
            for shift in range(0, 8, bits)
        ]
        mask = b.full(shape_of(like), (1 << bits) - 1, "ui8")
        return planes if bits == 8 else [b.emit(hlo.AndOp, plane, mask) for plane in planes]

    def filled(self, ctx: NodeContext) -> _Blocks:
        """The same with columns of zeros at the end, a multiple of `COLUMNS` in all; only of known weights without zero
        points, and where that is little beside the columns that there are."""
        packed, scale, b = ctx.known_value(1), ctx.known_value(2), ctx.b
        if packed is None or scale is None or ctx.has(3) or self.n % COLUMNS == 0 or self.n < 8 * COLUMNS:
            return self
        more = [(0, -self.n % COLUMNS), (0, 0), (0, 0)]
        packed = np.pad(packed.reshape(self.n, self.count, self._bytes), more).transpose(1, 2, 0)
        scale = np.pad(scale.reshape(self.n, self.count), more[:2]).transpose(1, 0)
        wide = b.constant(np.ascontiguousarray(packed)), b.convert(b.constant(np.ascontiguousarray(scale)), "f32")
        return replace(self, n=self.n + more[0][1], packed=wide[0], scale=wide[1])

    def row_product(self, ctx: NodeContext, columns: int) -> SSAValue:
        """One row (..., K) times the weights, of which so many columns count. Sums within blocks, then over them, never
        store the unpacked weights."""
        b, shape = ctx.b, ctx.shape()
        x = ctx.restate(b.convert(ctx[0], "f32"), {len(shape) - 1: self.k})
        per_byte = 8 // self.bits
        padded = b.pad(b.reshape(x, (self.k,)), ctx.b.scalar_like(x, 0), (0,), (self.count * self.size - self.k,))
        x = b.reshape(padded, (self.count, self._bytes, per_byte))
        total: SSAValue | None = None
        for i, plane in enumerate(self._planes(ctx)):
            part = b.reshape(b.slice_axis(x, 2, i, i + 1), (self.count, self._bytes))
            zero = b.broadcast(self.zero, shape_of(plane), (0, 2) if shape_of(self.zero) else ())
            terms = b.multiply(b.subtract(b.convert(plane, "f32"), zero), b.broadcast(part, shape_of(plane), (0, 1)))
            total = terms if total is None else b.add(total, terms)
        assert total is not None
        blocks = b.multiply(b.reduce(hlo.AddOp, total, [1]), self.scale)
        row = b.slice_axis(b.reduce(hlo.AddOp, blocks, [0]), 0, 0, columns)
        return b.reshape(row, (*shape[:-1], columns))


def _zero_points(ctx: NodeContext, n: int, blocks: int, bits: int) -> SSAValue | None:
    """The zero points (N, blocks) in f32: packed as the weights are, or floats; None where there are none."""
    if not ctx.has(3):
        return None
    if ctx.element(3) != "ui8":
        if ctx.element(3) != ctx.element():
            ctx.invalid(f"zero_points are {ctx.element(3)}", f"ui8 or {ctx.element()} is expected")
        return ctx.b.convert(_reshape_operand(ctx, 3, (n, blocks)), "f32")
    packed = _reshape_operand(ctx, 3, (n, -(-blocks * bits // 8)))
    return ctx.b.convert(ctx.b.slice_axis(unpack_bits(ctx, packed, bits), 1, 0, blocks), "f32")


_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_BNB4 = {0: (*_FP4, *(-v for v in _FP4)), 1: _NF4}
"""quant_type -> the number that each of the 16 codes of bitsandbytes stands for."""


@contrib("MatMulBnb4", "A:T B:ui8[1] absmax:T[1]", "K! N! block_size! quant_type! training_mode transB")
def matmul_bnb4(ctx: NodeContext) -> Results:
    """MatMulBnb4: A times weights (N, K), or with transB their transpose, of 16 codes and a scale for each block."""
    b, n, k, size = ctx.b, positive(ctx, "N"), positive(ctx, "K"), _block_size(ctx)
    table = _BNB4.get(ctx.integer("quant_type"))
    if table is None:
        ctx.invalid(f"quant_type is {ctx.integer('quant_type')}", "0 (FP4) or 1 (NF4) is expected")
    count, blocks = n * k, -(-n * k // size)
    codes = unpack_bits(ctx, _reshape_operand(ctx, 1, ((count + 1) // 2,)), 4, high_first=True)
    numbers = take(b, b.constant(np.array(table, np.float32)), b.convert(codes, "i32"), 0)
    scale = b.convert(_reshape_operand(ctx, 2, (blocks,)), "f32")
    spread = b.reshape(b.broadcast(scale, (blocks, size), (0,)), (blocks * size,))
    weights = b.multiply(b.slice_axis(numbers, 0, 0, count), b.slice_axis(spread, 0, 0, count))
    return [_product(ctx, b.reshape(weights, (n, k)), 1 if ctx.flag("transB", True) else 0, 3)]


# ---- rows of tables ----------------------------------------------------------------------------------------------


@contrib(
    "GatherBlockQuantized",
    "data:any indices:int scales:float zero_points:any?",
    "bits block_size gather_axis quantize_axis",
)
def gather_block_quantized(ctx: NodeContext) -> Results:
    """GatherBlockQuantized: Gather, then a dequantization by blocks; what lies outside is 0."""
    b, rank = ctx.b, ctx.rank()
    gathered, axis = (ctx.axis(ctx.integer(f"{name}_axis", at), rank) for name, at in (("gather", 0), ("quantize", 1)))
    _check_gather(ctx, gathered, axis)
    bits = _bits(ctx) if ctx.element() == "ui8" else 8
    size = _gather_block(ctx, axis)
    limit = ctx.shape()[gathered]
    rows, inside = _bound(ctx, ctx[1], limit)
    count = rank_of(rows)

    def pick(x: SSAValue, by: int, packed: bool) -> SSAValue:
        """An operand's slices in the rank of the result, in f32; `by` rows of the data share one of the operand."""
        at = rows if by == 1 else b.divide(rows, b.full_like(rows, by))
        one = shape_of(x)[gathered] == 1 and limit != 1
        found = take(b, x, b.full_like(at, 0) if one else at, gathered)
        return b.convert(unpack_bits(ctx, found, bits) if packed else found, "f32")

    share = size if gathered == axis else 1
    y = pick(ctx[0], 1, packed=bits < 8)
    place = axis + count - 1 if axis > gathered else axis
    default = 1 << (bits - 1) if ctx.element() == "ui8" else 0
    zero = pick(ctx[3], share, packed=bits < 8) if ctx.has(3) else None
    for parameter, combine in ((zero, b.subtract), (pick(ctx[2], share, packed=False), b.multiply)):
        if parameter is not None:
            spread = parameter if gathered == axis else _repeat(ctx, parameter, place, size, shape_of(y))
            y = combine(y, b.broadcast_to(spread, shape_of(y)))
        elif default:
            y = b.subtract(y, ctx.b.scalar_like(y, default))
    kept = b.broadcast(inside, shape_of(y), range(gathered, gathered + count))
    return [b.convert(b.select(kept, y, ctx.b.scalar_like(y, 0)), ctx.element(2))]


def _check_gather(ctx: NodeContext, gathered: int, axis: int) -> None:
    element = ctx.element()
    if element not in ("i4", "ui4", "ui8") and not (element.startswith("f8E") or element == "f4E2M1FN"):
        ctx.invalid(f"data is {element}", "i4, ui4, ui8 or a float of 8 or 4 bits is expected")
    if ctx.rank(2) != ctx.rank():
        ctx.invalid(f"scales have rank {ctx.rank(2)}", f"data has rank {ctx.rank()}")
    if ctx.has(3) and (is_float(element) or ctx.element(3) != element or ctx.rank(3) != ctx.rank()):
        ctx.invalid(
            f"zero_points are {ctx.element(3)} of rank {ctx.rank(3)}", f"data is {element} of rank {ctx.rank()}"
        )
    if element == "ui8" and (gathered != 0 or (ctx.integer("bits", 4) < 8 and axis != ctx.rank() - 1)):
        ctx.unsupported(f"it gathers along dim {gathered} and has blocks along dim {axis}: packed data is read by rows")
    if element == "ui8" and gathered == axis:
        ctx.invalid("gather_axis and quantize_axis are the same", "packed data has blocks inside its rows")


def _gather_block(ctx: NodeContext, axis: int) -> int:
    """The block size; 0 stands for the whole axis."""
    if is_integer(ctx.element()) or ctx.integer("block_size", 128):
        return _block_size(ctx, 128)
    return ctx.static(ctx.shape()[axis], "size of the quantized axis")


def _bound(ctx: NodeContext, indices: SSAValue, size: Size) -> tuple[SSAValue, SSAValue]:
    """Indices counted from the front and made to lie inside, and whether they did."""
    b, text = ctx.b, dtype_text(indices.type)
    front = wrap_indices(b, indices, size)
    zero, end = b.constant(0, text), b.dim(size, text)
    inside = b.emit(hlo.AndOp, b.compare(front, zero, "GE"), b.compare(front, end, "LT"))
    return b.select(inside, front, b.full_like(front, 0)), inside


def _repeat(ctx: NodeContext, x: SSAValue, axis: int, size: int, like: tuple[Size, ...]) -> SSAValue:
    """Each parameter `size` times along the axis, as many as the result has; other dims may be 1."""
    b, shape = ctx.b, shape_of(x)
    x = ctx.restate(
        x, {axis: dims.ceildiv(like[axis], size)} | {i: s for i, s in enumerate(like) if i != axis and shape[i] != 1}
    )
    shape = shape_of(x)
    wide = b.broadcast(x, (*shape[: axis + 1], size, *shape[axis + 1 :]), [i + (i > axis) for i in range(len(shape))])
    flat = b.reshape(wide, (*shape[:axis], shape[axis] * size, *shape[axis + 1 :]))
    return b.slice_axis(flat, axis, 0, like[axis])
