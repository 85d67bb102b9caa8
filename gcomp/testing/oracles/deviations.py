"""Where XLA:CPU computes something else than docs/semantics.md says: each known way is one row of `DEVIATIONS`.

`explanation` says whether a difference between XLA:CPU and the reference is one of them. What the output depends on is
run once more by the reference, and some op there has to be one of the row's, with operands and results of the row's
kind. What no row explains is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from gcomp.dtypes import bit_width, is_complex, is_float, text_of
from gcomp.errors import GcompError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import BOOL, dtype_text, element_of
from gcomp.lowering.xla.survey import callees
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.table import Meaning, Scope, Value

Array = np.ndarray[Any, Any]
Met = Callable[[Operation, Sequence[Value], Sequence[Value]], bool]
"""Whether an op deviates, by what it is and by the values of its operands and results."""


@dataclass(frozen=True)
class Deviation:
    """One way in which XLA:CPU differs: the reason, the ops it is about (without dialect; all if None), the values."""

    name: str
    why: str
    ops: frozenset[str] | None
    met: Met


def _short(op: Operation) -> str:
    return op.name.partition(".")[2].removeprefix("broadcast_") or op.name


# ---- values ---------------------------------------------------------------------------------------------------------


def _parts(values: Sequence[Value]) -> Iterator[Array]:
    """The floats among values as f32 or f64, complex numbers as their two parts."""
    for value in values:
        if not isinstance(value, np.ndarray):
            continue
        array = cast(Array, value)
        text = text_of(array.dtype)
        if is_complex(text):
            yield from (array.real, array.imag)
        elif is_float(text):
            yield array if text in ("f32", "f64") else array.astype(np.float32)


def _any(values: Sequence[Value], holds: Callable[[Array], Any]) -> bool:
    with np.errstate(all="ignore"):
        return any(bool(np.any(holds(part))) for part in _parts(values))


def _denormal(x: Array) -> Any:
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)


def _unusual(x: Array) -> Any:
    return ~np.isfinite(x)


def _zero(x: Array) -> Any:
    return x == 0


def _negative_zero(x: Array) -> Any:
    return (x == 0) & np.signbit(x)


def _denormals(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    return _short(op) not in _MOVES and (_any(args, _denormal) or _any(results, _denormal))


def _overflow(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether the op gives infinities or NaN, or is given them."""
    return _any(args, _unusual) or _any(results, _unusual)


def _narrow_overflow(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a float narrower than f32 overflows, to what its type has for that, from numbers."""
    text = dtype_text(op.results[0].type) if op.results else ""
    return is_float(text) and bit_width(text) < 32 and _any(results, _unusual) and not _any(args, _unusual)


def _complex_special(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a part of a complex number is zero, infinite or NaN."""
    arrays = [cast(Array, v) for v in (*args, *results) if isinstance(v, np.ndarray)]
    given = [array for array in arrays if is_complex(text_of(array.dtype))]
    return _any(given, _unusual) or _any(given, _zero)


# ---- where values come from -----------------------------------------------------------------------------------------

_MOVES = frozenset(
    ("add_dependency", "bitcast_convert", "broadcast", "broadcast_in_dim", "call", "case", "complex", "composite",
     "concatenate", "constant", "constant_like", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_iota",
     "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "get_dimension_size",
     "get_tuple_element", "if", "imag", "iota", "optimization_barrier", "pad", "real", "real_dynamic_slice", "reshape",
     "reverse", "select", "slice", "transpose", "tuple", "weight", "while")
)  # fmt: skip
"""Ops that compute nothing by themselves."""


def _sources(values: Sequence[SSAValue]) -> Iterator[Operation]:
    """The ops that compute values, and those on the way that only move them."""
    seen, pending = set[SSAValue](), list(values)
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value, BlockArgument):
            continue
        seen.add(value)
        op = cast(OpResult, value).op
        if _short(op) in _MOVES:
            pending += op.operands
        yield op


def _masked(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a factor is a converted boolean, and another is not finite, or the product -0."""
    mask = any(isinstance(s, hlo.ConvertOp) and element_of(s.operands[0]) == BOOL for s in _sources(op.operands))
    return mask and (_any(args, _unusual) or _any(results, _negative_zero))


# ---- folds ----------------------------------------------------------------------------------------------------------


def _no_monoid(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether the order of a fold decides: its body is not one associative op, or it starts elsewhere."""
    fold = cast("hlo.ReduceOp | hlo.ReduceWindowOp", op)
    applied = applied_op(fold.body)
    if applied is None:
        return True
    inits = [np.asarray(init) for init in args[len(args) // 2 :]]
    return any(bool(init != np.asarray(identity(applied, text_of(init.dtype)), init.dtype)) for init in inits)


def _no_order(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether it depends on the order what is selected in a window, or what several windows leave at one place."""
    if applied_op(cast(hlo.SelectAndScatterOp, op).scatter) is None:
        return True
    body = cast(hlo.SelectAndScatterOp, op).select.block
    first = body.first_op
    plain = isinstance(first, hlo.CompareOp) and first.next_op is body.last_op and [*first.operands] == [*body.args]
    total = plain and cast(hlo.CompareOp, first).value("comparison_direction") in ("GE", "LE")
    return not total or _any(args[:1], np.isnan)


def _no_strict_order(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a comparator asks for more than less and greater, or meets NaN."""
    compares = [inner for inner in op.walk() if isinstance(inner, hlo.CompareOp)]
    strict = all(inner.value("comparison_direction") in ("LT", "GT") for inner in compares)
    return len(compares) != 1 or not strict or _any(args, np.isnan)


def _partly_outside(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a window of updates of more than one element starts outside, or where it does not fit."""
    scatter = cast(hlo.ScatterOp, op)
    numbers = scatter.value("scatter_dimension_numbers")
    indices, shape = np.asarray(args[len(scatter.inputs)]), np.shape(args[0])
    updates = np.shape(args[-1])
    window = [updates[d] for d in numbers.update_window_dims]
    if int(np.prod(window)) <= 1 and len(numbers.scatter_dims_to_operand_dims) <= 1:
        return False
    skipped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    sizes = dict(zip([d for d in range(len(shape)) if d not in skipped], window, strict=True))
    axis = numbers.index_vector_dim
    vectors = indices[..., None] if axis == indices.ndim else np.moveaxis(indices, axis, -1)
    for i, d in enumerate(numbers.scatter_dims_to_operand_dims):
        start = vectors[..., i].astype(object)
        if np.any(start < 0) or np.any(start + sizes.get(d, 1) > shape[d]):
            return True
    return False


def _padded(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    return _any(args, _unusual)


# ---- the table ------------------------------------------------------------------------------------------------------

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation("denormals", "XLA:CPU flushes denormals to zero, in operands and results", None, _denormals),
    Deviation(
        "fold order",
        "StableHLO leaves the order of a fold open, and how often its initial value is taken",
        frozenset(("reduce", "reduce_window")), _no_monoid,
    ),
    Deviation(
        "selection order", "it is open in which order elements of a window are compared, and windows scattered",
        frozenset(("select_and_scatter",)), _no_order,
    ),
    Deviation(
        "scatter window",
        "a window of updates that lies outside in part is left out as a whole",
        frozenset(("scatter",)), _partly_outside,
    ),
    Deviation("masked product", "a product with a converted boolean is a selection", frozenset(("multiply",)), _masked),
    Deviation(
        "padding of convolutions",
        "padding takes no part in the sum, so that it makes no NaN with infinities",
        frozenset(("convolution",)), _padded,
    ),
    Deviation(
        "zero sums", "a sum of one product keeps that product's sign of zero, and x + 0 is x",
        frozenset(("dot_general", "dot", "convolution", "add", "subtract", "reduce", "reduce_window")),
        lambda op, args, results: _any(results, _zero) and (_any(args, _negative_zero) or _short(op) not in ("add",)),
    ),
    Deviation(
        "complex special values", "other formulas, which give other zeros, infinities and NaN",
        frozenset(("abs", "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log",
                   "log_plus_one", "logistic", "multiply", "power", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh",
                   "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square", "dot_general")),
        _complex_special,
    ),
    Deviation(
        "batch norm", "other formulas, in f32: infinities meet differently",
        frozenset(("batch_norm_inference",)), _overflow,
    ),
    Deviation(
        "batch statistics",
        "the variance is a difference of means, E[x^2] - E[x]^2: not exact, nor always positive",
        frozenset(("batch_norm_training", "batch_norm_grad")), lambda op, args, results: True,
    ),
    Deviation(
        "failed factorizations", "a matrix without a factor gives NaN in both triangles",
        frozenset(("cholesky",)), lambda op, args, results: _any(results, np.isnan),
    ),
    Deviation(
        "reciprocals", "a quotient by a constant is a product with its reciprocal, which may be a denormal, so 0",
        frozenset(("divide",)), lambda op, args, results: _any(args[1:], lambda x: _denormal(1 / x)),
    ),
    Deviation(
        "sort order", "a comparator that is no strict weak order leaves the order open",
        frozenset(("sort",)), _no_strict_order,
    ),
    Deviation(
        "singular systems", "a matrix is inverted in blocks: with a zero pivot, infinities become NaN",
        frozenset(("triangular_solve",)), lambda op, args, results: _any(results, _unusual),
    ),
    Deviation("random numbers", "a generator of its own", frozenset(("rng",)), lambda op, args, results: True),
    Deviation(
        "bits of NaN", "the NaN that the processor makes has a sign and a payload",
        frozenset(("bitcast_convert", "compare", "sort", "top_k")), lambda op, args, results: _any(args, np.isnan),
    ),
    Deviation(
        "special functions", "approximations that are not made for infinities and poles, nor close to zeros",
        frozenset(("zeta", "polygamma", "digamma", "lgamma", "bessel_i1e")),
        lambda op, args, results: _overflow(op, args, results) or _any(results, lambda x: np.abs(x) < 1),
    ),
    Deviation("fused narrow floats", "f32 is kept between fused ops, which overflows later", None, _narrow_overflow),
)  # fmt: skip
"""What is known, the reasons in docs/semantics.md and docs/upstream_bugs.md."""


# ---- looking for one ------------------------------------------------------------------------------------------------


class _Watching(Interpreter):
    """An interpreter that notes which ops deviate."""

    def __init__(self, program: Program, *, max_steps: int | None = None) -> None:
        super().__init__(program, max_steps=max_steps)
        self.met: dict[Operation, dict[str, None]] = {}
        self._meanings = {op: self._watched(meaning) for op, meaning in self._meanings.items()}

    def _watched(self, meaning: Meaning) -> Meaning:
        if meaning.enters:
            return meaning
        row = cast("Callable[[Operation, Sequence[Value], Scope], Sequence[Value]]", meaning.row)

        def watch(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
            results = row(op, args, scope)
            for deviation in DEVIATIONS:
                if (deviation.ops is None or _short(op) in deviation.ops) and deviation.met(op, args, results):
                    self.met.setdefault(op, {})[deviation.name] = None
            return results

        return replace(meaning, row=watch)


def explanation(
    program: Program,
    inputs: Sequence[Array],
    index: int,
    expected: Array,
    wider: Array,
    *,
    max_steps: int | None = None,
) -> str | None:
    """The known deviations, by name, that may make XLA:CPU compute another output number `index`; None without any."""
    if _ill_conditioned(expected, wider):
        return "rounding decides"
    watching = _Watching(program, max_steps=max_steps)
    try:
        watching.run(inputs)
    except GcompError:
        return None
    names: dict[str, None] = {}
    for op in _behind(program, program.returned.operands[index]):
        names.update(watching.met.get(op, {}))
    return ", ".join(sorted(names)) or None


def _ill_conditioned(expected: Array, wider: Array) -> bool:
    """Whether the reference itself gives other integers, or other infinities and NaN, when it rounds less."""
    if expected.dtype == wider.dtype and not (is_float(text_of(wider.dtype)) or is_complex(text_of(wider.dtype))):
        return bool(np.any(expected != wider))
    pairs = zip(_parts([expected]), _parts([wider]), strict=True)
    return any(bool(np.any((np.isnan(a) != np.isnan(b)) | (np.isinf(a) != np.isinf(b)))) for a, b in pairs)


def _behind(program: Program, value: SSAValue) -> set[Operation]:
    """The ops that a value depends on, with what is in their regions and in functions they call."""
    functions = {f.sym_name.data: f for f in program.functions()}
    found, pending = set[Operation](), [value]
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument):
            continue
        op = cast(OpResult, value).op
        if op in found:
            continue
        whole, entered = [op], set[str]()
        while whole:
            for inner in whole.pop().walk():
                found.add(inner)
                pending += inner.operands
                for name in callees(inner):
                    if name in functions and name not in entered:
                        entered.add(name)
                        whole.append(functions[name])
    return found
