"""Export text: a program as plain StableHLO that jaxlib parses and verifies, with holes for symbolic sizes.

One walk, no clone, no parsing. Weights become trailing arguments marked `gcomp.weight`, in every function that reads
one; `gcomp.dim` becomes a constant; composites keep their decompositions; chlo ops stay, since XLA knows them.
Common ops are written in StableHLO's pretty form, all others in MLIR's generic form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import decode, sizes_of
from gcomp.ir.chlo import CHLO
from gcomp.ir.native import DimOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program
from gcomp.ir.sdy import meshes_of
from gcomp.ir.stablehlo import STABLEHLO
from gcomp.ir.stablehlo.contraction import DotGeneralOp
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.stablehlo.reduction import ReduceOp, applied_op
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of, with_element
from gcomp.lowering.xla import folds, products, workarounds
from gcomp.lowering.xla.attributes import sizes_text, string_text
from gcomp.lowering.xla.deciding import deciding_size, zero_text
from gcomp.lowering.xla.printer import Printer, WeightUses, Writer, symbol_text
from gcomp.runtime.template import choice, hole
from gcomp.runtime.xla import prints


def export(program: Program, uses: WeightUses, aliases: Sequence[tuple[int, int]], *, has_nan: bool = False) -> str:
    """The text of the functions that `uses` lists, `main` first. `aliases` are pairs (input, output).

    `has_nan` says that a constant holds NaN.
    """
    printer = Printer(uses, has_nan, WRITERS, generic)
    printer.lines += [f"  sdy.mesh {symbol_text(n)} = {mesh.text()}" for n, mesh in meshes_of(program.module).items()]
    name = program.main.sym_name.data
    printer.main(program.main, program.inputs(), program.outputs(), dict(aliases))
    for function in program.functions():
        if function.sym_name.data in uses and function.sym_name.data != name:
            printer.private(function)
    count = max((mesh.size for mesh in meshes_of(program.module).values()), default=1)
    devices = f" attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}}" if count > 1 else ""
    return f"module @gcomp{devices} {{\n" + "\n".join(printer.lines) + "\n}\n"


def generic(p: Printer, op: Operation, indent: str) -> str:
    """MLIR's generic form."""
    if op.regions:
        return _with_regions(p, op, indent)
    return f"{p.head(op)}{p.signature(op)}"


def _with_regions(p: Printer, op: Operation, indent: str) -> str:
    """An op with regions, over several lines."""
    outer, texts = p.lines, list[str]()
    for region in op.regions:
        p.lines = []
        p.region(region, indent)
        texts.append("\n".join(p.lines))
    if isinstance(op, hlo.IfOp) and (decided := deciding_size(op)) is not None:
        size, straight = decided
        zeros, taken = [_zeros(p, op, indent) for _ in texts], zip(texts, (straight, not straight), strict=True)
        texts = [choice(size, *((t, z) if first else (z, t))) for (t, first), z in zip(taken, zeros, strict=True)]
    p.lines = outer
    regions = f"\n{indent}}}, {{\n".join(texts)
    names, types, properties = folds.operands(p, op, indent)
    head = f'"{op.name}"({", ".join(names)}){p.properties(properties)}'
    return f"{head} ({{\n{regions}\n{indent}}}) : ({p.types(types)}) -> {p.results(op)}"


def _zeros(p: Printer, op: Operation, indent: str) -> str:
    """In place of a branch that is not taken: its results, as zeros."""
    p.lines = []
    types = [p.texts.type(type) for type in op.result_types]
    names = [
        p.line(f"stablehlo.constant dense<{zero_text(type)}> : {text}", indent + "  ")
        for type, text in zip(op.result_types, types, strict=True)
    ]
    results = f" {', '.join(names)} : {', '.join(types)}" if names else ""
    return "\n".join([*p.lines, f"{indent}  stablehlo.return{results}"])


def _return(p: Printer, op: Operation, indent: str) -> str:
    name = "return" if op.name == "func.return" else op.name
    return f"{name} {p.values(op.operands)} : {p.types(op.operand_types)}" if op.operands else name


def _reshard(p: Printer, op: Operation, indent: str) -> str:
    """As a constraint: reshards are what XLA's propagation makes of them, and it takes none."""
    return generic(p, op, indent).replace("sdy.reshard", "sdy.sharding_constraint", 1)


def _call(p: Printer, op: Operation, indent: str) -> str:
    callee = cast(SymbolRefAttr, op.properties["callee"]).root_reference.data
    operands, types = p.with_weights(op, callee)
    return f"call {symbol_text(callee)}({operands}) : ({types}) -> ({p.types(op.result_types)})"


def _composite(p: Printer, op: Operation, indent: str) -> str:
    if op.regions:
        return _with_regions(p, op, indent)
    callee = cast(SymbolRefAttr, op.properties["decomposition"]).root_reference.data
    operands, types = p.with_weights(op, callee)
    return f'"{op.name}"({operands}){p.properties(op.properties)} : ({types}) -> ({p.types(op.result_types)})'


def _print(p: Printer, op: Operation, indent: str) -> str:
    """A call of `gcomp.runtime.xla.prints`: its configuration says what to read, and how to write it."""
    values = cast(PrintOp, op).printed
    types = ";".join(f"{dtype_text(v.type)}[{','.join(hole(size) for size in shape_of(v))}]" for v in values)
    text = string_text(f"|{cast(PrintOp, op).value('format')}")[1:-1]
    # What comes before the values is how many prints were before, once that is threaded through.
    layouts = [_row_major(rank_of(v)) for v in op.operands]
    properties = (
        f'call_target_name = "{prints.TARGET}", has_side_effect = true, api_version = 3 : i32, '
        f'backend_config = "{types}{text}", operand_layouts = [{", ".join(layouts)}], '
        f"result_layouts = [{', '.join(_row_major(0) for _ in op.results)}]"
    )
    return f'"stablehlo.custom_call"({p.values(op.operands)}) <{{{properties}}}>{p.signature(op)}'


def _row_major(rank: int) -> str:
    order = f"[{', '.join(map(str, reversed(range(rank))))}]" if rank else ""
    return f"dense<{order}> : tensor<{rank}xindex>"


_EMPTY: Attribute = ArrayAttr[Attribute]([])


def _custom_call(p: Printer, op: Operation, indent: str) -> str:
    # XLA refuses some calls that have an alias table, be it empty.
    given = {k: v for k, v in op.properties.items() if v != _EMPTY}
    # A call's other attributes may be its configuration (JAX's `mhlo.backend_config`); elsewhere they mean nothing.
    entries = [f"{k} = {p.texts.attribute(k, v)}" for k, v in op.attributes.items()]
    attributes = f" {{{', '.join(entries)}}}" if entries else ""
    return f'"{op.name}"({p.values(op.operands)}){p.properties(given)}{attributes}{p.signature(op)}'


def _dim(p: Printer, op: Operation, indent: str) -> str:
    type = p.texts.type(op.results[0].type)
    return f"stablehlo.constant dense<{hole(cast(DimOp, op).formula)}> : {type}"


def _same_type(p: Printer, op: Operation, indent: str) -> str:
    """Ops whose operands mostly have the result's type."""
    if op.properties:
        return generic(p, op, indent)
    result = op.results[0].type
    operands = op.operands
    if all(operand.type == result for operand in operands):
        return f"{op.name} {p.values(operands)} : {p.texts.type(result)}"
    return f"{op.name} {p.values(operands)}{p.signature(op)}"


def _functional(p: Printer, op: Operation, indent: str) -> str:
    return f"{op.name} {p.values(op.operands)}{p.signature(op)}"


def _constant(p: Printer, op: Operation, indent: str) -> str:
    return f"stablehlo.constant {op.properties['value']}"


def _iota(p: Printer, op: Operation, indent: str) -> str:
    return f"stablehlo.iota dim = {_plain(op, 'iota_dimension')} : {p.texts.type(op.results[0].type)}"


def _with_dims(prop: str) -> Writer:
    """Ops written `name operand, dims = [...]`."""

    def write(p: Printer, op: Operation, indent: str) -> str:
        values = sizes_of(op.properties[prop])
        return f"{op.name} {p.values(op.operands)}, dims = [{sizes_text(values)}]{p.signature(op)}"

    return write


def _slice(p: Printer, op: Operation, indent: str) -> str:
    starts, limits, strides = (sizes_of(op.properties[k]) for k in ("start_indices", "limit_indices", "strides"))
    ranges = [
        f"{hole(start)}:{hole(limit)}" + (f":{hole(stride)}" if stride != 1 else "")
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    ]
    return f"stablehlo.slice {p.values(op.operands)} [{', '.join(ranges)}]{p.signature(op)}"


def _compare(p: Printer, op: Operation, indent: str) -> str:
    kind = f", {_plain(op, 'compare_type')}" if "compare_type" in op.properties else ""
    return f"stablehlo.compare {_plain(op, 'comparison_direction')}, {p.values(op.operands)}{kind}{p.signature(op)}"


def _select(p: Printer, op: Operation, indent: str) -> str:
    pred, on_true, on_false = op.operand_types
    if on_true == on_false == op.results[0].type:
        return f"stablehlo.select {p.values(op.operands)} : {p.types((pred, on_true))}"
    return f"stablehlo.select {p.values(op.operands)}{p.signature(op)}"


def _broadcast_select(p: Printer, op: Operation, indent: str) -> str:
    """A broadcasting selection, written out: beside one, XLA refuses folds whose bodies have constants."""
    names, type = ", ".join(p.in_one_type(op, indent)), cast(Tensor, op.results[0].type)
    return f"stablehlo.select {names} : {p.types((with_element(type, 'i1'), type))}"


def _dot(p: Printer, op: Operation, indent: str) -> str:
    if "algorithm" in op.properties:
        return generic(p, op, indent)
    d = cast(DotGeneralOp, op).dimensions
    batch = f", batching_dims = {[*d.lhs_batching_dimensions]} x {[*d.rhs_batching_dimensions]}"
    contract = f", contracting_dims = {[*d.lhs_contracting_dimensions]} x {[*d.rhs_contracting_dimensions]}"
    batch = batch if d.lhs_batching_dimensions else ""
    precision = ""
    if "precision_config" in op.properties:
        precision = f", precision = [{', '.join(_plain(op, 'precision_config'))}]"
    return f"stablehlo.dot_general {p.values(op.operands)}{batch}{contract}{precision}{p.signature(op)}"


def _reduce(p: Printer, op: Operation, indent: str) -> str:
    fold = cast(ReduceOp, op)
    applied = applied_op(fold.body)
    if applied is None or len(op.operands) != 2 or dtype_text(op.results[0].type) == "i2":
        return _with_regions(p, op, indent)
    (value, init), types, _ = folds.operands(p, op, indent)

    def write(init: str) -> str:
        name = workarounds.applied_name(applied, dtype_text(types[0]))
        head = f"stablehlo.reduce({value} init: {init}) applies {name}"
        dimensions = sizes_text(_plain(op, "dimensions"))
        return f"{head} across dimensions = [{dimensions}] : ({p.types(types)}) -> {p.types(op.result_types)}"

    return folds.start_fold(p, fold, applied, indent, write, init)


def _plain(op: Operation, name: str) -> Any:
    return decode(op.properties[name])


_WRITERS: Mapping[str, Writer] = {
    "func.return": _return,
    "stablehlo.return": _return,
    "sdy.return": _return,
    "sdy.reshard": _reshard,
    "func.call": _call,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "gcomp.dim": _dim,
    "gcomp.print": _print,
    **{op.name: _same_type for op in STABLEHLO.operations if issubclass(op, UnaryOp | BinaryOp)},
    **{op.name: generic for op in CHLO.operations if op.name.startswith("chlo.broadcast_")},
    "stablehlo.divide": workarounds.apart(
        workarounds.division(workarounds.quotient(_same_type)), workarounds.divides_quotient
    ),
    "stablehlo.remainder": workarounds.division(_same_type),
    "chlo.broadcast_divide": workarounds.apart(
        workarounds.division(workarounds.quotient(generic)), workarounds.divides_quotient
    ),
    "chlo.broadcast_remainder": workarounds.division(generic),
    "stablehlo.power": workarounds.power(_same_type),
    "chlo.broadcast_power": workarounds.power(generic),
    "chlo.mulhi": workarounds.mulhi,
    "stablehlo.popcnt": workarounds.popcnt(_same_type),
    **{
        f"stablehlo.round_nearest_{name}": workarounds.compute_on(workarounds.ROUNDED, _same_type)
        for name in ("afz", "even")
    },
    **{
        f"stablehlo.{name}": workarounds.of_no_number(_same_type)
        for name in ("exponential", "exponential_minus_one", "logistic")
    },
    **{f"chlo.{name}": workarounds.of_no_number(generic) for name in ("cosh", "sinh")},
    **{f"chlo.{name}": workarounds.compute_on(workarounds.BELOW_16_BITS, generic) for name in ("bessel_i1e", "erfc")},
    "stablehlo.batch_norm_inference": workarounds.compute_on(workarounds.NORMALIZED, generic),
    "stablehlo.cholesky": workarounds.cholesky,
    "stablehlo.count_leading_zeros": workarounds.compute_on(workarounds.UNSIGNED, _same_type),
    **{f"stablehlo.{name}": workarounds.logical(_same_type) for name in ("add", "maximum", "minimum", "multiply")},
    **{f"chlo.broadcast_{name}": workarounds.logical(generic) for name in ("add", "maximum", "minimum", "multiply")},
    "stablehlo.add": workarounds.double_by_product(workarounds.logical(_same_type)),
    "stablehlo.clamp": workarounds.clamp(generic),
    "stablehlo.compare": workarounds.apart(workarounds.compare(_compare), workarounds.compares_totally),
    "chlo.broadcast_compare": workarounds.apart(workarounds.compare(generic), workarounds.compares_totally),
    **{f"stablehlo.{name}": workarounds.narrow_bitwise(_same_type) for name in ("and", "or")},
    **{f"chlo.broadcast_{name}": workarounds.narrow_bitwise(generic) for name in ("and", "or")},
    "stablehlo.shift_right_logical": workarounds.compute_on(workarounds.UNSIGNED_BELOW_BYTES, _same_type),
    "chlo.broadcast_shift_right_logical": workarounds.compute_on(workarounds.UNSIGNED_BELOW_BYTES, generic),
    "stablehlo.log": workarounds.apart(_same_type, workarounds.after("stablehlo.power", "chlo.broadcast_power")),
    "stablehlo.reverse": workarounds.apart(generic, workarounds.after("stablehlo.map")),
    "stablehlo.gather": folds.print_adjusted,
    "stablehlo.dynamic_slice": folds.print_adjusted,
    "stablehlo.dynamic_update_slice": folds.print_adjusted,
    "stablehlo.convert": workarounds.apart(workarounds.convert(_same_type), workarounds.widens_computed),
    "stablehlo.reshape": _functional,
    "stablehlo.bitcast_convert": workarounds.apart(_functional, workarounds.changes_rank),
    "stablehlo.is_finite": _functional,
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _with_dims("broadcast_dimensions"),
    "stablehlo.transpose": _with_dims("permutation"),
    "stablehlo.slice": _slice,
    "stablehlo.concatenate": workarounds.concatenate,
    "stablehlo.select": _select,
    "chlo.broadcast_select": _broadcast_select,
    "stablehlo.dot_general": products.product(workarounds.compute_on({"i2": "i8", "ui2": "ui8"}, _dot)),
    "stablehlo.convolution": products.convolution,
    "stablehlo.reduce": _reduce,
}

_BY_ITSELF = ("compare", "count_leading_zeros", "divide", "popcnt", "power", "remainder", "shift_right_logical")
"""Elementwise ops whose writers know about elements of 2 bits, most of which are not the same in 8."""

_IN_BYTES = frozenset(
    op.name.partition(".")[2]
    for op in STABLEHLO.operations
    if issubclass(op, UnaryOp | BinaryOp) or op.name == "stablehlo.clamp"
).difference(_BY_ITSELF)
"""Ops that compute the same element by element in 8 bits as in 2, also in their broadcasting forms."""


WRITERS: Mapping[str, Writer] = {
    name: writer
    if name.partition(".")[2].removeprefix("broadcast_") not in _IN_BYTES
    else workarounds.compute_on(workarounds.TWO_BITS, writer)
    for name, writer in _WRITERS.items()
}
"""Op name -> how it is written; all others are written in the generic form."""
