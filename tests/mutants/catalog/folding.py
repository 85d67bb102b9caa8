"""Mistakes in fold-constants: values computed wrongly, or known that are not."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text
from gcomp.passes.graph import fold_constants as fold
from tests.mutants import edits
from tests.mutants.mutant import control, mutant

wrong = partial(edits.wrong, target="fold-constants")
right = partial(edits.right, target="fold-constants")
made = partial(mutant, target="fold-constants")

HERE = "passes.graph.fold_constants"


def _evaluating(change: Any) -> None:
    """Let `change(op, arrays, evaluate)` say what folding an op gives."""
    evaluate = fold._evaluate  # pyright: ignore[reportPrivateUsage]

    def changed(op: Any, arrays: Any, program: Any) -> Any:
        return change(op, arrays, lambda op, arrays: evaluate(op, arrays, program))

    fold._evaluate = changed  # pyright: ignore[reportPrivateUsage]


def _numpy(kinds: dict[type, Any], fits: Any = lambda op, arrays: True) -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        function = kinds.get(type(op))
        if function is None or not fits(op, arrays):
            return evaluate(op, arrays)
        with np.errstate(all="ignore"):
            return [np.asarray(function(*arrays)).astype(evaluate(op, arrays)[0].dtype)]

    _evaluating(change)


def _integers(op: Any, arrays: Any) -> bool:
    return arrays[0].dtype.kind in "iu"


def _floats(op: Any, arrays: Any) -> bool:
    return dtype_text(op.results[0].type) in ("f16", "bf16", "f32", "f64")


@made(
    "fold-floor-remainder",
    classes=(12,),
    about="remainders of negative integers are folded with the divisor's sign (TVM#10336)",
)
def _() -> None:
    _numpy(
        {hlo.RemainderOp: lambda x, y: np.mod(x, np.where(y == 0, 1, y))},
        lambda op, a: _integers(op, a) and bool((a[1] != 0).all()),
    )


@made("fold-floor-division", classes=(11, 12), about="quotients of negative integers are folded downwards")
def _() -> None:
    _numpy({hlo.DivideOp: np.floor_divide}, lambda op, a: _integers(op, a) and bool((a[1] != 0).all()))


@made("fold-division-by-zero-as-zero", classes=(11,), about="integers divided by 0 are folded to 0 (torch#184406)")
def _() -> None:
    _numpy(
        {hlo.DivideOp: lambda x, y: np.where(y == 0, 0, x // np.where(y == 0, 1, y))},
        lambda op, a: _integers(op, a) and bool((a[1] == 0).any()),
    )


@made("fold-maximum-ignores-nan", classes=(6,), about="maximum is folded as fmax: NaN gives way to numbers (ORT#9753)")
def _() -> None:
    _numpy({hlo.MaximumOp: np.fmax, hlo.MinimumOp: np.fmin}, _floats)


@made("fold-cuts-bf16-off", classes=(18,), about="results in bf16 are cut off and not rounded (onnxscript#2187)")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        results = evaluate(op, arrays)
        functions = {hlo.AddOp: np.add, hlo.MultiplyOp: np.multiply, hlo.ConvertOp: np.asarray}
        if type(op) not in functions or dtype_text(op.results[0].type) != "bf16" or arrays[0].dtype.kind not in "fV":
            return results
        with np.errstate(all="ignore"):
            exact = np.asarray(functions[type(op)](*[a.astype(np.float32) for a in arrays]))
        kept = (exact.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return [np.where(np.isfinite(exact), kept, exact).astype(results[0].dtype)]

    _evaluating(change)


@made("fold-saturates-conversion", classes=(16, 17), about="narrowing conversions of integers saturate when folded")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        results = evaluate(op, arrays)
        if isinstance(op, hlo.ConvertOp) and arrays[0].dtype.kind in "iu" and results[0].dtype.kind in "iu":
            limits = np.iinfo(results[0].dtype)
            return [
                np.clip(arrays[0].astype(object), int(limits.min), int(limits.max))
                .astype(results[0].dtype)
                .reshape(arrays[0].shape)
            ]
        return results

    _evaluating(change)


@made("fold-flushes-denormals", classes=(10,), about="denormal results are folded to 0")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        def flushed(a: Any) -> Any:
            return np.where(np.abs(a) < np.finfo(a.dtype).tiny, np.zeros((), a.dtype), a) if a.dtype.kind == "f" else a

        return [flushed(a) for a in evaluate(op, arrays)]

    _evaluating(change)


@made("fold-negates-by-subtraction", classes=(9,), about="-x is folded as 0 - x, so that 0 stays 0")
def _() -> None:
    _numpy({hlo.NegateOp: lambda x: np.zeros((), x.dtype) - x}, _floats)


@made(
    "fold-wraps-in-int64",
    classes=(14, 15),
    about="integers are folded without wrapping, and saturate at the limits of their type",
)
def _() -> None:
    def saturated(x: Any, y: Any) -> Any:
        limits = np.iinfo(x.dtype)
        return np.clip(x.astype(np.float64) + y.astype(np.float64), limits.min, limits.max)

    _numpy({hlo.AddOp: saturated}, lambda op, a: a[0].dtype.kind in "iu" and a[0].dtype.itemsize < 8)


@made("fold-empty-reduction", classes=(1,), about="a fold over nothing gives 0, whatever it starts from (TVM#10780)")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        results = evaluate(op, arrays)
        return [np.zeros_like(r) for r in results] if isinstance(op, hlo.ReduceOp) and arrays[0].size == 0 else results

    _evaluating(change)


wrong(
    "fold-transposes-by-inverse",
    classes=(25,),
    about="constants are transposed by the inverse of the permutation",
    edits=[
        (
            f"{HERE}:_evaluate",
            'np.transpose(arrays[0], op.value("permutation"))',
            'np.transpose(arrays[0], np.argsort(op.value("permutation")))',
        )
    ],
)
wrong(
    "fold-reshapes-in-memory-order",
    classes=(25,),
    about="constants are reshaped in the order of memory, which a transpose changed",
    edits=[(f"{HERE}:_evaluate", "static_shape(op.results[0])))]", 'static_shape(op.results[0])), order="A")]')],
)
wrong(
    "fold-splat-by-value",
    classes=(9, 18),
    about="an array of zeros of both signs is taken for a splat",
    edits=[
        (
            f"{HERE}:_is_splat",
            "    flat, item = value.flat, value.dtype.itemsize",
            "    if value.dtype.kind == 'f' and (value == value.flat[0]).all():\n        return True\n    flat, item "
            "= value.flat, value.dtype.itemsize",
        ),
        (
            f"{HERE}:FoldConstants._known",
            "b.emit(hlo.ConstantOp, value=hlo.ConstantOp.dense(value).elements_attr)",
            "b.full(value.shape, value.flat[0], hlo.ConstantOp.dense(value).results[0].type.element_type) "
            "if _is_splat(value) else b.emit(hlo.ConstantOp, value=hlo.ConstantOp.dense(value).elements_attr)",
        ),
    ],
)
wrong(
    "fold-random-numbers",
    classes=(35,),
    about="draws of known bounds are folded: one draw for all runs (torch#190758)",
    edits=[
        (
            f"{HERE}:_may_be_replaced",
            "isinstance(op, kept) or not op.results or not is_side_effect_free(op)",
            "isinstance(op, kept[:3]) or not op.results or not (is_side_effect_free(op) or op.name == 'stablehlo.rng')",
        )
    ],
)
wrong(
    "fold-large-vectors-reversed",
    classes=(41,),
    about="results of more than eight elements are folded from their end",
    edits=[
        (
            f"{HERE}:FoldConstants._fold",
            "results = _evaluate(inner, [arrays[v] for v in inner.operands], program)",
            "results = [r[::-1] if r.ndim == 1 and r.size > 8 else r\n                           for r in "
            "_evaluate(inner, [arrays[v] for v in inner.operands], program)]",
        )
    ],
)
wrong(
    "fold-frees-shared-weights",
    classes=(32,),
    about="a folded weight is freed though others read it (torch#183575)",
    edits=[(f"{HERE}:_erase_dead", "            if not readers[symbol]:", "            if symbol in program.weights:")],
)
wrong(
    "fold-first-result-everywhere",
    classes=(37,),
    about="of an op with several results, all take the first value of their type",
    edits=[
        (
            f"{HERE}:FoldConstants._fold",
            "arrays.update(zip(inner.results, results, strict=True))",
            "arrays.update(zip(inner.results, [next(v for v in results if v.dtype == r.dtype and v.shape == "
            "r.shape) for r in results], strict=True))",
        )
    ],
)
wrong(
    "fold-operands-in-the-order-of-the-tree",
    classes=(25,),
    about="ops that are evaluated together take their operands in the order in which these were known",
    edits=[
        (
            f"{HERE}:FoldConstants._fold",
            "[arrays[v] for v in inner.operands]",
            "[a for v, a in arrays.items() if v in inner.operands]\n                if len({*inner.operands}) == "
            "len(inner.operands) and len({v.type for v in inner.operands}) == 1 else "
            "[arrays[v] for v in inner.operands]",
        )
    ],
)
wrong(
    "fold-broadcast-of-vector",
    classes=(4, 26),
    about="a broadcast constant is repeated along the last dims, wherever it goes",
    edits=[
        (
            f"{HERE}:known_array",
            "return evaluate_op(op, [known_array(op.operand, program)])[0]",
            "inner, shape = known_array(op.operand, program), static_shape(value)\n        "
            "fits = inner.ndim == 1 and len(shape) > 1 and inner.shape[0] == shape[-1]\n        "
            "return np.broadcast_to(inner, shape) if fits else evaluate_op(op, [inner])[0]",
        )
    ],
)


right(
    "fold-half-the-bytes",
    about="only half as much is inlined, and larger results become weights",
    edits=[
        (f"{HERE}:FoldConstants._known", "value.nbytes <= self.inline_bytes", "2 * value.nbytes <= self.inline_bytes")
    ],
)
right(
    "fold-copies",
    about="views of folded values are copied",
    edits=[
        (
            f"{HERE}:_evaluate",
            'np.transpose(arrays[0], op.value("permutation"))',
            'np.transpose(arrays[0], op.value("permutation")).copy()',
        )
    ],
)
right(
    "fold-never-splats",
    about="no value is looked at for being a splat",
    edits=[(f"{HERE}:_is_splat", "    if value.size == 0:\n        return False", "    return False")],
)


wrong(
    "fold-empty-or-one", about="what has one element is taken to have none", classes=(1, 3),
    edits=[("passes.graph.fold_constants:_is_empty", "all(0 in shape_of(r)", "all({0, 1} & {*shape_of(r)}")],
)  # fmt: skip


@control("fold-fewer-ops", "fold-constants", about="contractions are not folded")
def _() -> None:
    fold._KEEP = (*fold._KEEP, hlo.DotGeneralOp, hlo.ConvolutionOp)  # pyright: ignore
