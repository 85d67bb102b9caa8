"""Mistakes in fold-constants: values computed wrongly, or known that are not."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text
from gcomp.passes.graph import fold_constants as fold
from tests.mutants import edits
from tests.mutants.mutant import mutant

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


@made("fold-flushes-denormals", classes=(10,), about="denormal results are folded to 0")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        def flushed(a: Any) -> Any:
            return np.where(np.abs(a) < np.finfo(a.dtype).tiny, np.zeros((), a.dtype), a) if a.dtype.kind == "f" else a

        return [flushed(a) for a in evaluate(op, arrays)]

    _evaluating(change)


@made("fold-empty-reduction", classes=(1,), about="a fold over nothing gives 0, whatever it starts from (TVM#10780)")
def _() -> None:
    def change(op: Any, arrays: Any, evaluate: Any) -> Any:
        results = evaluate(op, arrays)
        return [np.zeros_like(r) for r in results] if isinstance(op, hlo.ReduceOp) and arrays[0].size == 0 else results

    _evaluating(change)


wrong(
    "fold-random-numbers",
    classes=(35,),
    about="draws of known bounds are folded: one draw for all runs (torch#190758)",
    edits=[
        (
            f"{HERE}:_may_be_replaced",
            "type(op) in kept or not op.results or not is_side_effect_free(op)",
            "type(op) in kept - {hlo.RngOp} or not op.results "
            "or not (is_side_effect_free(op) or type(op) is hlo.RngOp)",
        ),
        (f"{HERE}:_tree", "type(op) in _KEEP", "type(op) in _KEEP - {hlo.RngOp}"),
    ],
)
wrong(
    "fold-frees-shared-weights",
    classes=(32,),
    about="a folded weight is freed though others read it (torch#183575)",
    edits=[(f"{HERE}:_erase_dead", "            if not readers[symbol]:", "            if symbol in program.weights:")],
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


wrong(
    "fold-empty-or-one", about="what has one element is taken to have none", classes=(1, 3),
    edits=[("passes.graph.fold_constants:_is_empty", "0 not in shape_of(result.type)",
            "not {0, 1} & {*shape_of(result.type)}")],
)  # fmt: skip
