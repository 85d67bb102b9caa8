"""A pure op whose operands are all known is replaced by its value, as the reference computes it.

Known are constants, weights and broadcasts of them, and what has no elements, whatever it is made of. Results of up to
`inline-bytes` become constants in the IR, larger ones new weights. Folding stays inside a budget that depends on the
program alone, so that it is reproducible: an op is left alone when its result is larger than the operands that die with
it by more than `growth-bytes` (so that folding never grows a program), or when evaluating it would exceed `max-flops`,
or `total-flops` for the whole pipeline. An op that was left alone is looked at again with what reads it: the gates of a
recurrent layer's weight, cut apart and put together in another order, are one weight in the end. Slices that share a
weight out, and are all that reads it, take what it took: the weights of two directions, or of the gates that a loop's
body multiplies by one after the other, are weights of their own.

Kernels of convolutions may grow, up to `kernel-bytes` each: no target convolves the 8 bits that they are stored in, and
widening them anew at every call, inside loops over positions even, can take longer than the convolution.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.analysis.constants import stored_array
from gcomp.dtypes import dtype_of
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.kernel import blocks_of_kernels, outermost
from gcomp.ir.locations import fuse, where
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text, is_tensor, shape_of, static_shape, tensor_of
from gcomp.ir.walking import captures
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import is_dead
from gcomp.reference.interpreter import evaluate_op

Array = np.ndarray[Any, Any]

_KEEP: frozenset[type[Operation]] = frozenset({
    hlo.ConstantOp, WeightOp, hlo.BroadcastInDimOp, hlo.OptimizationBarrierOp, hlo.RngOp, hlo.RngBitGeneratorOp,
    hlo.CustomCallOp, sdy.ShardingConstraintOp, sdy.ReshardOp,
})  # fmt: skip
"""What is a value already, is as good as one (a broadcast), or must not be evaluated here."""

_SOURCES = frozenset[type[Operation]]({hlo.ConstantOp, WeightOp, hlo.BroadcastInDimOp})
"""What may be known."""

_NEVER = _KEEP - {hlo.BroadcastInDimOp}
"""What stays even where it has no elements."""

_AT_ONCE = 16
"""Terms of a matrix product that NumPy adds in the time of another op on an element, at least."""

_MOST_OPS = 64
"""So many ops are evaluated at a time."""


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
        readers = Counter(op.symbol for op in program.ops() if op.name == WeightOp.name and isinstance(op, WeightOp))
        around = [block for function in program.functions() for block in function.body.blocks]
        blocks = [block for outer in around for block in reversed(blocks_of_kernels(outer))]
        changed = False
        # What was left alone may be within the budget once others that read the same are folded.
        while any(self._fold_block(block, program, readers, context) for block in blocks):
            changed = True
        return changed

    def _fold_block(self, block: Block, program: Program, readers: Counter[str], context: PassContext) -> bool:
        changed = False
        left: dict[Operation, int] = {}  # in their order
        for op in list(block.ops):
            if _is_empty(op):
                changed |= context.allow("fold-constants", where(op)) and self._fold_empty(op, program, readers)
                continue
            tree = _tree(op, left, program)
            if tree is None:
                continue
            left[op] = len(left)
            flops = sum(map(_flops, tree))
            if not self._within_budget(tree, flops) or context.flops + flops > self.total_flops:
                continue
            context.flops += flops
            if context.allow("fold-constants", where(op)):
                changed |= self._fold(tree, program, readers)
        return changed

    def _within_budget(self, tree: Sequence[Operation], flops: int) -> bool:
        if flops > self.max_flops:
            return False
        written, freed = _written_bytes(tree), sum(map(_stored_bytes, _freed_values(tree)))
        if written <= freed + self.growth_bytes or _is_share(tree[-1]):
            return True
        return written <= self.kernel_bytes and _makes_kernel(tree[-1])

    def _fold(self, tree: Sequence[Operation], program: Program, readers: Counter[str]) -> bool:
        op, sources = tree[-1], _sources(tree)
        arrays = {v: known_array(v, program) for v in sources}
        try:
            for inner in tree:
                results = _evaluate(inner, [arrays[v] for v in inner.operands], program)
                arrays.update(zip(inner.results, results, strict=True))
        except (UnsupportedError, InvalidModelError):  # such as a size that a called function uses, known at the call
            return False
        b = Builder(program, InsertPoint.before(outermost(op)))  # what is known is so before any loop
        b.location = fuse([o.location for o in (*tree, *(v.owner for v in sources)) if isinstance(o, GraphOp)])
        source = next((v.owner.symbol for v in sources if isinstance(v.owner, WeightOp)), "c")
        for old in op.results:
            new = self._known(b, arrays[old], source)
            old.replace_all_uses_with(new)
            if isinstance(new.owner, WeightOp):
                readers[new.owner.symbol] = 1
        _erase_dead([op], program, readers)
        return True

    def _fold_empty(self, op: Operation, program: Program, readers: Counter[str]) -> bool:
        b = Builder(program, InsertPoint.before(op))
        b.location = cast(GraphOp, op).location
        for old in op.results:
            empty = np.zeros(static_shape(old) or (0,), dtype_of(dtype_text(old.type)))
            old.replace_all_uses_with(self._known(b, empty, "c"))
        _erase_dead([op], program, readers)
        return True

    def _known(self, b: Builder, value: Array, source: str) -> SSAValue:
        if value.nbytes <= self.inline_bytes or _is_splat(value):
            return b.emit(hlo.ConstantOp, value=hlo.ConstantOp.dense(value).elements_attr)
        return b.weight(source, value)


# ---- what is known ---------------------------------------------------------------------------------------------------


def _tree(op: Operation, left: Mapping[Operation, int], program: Program) -> Sequence[Operation] | None:
    """What to evaluate for an op's results: itself last, after ops that were `left` alone. None if not all is known."""
    if type(op) in _KEEP or not all(v.owner in left or _is_known(v, program) for v in op.operands):
        return None
    if not _can_be_evaluated(op):
        return None
    found: dict[Operation, int] = {op: len(left)}
    pending = [op]
    while pending and len(found) <= _MOST_OPS:
        for value in pending.pop().operands:
            owner = value.owner
            if isinstance(owner, Operation) and owner in left:
                if owner not in found:
                    found[owner] = left[owner]
                    pending.append(owner)
            elif not _is_known(value, program):
                return None
    return None if pending else sorted(found, key=found.__getitem__)


def _can_be_evaluated(op: Operation) -> bool:
    return _may_be_replaced(op, _KEEP) and not captures(op)


def _is_empty(op: Operation) -> bool:
    """Whether no result has an element."""
    for result in op.results:  # most ops have elements, which is the fastest to tell
        if not is_tensor(result.type) or 0 not in shape_of(result.type):
            return False
    return _may_be_replaced(op, _NEVER)


def _may_be_replaced(op: Operation, kept: frozenset[type[Operation]]) -> bool:
    """Whether results of known shapes that somebody uses are all that an op is there for."""
    if not isinstance(op, GraphOp) or type(op) in kept or not op.results or not is_side_effect_free(op):
        return False
    used = any(r.first_use is not None for r in op.results)
    return used and all(is_tensor(r.type) and static_shape(r) is not None for r in op.results)


def _sources(tree: Sequence[Operation]) -> Sequence[SSAValue]:
    """The known values that a tree reads."""
    made = {r for op in tree for r in op.results}
    return [v for v in dict.fromkeys(v for op in tree for v in op.operands) if v not in made]


def _freed_values(tree: Sequence[Operation]) -> Sequence[SSAValue]:
    """The known values that nothing reads any more once a tree's last op is replaced."""
    dead = {tree[-1]}

    def dies(value: SSAValue) -> bool:
        return all(use.operation in dead for use in value.uses)

    for op in reversed(tree[:-1]):
        if all(map(dies, op.results)):
            dead.add(op)
    return [v for v in _sources(tree) if dies(v)]


def _written_bytes(tree: Sequence[Operation]) -> int:
    """The bytes that the results take: one element of each where all elements are computed from equal ones."""
    alike = all(role_of(op) is Role.ELEMENTWISE for op in tree) and all(map(_is_one_element, _sources(tree)))
    return sum([_itemsize(r) if alike else _nbytes(r) for r in tree[-1].results])


def _is_share(op: Operation) -> bool:
    """Whether it is one of several slices that are all that reads a value, and together no more than that."""
    if not isinstance(op, hlo.SliceOp):
        return False
    readers = [use.operation for use in op.operand.uses]
    shares = [reader.result for reader in readers if isinstance(reader, hlo.SliceOp)]
    return len(shares) == len(readers) and sum(map(_nbytes, shares)) <= _stored_bytes(op.operand)


def _evaluate(op: Operation, arrays: Sequence[Array], program: Program) -> Sequence[Array]:
    """What the reference computes; where that is the operand's elements in other places, a view without a copy.

    The program's weights are laid out once, when all passes are done.
    """
    match op:
        case hlo.TransposeOp():
            return [np.transpose(arrays[0], op.value("permutation"))]
        case hlo.ReshapeOp():
            return [arrays[0].reshape(cast("tuple[int, ...]", static_shape(op.results[0])))]
        case hlo.SliceOp():
            bounds = zip(op.value("start_indices"), op.value("limit_indices"), op.value("strides"), strict=True)
            return [arrays[0][tuple(slice(*bound) for bound in bounds)]]
        case _:
            return evaluate_op(op, arrays, program.weights)


_VIEWS = (hlo.TransposeOp, hlo.ReshapeOp, hlo.SliceOp)
"""What `_evaluate` makes of the operand without a copy, mostly."""

_DEEP = (hlo.ConvolutionOp, hlo.ReduceWindowOp)


def _flops(op: Operation) -> int:
    """A bound on the work of evaluating an op: elements written, times elements read where each may need all.

    Views take none: a weight of any size is laid out in another order once, as those in the wrong place are anyway.
    Of products of matrices, many terms are added in the time of another op.
    """
    if isinstance(op, _VIEWS):
        return 0
    if isinstance(op, hlo.DotGeneralOp):
        terms = [shape_of(op.lhs)[k] for k in op.dimensions.lhs_contracting_dimensions]
        return math.prod(cast("list[int]", [_elements(op.result), *terms])) // _AT_ONCE
    depth = max((_elements(v) for v in op.operands), default=1)
    written = sum(_elements(r) for r in op.results)
    return written * depth if isinstance(op, _DEEP) else max(written, depth)


_CENTERING = (hlo.ConvertOp, hlo.SubtractOp, hlo.MultiplyOp, hlo.TransposeOp, hlo.ReshapeOp)
"""What makes a kernel of the quantized values that it is stored as."""


def _makes_kernel(op: Operation) -> bool:
    """Whether the result goes, through nothing but such ops, into a convolution as its kernel, and nowhere else."""
    while isinstance(op, _CENTERING):
        if (use := op.result.get_user_of_unique_use()) is None:
            return False
        if isinstance(use, hlo.ConvolutionOp):
            return use.rhs is op.result
        op = use
    return False


def _is_known(value: SSAValue, program: Program) -> bool:
    if not isinstance(value, OpResult):
        return False
    if type(value.op) not in _SOURCES:
        return False
    if isinstance(value.op, hlo.BroadcastInDimOp):
        return static_shape(value) is not None and _is_known(value.op.operand, program)
    # IR text by itself names weights and has no data.
    return not isinstance(value.op, WeightOp) or value.op.symbol in program.weights


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


def _itemsize(value: SSAValue) -> int:
    return dtype_of(dtype_text(tensor_of(value))).itemsize


def _nbytes(value: SSAValue) -> int:
    return _elements(value) * _itemsize(value)


def _is_one_element(value: SSAValue) -> bool:
    """Whether one element is stored for all of a known value."""
    return _stored_bytes(value) <= _itemsize(value)


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
    looks = (slice(16), slice(None, None, max(1, value.size // 16)), slice(None))
    return all(_is_repeated(value.flat[look]) for look in looks)


def _is_repeated(value: Array) -> bool:
    raw = value.tobytes()
    return raw == raw[: value.itemsize] * value.size


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
