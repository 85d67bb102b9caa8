"""Hypothesis strategies for programs with symbolic dims and control flow, and inputs of several sizes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Range, Ranges, Size
from gcomp.dtypes import dtype_of, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor, with_shape
from tests.property.program_strategies import EDGES, Draw, finished

RANGES = {"n": Range(1, 4), "m": Range(0, 5)}
SIZES: tuple[Mapping[str, int], ...] = ({"n": 3, "m": 4}, {"n": 1, "m": 0}, {"n": 1, "m": 1})
"""What the symbols are in turn: different, at their least, and equal."""

_N, _M = dims.parse("n"), dims.parse("m")
_MAX_RANK = 4
_MAX_ELEMENTS = 2000
Values = list[SSAValue]
Step = Callable[[Draw, Builder, SSAValue, Values], SSAValue]


def edge_inputs(sizes: Mapping[str, int]) -> Callable[[Program], list[np.ndarray]]:
    """Inputs of such sizes: floats and integers at the edges, booleans, and counts that loops and branches take."""

    def make(program: Program) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        choices = {"f32": EDGES, "i32": np.array([0, 1, -1, 2**31 - 1, -(2**31)]), "i1": np.array([True, False])}
        arrays: list[np.ndarray] = []
        for port in program.inputs():
            shape = [dims.evaluate(s, sizes) for s in port.shape]
            values = 2 if port.name == "count" else rng.choice(choices[port.dtype], shape)
            arrays.append(np.asarray(values).astype(dtype_of(port.dtype)))
        return arrays

    return make


def sampled_inputs(sizes: Mapping[str, int]) -> Callable[[Program], list[np.ndarray]]:
    """Inputs of such sizes: floats of ordinary size, on which a target may be compared, and small integers."""

    def make(program: Program) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        arrays: list[np.ndarray] = []
        for port in program.inputs():
            shape = [dims.evaluate(s, sizes) for s in port.shape]
            values = rng.standard_normal(shape) if is_float(port.dtype) else rng.integers(0, 2, shape)
            arrays.append(np.asarray(values).astype(dtype_of(port.dtype)))
        return arrays

    return make


def most_elements(x: SSAValue) -> int:
    """The elements of a value at the largest of the sizes."""
    return dims.evaluate(dims.product(shape_of(x)), SIZES[0])


# ---- steps on values of symbolic shape -----------------------------------------------------------------------------


def _unary(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    return b.emit(draw(st.sampled_from((hlo.NegateOp, hlo.AbsOp))), x)


def _binary(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    ops = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.MaximumOp, hlo.MinimumOp, hlo.DivideOp)
    same = [v for v in values if v.type == x.type]
    return b.emit(draw(st.sampled_from(ops)), x, draw(st.sampled_from(same)))


def _with_constant(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    known = (0.0, -0.0, 1.0, 2.5) if is_float(dtype_text(x.type)) else (0, 1, 3)
    pair = [x, b.full_like(x, draw(st.sampled_from(known)))]
    op = draw(st.sampled_from((hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.DivideOp)))
    return b.emit(op, *(reversed(pair) if draw(st.booleans()) else pair))


def _with_size(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    size = draw(st.sampled_from([_N, _M, _N * _M + 1, dims.floordiv(_M, 2), *shape_of(x)]))
    number = b.convert(b.dim(size), element_of(x))
    return b.emit(draw(st.sampled_from((hlo.AddOp, hlo.MultiplyOp))), x, b.broadcast(number, shape_of(x), ()))


def _with_iota(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    if not rank_of(x):
        return x
    axis = draw(st.integers(0, rank_of(x) - 1))
    return b.emit(hlo.AddOp, x, b.iota(shape_of(x), axis, dtype_text(x.type)))


def _select(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    same = draw(st.sampled_from([v for v in values if v.type == x.type]))
    taken = b.full(shape_of(x), draw(st.booleans()), "i1") if draw(st.booleans()) else b.compare(x, same, "LE")
    return b.emit(hlo.SelectOp, taken, x, same)


def _transpose(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    return b.emit(hlo.TransposeOp, x, permutation=draw(st.permutations(range(rank_of(x)))))


def _reshape(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    shape = shape_of(x)
    shapes: list[tuple[Size, ...]] = [(dims.product(shape),), (1, *shape), (*shape, 1), shape, shape[::-1]]
    if len(shape) > 1:
        shapes.append((shape[0] * shape[1], *shape[2:]))
    chosen = draw(st.sampled_from([s for s in shapes if len(s) <= _MAX_RANK]))
    return b.emit(hlo.ReshapeOp, x, types=(with_shape(x, chosen),))


def _broadcast(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    extra: tuple[Size, ...] = draw(st.sampled_from([(), (2,), (_N,), (_M,), (1,)]))
    extra = extra if rank_of(x) < _MAX_RANK else ()
    kept = range(len(extra), len(extra) + rank_of(x))
    return b.emit(hlo.BroadcastInDimOp, x, types=(with_shape(x, (*extra, *shape_of(x))),),
                  broadcast_dimensions=list(kept))  # fmt: skip


def _slice(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    starts, limits, strides = list[Size](), list[Size](), list[int]()
    for size in shape_of(x):
        sure = Ranges(RANGES).bounds(size)[0] or 0
        start = draw(st.integers(0, min(sure, 1)))
        starts.append(start)
        limits.append(draw(st.sampled_from([size, size - (1 if sure > start else 0)])))
        strides.append(draw(st.integers(1, 2)))
    return b.emit(hlo.SliceOp, x, start_indices=starts, limit_indices=limits, strides=strides)


def _pad(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    choices = st.sampled_from([0, 1, _N])
    low, high = ([draw(choices) for _ in shape_of(x)] for _ in range(2))
    gaps = [draw(st.integers(0, 1)) for _ in shape_of(x)]
    return b.emit(hlo.PadOp, x, b.full((), 0, element_of(x)), edge_padding_low=low, edge_padding_high=high,
                  interior_padding=gaps)  # fmt: skip


def _concatenate(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    if not rank_of(x):
        return x
    same = [v for v in values if v.type == x.type]
    return b.emit(hlo.ConcatenateOp, x, draw(st.sampled_from(same)), dimension=draw(st.integers(0, rank_of(x) - 1)))


def _reverse(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    return b.emit(hlo.ReverseOp, x, dimensions=[i for i in range(rank_of(x)) if draw(st.booleans())])


def _reduce(draw: Draw, b: Builder, x: SSAValue, values: Values) -> SSAValue:
    axes = [i for i in range(rank_of(x)) if draw(st.booleans())]
    return b.reduce(draw(st.sampled_from((hlo.AddOp, hlo.MaximumOp))), x, axes, keepdims=draw(st.booleans()))


PLAIN: tuple[Step, ...] = (
    _unary, _binary, _with_constant, _with_size, _with_iota, _select, _transpose, _reshape, _broadcast, _slice, _pad,
    _concatenate, _reverse, _reduce,
)  # fmt: skip


# ---- control flow --------------------------------------------------------------------------------------------------


def _flag(draw: Draw, b: Builder, values: Values) -> SSAValue:
    """A condition: known, an input, or computed from one."""
    flags = [v for v in values if dtype_text(v.type) == "i1"]
    counts = [v for v in values if v.type == tensor((), "i32")]
    match draw(st.integers(0, 2)):
        case 0:
            return b.full((), draw(st.booleans()), "i1")
        case 1 if flags:
            return draw(st.sampled_from(flags))
        case _:
            return b.compare(draw(st.sampled_from(counts)), b.full((), 1, "i32"), draw(st.sampled_from(("LT", "EQ"))))


def _index(draw: Draw, b: Builder, values: Values) -> SSAValue:
    """A number of a branch: known (out of range, too), or an input."""
    if draw(st.booleans()):
        return b.full((), draw(st.integers(-1, 3)), "i32")
    return draw(st.sampled_from([v for v in values if v.type == tensor((), "i32")]))


def _body(draw: Draw, b: Builder, results: Sequence[SSAValue], outside: Values, depth: int) -> Values:
    """A few ops on values from outside and inside; values of the same types as `results`, some of them new."""
    inside = grow(draw, b, list(outside), draw(st.integers(0, 3)), depth)
    given: Values = []
    for wanted in results:
        same = [v for v in inside if v.type == wanted.type]
        chosen = draw(st.sampled_from([*same[-1:] * 2, *same]))
        given.append(b.emit(hlo.NegateOp, chosen) if draw(st.booleans()) else chosen)
    return given


def _results(draw: Draw, x: SSAValue, values: Values) -> Values:
    """Values after which the results of control flow are typed, `x` first."""
    numbers = [v for v in values if dtype_text(v.type) != "i1"]
    return [x, *draw(st.lists(st.sampled_from(numbers), max_size=2))]


def _branches(draw: Draw, b: Builder, x: SSAValue, values: Values, depth: int) -> Values:
    wanted = _results(draw, x, values)
    is_case = draw(st.booleans())
    operand = (_index if is_case else _flag)(draw, b, values)
    count = draw(st.integers(1, 3)) if is_case else 2
    regions = [b.region((), lambda _: _body(draw, b, wanted, values, depth)) for _ in range(count)]
    return list(b.emit_all(hlo.CaseOp if is_case else hlo.IfOp, operand, regions=regions))


def _loop(draw: Draw, b: Builder, x: SSAValue, values: Values, depth: int) -> Values:
    """At most three iterations; carries that change, that do not, and values from outside in both regions."""
    carried = [b.full((), 0, "i32"), *_results(draw, x, values)]
    limit = draw(st.sampled_from([v for v in values if v.type == tensor((), "i32")] + [b.full((), 2, "i32")]))
    limit = b.minimum(limit, b.full((), draw(st.integers(0, 3)), "i32"))
    stopped = draw(st.booleans())

    def condition(args: Sequence[SSAValue]) -> Values:
        more = b.compare(args[0], limit, "LT")
        return [b.emit(hlo.AndOp, more, _flag(draw, b, values)) if stopped else more]

    def body(args: Sequence[SSAValue]) -> Values:
        after = _body(draw, b, carried[1:], [*values, *args], depth)
        kept = [args[i + 1] if draw(st.integers(0, 3)) == 0 else v for i, v in enumerate(after)]
        return [b.add(args[0], b.full((), 1, "i32")), *kept]

    types = [v.type for v in carried]
    regions = (b.region(types, condition), b.region(types, body))
    return list(b.emit_all(hlo.WhileOp, *carried, regions=regions))


def grow(draw: Draw, b: Builder, values: Values, steps: int, depth: int) -> Values:
    """The values, and those of so many steps on them; control flow nests at most `depth` deep."""
    for _ in range(steps):
        fitting = [v for v in values if dtype_text(v.type) != "i1" and most_elements(v) <= _MAX_ELEMENTS]
        # Mostly the value made last, so that ops chain.
        x = draw(st.sampled_from([*fitting[-1:] * 3, *fitting]))
        kind = draw(st.integers(0, 4)) if depth else 4
        if kind < 2:
            values += (_branches, _loop)[kind](draw, b, x, values, depth - 1)
        else:
            values.append(draw(st.sampled_from(PLAIN))(draw, b, x, values))
    return values


@st.composite
def structured_programs(draw: Draw) -> Program:
    """A program of two to seven steps, each an op or control flow, on inputs whose shape is symbolic in part."""
    shape = draw(st.lists(st.sampled_from([_N, _M, _N * 2, _N + _M, 1, 2, 0]), max_size=2))
    kinds = {"x": "f32", "y": "f32", "i": "i32"}
    inputs = [(name, tensor(shape, kind)) for name, kind in kinds.items()]
    scalars = [("flag", tensor((), "i1")), ("count", tensor((), "i32"))]
    # One input for each symbol, so that every size is known.
    program = Program.empty([*inputs, *scalars, ("sizes", tensor((_N, _M), "f32"))])
    program.ranges = Ranges(RANGES)
    values = grow(draw, Builder(program), list(program.block.args), draw(st.integers(2, 7)), 2)
    return finished(program, [values[-1], *draw(st.lists(st.sampled_from(values), max_size=2))])
