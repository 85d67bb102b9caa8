"""Checks of a parsed program that XLA does not make, or makes by ending the process.

gcomp's own verifier has made them for what gcomp compiled; a program from an artifact is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gcomp.errors import ArtifactError, UnsupportedError
from gcomp.runtime.xla import prints
from gcomp.runtime.xla.custom_calls import refused_targets

MAX_CALLS = 200
"""How deep calls may nest: XLA inlines and visits them recursively."""
MAX_OPS = 1 << 24
"""How many ops a program may have once every call is written out."""
MAX_NUMBER = 1 << 40
"""Of the numbers in an op's attributes. XLA adds and multiplies them in 64 bits, and ends the process on overflow."""

DIALECTS = frozenset(("builtin", "func", "stablehlo", "chlo"))
REFUSED = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "async_done", "async_start", "collective_broadcast",
        "collective_permute", "cross-replica-sum", "dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather",
        "dynamic_iota", "dynamic_pad", "dynamic_reshape", "einsum", "infeed", "outfeed", "partition_id",
        "real_dynamic_slice", "recv", "reduce_scatter", "replica_id", "send", "set_dimension_size", "unary_einsum",
        "uniform_dequantize", "uniform_quantize",
    )
)  # fmt: skip
"""Ops refused in artifacts: they block on a device or a stream, have dynamic shapes, or XLA verifies too little."""

SPREAD = frozenset(
    f"stablehlo.{name}"
    for name in ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "partition_id",
                 "reduce_scatter")
)  # fmt: skip
"""Those of them that a program for the devices of a mesh may have, beside Shardy's dialect."""

CONSTANTS = frozenset(("stablehlo.constant", "chlo.constant"))
DIVISIONS = frozenset(("stablehlo.divide", "stablehlo.remainder", "chlo.broadcast_divide", "chlo.broadcast_remainder"))
"""XLA folds these of integer constants without a look at the divisor, and the processor then traps on 0."""
OPEN_BODIES = frozenset(("func.func", "stablehlo.while"))
"""Ops whose bodies' arguments may turn out to be constants."""

Function = Any
Op = Any


def custom_functions(module: Any, *, is_spread: bool = False) -> list[str]:
    """The custom functions that a module calls. Raises ArtifactError for ops and calls that gcomp does not make."""
    targets: list[str] = []
    dialects, refused = (DIALECTS | {"sdy"}, REFUSED - SPREAD) if is_spread else (DIALECTS, REFUSED)
    for op in _walk(module.operation):
        if op.name.partition(".")[0] not in dialects or op.name in refused:
            raise ArtifactError("The program has an op that gcomp does not run.", why=op.name[:80])
        if op.name == "stablehlo.custom_call":
            targets.append(_target(op))
    return targets


def _target(op: Op) -> str:
    target = str(op.attributes["call_target_name"].value)
    if refused_targets([target]):
        raise ArtifactError("The program calls a custom function that gcomp does not allow.", why=target[:80])
    operands, results = _types(op.operands), _types(op.results)
    if target == prints.TARGET:
        _check_print(op, operands, results)
    # XLA takes it for the identity without a look.
    if target == "Sharding" and (len(operands) != 1 or operands != results):
        raise ArtifactError("The program calls a custom function wrongly.", why=f"{target} is the identity of a value.")
    return target


def _check_print(op: Op, operands: list[str], results: list[str]) -> None:
    """What is printed is read by the types that the call's configuration says: they must be those of its operands."""
    wrong = "The program calls a custom function wrongly."
    try:
        types, _ = prints.types_of(str(op.attributes["backend_config"].value))
    except ValueError as error:
        raise ArtifactError(wrong, where=prints.TARGET, why=str(error)[:200]) from None
    expected = [f"tensor<{''.join(f'{size}x' for size in shape)}{text}>" for text, shape in types]
    form = (op.attributes["api_version"].value, op.attributes["has_side_effect"].value)
    if operands != ["tensor<i32>", *expected] or results != ["tensor<i32>"] or form != (3, True):
        raise ArtifactError(wrong, where=prints.TARGET, why="Its operands are not what its configuration says.")


def _types(values: Any) -> list[str]:
    return [str(value.type) for value in values]


def check_structure(module: Any, mlir: Any, *, is_spread: bool = False) -> None:
    """Raises ArtifactError for functions without a body or that call themselves, and for numbers out of measure."""
    functions: dict[str, Function] = {}
    for op in module.body.operations:
        op = op.operation
        if is_spread and op.name == "sdy.mesh":
            continue
        if op.name != "func.func" or any(len(region.blocks) != 1 for region in op.regions):
            raise ArtifactError("The program has something other than functions with a body.", why=op.name[:80])
        functions[str(op.attributes["sym_name"].value)] = op
    calls: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for name, function in functions.items():
        # Constants name nothing, and may hold elements that MLIR's own binding cannot show.
        inner = [op for op in _walk(function) if op is not function and op.name not in CONSTANTS]
        sizes[name], calls[name] = len(inner), []
        for op in inner:
            _check_op(op, mlir)
            calls[name] += [callee for callee in _references(op, mlir) if callee in functions]
    _check_calls(calls, sizes)


def _check_op(op: Op, mlir: Any) -> None:
    for number in (n for attribute in _attributes(op) for n in _numbers(attribute, mlir)):
        if abs(number) >= MAX_NUMBER:
            raise ArtifactError("A number of the program is out of measure.", where=op.name, why=str(number))
    if _divides_integers(op, mlir) and not _cannot_fold_to_zero(op.operands[1].owner, mlir):
        why = "XLA ends the process where both operands turn out to be constants and the divisor to be 0."
        raise ArtifactError("The program divides integers without a barrier.", where=op.name, why=why)


def _divides_integers(op: Op, mlir: Any) -> bool:
    return op.name in DIVISIONS and isinstance(op.results[0].type.element_type, mlir.IntegerType)


def _cannot_fold_to_zero(owner: Any, mlir: Any) -> bool:
    """Whether what makes a divisor is a constant without zeros, or nothing that folds."""
    if isinstance(owner, mlir.Block):
        return owner.owner.name not in OPEN_BODIES
    if owner.name == "stablehlo.broadcast_in_dim":
        return _cannot_fold_to_zero(owner.operands[0].owner, mlir)
    if owner.name == "stablehlo.constant":
        return bool(np.asarray(owner.attributes["value"]).all())
    return owner.name == "stablehlo.optimization_barrier"


def _check_calls(calls: Mapping[str, list[str]], sizes: Mapping[str, int]) -> None:
    """Every call written out must end, and soon: functions in an order in which callees come first."""
    depth: dict[str, int] = {}
    total: dict[str, int] = {}
    for root in calls:
        pending, open_ = [root], set[str]()
        while pending:
            name = pending[-1]
            waiting = [callee for callee in calls[name] if callee not in depth]
            if name in depth or not waiting:
                pending.pop()
                open_.discard(name)
                depth.setdefault(name, 1 + max((depth[callee] for callee in calls[name]), default=0))
                total.setdefault(name, sizes[name] + sum(total[callee] for callee in calls[name]))
                continue
            open_.add(name)
            if waiting[0] in open_:
                raise ArtifactError("A function of the program calls itself.", why=waiting[0][:80])
            pending.append(waiting[0])
    if max(depth.values(), default=0) > MAX_CALLS or max(total.values(), default=0) > MAX_OPS:
        deepest = max(total, key=lambda name: (total[name], depth[name]))
        why = f"{deepest[:80]} nests {depth[deepest]} deep, and has {total[deepest]} ops with every call written out."
        raise UnsupportedError("The calls of the program are too many or too deep for XLA.", why=why)


def _references(op: Op, mlir: Any) -> Iterator[str]:
    """The functions that an op names: callees, decompositions, called computations."""
    for attribute in _attributes(op):
        yield from _symbols(attribute, mlir)


def _symbols(attribute: Any, mlir: Any) -> Iterator[str]:
    if isinstance(attribute, mlir.FlatSymbolRefAttr):
        yield str(attribute.value)
    elif isinstance(attribute, mlir.SymbolRefAttr):
        yield str(attribute.value[0])
    elif isinstance(attribute, mlir.ArrayAttr):
        for item in attribute:
            yield from _symbols(item, mlir)
    elif isinstance(attribute, mlir.DictAttr):
        for item in attribute:
            yield from _symbols(item.attr, mlir)


def _numbers(attribute: Any, mlir: Any) -> Iterator[int]:
    if isinstance(attribute, mlir.IntegerAttr):
        yield int(attribute.value)
    elif isinstance(attribute, mlir.DenseI64ArrayAttr):
        yield from attribute
    elif isinstance(attribute, mlir.DenseIntElementsAttr):
        yield from ([attribute.get_splat_value().value] if attribute.is_splat else attribute)


def _attributes(op: Op) -> list[Any]:
    return [op.attributes[name] for name in op.attributes]


def _walk(root: Op) -> Iterator[Op]:
    pending = [root]
    while pending:
        op = pending.pop()
        yield op
        pending += [inner.operation for region in op.regions for block in region for inner in block]
