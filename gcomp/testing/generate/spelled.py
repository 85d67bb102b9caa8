"""What passes that raise look for: softmax, norms, activations, attention, written with primitives, or nearly so."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.composites import composite
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor, tensor_of
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.passes import seeks

_FLOATS = frozenset({tensor((), t).element_type for t in ("f32", "f64", "f16", "bf16")})
_NEARLY = 0.08
"""How often each place of a definition is spelled in a way that means something else."""


def _wrong(g: Growth) -> bool:
    return g.choices.flag(_NEARLY)


def _spread(g: Growth, value: SSAValue, axes: list[int], shape: tuple[Size, ...]) -> SSAValue:
    """A folded value along the folded axes again: directly, or by way of dimensions of size 1."""
    kept = [d for d in range(len(shape)) if d not in axes]
    if g.choices.flag(0.5):
        return g.b.broadcast(value, shape, kept)
    return g.b.broadcast_to(_unit(g, value, axes, shape), shape)


def _unit(g: Growth, value: SSAValue, axes: list[int], shape: tuple[Size, ...]) -> SSAValue:
    """A folded value with size 1 along the folded axes: by a reshape, or by a broadcast."""
    units = [1 if d in axes else size for d, size in enumerate(shape)]
    kept = [d for d in range(len(shape)) if d not in axes]
    return g.b.reshape(value, units) if g.choices.flag(0.5) else g.b.broadcast(value, units, kept)


def _swap(g: Growth, op: type[hlo.MultiplyOp | hlo.AddOp], x: SSAValue, y: SSAValue) -> SSAValue:
    """A commutative op with its operands in random order."""
    return g.b.binary(op, *((x, y) if g.choices.flag(0.5) else (y, x)))


def _product(g: Growth, x: SSAValue, y: SSAValue) -> SSAValue:
    return _swap(g, hlo.MultiplyOp, x, y)


def _sum(g: Growth, x: SSAValue, y: SSAValue) -> SSAValue:
    return _swap(g, hlo.AddOp, x, y)


def _number(g: Growth, like: SSAValue, value: float) -> SSAValue:
    return g.b.full(shape_of(like), value, element_of(like))


def _tensor(g: Growth, least: int = 1, most: int = 4) -> SSAValue:
    return g.pick(_FLOATS, least=least, most=most, empty=False)


# ---- softmax --------------------------------------------------------------------------------------------------------


def _shift(g: Growth, x: SSAValue, axis: int, guarded: bool = False) -> tuple[SSAValue, SSAValue]:
    b, shape = g.b, shape_of(x)
    highest = b.reduce(hlo.MinimumOp if _wrong(g) else hlo.MaximumOp, x, [axis])
    if g.choices.flag(0.4):
        highest = b.maximum(_number(g, highest, 0.0 if _wrong(g) else float("-inf")), highest)
    if guarded and not _wrong(g):
        highest = b.select(b.emit(hlo.IsFiniteOp, highest), highest, _number(g, highest, 1.0 if _wrong(g) else 0.0))
    return b.subtract(x, _spread(g, highest, [axis], shape)), highest


def _axis(g: Growth, x: SSAValue, axis: int) -> int:
    """The axis, or seldom another."""
    return g.choices.integer(0, rank_of(x) - 1) if _wrong(g) else axis


def _softmax(g: Growth, x: SSAValue, axis: int) -> SSAValue:
    exponent = g.b.emit(hlo.ExponentialOp, _shift(g, x, axis)[0])
    other = _axis(g, x, axis)
    total = g.b.reduce(hlo.AddOp, exponent, [other])
    return g.b.divide(exponent, _spread(g, total, [other], shape_of(x)))


@seeks("raise-softmax", weight=4)
def softmax(g: Growth) -> None:
    """A softmax, in f32 around a narrow type at times."""
    x = _tensor(g)
    axis = g.choices.integer(0, rank_of(x) - 1)
    wide = g.b.widen(x) if g.choices.flag(0.5) else x
    g.keep(g.b.convert(_softmax(g, wide, axis), element_of(x)))


@seeks("raise-softmax", weight=3)
def log_softmax(g: Growth) -> None:
    """The logarithm of a softmax."""
    b, x = g.b, _tensor(g)
    axis = g.choices.integer(0, rank_of(x) - 1)
    shifted, _ = _shift(g, x, axis)
    other = _axis(g, x, axis)
    total = b.reduce(hlo.AddOp, b.emit(hlo.ExponentialOp, shifted), [other])
    if g.choices.flag(0.5):
        logarithm = _spread(g, b.emit(hlo.LogOp, total), [other], shape_of(x))
    else:
        logarithm = b.broadcast_to(b.emit(hlo.LogOp, _unit(g, total, [other], shape_of(x))), shape_of(x))
    g.keep(b.subtract(shifted, logarithm))


@seeks("raise-softmax", weight=3)
def logsumexp(g: Growth) -> None:
    """The logarithm of a sum of exponentials."""
    b, x = g.b, _tensor(g)
    axis = g.choices.integer(0, rank_of(x) - 1)
    shifted, highest = _shift(g, x, axis, guarded=True)
    total = b.reduce(hlo.AddOp, b.emit(hlo.ExponentialOp, shifted), [axis])
    total = b.emit(hlo.AbsOp, total) if g.choices.flag(0.5) else total
    added = g.of_type(tensor_of(highest)) if _wrong(g) else highest
    g.keep(_sum(g, b.emit(hlo.LogOp, total), added))


# ---- norms ----------------------------------------------------------------------------------------------------------


def _mean(g: Growth, x: SSAValue, axes: list[int]) -> SSAValue:
    """The mean with size 1 along the axes."""
    b = g.b
    total = _unit(g, b.reduce(hlo.AddOp, x, axes), axes, shape_of(x))
    count = 1.0
    for axis in axes:
        size = shape_of(x)[axis]
        if not isinstance(size, int):
            return b.mean(x, axes, keepdims=True)
        count *= size
    count += 1 if _wrong(g) else 0
    if count and g.choices.flag(0.3):
        return b.multiply(total, _number(g, total, 1 / count))
    return b.divide(total, _number(g, total, count))


def _square(g: Growth, x: SSAValue) -> SSAValue:
    return g.b.multiply(x, x) if g.choices.flag(0.6) else g.b.emit(hlo.PowerOp, x, _number(g, x, 2.0))


def _over_root(g: Growth, x: SSAValue, variance: SSAValue) -> SSAValue:
    """x / sqrt(variance + epsilon)."""
    b, shape = g.b, shape_of(x)
    epsilon = g.choices.chosen((1e-5, 1e-3, 1.0))
    radicand = _sum(g, variance, _number(g, variance, epsilon))
    match g.choices.integer(0, 2):
        case 0:
            return _product(g, x, b.broadcast_to(b.emit(hlo.RsqrtOp, radicand), shape))
        case 1:
            return b.divide(x, b.broadcast_to(b.emit(hlo.SqrtOp, radicand), shape))
        case _:
            inverse = b.divide(_number(g, radicand, 1.0), b.emit(hlo.SqrtOp, radicand))
            return _product(g, x, b.broadcast_to(inverse, shape))


def _vector(g: Growth, shape: tuple[Size, ...], axes: list[int], element: str) -> SSAValue:
    """A tensor that varies along some dimensions, in the shape of a whole one."""
    found = g.of_type(tensor([shape[a] for a in axes], element))
    return g.b.broadcast(found, shape, axes)


@seeks("raise-norms", weight=4)
def layer_norm(g: Growth) -> None:
    """A layer norm, with a scale and a bias at times."""
    b, source = g.b, _tensor(g)
    x = b.widen(source) if g.choices.flag(0.7) else source
    shape, rank = shape_of(x), rank_of(x)
    axes = list(range(g.choices.integer(0, rank - 1), rank - (1 if _wrong(g) and rank > 1 else 0)))
    mean = _mean(g, x, axes)
    centered = b.subtract(x, b.broadcast_to(mean, shape))
    if g.choices.flag(0.3):
        variance = b.subtract(_mean(g, _square(g, x), axes), _square(g, mean))
        variance = b.maximum(variance, _number(g, variance, 0.0)) if g.choices.flag(0.5) else variance
    else:
        variance = _mean(g, _square(g, x if _wrong(g) else centered), axes)
    result = b.convert(_over_root(g, centered, variance), element_of(source))
    element = dtype_text(result.type)
    other = [_axis(g, x, axes[-1])] if axes and _wrong(g) else axes
    if g.choices.flag(0.6):
        result = _product(g, result, _vector(g, shape, other, element))
        if g.choices.flag(0.6):
            result = _sum(g, result, _vector(g, shape, other, element))
    g.keep(result)


@seeks("raise-norms", weight=3)
def rms_norm(g: Growth) -> None:
    """An RMS norm, with a scale at times."""
    b, source = g.b, _tensor(g)
    x = b.widen(source) if g.choices.flag(0.7) else source
    axes = list(range(g.choices.integer(0, rank_of(x) - 1), rank_of(x)))
    mean = _mean(g, _square(g, b.emit(hlo.AbsOp, x) if _wrong(g) else x), axes)
    result = b.convert(_over_root(g, x, mean), element_of(source))
    if g.choices.flag(0.6):
        result = _product(g, result, _vector(g, shape_of(x), axes, dtype_text(result.type)))
    g.keep(result)


@seeks("raise-norms", weight=2)
def norm_of_square(g: Growth) -> None:
    """A norm over the columns of a square, with a scale along its rows, whose type is that of one along its columns."""
    size = g.choices.chosen((2, 3))
    x = g.fresh(tensor((size, size), g.choices.chosen(("f32", "f64"))))
    centered = x
    if g.choices.flag():
        centered = g.b.subtract(x, g.b.broadcast_to(_mean(g, x, [1]), shape_of(x)))
    result = _over_root(g, centered, _mean(g, _square(g, centered), [1]))
    g.keep(_product(g, result, _vector(g, shape_of(x), [g.choices.chosen((0, 0, 1))], dtype_text(x.type))))


@seeks("raise-norms", weight=3)
def batch_norm(g: Growth) -> None:
    """A batch norm by given statistics."""
    b, x = g.b, _tensor(g)
    shape, element, feature = shape_of(x), dtype_text(x.type), g.choices.integer(0, rank_of(x) - 1)
    mean, variance, scale, bias = (
        g.of_type(tensor([shape[_axis(g, x, feature)]], element)) for _ in range(4)
    )  # fmt: skip
    vectors = (mean, variance, scale, bias)
    if any(shape_of(v) != (shape[feature],) for v in vectors):
        return
    spread = [b.broadcast(v, shape, [feature]) for v in (mean, b.emit(hlo.AbsOp, variance), scale, bias)]
    normalized = _over_root(g, b.subtract(x, spread[0]), spread[1])
    g.keep(_sum(g, _product(g, normalized, spread[2]), spread[3]))


# ---- activations ----------------------------------------------------------------------------------------------------


def _near(g: Growth, value: float) -> float:
    return value * 1.25 if _wrong(g) else value


@seeks("raise-activations", weight=4)
def gelu(g: Growth) -> None:
    """A GELU in one of its spellings."""
    b, x = g.b, _tensor(g, least=0)
    half, one = _number(g, x, _near(g, 0.5)), _number(g, x, _near(g, 1.0))
    match g.choices.integer(0, 3):
        case 0:
            gate = _sum(g, b.emit(chlo.ErfOp, _product(g, x, _number(g, x, _near(g, 2**-0.5)))), one)
        case 1:
            gate = _sum(g, b.emit(chlo.ErfOp, b.divide(x, _number(g, x, _near(g, 2**0.5)))), one)
        case 2:
            gate = b.emit(chlo.ErfcOp, _product(g, b.emit(hlo.NegateOp, x), _number(g, x, _near(g, 2**-0.5))))
        case _:
            gate = _sum(g, b.emit(hlo.TanhOp, _cubic(g, x)), one)
    if g.choices.flag(0.5):
        g.keep(_product(g, _product(g, x, half), gate))
    else:
        g.keep(_product(g, x, _product(g, half, gate)))


def _cubic(g: Growth, x: SSAValue) -> SSAValue:
    b, outer, inner = g.b, _number(g, x, _near(g, 0.7978845608)), _number(g, x, _near(g, 0.044715))
    if g.choices.flag(0.4):
        return _product(g, outer, _product(g, x, _sum(g, _number(g, x, 1.0), _product(g, inner, b.multiply(x, x)))))
    cube = b.multiply(b.multiply(x, x), x)
    if g.choices.flag(0.4):
        cube = b.emit(hlo.PowerOp, x, _number(g, x, 2.0 if _wrong(g) else 3.0))
    return _product(g, outer, _sum(g, x, _product(g, inner, cube)))


@seeks("raise-activations", weight=2)
def gelu_of_a_power(g: Growth) -> None:
    """A GELU by tanh that is right in all but, at times, the power of its last term."""
    b, x = g.b, _tensor(g, least=0)
    power = b.multiply(x, x)
    if g.choices.flag(0.3):
        power = b.multiply(power, x)
    inner = _sum(g, x, _product(g, _number(g, x, 0.044715), power))
    gate = _sum(g, b.emit(hlo.TanhOp, _product(g, _number(g, x, 0.7978845608), inner)), _number(g, x, 1.0))
    g.keep(_product(g, _product(g, x, _number(g, x, 0.5)), gate))


@seeks("raise-activations", weight=3)
def silu(g: Growth) -> None:
    """A SiLU, which gates another value at times."""
    b, x = g.b, _tensor(g, least=0)
    if g.choices.flag(0.6):
        result = _product(g, x, b.emit(hlo.LogisticOp, b.emit(hlo.NegateOp, x) if _wrong(g) else x))
    else:
        exponent = b.emit(hlo.ExponentialOp, x if _wrong(g) else b.emit(hlo.NegateOp, x))
        result = b.divide(x, _sum(g, _number(g, x, 1.0), exponent))
    g.keep(_product(g, result, g.of_type(tensor_of(x))) if g.choices.flag(0.5) else result)


# ---- rotary embedding and attention ---------------------------------------------------------------------------------


@seeks("raise-rotary", weight=4)
def rotary(g: Growth) -> None:
    """A rotary embedding, whole or by halves."""
    b, choices = g.b, g.choices
    x = g.of_type(tensor([choices.integer(1, 3), choices.integer(1, 3), 2 * choices.integer(1, 3)],
                         choices.chosen(("f32", "f16", "f64"))))  # fmt: skip
    shape, element, last = shape_of(x), dtype_text(x.type), rank_of(x) - 1
    size = shape[last]
    assert isinstance(size, int)
    low, high = b.slice_axis(x, last, 0, size // 2), b.slice_axis(x, last, size // 2, size)
    if _wrong(g):
        low, high = high, low
    axes = [1, 2] if choices.flag(0.7) else [0, 1, 2]
    if choices.flag(0.5):
        cosine, sine = (_vector(g, shape, axes, element) for _ in range(2))
        joined = b.concatenate([high if _wrong(g) else b.emit(hlo.NegateOp, high), low], last)
        g.keep(_sum(g, _product(g, x, cosine), _product(g, joined, sine)))
        return
    cosine, sine = (_vector(g, shape_of(low), axes, element) for _ in range(2))
    first = b.subtract(_product(g, low, cosine), _product(g, high, sine))
    second = _sum(g, _product(g, high, cosine), _product(g, low, cosine if _wrong(g) else sine))
    g.keep(b.concatenate([first, second], last))


@seeks("raise-attention", weight=6)
def attention(g: Growth) -> None:
    """An attention of which dimensions lie anywhere, with several heads for a key, masks and scales."""
    b, choices = g.b, g.choices
    element = choices.chosen(("f32", "f32", "f64", "f16", "bf16"))
    batch, heads, group, queries, keys, features = (choices.integer(1, most) for most in (2, 2, 2, 3, 3, 3))
    grouped = choices.flag(0.3)
    # Queries: batch, queries, heads[, group], features. Keys and values: batch, keys, heads, features.
    query = g.of_type(tensor([batch, queries, heads, *([group] if grouped else []), features], element))
    key, value = (g.of_type(tensor([batch, keys, heads, features], element)) for _ in range(2))
    if choices.flag(0.5):
        query, key, value = (_heads_first(g, v) for v in (query, key, value))
        axis = 1
    else:
        axis = 2
    along = (0, axis)
    last = rank_of(query) - 1
    if choices.flag(0.3):
        query, key = (_product(g, v, _number(g, v, choices.chosen((0.5, 0.25, -1.0, 4.0, 0.0)))) for v in (query, key))
    scores = b.dot(query, key, DotDimensions(along, along, (last,), (3,)))
    if choices.flag(0.7):
        factor = _number(g, scores, choices.chosen((0.5, 2.0, 0.25)))
        scores = _product(g, scores, factor) if choices.flag(0.5) else b.divide(scores, factor)
    scores = _mask(g, scores)
    weights = _weights(g, scores)
    if choices.flag(0.2):
        guarded = b.compare(weights, weights, "EQ" if _wrong(g) else "NE")
        weights = b.select(guarded, _number(g, weights, 0.0), weights)
    if grouped and choices.flag(0.4):
        weights = b.transpose(weights, [3, 0, 1, 2, 4])
        mine = (1, 2)
    else:
        mine = (0, 1)
    if _wrong(g) and heads == batch:
        mine = mine[::-1]
    contracted = 3 - axis
    end = rank_of(weights) - 1
    if choices.flag(0.5):
        result = b.dot(weights, value, DotDimensions(mine, along, (end,), (contracted,)))
    else:
        result = b.dot(value, weights, DotDimensions(along, mine, (contracted,), (end,)))
    g.keep(result)


def _heads_first(g: Growth, x: SSAValue) -> SSAValue:
    return g.b.transpose(x, [0, 2, 1, *range(3, rank_of(x))])


def _mask(g: Growth, scores: SSAValue) -> SSAValue:
    b, choices, shape = g.b, g.choices, shape_of(scores)
    for _ in range(choices.integer(0, 2)):
        axes = sorted({len(shape) - 1, choices.integer(0, len(shape) - 1)})
        scores = _sum(g, scores, _vector(g, shape, axes, dtype_text(scores.type)))
    if choices.flag(0.4):
        axes = [len(shape) - 2, len(shape) - 1]
        kept = b.broadcast(g.of_type(tensor([shape[a] for a in axes], "i1")), shape, axes)
        scores = b.select(kept, scores, _number(g, scores, choices.chosen((-1e4, float("-inf"), 0.0))))
    return scores


def _weights(g: Growth, scores: SSAValue) -> SSAValue:
    axis = _axis(g, scores, rank_of(scores) - 1)
    return composite(g.b, "gcomp.softmax", [scores], {"axis": axis})[0]
