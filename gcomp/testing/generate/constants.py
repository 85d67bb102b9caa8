"""Steps that make values from nothing: constants, weights, counting numbers, inputs, sizes."""

from __future__ import annotations

from gcomp import dims
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp, WeightOp
from gcomp.ir.types import COMPLEX, FLOATS, INTEGERS, tensor, tensor_of
from gcomp.testing.generate.growth import Growth, step

_COUNTED = INTEGERS | FLOATS | COMPLEX
_LARGEST_BOUND = 64


@step("constant", hlo.ConstantOp, WeightOp, weight=2)
def constant(g: Growth) -> None:
    """A splat, a repeated scalar, counting numbers, edge values, or a weight."""
    type = tensor(g.shape(), g.text_among(None))
    g.keep(g.constant(type))


@step("computed-constant", hlo.ConstantOp, hlo.AddOp, weight=1)
def computed_constant(g: Growth) -> None:
    """An op on two constants, which folding computes."""
    x = g.pick(INTEGERS | FLOATS)
    op = g.choices.chosen((hlo.AddOp, hlo.MultiplyOp, hlo.SubtractOp, hlo.MaximumOp, hlo.DivideOp))
    pair = [g.constant(tensor_of(x)) for _ in range(2)]
    g.emit(op, *pair, types=(x.type,))


@step("iota", hlo.IotaOp, weight=2)
def iota(g: Growth) -> None:
    """Indices along any dimension."""
    shape = g.shape(least=1)
    type = tensor(shape, g.text_among(_COUNTED))
    g.emit(hlo.IotaOp, types=(type,), iota_dimension=g.choices.integer(0, len(shape) - 1))


@step("input", weight=1)
def new_input(g: Growth) -> None:
    """Another input, of a type that the program may not have yet."""
    value = g.fresh(tensor(g.shape(), g.text_among(None)))
    g.keep(value)


@step("dim", DimOp, weight=0.4)
def dim(g: Growth) -> None:
    """The value of a symbolic size, or a counted one where there is none."""
    if not g.symbols:
        g.keep(g.constant(tensor((), "i64")))
        return
    size = g.symbolic_size() if g.choices.flag() else _bound_size(g)
    g.keep(g.b.dim(size, g.choices.chosen(("i64", "i32"))))


def _bound_size(g: Growth) -> dims.Size:
    """The least or the greatest of a size and a number, one that a pass compares with too; or a part of it, the rest,
    or what is made of either by way of a sum or a product."""
    choices, size = g.choices, dims.symbol(g.choices.chosen(list(g.symbols)))
    own = [int(n) for n in g.compared if n == int(n) and 0 < n < _LARGEST_BOUND]
    bound = choices.chosen(own) if own and choices.flag() else choices.chosen((2, 1, 3, 4))
    kind = choices.integer(0, 5)
    if choices.flag(0.25):
        size = size + choices.chosen((1, -1, bound - 1, 2))
    if kind <= 1:
        return (dims.dmin, dims.dmax)[kind](size, bound)
    if kind == 2:
        return dims.dmax(size - bound, 0)
    part = (dims.floordiv, dims.ceildiv, dims.mod)[kind - 3](size, bound)
    return choices.chosen((part, part, bound * part, part + 1, dims.dmax(size - part, 0)))
