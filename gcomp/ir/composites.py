"""Composites: names for patterns, with the decomposition that each name stands for.

A composite is a hint: a backend may use its name only after `is_canonical` found that its decomposition is the one
built here for its attributes and operand types. Otherwise it is inlined like any function. Passes rewrite
decompositions too, and keep their meaning but not their form: `trust` marks what was found to be canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp.dims import Size, floordiv, parse
from gcomp.errors import VerificationError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, decode, sizes_attr
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.ir.types import BOOL, element_of, rank_of, same_shape, shape_of
from gcomp.ir.winograd import Matrix, transform

Decomposition = Callable[[Builder, Sequence[SSAValue], Mapping[str, Any]], Sequence[SSAValue]]
D = TypeVar("D", bound=Decomposition)
TRUSTED = "gcomp.canonical"
"""The mark of a composite that was canonical when a pass looked at it."""

MEASURED = "gcomp.measured"
"""The mark of a composite that was chosen for how fast it is: the `algorithm`, and relative to the results its measured
`error`, and that of what it replaces (`exact`)."""

CONSIDERED = "gcomp.considered"
"""The mark of an op for which a pass chose between algorithms: by name the seconds that a model has each take, and how
many times the error of plain sums those have (`error of ...`) that are too inexact."""

CANONICAL: dict[str, Decomposition] = {}
"""Composite name -> what it means: a function that builds the decomposition."""


def _defines(name: str) -> Callable[[D], D]:
    def register(function: D) -> D:
        CANONICAL[name] = function
        return function

    return register


@_defines("gcomp.softmax")
def softmax(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`exp(x - max(x)) / sum(exp(x - max(x)))` along `axis`; computed in f32 or wider."""
    (x,), axis = inputs, (attributes["axis"],)
    wide = b.widen(x)
    shifted = b.subtract(wide, b.reduce(hlo.MaximumOp, wide, axis, keepdims=True))
    numerator = b.emit(hlo.ExponentialOp, shifted)
    return [b.convert(b.divide(numerator, b.reduce(hlo.AddOp, numerator, axis, keepdims=True)), element_of(x))]


@_defines("gcomp.log_softmax")
def log_softmax(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`x - max(x) - log(sum(exp(x - max(x))))` along `axis`; computed in f32 or wider."""
    (x,), axis = inputs, (attributes["axis"],)
    wide = b.widen(x)
    shifted = b.subtract(wide, b.reduce(hlo.MaximumOp, wide, axis, keepdims=True))
    total = b.reduce(hlo.AddOp, b.emit(hlo.ExponentialOp, shifted), axis, keepdims=True)
    return [b.convert(b.subtract(shifted, b.emit(hlo.LogOp, total)), element_of(x))]


@_defines("gcomp.logsumexp")
def logsumexp(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`log(sum(exp(x)))` along `axis`, which keeps size 1, less the maximum if finite; computed in f32 or wider."""
    (x,), axis = inputs, (attributes["axis"],)
    wide = b.widen(x)
    highest = b.reduce(hlo.MaximumOp, wide, axis, keepdims=True)
    shift = b.select(b.emit(hlo.IsFiniteOp, highest), highest, b.full_like(highest, 0))
    total = b.reduce(hlo.AddOp, b.emit(hlo.ExponentialOp, b.subtract(wide, shift)), axis, keepdims=True)
    return [b.convert(b.add(b.emit(hlo.LogOp, total), shift), element_of(x))]


@_defines("gcomp.layer_norm")
def layer_norm(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`(x - mean) * rsqrt(var + epsilon) * scale [+ bias]` over the dimensions from `axis`; computed in f32 or wider.

    Results: the normalized tensor, the mean, and the inverse standard deviation (both keep reduced dimensions as 1).
    """
    x, scale, *bias = inputs
    axes, element = range(attributes["axis"], rank_of(x)), element_of(x)
    wide = b.widen(x)
    mean = b.mean(wide, axes, keepdims=True)
    centered = b.subtract(wide, mean)
    variance = b.mean(b.multiply(centered, centered), axes, keepdims=True)
    inverse = b.emit(hlo.RsqrtOp, b.add(variance, b.scalar_like(wide, attributes["epsilon"])))
    normalized = b.multiply(b.convert(b.multiply(centered, inverse), element), scale)
    return [b.add(normalized, bias[0]) if bias else normalized, mean, inverse]


@_defines("gcomp.rms_norm")
def rms_norm(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`x * rsqrt(mean(x**2) + epsilon) * scale` over the dimensions from `axis`; computed in f32 or wider."""
    x, scale = inputs
    axes, element = range(attributes["axis"], rank_of(x)), element_of(x)
    wide = b.widen(x)
    square = b.mean(b.multiply(wide, wide), axes, keepdims=True)
    inverse = b.emit(hlo.RsqrtOp, b.add(square, b.scalar_like(wide, attributes["epsilon"])))
    return [b.multiply(b.convert(b.multiply(wide, inverse), element), scale)]


@_defines("gcomp.gelu")
def gelu(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`x * Phi(x)`: exact by erf (`approximate = "none"`) or by erfc, which keeps the tail's digits, or by tanh."""
    (x,) = inputs
    half, one = b.scale(x, 0.5), b.scalar_like(x, 1.0)
    match attributes["approximate"]:
        case "none":
            gate = b.add(b.emit(chlo.ErfOp, b.scale(x, 2**-0.5)), one)
        case "erfc":
            gate = b.emit(chlo.ErfcOp, b.scale(x, -(2**-0.5)))
        case _:
            cubic = b.add(x, b.scale(b.multiply(b.multiply(x, x), x), 0.044715))
            gate = b.add(b.emit(hlo.TanhOp, b.scale(cubic, 0.7978845608028654)), one)
    return [b.multiply(half, gate)]


@_defines("gcomp.silu")
def silu(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`x * logistic(x)`."""
    (x,) = inputs
    return [b.multiply(x, b.emit(hlo.LogisticOp, x))]


@_defines("gcomp.swiglu")
def swiglu(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """`silu(gate) * x`, of a gate and an x of one type."""
    gate, x = inputs
    return [b.multiply(silu(b, [gate], {})[0], x)]


@_defines("gcomp.rotary")
def rotary(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """Rotary position embedding: `x * cos + concatenate(-x2, x1) * sin`, x1 and x2 the halves of the last dimension.

    `cos` and `sin` have the type of x.
    """
    x, cosine, sine = inputs
    last, size = rank_of(x) - 1, shape_of(x)[-1]
    half = size // 2
    turned = b.concatenate(
        [b.emit(hlo.NegateOp, b.slice_axis(x, last, half, size)), b.slice_axis(x, last, 0, half)], last
    )
    return [b.add(b.multiply(x, cosine), b.multiply(turned, sine))]


def scales_query(scale: float) -> bool:
    """Whether attention multiplies the query by its scale, and not the scores: whichever cannot overflow for it."""
    return abs(scale) <= 1


@_defines("gcomp.attention")
def attention(
    b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any], weigh: Decomposition = softmax
) -> Sequence[SSAValue]:
    """`softmax(scale * q @ k.T [+ mask]) @ v` on (batch..., sequence, features).

    Masks broadcast to the scores. One of floats is added; then one of booleans keeps scores, or makes them `fill`.
    With `safe`, a query that sees no key (its weights are NaN) gives 0. `weigh` says how to write the softmax. A scale
    above 1 multiplies the scores and not the query, which may overflow where they do not.
    """
    query, key, value, *masks = inputs
    n = rank_of(query) - 2
    axes = tuple(range(n))
    scale, first = attributes["scale"], scales_query(attributes["scale"])
    scores = b.dot(b.scale(query, scale) if first else query, key, DotDimensions(axes, axes, (n + 1,), (n + 1,)))
    scores = scores if first else b.scale(scores, scale)
    for mask in masks:
        spread = b.broadcast_to(mask, shape_of(scores))
        keeps = element_of(mask) == BOOL
        scores = b.select(spread, scores, b.full_like(scores, attributes["fill"])) if keeps else b.add(scores, spread)
    weights = weigh(b, [scores], {"axis": n + 1})[0]
    if attributes.get("safe"):
        weights = b.select(b.compare(weights, weights, "NE"), b.full_like(weights, 0), weights)
    return [b.dot(weights, value, DotDimensions(axes, axes, (n + 1,), (n,)))]


@_defines("gcomp.winograd")
def winograd(b: Builder, inputs: Sequence[SSAValue], attributes: Mapping[str, Any]) -> Sequence[SSAValue]:
    """The convolution of an image [n, y, x, i] by a 3x3 window, of which `weights` [o / c, points, i, c] are the values
    at points, in panels (`gcomp.ir.winograd`): as many rows and columns of results as `slice_sizes` says, in tiles of
    `tile` by `tile`.

    The image has what all tiles read: `tile` times as many rows and columns as there are tiles, and 2.
    """
    image, weights = inputs
    m, matrices = attributes["tile"], transform(attributes["tile"])
    n, (count, rows, columns, channels) = len(matrices.inputs), shape_of(image)
    (panels, points, _, width), sizes = shape_of(weights), (floordiv(rows - 2, m), floordiv(columns - 2, m))
    down = b.concatenate([
        b.reshape(b.slice_axis(image, 1, a, a + m * sizes[0] - m + 1, m), (count, 1, sizes[0], columns, channels))
        for a in range(n)
    ], 1)  # fmt: skip
    patches = b.concatenate([
        b.reshape(b.slice_axis(down, 3, a, a + m * sizes[1] - m + 1, m), (count, n, sizes[0], 1, sizes[1], channels))
        for a in range(n)
    ], 3)  # fmt: skip

    def apply(matrix: Matrix, x: SSAValue, axis: int) -> SSAValue:
        return b.dot(b.constant(np.array(matrix, np.float32)), x, DotDimensions((), (), (1,), (axis,)))

    values = b.transpose(apply(matrices.inputs, apply(matrices.inputs, patches, 1), 3), (1, 0, 2, 3, 4, 5))
    values = b.reshape(values, (points, count * sizes[0] * sizes[1], channels))
    factors = b.reshape(b.transpose(weights, (1, 2, 0, 3)), (points, channels, panels * width))
    products = b.dot(values, factors, DotDimensions((0,), (0,), (2,), (1,)))
    products = b.reshape(products, (n, n, count, *sizes, panels * width))
    results = apply(matrices.results, apply(matrices.results, products, 0), 1)
    whole = b.reshape(b.transpose(results, (2, 3, 1, 4, 0, 5)), (count, m * sizes[0], m * sizes[1], panels * width))
    kept = [parse(size) if isinstance(size, str) else size for size in attributes["slice_sizes"]]
    return [b.slice(whole, (0, 0, 0, 0), (count, *kept, panels * width))]


def attribute_of(value: Any) -> Attribute:
    """A composite's attribute: int, float, sizes or str."""
    match value:
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case tuple():
            return sizes_attr(cast("tuple[Size, ...]", value))
        case _:
            return StringAttr(str(value))


def composite(
    b: Builder, name: str, inputs: Sequence[SSAValue], attributes: Mapping[str, Any] | None = None
) -> Sequence[SSAValue]:
    """Insert the composite `name`, with a private function that holds its canonical decomposition; its results."""
    attributes = attributes or {}
    if b.decomposes:
        return CANONICAL[name](b, inputs, attributes)
    function = _decomposition(b, name, [v.type for v in inputs], attributes)
    op = hlo.CompositeOp.of(
        *inputs,
        types=function.function_type.outputs.data,
        name=name,
        decomposition=function.sym_name.data,
        composite_attributes=DictionaryAttr({k: attribute_of(v) for k, v in attributes.items()}),
    )
    return b.insert(op).results


def _decomposition(b: Builder, name: str, types: Sequence[Attribute], attributes: Mapping[str, Any]) -> FuncOp:
    """The decomposition function for these types and attributes; composites that agree share one."""
    key = f"{name}({', '.join(map(str, types))}){sorted(attributes.items())}"
    cache: dict[str, FuncOp] = b.program.__dict__.setdefault("_decompositions", {})
    found = cache.get(key)
    if found is None or found.parent is None:  # a pass may have erased a function that nothing called any more
        # A program that was read or copied has decompositions that the cache does not know.
        taken = {function.sym_name.data for function in b.program.functions()}
        symbol = next(s for n in count(len(cache)) if (s := f"{name}.{n}") not in taken)
        cache[key] = _build_function(b, name, types, attributes, symbol)
    return cache[key]


def _build_function(
    b: Builder, name: str, types: Sequence[Attribute], attributes: Mapping[str, Any], symbol: str
) -> FuncOp:
    function = FuncOp(symbol, (list(types), []), visibility="private")
    block = function.body.block
    with b.inside(block):
        results = CANONICAL[name](b, list(block.args), attributes)
        b.insert(ReturnOp(*results))
    function.update_function_type()
    b.program.module.body.block.add_op(function)
    return function


def trust(op: hlo.CompositeOp) -> bool:
    """Mark a composite as canonical; whether it was not marked before."""
    changed = TRUSTED not in op.attributes
    op.attributes[TRUSTED] = UnitAttr()
    return changed


def is_trusted(program: Program, op: hlo.CompositeOp) -> bool:
    """Whether a composite's name says what it computes: it is canonical, or was when a pass marked it."""
    return TRUSTED in op.attributes or is_canonical(program, op)


def measured_in(program: Program) -> Sequence[tuple[Operation, Mapping[str, Any]]]:
    """The ops of a program that a pass chose for how fast they are, and what it measured (`MEASURED`)."""
    marks = [(op, op.attributes.get(MEASURED)) for op in program.ops()]
    return [
        (op, {name: decode(value) for name, value in mark.data.items()})
        for op, mark in marks if isinstance(mark, DictionaryAttr)
    ]  # fmt: skip


def by_name(program: Program) -> Program | None:
    """The program with each trusted composite replaced by the canonical decomposition of its name.

    None where that is the same. Raises VerificationError where a name and its attributes say nothing of such operands,
    or of other results.
    """
    if not any(_is_only_named(program, op) for op in program.ops()):
        return None
    from gcomp.ir.builder import Builder

    read = program.clone()
    taken = {function.sym_name.data for function in read.functions()}
    symbols = (symbol for n in count() if (symbol := f"named.{n}") not in taken)
    for op in [op for op in read.ops() if _is_only_named(read, op)]:
        assert isinstance(op, hlo.CompositeOp)
        symbol, types = next(symbols), list(op.operand_types)
        try:
            function = _build_function(Builder(read), op.composite_name, types, op.attributes_of(), symbol)
        except (KeyError, ValueError, TypeError, IndexError, VerifyException) as error:
            raise _misnamed_error(op, f"{type(error).__name__}: {error}") from error
        given = [*function.function_type.outputs.data]
        if len(given) != len(op.results) or not all(map(_is_alike, given, op.results)):
            raise _misnamed_error(op, f"it gives {', '.join(map(str, function.function_type.outputs.data))}")
        op.properties["decomposition"] = SymbolRefAttr(symbol)
    return read


def _is_only_named(program: Program, op: Operation) -> bool:
    """Whether a composite is trusted and holds something else than its name says."""
    return isinstance(op, hlo.CompositeOp) and TRUSTED in op.attributes and not is_canonical(program, op)


def _is_alike(type: Attribute, result: SSAValue) -> bool:
    """Whether a type is a result's, but for sizes that are not known."""
    return element_of(type) == element_of(result) and same_shape(shape_of(type), shape_of(result))


def _misnamed_error(op: hlo.CompositeOp, why: str) -> VerificationError:
    return VerificationError(
        f"a composite is trusted to be {op.composite_name}, and cannot be", where=where(op), why=why
    )


def is_canonical(program: Program, op: hlo.CompositeOp) -> bool:
    """Whether the composite's decomposition is what its name and attributes stand for."""
    name, given = op.composite_name, op.composite_attributes
    function = program.function(op.decomposition_name)
    if name not in CANONICAL or function is None:
        return False
    # Attributes that are equal may differ in the sign of a zero, which their text has.
    expected = _expected_of(CANONICAL[name], name, tuple(op.operand_types), given, str(given))
    if expected is None or expected.type != function.function_type:
        return False
    return _results(function.body.block, dict(expected.numbers), {}) == expected.results


class _Expected(NamedTuple):
    """A canonical decomposition, as it is compared: its type, its expressions' numbers, those that it returns."""

    type: FunctionType
    numbers: Mapping[object, int]
    results: list[int]


@lru_cache(maxsize=256)
def _expected_of(
    canonical: Decomposition, name: str, types: tuple[Attribute, ...], attributes: DictionaryAttr, text: str
) -> _Expected | None:
    """What a name stands for, or None where it says nothing of such operands. Equal layers ask again and again."""
    scratch = Program(ModuleOp([FuncOp("main", ([], []))]))
    values = {key: decode(value) for key, value in attributes.data.items()}
    try:
        function = _build_function(Builder(scratch), name, types, values, name)
    except (KeyError, ValueError, TypeError, IndexError, VerifyException):
        return None
    numbers: dict[object, int] = {}
    results = _results(function.body.block, numbers, {})
    return _Expected(function.function_type, numbers, results)


def _results(block: Block, numbers: dict[object, int], known: Mapping[SSAValue, int], depth: int = 0) -> list[int]:
    """What a block returns, each value as the number of the expression that it is.

    So that merging equal ops, which passes do, makes no difference.
    """
    values = dict(known)

    def number(key: object) -> int:
        return numbers.setdefault(key, len(numbers))

    for i, argument in enumerate(block.args):
        values[argument] = number(("argument", depth, i, argument.type))
    for op in block.ops:
        operands = tuple([values[v] for v in op.operands])
        if op is block.last_op:
            return list(operands)
        regions = tuple(
            [tuple(_results(b, numbers, values, depth + 1)) for region in op.regions for b in region.blocks]
        )
        properties = tuple(sorted(op.properties.items(), key=itemgetter(0)))
        for i, result in enumerate(op.results):
            values[result] = number((op.name, operands, properties, regions, i, result.type))
    return []


def match_composite(program: Program, value: SSAValue, *names: str) -> tuple[hlo.CompositeOp, dict[str, Any]] | None:
    """The composite of one of these names that computes a value, and its attributes; only if it is canonical."""
    op = value.owner
    if not isinstance(op, hlo.CompositeOp) or op.composite_name not in names or not is_canonical(program, op):
        return None
    return op, op.attributes_of()
