"""Where XLA:CPU computes something else than docs/guides/semantics.md says: each known way is one row of `DEVIATIONS`.

A deviation excuses elements, not programs. Each row says which elements of an op's results XLA may compute otherwise,
given the op's values. The reference runs the program again with other values there: the outputs' elements that change
are those that the deviation reaches (`excuses.py`). A difference from the reference anywhere else is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from gcomp.dtypes import bit_width, is_complex, is_float, text_of
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import identity
from gcomp.ir.stablehlo.reduction import applied_op
from gcomp.ir.types import BOOL, dtype_text, element_of
from gcomp.reference.table import Value
from gcomp.reference.varied import MOVES, short_name

Array = np.ndarray[Any, Any]
Mask = Any
"""Which elements of an op's results are open: an array of booleans, or one boolean for all of them."""

Reach = Callable[[Operation, Sequence[Value], Sequence[Value]], Mask]
"""What XLA may compute otherwise, by what an op is and by the values of its operands and results."""


@dataclass(frozen=True)
class Deviation:
    """One way in which XLA:CPU differs: the reason, the ops (without dialect; all if None), and the elements."""

    name: str
    why: str
    ops: frozenset[str] | None
    reach: Reach


# ---- values ---------------------------------------------------------------------------------------------------------


def parts_of(values: Sequence[Value]) -> Iterator[Array]:
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


def any_of(values: Sequence[Value], holds: Callable[[Array], Any]) -> bool:
    """Whether anything holds of any of the floats among values."""
    with np.errstate(all="ignore"):
        return any(bool(np.any(holds(part))) for part in parts_of(values))


def denormal(x: Array) -> Any:
    """Where numbers are closer to 0 than the smallest normal one."""
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)


def tiny(x: Array) -> Any:
    """Where numbers are no further from 0 than the smallest normal one."""
    return (x != 0) & (np.abs(x) <= np.finfo(x.dtype).tiny)


def _unusual(x: Array) -> Any:
    return ~np.isfinite(x)


def _zero(x: Array) -> Any:
    return x == 0


def _negative_zero(x: Array) -> Any:
    return (x == 0) & np.signbit(x)


def _elements(values: Sequence[Value], shape: tuple[int, ...], holds: Callable[[Array], Any]) -> Mask:
    """Where any of the values holds, element by element; everywhere, for values of another shape of which one does."""
    found: Mask = False
    with np.errstate(all="ignore"):
        for part in parts_of(values):
            mask = np.asarray(holds(part))
            found = found | (mask if mask.shape == shape else bool(mask.any()))
    return found


def _shape(results: Sequence[Value]) -> tuple[int, ...]:
    return np.shape(results[0]) if results else ()


def _everywhere(holds: Callable[[Operation, Sequence[Value], Sequence[Value]], bool]) -> Reach:
    """All elements, where an op and its values are such."""
    return lambda op, args, results: holds(op, args, results)


def _special_results(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """The infinities and NaN that an op gives."""
    return _elements(results, _shape(results), _unusual)


def _batch_norm(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """The infinities and NaN of a normalization, by its own formula in double or in f32, or as
    `x * s + (offset - mean * s)`; what is scaled by a denormal `s`."""
    x, *of_features = (np.asarray(value) for value in args)
    wide = np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
    norm = cast(hlo.BatchNormInferenceOp, op)
    places = [1] * x.ndim
    places[norm.value("feature_index")] = -1
    scale, offset, mean, variance = (value.astype(wide).reshape(places) for value in of_features)
    with np.errstate(all="ignore"):
        root = np.sqrt(variance + wide.type(norm.value("epsilon")))
        factor = scale / root
        written = x.astype(wide) * factor + (offset - mean * factor)
        defined = (x.astype(wide) - mean) / root * scale + offset
    return np.asarray(_special_results(op, args, results)) | _unusual(written) | _unusual(defined) | tiny(factor)


def _angles(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Angles of complex numbers, and of two zeros."""
    y, x = (np.asarray(value) for value in args)
    return is_complex(text_of(y.dtype)) or ((y == 0) & (x == 0))


def _zero_results(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """The zeros that an op gives; of additions, those with a negative zero among the operands."""
    shape = _shape(results)
    zeros = _elements(results, shape, _zero)
    return zeros & _elements(args, shape, _negative_zero) if short_name(op) == "add" else zeros


def _narrow_overflow(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where a float narrower than f32 overflows, to what its type has for that, from numbers."""
    text = dtype_text(op.results[0].type) if op.results else ""
    if not is_float(text) or bit_width(text) >= 32:
        return False
    shape = _shape(results)
    return _elements(results, shape, _unusual) & ~np.asarray(_elements(args, shape, _unusual))


def _complex_special(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where a part of a complex number is zero, infinite or NaN."""
    arrays = [cast(Array, v) for v in (*args, *results) if isinstance(v, np.ndarray)]
    given = [array for array in arrays if is_complex(text_of(array.dtype))]
    return _elements(given, _shape(results), lambda x: _unusual(x) | _zero(x))


def _near_poles(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where a special function has infinities, NaN, or a result close to 0."""
    shape = _shape(results)
    close = _elements(results, shape, lambda x: _unusual(x) | (np.abs(x) < 1))
    return close | _elements(args, shape, _unusual)


# ---- where values come from -----------------------------------------------------------------------------------------


def _sources(values: Sequence[SSAValue]) -> Iterator[Operation]:
    """The ops that compute values, and those on the way that only move them."""
    seen, pending = set[SSAValue](), list(values)
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value, BlockArgument):
            continue
        seen.add(value)
        op = cast(OpResult, value).op
        if short_name(op) in MOVES:
            pending += op.operands
        yield op


def _from_boolean(op: Operation) -> bool:
    return isinstance(op, hlo.ConvertOp) and element_of(op.operands[0]) == BOOL


def _from_boolean_outside(op: Operation) -> bool:
    """Whether an op is in a function that others call, and may get a converted boolean from there."""
    module, around = op, op
    while (parent := module.parent_op()) is not None:
        module, around = parent, module
    called = isinstance(around, FuncOp) and around.sym_visibility == StringAttr("private")
    return called and any(map(_from_boolean, module.walk()))


def _mask_products(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where a factor is a converted boolean, and another is not finite, or the product -0."""
    mask = any(map(_from_boolean, _sources(op.operands))) or _from_boolean_outside(op)
    shape = _shape(results)
    return mask and (_elements(args, shape, _unusual) | _elements(results, shape, _negative_zero))


def _of_nan(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where the bits of a NaN are looked at: as an integer, or in a total order."""
    if isinstance(op, hlo.CompareOp) and op.value("compare_type") != "TOTALORDER":
        return False
    elementwise = isinstance(op, hlo.CompareOp)
    return _elements(args, _shape(results), np.isnan) if elementwise else any_of(args, np.isnan)


# ---- folds ----------------------------------------------------------------------------------------------------------


_IDEMPOTENT = (hlo.MaximumOp, hlo.MinimumOp, hlo.AndOp, hlo.OrOp)
"""Ops to which it does not matter how often an operand is taken."""


def _no_monoid(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether the order of a fold decides: its body is not one associative op, or it starts elsewhere."""
    fold = cast("hlo.ReduceOp | hlo.ReduceWindowOp", op)
    applied = applied_op(fold.body)
    if applied is None:
        return True
    if applied in _IDEMPOTENT:
        return False
    inits = [np.asarray(init) for init in args[len(args) // 2 :]]
    return any(bool(init != np.asarray(identity(applied, text_of(init.dtype)), init.dtype)) for init in inits)


_UNDONE: Mapping[type[Operation], tuple[type[Operation], ...]] = {
    hlo.LogOp: (hlo.ExponentialOp,),
    hlo.SqrtOp: (hlo.MultiplyOp, hlo.PowerOp),
    hlo.PowerOp: (hlo.ExponentialOp,),
    hlo.MultiplyOp: (hlo.ExponentialOp,),
    hlo.DivideOp: (hlo.ExponentialOp, hlo.MultiplyOp),
}
"""Ops that XLA merges with what makes their first operand: log(exp(x)), sqrt(x * x), exp(x) * exp(y), x * y / z."""


def _mask_inverses(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> Mask:
    """Where an op undoes what another has done, which came out as zero, a denormal, an infinity or NaN."""
    if not isinstance(op.operands[0].owner, _UNDONE[type(op)]):
        return False
    return _elements(args, _shape(results), lambda x: _unusual(x) | _zero(x) | denormal(x))


def _no_pivot(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a pivot of a factorization is no number, or what is left of a much larger one: that is rounding."""
    matrix, factor = (np.diagonal(np.asarray(v), axis1=-2, axis2=-1) for v in (args[0], results[0]))
    precision = float(np.finfo(next(parts_of([factor])).dtype).eps)
    with np.errstate(all="ignore"):
        return not bool(np.all(np.square(np.abs(factor)) > np.sqrt(precision) * np.abs(matrix)))


def _no_order(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether it depends on the order what is selected in a window, or what several windows leave at one place."""
    scattered = cast(hlo.SelectAndScatterOp, op)
    if applied_op(scattered.scatter) is None:
        return True
    body = scattered.select.block
    first = body.first_op
    plain = isinstance(first, hlo.CompareOp) and first.next_op is body.last_op and [*first.operands] == [*body.args]
    total = plain and cast(hlo.CompareOp, first).value("comparison_direction") in ("GE", "LE")
    return not total or any_of(args[:1], np.isnan) or _padded_ties(scattered, np.asarray(args[0]))


def _padded_ties(op: hlo.SelectAndScatterOp, operand: Array) -> bool:
    """Whether equal elements may meet in a window of several dimensions that is padded: another of them is selected."""
    window = op.window()
    several = sum(size > 1 for size in window["window_dimensions"]) > 1
    return several and any(map(any, window["padding"])) and len(set(operand.ravel().tolist())) < operand.size


def _no_strict_order(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a comparator asks for more than less and greater, or meets NaN."""
    compares = [inner for inner in op.walk() if isinstance(inner, hlo.CompareOp)]
    strict = all(inner.value("comparison_direction") in ("LT", "GT") for inner in compares)
    return len(compares) != 1 or not strict or any_of(args, np.isnan)


def _scattered_windows(op: hlo.ScatterOp, args: Sequence[Value]) -> dict[int, int]:
    """The size of a window of updates in each dimension of the operand that it has."""
    numbers, updates = op.value("scatter_dimension_numbers"), np.shape(args[-1])
    skipped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(np.ndim(args[0])) if d not in skipped]
    return dict(zip(kept, [updates[d] for d in numbers.update_window_dims], strict=True))


def _windows_not_last(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether windows are scattered that may lie over each other in part, and are not the updates' last dimensions."""
    scatter = cast(hlo.ScatterOp, op)
    numbers, rank = scatter.value("scatter_dimension_numbers"), np.ndim(args[-1])
    sizes = _scattered_windows(scatter, args)
    window = [*numbers.update_window_dims]
    last = window == [*range(rank - len(window), rank)]
    return not last and any(sizes.get(d, 1) > 1 for d in numbers.scatter_dims_to_operand_dims)


def _nan_in_parts(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether devices look for the greatest or the least among numbers of which some are NaN."""
    applied = applied_op(cast(hlo.ReduceOp, op).body)
    if applied not in (hlo.MaximumOp, hlo.MinimumOp) or not any_of(args, np.isnan):
        return False
    module: Operation = op
    while (around := module.parent_op()) is not None:
        module = around
    return sdy.is_sharded(module)


def _partly_outside(op: Operation, args: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a window of updates of more than one element starts outside, or where it does not fit."""
    scatter = cast(hlo.ScatterOp, op)
    numbers = scatter.value("scatter_dimension_numbers")
    indices, shape = np.asarray(args[len(scatter.inputs)]), np.shape(args[0])
    sizes = _scattered_windows(scatter, args)
    if int(np.prod([*sizes.values()])) <= 1 and len(numbers.scatter_dims_to_operand_dims) <= 1:
        return False
    axis = numbers.index_vector_dim
    vectors = indices[..., None] if axis == indices.ndim else np.moveaxis(indices, axis, -1)
    for i, d in enumerate(numbers.scatter_dims_to_operand_dims):
        start = vectors[..., i].astype(object)
        if np.any(start < 0) or np.any(start + sizes.get(d, 1) > shape[d]):
            return True
    return False


# ---- the table ------------------------------------------------------------------------------------------------------

ZEROS = "zero sums"

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "fold order",
        "StableHLO leaves the order of a fold open, and how often its initial value is taken",
        frozenset(("reduce", "reduce_window")), _everywhere(_no_monoid),
    ),
    Deviation(
        "NaN between devices", "the greatest and the least of what devices have is found without their NaN",
        frozenset(("reduce",)), _everywhere(_nan_in_parts),
    ),
    Deviation(
        "selection order", "it is open in which order elements of a window are compared, and windows scattered",
        frozenset(("select_and_scatter",)), _everywhere(_no_order),
    ),
    Deviation(
        "scatter window",
        "a window of updates that lies outside in part is left out as a whole",
        frozenset(("scatter",)), _everywhere(_partly_outside),
    ),
    Deviation(
        "scatter order",
        "updates apply window by window, also where the window's dimensions come first in the updates",
        frozenset(("scatter",)), _everywhere(_windows_not_last),
    ),
    Deviation(
        "masked product", "a product with a converted boolean is a selection",
        frozenset(("multiply", "dot_general", "dot")), _mask_products,
    ),
    Deviation(
        "padding of convolutions",
        "padding takes no part in the sum, so that it makes no NaN with infinities",
        frozenset(("convolution",)), _special_results,
    ),
    Deviation(
        ZEROS, "a sum of one product keeps that product's sign of zero, and x + 0 is x",
        frozenset(("dot_general", "dot", "convolution", "add", "subtract", "reduce", "reduce_window")), _zero_results,
    ),
    Deviation(
        "complex special values", "other formulas, which give other zeros, infinities and NaN",
        frozenset(("abs", "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log",
                   "log_plus_one", "logistic", "multiply", "power", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh",
                   "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square", "dot_general")),
        _complex_special,
    ),
    Deviation(
        "angles", "complex ones as logarithms of a unit, exact to 1; NaN of zeros that LLVM knows to be some",
        frozenset(("atan2",)), _angles,
    ),
    Deviation(
        "merged functions", "log(exp(x)) is x, exp(x) / exp(y) is exp(x - y): nothing overflows or vanishes in between",
        frozenset(("divide", "log", "multiply", "power", "sqrt")), _mask_inverses,
    ),
    Deviation(
        "batch norm", "another formula, in f32: it overflows elsewhere, and infinities meet differently",
        frozenset(("batch_norm_inference",)), _batch_norm,
    ),
    Deviation(
        "batch statistics",
        "the variance is a difference of means, E[x^2] - E[x]^2: not exact, nor always positive",
        frozenset(("batch_norm_training", "batch_norm_grad")), lambda op, args, results: True,
    ),
    Deviation(
        "pivots", "what cancels in a pivot is rounding's: there may be a factor, or none",
        frozenset(("cholesky",)), _everywhere(_no_pivot),
    ),
    Deviation(
        "reciprocals", "a quotient by a constant is a product with its reciprocal, which may be a denormal, so 0",
        frozenset(("divide",)),
        lambda op, args, results: _elements(args[1:], _shape(results), lambda x: denormal(1 / x)),
    ),
    Deviation(
        "sort order", "a comparator that is no strict weak order leaves the order open",
        frozenset(("sort",)), _everywhere(_no_strict_order),
    ),
    Deviation(
        "singular systems", "a matrix is inverted in blocks: with a zero pivot, infinities become NaN",
        frozenset(("triangular_solve",)), lambda op, args, results: any_of(results, _unusual),
    ),
    Deviation("random numbers", "a generator of its own", frozenset(("rng",)), lambda op, args, results: True),
    Deviation(
        "bits of NaN", "the NaN that the processor makes has a sign and a payload",
        frozenset(("bitcast_convert", "compare", "sort", "top_k")), _of_nan,
    ),
    Deviation(
        "special functions", "approximations that are not made for infinities and poles, nor close to zeros",
        frozenset(("zeta", "polygamma", "digamma", "lgamma", "bessel_i1e")), _near_poles,
    ),
    Deviation("fused narrow floats", "f32 is kept between fused ops, which overflows later", None, _narrow_overflow),
)  # fmt: skip
"""What is known, the reasons in docs/guides/semantics.md and docs/guides/upstream_bugs.md."""


FLUSHED = "denormals"
"""The deviation without a row: XLA:CPU flushes denormals to zero, in operands and results of all that computes."""
