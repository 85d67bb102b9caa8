"""Importers of com.microsoft: products of 8-bit tensors, summed in i32 and scaled once."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.operators.microsoft.quantized import channels_first, known_operand, on, quantize
from gcomp.frontends.onnx.operators.microsoft.signature import contrib
from gcomp.frontends.onnx.operators.quantization import SINGLE, dynamic_parameters, dynamically_quantized
from gcomp.frontends.onnx.operators.quantized_products import along, center_operand, qlinear_convolved, sum_products
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import rank_of, shape_of


@contrib(
    "QLinearConv",
    "x:byte x_scale:f32 x_zero_point:byte w:byte w_scale:f32 w_zero_point:byte y_scale:f32 y_zero_point:byte B:i32[1]?",
    "auto_pad channels_last dilations group kernel_shape pads strides",
)
def qlinear_conv(ctx: NodeContext) -> Results:
    """QLinearConv: as ONNX's; input and result may have channels last, the kernel has its own first."""
    _same(ctx, (0, 2), (3, 5))
    return [channels_first(ctx, center_operand(ctx, 0, 2, None, "input's"), lambda x: qlinear_convolved(ctx, x))]


def _same(ctx: NodeContext, *pairs: tuple[int, int]) -> None:
    """Check that zero points have the dtypes of their tensors."""
    for index, zero in pairs:
        if ctx.has(zero) and ctx.element(index) != ctx.element(zero):
            ctx.invalid(f"input {zero}, a zero point, is {ctx.element(zero)}", f"its tensor is {ctx.element(index)}")


@contrib("MatMulInteger16", "A:any B:any")
def matmul_integer_16(ctx: NodeContext) -> Results:
    """MatMulInteger16: products of 16-bit integers summed in 32 bits, unsigned where both are."""
    elements = ctx.element(), ctx.element(1)
    if not set(elements) <= {"i16", "ui16"}:
        ctx.invalid(f"its inputs are {' and '.join(elements)}", "i16 or ui16 is expected")
    if not ctx.rank() or not ctx.rank(1):
        ctx.invalid("an input has rank 0", "vectors or matrices are expected")
    wide = "ui32" if set(elements) == {"ui16"} else "i32"
    return [ctx.matmul(ctx.b.convert(ctx[0], wide), ctx.b.convert(ctx[1], wide))]


@contrib(
    "QGemm",
    "A:byte[2] a_scale:f32 a_zero_point:byte B:byte[2] b_scale:f32 b_zero_point:byte C:i32? y_scale:f32? "
    "y_zero_point:byte?",
    "alpha transA transB",
)
def qgemm(ctx: NodeContext) -> Results:
    """QGemm: `alpha * a_scale * b_scale * (A @ B + C)`, per column of B; quantized if y_scale is given."""
    b = ctx.b
    _same(ctx, (0, 2), (3, 5))
    columns = 0 if ctx.flag("transB") else 1
    x, y = center_operand(ctx, 0, 2, None, "A's"), center_operand(ctx, 3, 5, columns, "B's")
    inner = (0 if ctx.flag("transA") else 1, 1 - columns)
    x, y = ctx.match_dims(x, inner[0], y, inner[1])
    total = b.dot(x, y, DotDimensions((), (), (inner[0],), (inner[1],)))
    if ctx.has(6):
        total = b.add(total, along(ctx, ctx[6], shape_of(total), 1, "bias"))
    result = scale_products(ctx, total, ctx[1], ctx[4])
    alpha = ctx.number("alpha", 1.0)
    result = result if alpha == 1 else b.scale(result, alpha)
    if ctx.has(7) != ctx.has(8):
        ctx.invalid("y_scale or y_zero_point is missing", "both or neither are expected")
    return [quantize(ctx, result, 7, 8, ctx.element(8)) if ctx.has(7) else result]


def scale_products(ctx: NodeContext, total: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
    """Sums of products times the left operand's one scale and the right one's, which may be given per column."""
    b, shape = ctx.b, shape_of(total)
    if shape_of(left) not in SINGLE:
        ctx.unsupported(f"the left operand's scale has shape {shape_of(left)}; gcomp takes one for the whole operand")
    column = len(shape) - 1 if shape else None
    factor = b.multiply(along(ctx, left, shape, None, "left scale"), along(ctx, right, shape, column, "right scale"))
    return b.multiply(b.convert(total, "f32"), factor)


def _add_bias(ctx: NodeContext, x: SSAValue, index: int) -> SSAValue:
    if not ctx.has(index):
        return x
    bias = ctx.vector(index, shape_of(x)[-1])
    return ctx.b.add(x, ctx.b.broadcast(bias, shape_of(x), (rank_of(x) - 1,)))


@contrib(
    "MatMulIntegerToFloat",
    "A:byte B:byte a_scale:f32 b_scale:f32 a_zero_point:byte? b_zero_point:byte? bias:f32[1]?",
)
def matmul_integer_to_float(ctx: NodeContext) -> Results:
    """MatMulIntegerToFloat: `a_scale * b_scale * (A @ B) + bias`, per column of B."""
    _same(ctx, (0, 4), (1, 5))
    total = sum_products(ctx, (0, 4), (1, 5))
    return [_add_bias(ctx, scale_products(ctx, total, ctx[2], ctx[3]), 6)]


@contrib("DynamicQuantizeMatMul", "A:f32 B:byte b_scale:f32 b_zero_point:byte? bias:f32[1]?")
def dynamic_quantize_matmul(ctx: NodeContext) -> Results:
    """DynamicQuantizeMatMul: A quantized to uint8 by its own range, times B, per column of B, plus bias."""
    _same(ctx, (1, 3))
    scale, zero = dynamic_parameters(ctx, ctx[0])
    x = dynamically_quantized(ctx, ctx[0], scale, zero)
    total = sum_products(on(ctx, "MatMulInteger", [x, ctx.value(1), zero, known_operand(ctx, 3)]), (0, 2), (1, 3))
    return [_add_bias(ctx, scale_products(ctx, total, scale, ctx[2]), 4)]
