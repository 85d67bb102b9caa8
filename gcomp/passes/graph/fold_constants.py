"""A pure op whose operands are all known is replaced by its value, as the reference computes it.

Known are constants, weights and broadcasts of them. Results of up to `inline-bytes` become constants in the IR, larger
ones new weights. Folding stays inside a budget that depends on the program alone, so that it is reproducible: an op is
left alone when its result is larger than the operands that die with it by more than `growth-bytes` (so that folding
never grows a program), or when evaluating it would exceed `max-flops`, or `total-flops` for the whole pipeline.

Kernels of convolutions may grow, up to `kernel-bytes` each: no target convolves the 8 bits that they are stored in, and
widening them anew at every call, inside loops over positions even, can take longer than the convolution.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from gcomp.analysis.constants import stored_array
from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import fuse, where
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, is_tensor, static_shape, tensor_of
from gcomp.ir.walking import captures
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import is_dead
from gcomp.reference.interpreter import evaluate_op

Array = np.ndarray[Any, Any]

_KEEP = (
    hlo.ConstantOp, WeightOp, hlo.BroadcastInDimOp, hlo.OptimizationBarrierOp, hlo.RngOp, hlo.RngBitGeneratorOp,
    hlo.CustomCallOp,
)  # fmt: skip
"""What is a value already, is as good as one (a broadcast), or must not be evaluated here."""


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Evaluate ops on known operands with the reference."""

    name: ClassVar[str] = "fold-constants"

    inline_bytes: int = 1024
    growth_bytes: int = 1024
    kernel_bytes: int = 4 << 20
    max_flops: int = 50_000_000
    total_flops: int = 5_000_000_000

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        readers = Counter(op.symbol for op in program.ops() if isinstance(op, WeightOp))
        for function in list(program.functions()):
            for block in function.body.blocks:
                for op in list(block.ops):
                    if not self._foldable(op, program) or context.flops + _flops(op) > self.total_flops:
                        continue
                    context.flops += _flops(op)
                    if context.allow("fold-constants", where(op)):
                        changed |= self._fold(op, program, readers)
        return changed

    def _foldable(self, op: Operation, program: Program) -> bool:
        if not isinstance(op, GraphOp) or isinstance(op, _KEEP) or not op.results or not is_side_effect_free(op):
            return False
        if all(r.first_use is None for r in op.results) or captures(op):
            return False
        if not all(_is_known(v, program) for v in op.operands):
            return False
        if any(not is_tensor(r.type) or static_shape(r) is None for r in op.results):
            return False
        return self._within_budget(op)

    def _within_budget(self, op: GraphOp) -> bool:
        written = sum(_nbytes(r) for r in op.results)
        freed = sum(_stored_bytes(v) for v in dict.fromkeys(op.operands) if v.has_one_use())
        if _flops(op) > self.max_flops:
            return False
        return written <= freed + self.growth_bytes or (written <= self.kernel_bytes and _makes_kernel(op))

    def _fold(self, op: Operation, program: Program, readers: Counter[str]) -> bool:
        arrays = [known_array(v, program) for v in op.operands]
        try:
            results = _evaluate(op, arrays, program)
        except UnsupportedError:
            return False
        b = Builder(program, InsertPoint.before(op))
        b.location = fuse([op.location, *[v.op.location for v in op.operands if isinstance(v, OpResult)]])
        for old, value in zip(op.results, results, strict=True):
            new = self._known(b, value, op)
            old.replace_all_uses_with(new)
            if isinstance(new.owner, WeightOp):
                readers[new.owner.symbol] = 1
        _erase_dead([op], program, readers)
        return True

    def _known(self, b: Builder, value: Array, op: Operation) -> SSAValue:
        if value.nbytes <= self.inline_bytes or _is_splat(value):
            return b.emit(hlo.ConstantOp, value=hlo.ConstantOp.dense(value).elements_attr)
        source = next((v.op.symbol for v in op.operands if isinstance(v, OpResult) and isinstance(v.op, WeightOp)), "c")
        return b.weight(source, value)


def _evaluate(op: Operation, arrays: Sequence[Array], program: Program) -> Sequence[Array]:
    """What the reference computes; where that is the operand's elements in other places, a view without a copy.

    The program's weights are laid out once, when all passes are done.
    """
    match op:
        case hlo.TransposeOp():
            return [np.transpose(arrays[0], op.value("permutation"))]
        case hlo.ReshapeOp():
            return [arrays[0].reshape(cast("tuple[int, ...]", static_shape(op.results[0])))]
        case _:
            return evaluate_op(op, arrays, program.weights)


_DEEP = (hlo.DotGeneralOp, hlo.ConvolutionOp, hlo.ReduceWindowOp)


def _flops(op: Operation) -> int:
    """A bound on the work of evaluating an op: elements written, times elements read where each may need all."""
    depth = max((_elements(v) for v in op.operands), default=1)
    written = sum(_elements(r) for r in op.results)
    return written * depth if isinstance(op, _DEEP) else max(written, depth)


_CENTERING = (hlo.ConvertOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.TransposeOp, hlo.ReshapeOp)
"""What makes a kernel of the quanta that it is stored as."""


def _makes_kernel(op: Operation) -> bool:
    """Whether the result goes, through nothing but such ops, into a convolution as its kernel, and nowhere else."""
    while isinstance(op, _CENTERING):
        if (use := op.result.get_user_of_unique_use()) is None:
            return False
        if isinstance(use, hlo.ConvolutionOp):
            return use.rhs is op.result and use.lhs is not op.result
        op = use
    return False


def _is_known(value: SSAValue, program: Program) -> bool:
    if not isinstance(value, OpResult):
        return False
    if isinstance(value.op, hlo.BroadcastInDimOp):
        return static_shape(value) is not None and _is_known(value.op.operand, program)
    if isinstance(value.op, WeightOp):
        return value.op.symbol in program.weights  # IR text by itself names weights and has no data
    return isinstance(value.op, hlo.ConstantOp)


def known_array(value: SSAValue, program: Program) -> Array:
    """The array of a constant, a weight, or a broadcast of one."""
    op = value.owner
    if isinstance(op, hlo.BroadcastInDimOp):
        return evaluate_op(op, [known_array(op.operand, program)])[0]
    array = stored_array(value, program)
    assert array is not None
    return array


def _elements(value: SSAValue) -> int:
    # In Python's integers: sizes come from the model, and their product may not fit others.
    return math.prod(static_shape(value) or (0,))


def _nbytes(value: SSAValue) -> int:
    return _elements(value) * dtype_of(dtype_text(tensor_of(value))).itemsize


def _stored_bytes(value: SSAValue) -> int:
    """The bytes that a known value takes: a splat constant takes one element, a broadcast what it broadcasts."""
    op = value.owner
    if isinstance(op, hlo.BroadcastInDimOp):
        return _stored_bytes(op.operand)
    return len(op.elements_attr.data.data) if isinstance(op, hlo.ConstantOp) else _nbytes(value)


def _is_splat(value: Array) -> bool:
    """Whether all elements have the same bits. Most arrays tell by a few; only then is the whole looked at."""
    if value.size == 0:
        return False
    flat, item = value.flat, value.dtype.itemsize
    for look in (flat[:16], flat[:: max(1, value.size // 16)], value):
        raw = look.tobytes()
        if raw != raw[:item] * look.size:
            return False
    return True


def _erase_dead(pending: list[Operation], program: Program, readers: Counter[str]) -> None:
    """Erase dead ops and what only they used; a weight that nothing reads any more frees its memory."""
    while pending:
        op = pending.pop()
        if op.parent is None or not is_dead(op):
            continue
        owners: Sequence[Operation] = [v.op for v in op.operands if isinstance(v, OpResult)]
        symbol = op.symbol if isinstance(op, WeightOp) else None
        op.detach()
        op.erase()
        if symbol is not None:
            readers[symbol] -= 1
            if not readers[symbol]:
                program.weights.remove(symbol)
        pending += owners
