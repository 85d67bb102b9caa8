"""The classes of bugs that compilers for tensors have had, as predicates on one run of a program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from gcomp.dtypes import bit_width, is_complex, is_float, is_integer
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, is_tensor, rank_of, shape_of, static_shape
from gcomp.reference.table import Array
from tests.support.reach import Run, bug_class

# ---- looking at values and their makers -----------------------------------------------------------------------------


def maker(value: SSAValue) -> Operation | None:
    """The op that made a value, or None for an argument."""
    return value.op if isinstance(value, OpResult) else None


def _is(value: SSAValue, *kinds: type[Operation]) -> bool:
    return isinstance(maker(value), kinds)


def _text(value: SSAValue) -> str:
    return dtype_text(value.type)


def _real(array: Array, text: str) -> Array:
    """A float array as doubles, which hold all narrower floats."""
    return np.asarray(array).astype(np.float64) if is_float(text) else np.zeros(0)


def _some(run: Run, op: Operation, test: Callable[[Array], Array]) -> bool:
    """Whether some element of a float operand passes a test."""
    for value in op.operands:
        if not is_tensor(value.type) or not is_float(_text(value)) or (array := run.array(value)) is None:
            continue
        with np.errstate(all="ignore"):
            if bool(np.any(test(_real(array, _text(value))))):
                return True
    return False


def _negative_zero(a: Array) -> Array:
    return (a == 0) & np.signbit(a)


def _whole(array: Array | None) -> list[int]:
    return [] if array is None else [int(n) for n in np.asarray(array).reshape(-1)]


_ARITHMETIC = (hlo.AddOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.DivideOp)
_EXTREMES = (hlo.MaximumOp, hlo.MinimumOp, hlo.ClampOp)
_MOVEMENT = (
    hlo.TransposeOp, hlo.ReshapeOp, hlo.BroadcastInDimOp, hlo.SliceOp, hlo.PadOp, hlo.ReverseOp, hlo.GatherOp,
    hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp,
)  # fmt: skip
_CONTRACTIONS = (hlo.DotGeneralOp, hlo.ConvolutionOp)
_FOLDS = (hlo.ReduceOp, hlo.ReduceWindowOp)


def _empty(value: SSAValue) -> bool:
    return 0 in shape_of(value)


# ---- shapes ---------------------------------------------------------------------------------------------------------


@bug_class(1, "Reduction over a dimension of size 0, or of a scalar")
def _(run: Run) -> bool:
    for op in run.of(hlo.ReduceOp):
        shape = shape_of(op.inputs[0])
        if not shape or any(shape[d] == 0 for d in cast("tuple[int, ...]", op.value("dimensions"))):
            return True
    return False


@bug_class(2, "Data movement and indexing of tensors of rank 0")
def _(run: Run) -> bool:
    return any(rank_of(op.operands[0]) == 0 and not isinstance(op, hlo.BroadcastInDimOp) for op in run.of(*_MOVEMENT))


@bug_class(3, "Contraction, window or fold with an empty dimension")
def _(run: Run) -> bool:
    return any(any(_empty(v) for v in op.operands if is_tensor(v.type)) for op in run.of(*_CONTRACTIONS, *_FOLDS))


@bug_class(4, "Broadcast of size 1 to 0 or more, of another rank")
def _(run: Run) -> bool:
    for op in run.of(hlo.BroadcastInDimOp):
        source, target = shape_of(op.operand), shape_of(op.result)
        places = cast("tuple[int, ...]", op.value("broadcast_dimensions"))
        if len(source) != len(target) and any(a == 1 != target[d] for a, d in zip(source, places, strict=True)):
            return True
    return False


@bug_class(5, "Product with a vector or a scalar")
def _(run: Run) -> bool:
    return any(min(rank_of(v) for v in op.operands) < 2 for op in run.of(hlo.DotGeneralOp))


@bug_class(40, "A symbolic size that is 0 or 1 in this call")
def _(run: Run) -> bool:
    return any(
        not isinstance(size, int) and actual < 2
        for port, array in zip(run.program.inputs(), run.inputs, strict=True)
        for size, actual in zip(port.shape, array.shape, strict=True)
    )


@bug_class(41, "High rank, or more than 99 elements")
def _(run: Run) -> bool:
    return any(
        is_tensor(r.type) and (rank_of(r) >= 6 or ((a := run.array(r)) is not None and a.size > 99))
        for op in run.ops
        for r in op.results
    )


# ---- floats ---------------------------------------------------------------------------------------------------------


@bug_class(6, "NaN through maximum, minimum and clamp")
def _(run: Run) -> bool:
    return any(_some(run, op, np.isnan) for op in run.of(*_EXTREMES))


@bug_class(7, "x == x, x - x, x / x and 0 * x of NaN and infinity; comparisons of NaN")
def _(run: Run) -> bool:
    for op in run.of(hlo.CompareOp, hlo.SubtractOp, hlo.DivideOp, hlo.MultiplyOp):
        same = op.operands[0] is op.operands[1]
        if isinstance(op, hlo.CompareOp) and not same:
            if _some(run, op, np.isnan):
                return True
        elif (same and not isinstance(op, hlo.MultiplyOp)) and _some(run, op, lambda a: ~np.isfinite(a)):
            return True
    return False


_INVERSES = {
    (hlo.LogOp, hlo.ExponentialOp), (hlo.ExponentialOp, hlo.LogOp), (hlo.SqrtOp, chlo.SquareOp),
    (chlo.SquareOp, hlo.SqrtOp), (hlo.ExponentialMinusOneOp, hlo.LogPlusOneOp),
    (hlo.LogPlusOneOp, hlo.ExponentialMinusOneOp), (hlo.SqrtOp, hlo.MultiplyOp),
}  # fmt: skip


@bug_class(8, "Inverse functions, one of which overflows or leaves its domain")
def _(run: Run) -> bool:
    return any(
        (type(op), type(maker(op.operands[0]))) in _INVERSES and _some(run, op, lambda a: ~np.isfinite(a) | (a == 0))
        for op in run.of(hlo.LogOp, hlo.ExponentialOp, hlo.SqrtOp, chlo.SquareOp, hlo.ExponentialMinusOneOp,
                         hlo.LogPlusOneOp)
    )  # fmt: skip


@bug_class(9, "-0 through addition, subtraction, maximum, sign, division")
def _(run: Run) -> bool:
    kinds = (hlo.AddOp, hlo.SubtractOp, hlo.MaximumOp, hlo.MinimumOp, hlo.SignOp, hlo.DivideOp)
    return any(_some(run, op, _negative_zero) for op in run.of(*kinds))


@bug_class(10, "Denormal numbers in arithmetic")
def _(run: Run) -> bool:
    limits = {"f32": 2.0**-126, "f64": 2.0**-1022, "f16": 2.0**-14, "bf16": 2.0**-126}
    for op in run.of(*_ARITHMETIC, *_EXTREMES, hlo.DotGeneralOp, hlo.SqrtOp, hlo.CompareOp):
        least = limits.get(_text(op.operands[-1]))
        if least is not None and _some(run, op, lambda a, m=least: (a != 0) & (np.abs(a) < m)):
            return True
    return False


@bug_class(22, "Chains of additions or products, a product under a sum, division by a constant")
def _(run: Run) -> bool:
    for op in run.of(*_ARITHMETIC):
        if not is_float(_text(op.operands[0])) or _empty(op.results[0]):
            continue
        made = [maker(v) for v in op.operands]
        if isinstance(op, hlo.AddOp | hlo.SubtractOp) and any(isinstance(m, hlo.MultiplyOp) for m in made):
            return True
        if isinstance(op, hlo.AddOp | hlo.MultiplyOp) and any(type(m) is type(op) for m in made):
            return True
        if isinstance(op, hlo.DivideOp) and isinstance(made[1], hlo.ConstantOp | hlo.BroadcastInDimOp):
            return True
    return False


# ---- integers and conversions ---------------------------------------------------------------------------------------


def _least(text: str) -> int:
    return 0 if text[0] == "u" else -(1 << (bit_width(text) - 1))


@bug_class(11, "Integer division by zero, or of the least integer by -1")
def _(run: Run) -> bool:
    for op in run.of(hlo.DivideOp, hlo.RemainderOp):
        text = _text(op.operands[0])
        if is_integer(text) and (args := run.operands(op)) is not None:
            pairs = zip(_whole(args[0]), _whole(args[1]), strict=True)
            if any(b == 0 or (text[0] == "i" and a == _least(text) and b == -1) for a, b in pairs):
                return True
    return False


@bug_class(12, "Remainder and division of numbers of different signs")
def _(run: Run) -> bool:
    for op in run.of(hlo.RemainderOp, hlo.DivideOp):
        args = run.operands(op) if is_integer(_text(op.operands[0])) else None
        pairs = zip(_whole(args[0]), _whole(args[1]), strict=True) if args is not None else ()
        if any(b and a % b and (a < 0) != (b < 0) for a, b in pairs):
            return True
    return False


_EXACT: dict[type[Operation], Any] = {
    hlo.AddOp: operator.add,
    hlo.SubtractOp: operator.sub,
    hlo.MultiplyOp: operator.mul,
    hlo.NegateOp: operator.neg,
    hlo.AbsOp: operator.abs,
}


def _wraps(run: Run, op: Operation, texts: Sequence[str] | None = None) -> bool:
    text = _text(op.operands[0])
    if not is_integer(text) or (texts is not None and text not in texts) or (args := run.operands(op)) is None:
        return False
    low = _least(text)
    high = low + (1 << bit_width(text)) - 1
    exact = _EXACT[type(op)]
    return any(not low <= exact(*row) <= high for row in zip(*map(_whole, args), strict=True))


@bug_class(14, "Integers that wrap around")
def _(run: Run) -> bool:
    return any(_wraps(run, op) for op in run.of(*_EXACT))


@bug_class(15, "Chains of narrow integers that wrap inside")
def _(run: Run) -> bool:
    narrow = ("i8", "ui8", "i4", "ui4", "i2", "ui2", "i16", "ui16")
    return any(
        _wraps(run, op, narrow) and any(isinstance(use.operation, GraphOp) for use in op.results[0].uses)
        for op in run.of(*_EXACT)
    )


@bug_class(16, "Float to integer out of range or NaN, or float to boolean")
def _(run: Run) -> bool:
    for op in run.of(hlo.ConvertOp):
        source, target = _text(op.operands[0]), _text(op.results[0])
        if not is_float(source) or is_float(target) or is_complex(target):
            continue
        if target == "i1":
            if _some(run, op, lambda a: (a != 0) & (np.abs(a) < 1) | np.isnan(a)):
                return True
            continue
        low, width = _least(target), bit_width(target)
        if _some(run, op, lambda a, m=float(low), n=float(low + 2**width): ~((a > m - 1) & (a < n))):
            return True
    return False


@bug_class(17, "Converted there and back, with loss")
def _(run: Run) -> bool:
    for op in run.of(hlo.ConvertOp):
        inner = maker(op.operands[0])
        if isinstance(inner, hlo.ConvertOp) and inner.operands[0].type == op.results[0].type:
            before, after = run.array(inner.operands[0]), run.array(op.results[0])
            if before is not None and after is not None and before.tobytes() != after.tobytes():
                return True
    return False


@bug_class(18, "Ops on constants of narrow types")
def _(run: Run) -> bool:
    narrow = ("bf16", "f16", "i8", "ui8", "i4", "ui4", "f8E4M3FN", "f8E5M2", "i16", "ui16", "i2", "ui2")
    return any(
        op.operands and _text(op.operands[0]) in narrow
        and all(_is(v, hlo.ConstantOp) or _splat(v) for v in op.operands)
        for op in run.of(hlo.BinaryOp, hlo.UnaryOp, hlo.ConvertOp, hlo.CompareOp)
    )  # fmt: skip


def _splat(value: SSAValue) -> bool:
    made = maker(value)
    return isinstance(made, hlo.BroadcastInDimOp) and _is(made.operands[0], hlo.ConstantOp)


@bug_class(19, "Arithmetic of booleans, or types that meet by conversion")
def _(run: Run) -> bool:
    boolean = any(_text(op.operands[0]) == "i1" for op in run.of(hlo.AddOp, hlo.MultiplyOp, hlo.MaximumOp))
    return boolean or any(
        any(_is(v, hlo.ConvertOp) and _text(maker(v).operands[0]) != _text(v) for v in op.operands)  # pyright: ignore
        for op in run.of(hlo.BinaryOp)
    )


@bug_class(20, "Indices of several integer types")
def _(run: Run) -> bool:
    kinds = (hlo.GatherOp, hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp, hlo.ScatterOp)
    texts = {_text(v) for op in run.of(*kinds) for v in op.operands[1:] if is_integer(_text(v))}
    return bool(texts - {"i32"})


# ---- movement and indexing ------------------------------------------------------------------------------------------


@bug_class(23, "Slices of slices with strides, negative pads, slices of pads")
def _(run: Run) -> bool:
    for op in run.of(hlo.SliceOp):
        inner = maker(op.operand)
        if isinstance(inner, hlo.PadOp):
            return True
        if isinstance(inner, hlo.SliceOp) and (max(op.value("strides"), default=1) > 1 or
                                               max(inner.value("strides"), default=1) > 1):  # fmt: skip
            return True
    return any(
        min((v for v in (*op.value("edge_padding_low"), *op.value("edge_padding_high"))), default=0) < 0
        for op in run.of(hlo.PadOp)
        if static_shape(op.operand) is not None
    )


@bug_class(24, "Concatenation of one operand, or of one value twice")
def _(run: Run) -> bool:
    return any(len(op.operands) == 1 or len(set(op.operands)) < len(op.operands) for op in run.of(hlo.ConcatenateOp))


@bug_class(25, "Transposes and reshapes around reductions")
def _(run: Run) -> bool:
    views = (hlo.TransposeOp, hlo.ReshapeOp)
    return any(
        _is(op.operands[0], *views) or any(isinstance(u.operation, views) for r in op.results for u in r.uses)
        for op in run.of(hlo.ReduceOp)
    )


@bug_class(26, "A repeated view that is updated or indexed")
def _(run: Run) -> bool:
    kinds = (hlo.DynamicUpdateSliceOp, hlo.ScatterOp, hlo.GatherOp, hlo.DynamicSliceOp, hlo.SliceOp, hlo.SortOp)
    return any(_is(op.operands[0], hlo.BroadcastInDimOp) for op in run.of(*kinds))


@bug_class(27, "Convolutions with asymmetric padding, dilation or groups")
def _(run: Run) -> bool:
    for op in run.of(hlo.ConvolutionOp):
        w = op.window()
        uneven = any(a != b for a, b in w["padding"])
        grouped = op.value("feature_group_count") > 1 or op.value("batch_group_count") > 1
        if uneven or grouped or max((*w["lhs_dilation"], *w["rhs_dilation"]), default=1) > 1:
            return True
    return False


@bug_class(30, "Indices out of bounds or negative")
def _(run: Run) -> bool:
    for op in run.of(hlo.GatherOp, hlo.DynamicSliceOp, hlo.DynamicUpdateSliceOp, hlo.ScatterOp):
        shape = getattr(run.array(op.operands[0]), "shape", ())
        if any(isinstance(op, hlo.DynamicUpdateSliceOp | hlo.ScatterOp) and _empty(v) for v in op.operands[:2]):
            continue
        starts = op.operands[1:2] if isinstance(op, hlo.GatherOp | hlo.ScatterOp) else op.operands[1:]
        numbers = [n for v in starts if is_integer(_text(v)) for n in _whole(run.array(v))]
        if numbers and (min(numbers) < 0 or max(numbers) >= max(shape, default=1)):
            return True
    return False


@bug_class(31, "A scatter that hits one place more than once")
def _(run: Run) -> bool:
    for op in run.of(hlo.ScatterOp):
        d, indices = op.dimensions, run.array(op.scatter_indices)
        if indices is None or not indices.size or _empty(op.updates[0]) or d.input_batching_dims:
            continue
        if d.index_vector_dim < indices.ndim:
            rows = np.moveaxis(indices, d.index_vector_dim, -1).reshape(-1, indices.shape[d.index_vector_dim])
        else:
            rows = indices.reshape(-1, 1)
        seen = [tuple(map(int, row)) for row in rows if all(0 <= int(i) < 7 for i in row)]
        if len(set(seen)) < len(seen):
            return True
    return False


# ---- structure ------------------------------------------------------------------------------------------------------


@bug_class(32, "An updated value that is still read afterwards")
def _(run: Run) -> bool:
    for op in run.of(hlo.DynamicUpdateSliceOp, hlo.ScatterOp):
        later = op.next_op
        while later is not None:
            if op.operands[0] in later.operands:
                return True
            later = later.next_op
    return False


@bug_class(33, "An output that is an input")
def _(run: Run) -> bool:
    returned = run.program.returned.operands
    return any(isinstance(v, BlockArgument) for v in returned)


@bug_class(34, "Values that swap places in a loop")
def _(run: Run) -> bool:
    for op in run.of(hlo.WhileOp):
        block = op.body.block
        passed = block.last_op.operands if block.last_op is not None else ()
        if any(v in block.args and v is not a for v, a in zip(passed, block.args, strict=True)):
            return True
    return False


@bug_class(35, "Several random draws, alike or not used")
def _(run: Run) -> bool:
    draws = list(run.of(hlo.RngOp, hlo.RngBitGeneratorOp))
    return len(draws) > 1 or any(r.first_use is None for op in draws for r in op.results)


@bug_class(37, "Outputs returned twice, also used inside, or results dropped")
def _(run: Run) -> bool:
    returned = run.program.returned.operands
    inner = any(not isinstance(u.operation, FuncReturnOp) for v in returned for u in v.uses)
    return inner or len(set(returned)) < len(returned)


@bug_class(38, "Two ops that differ in an attribute or in the order of operands only")
def _(run: Run) -> bool:
    seen: dict[tuple[Any, ...], Operation] = {}
    for op in run.ops:
        if not op.operands or op.regions or isinstance(op, hlo.ReturnOp):
            continue
        key = (type(op), frozenset(op.operands))
        other = seen.setdefault(key, op)
        if other is not op and (other.properties != op.properties or tuple(other.operands) != tuple(op.operands)):
            return True
    return False


@bug_class(39, "Ops whose sizes are operands, or symbolic sizes that are computed")
def _(run: Run) -> bool:
    kinds = (
        hlo.DynamicReshapeOp, hlo.DynamicBroadcastInDimOp, hlo.DynamicIotaOp, hlo.DynamicPadOp, hlo.RealDynamicSliceOp,
        hlo.DynamicGatherOp, hlo.GetDimensionSizeOp,
    )  # fmt: skip
    if any(True for _ in run.of(*kinds)):
        return True
    return any(
        is_tensor(r.type) and any(not isinstance(s, int) and not str(s).isidentifier() for s in shape_of(r))
        for op in run.ops
        for r in op.results
    )


OUT_OF_SCOPE = {
    13: "tail lanes of vector blocks: no program says how it is vectorized",
    21: "offsets beyond 2**31: programs are small on purpose",
    28: "pooling modes: what importers make of them is ordinary windows",
    29: "resize modes: likewise",
    36: "gradients: the graph level has no gradient op",
    42: "error semantics: every op of the graph level is total",
}
"""Classes that are not about the meaning of graphs, and why."""
