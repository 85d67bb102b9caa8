"""Every result type is what its op infers from its operands, so that what is known of inputs reaches all values.

Dynamic ops whose size operands are constants become their static counterparts first. A contradiction is the model's
error, reported at the source's location.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import below, differ_always, element_of, is_tensor, same_shape, shape_of, static_shape, tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites, constant_value


def _sizes(value: SSAValue) -> list[int] | None:
    """The numbers of a constant vector; how many there are must be known, too."""
    array = constant_value(value)
    return None if array is None or array.shape != static_shape(value) else [int(s) for s in array.reshape(-1)]


class StaticSizes(Pattern):
    """dynamic_reshape, dynamic_broadcast_in_dim, dynamic_iota, real_dynamic_slice and dynamic_pad of constant sizes."""

    name = "static-sizes"
    roots = (
        hlo.DynamicReshapeOp, hlo.DynamicBroadcastInDimOp, hlo.DynamicIotaOp, hlo.RealDynamicSliceOp, hlo.DynamicPadOp,
    )  # fmt: skip

    def rewrite(self, op: Any, b: Builder) -> Sequence[SSAValue] | None:
        first = 0 if isinstance(op, hlo.DynamicIotaOp) else 2 if isinstance(op, hlo.DynamicPadOp) else 1
        found = [_sizes(v) for v in op.operands[first:]]
        known = [s for s in found if s is not None]
        if len(known) != len(found) or not _fits(op, known):
            return None
        match op:
            case hlo.DynamicReshapeOp():
                return [b.reshape(op.operands[0], known[0])]
            case hlo.DynamicBroadcastInDimOp():
                return [b.broadcast(op.operands[0], known[0], op.value("broadcast_dimensions"))]
            case hlo.DynamicIotaOp():
                type = tensor(known[0], element_of(op.results[0]))
                return [b.emit(hlo.IotaOp, types=(type,), iota_dimension=op.value("iota_dimension"))]
            case hlo.RealDynamicSliceOp():
                return [b.slice(op.operands[0], known[0], known[1], known[2])]
            case _:
                return [b.pad(op.operands[0], op.operands[1], known[0], known[1], known[2])]


def _fits(op: Any, known: Sequence[Sequence[int]]) -> bool:
    """Whether the operands give what the op declares; where they do not, it is refused when it runs."""
    x, declared = op.operands[0], shape_of(op.results[0])
    before = shape_of(x)
    match op:
        case hlo.DynamicReshapeOp():
            shape, right = known[0], not differ_always(dims.product(before), dims.product(known[0]))
        case hlo.DynamicBroadcastInDimOp():
            places: Sequence[int] = op.value("broadcast_dimensions")
            pairs = zip(before, places, strict=True)
            shape, right = known[0], not any(differ_always(s, 1) and differ_always(s, known[0][d]) for s, d in pairs)
        case hlo.DynamicIotaOp():
            shape, right = known[0], True
        case hlo.RealDynamicSliceOp():
            bounds = list(zip(before, *known, strict=True))
            right = all(0 <= a <= b and c >= 1 and not below(n, b) for n, a, b, c in bounds)
            shape = [dims.ceildiv(b - a, c) for _, a, b, c in bounds] if right else []
        case _:
            parts = list(zip(before, *known, strict=True))
            right = all(gap >= 0 for *_, gap in parts)
            shape = [n + low + high + dims.dmax(n - 1, 0) * gap for n, low, high, gap in parts]
    return right and not any(below(s, 0) for s in shape) and same_shape(shape, declared)


@dataclass(frozen=True)
class InferShapes(Pass):
    """Infer all types forward, callees included."""

    name: ClassVar[str] = "infer-shapes"
    required: ClassVar[bool] = True

    def run(self, program: Program, context: PassContext) -> bool:
        changed = False
        while True:
            again = apply_rewrites(program, (StaticSizes(),), context)
            for function in program.functions():
                for block in function.body.blocks:
                    again |= _infer_block(block)
                function.update_function_type()
            again |= _update_calls(program)
            changed |= again
            if not again:
                return changed

    def broken_law(self, program: Program) -> str | None:
        for op in program.ops():
            if isinstance(op, GraphOp) and op.INFERS:
                for result, type in zip(op.results, op.infer(), strict=True):
                    if more_precise(result.type, type, op) != result.type:
                        return f"{where(op)} is declared {result.type}, and its operands make it {type}"
        return None


def _infer_block(block: Block) -> bool:
    changed = False
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                changed |= _infer_block(inner)
        if isinstance(op, GraphOp) and op.INFERS:
            changed |= _infer(op)
    return changed


def _infer(op: GraphOp) -> bool:
    try:
        inferred = op.infer()
    except (VerifyException, dims.DimError) as error:
        raise InvalidModelError("shapes do not fit", where=where(op), why=str(error)) from None
    changed = False
    for result, type in zip(op.results, inferred, strict=True):
        merged = more_precise(result.type, type, op)
        if merged != result.type:
            setattr(result, "_type", merged)  # noqa: B010
            changed = True
    return changed


def more_precise(declared: Attribute, inferred: Attribute, op: Operation) -> Attribute:
    """The type that says all that either says. InvalidModelError when they contradict each other."""
    if declared == inferred or not (is_tensor(declared) and is_tensor(inferred)):
        return inferred
    ours, theirs = shape_of(declared), shape_of(inferred)
    if not same_shape(ours, theirs) or element_of(declared) != element_of(inferred):
        raise InvalidModelError(
            "shapes do not fit",
            where=where(op),
            why=f"the result is declared {declared}, its operands make it {inferred}",
        )
    return tensor(
        [a if "_" in dims.symbols_of(b) else b for a, b in zip(ours, theirs, strict=True)], element_of(inferred)
    )


def _update_calls(program: Program) -> bool:
    changed = False
    for call, name in program.callees():
        callee = program.function(name)
        if callee is None:
            continue
        for result, type in zip(call.results, callee.function_type.outputs.data, strict=True):
            merged = more_precise(result.type, type, call)
            if merged != result.type:
                setattr(result, "_type", merged)  # noqa: B010
                changed = True
    return changed
