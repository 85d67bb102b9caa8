"""Values from nothing, ops of any number of operands, and ops with regions: what no rule can say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.types import element_of, rank_of, shape_of
from gcomp.pairs.parts import (
    Pair,
    each_part,
    gather_parts,
    holds_complex,
    join_parts,
    part_type,
    parts,
    spread,
    spread_types,
)


def constant(op: hlo.ConstantOp | WeightOp, b: Builder) -> SSAValue | None:
    """A constant, or a weight, of two; None where it is real, or a weight that has no data."""
    if not holds_complex(op.results[0]):
        return None
    if isinstance(op, hlo.ConstantOp):
        array = op.elements_attr.array()
        return join_parts(b, (b.constant(np.array(array.real)), b.constant(np.array(array.imag))))
    if op.symbol not in b.program.weights:
        return None
    array = b.program.weights[op.symbol]
    real, imag = (np.array(part, order="C") for part in (array.real, array.imag))
    return join_parts(b, (b.weight(f"{op.symbol}.real", real), b.weight(f"{op.symbol}.imag", imag)))


def move_parts(op: GraphOp, b: Builder) -> SSAValue | None:
    """What moves the elements of its operands moves their parts in the same way; None where they are real."""
    if not holds_complex(op.results[0]):
        return None
    return each_part(b, op.operands, lambda operands: _again(b, op, operands, [part_type(op.results[0])])[0])


def product(op: GraphOp, b: Builder) -> SSAValue | None:
    """A sum of products, of four sums of products of parts; None where it is real."""
    if not holds_complex(op.results[0]):
        return None
    (a, c), (d, e) = (parts(b, v) for v in op.operands)
    type = part_type(op.results[0])
    ad, ce, ae, cd = (_again(b, op, pair, [type])[0] for pair in ((a, d), (c, e), (a, e), (c, d)))
    return join_parts(b, (b.subtract(ad, ce), b.add(ae, cd)))


def extremum(op: hlo.MaximumOp | hlo.MinimumOp, b: Builder) -> SSAValue | None:
    """The first number where its real part is better, or the same and its imaginary part is; None of real ones."""
    if not holds_complex(op.results[0]):
        return None
    (a, c), (d, e) = (parts(b, v) for v in op.operands)
    better = "GT" if isinstance(op, hlo.MaximumOp) else "LT"
    first = b.select(b.compare(a, d, "EQ"), b.compare(c, e, better), b.compare(a, d, better))
    return join_parts(b, (b.select(first, a, d), b.select(first, c, e)))


def clamp_parts(op: hlo.ClampOp, b: Builder) -> SSAValue | None:
    """The greater of a number and the least, and of that and the most the lesser one; None of real ones."""
    if not holds_complex(op.result):
        return None
    least, most = (b.broadcast_to(v, shape_of(op.result)) for v in (op.min, op.max))
    return b.minimum(b.maximum(op.operand, least), most)


def number_parts(op: hlo.IotaOp, b: Builder) -> SSAValue | None:
    """Indices as real parts; None of real ones."""
    if not holds_complex(op.results[0]):
        return None
    real = _again(b, op, [], [part_type(op.results[0])])[0]
    return join_parts(b, (real, b.full_like(real, 0)))


def real_part(op: hlo.ConvertOp, b: Builder) -> SSAValue | None:
    """The real part in another type; None where it is no conversion from complex numbers to others."""
    if not holds_complex(op.operand) or holds_complex(op.result):
        return None
    return b.convert(parts(b, op.operand)[0], element_of(op.result))


def bits_of_parts(op: hlo.BitcastConvertOp, b: Builder) -> SSAValue | None:
    """The bits of both parts, in the order in which memory has them, as parts of others; None of real ones."""
    if not holds_complex(op.operand):
        return None
    if op.operand.type == op.result.type:
        return op.operand
    kind, last = part_type(op.result), rank_of(op.operand)

    def cast_bits(pair: Pair) -> Pair:
        real, imag = (b.emit(hlo.BitcastConvertOp, part, types=(kind,)) for part in pair)
        return real, imag

    # The bits of the real part of a wide number are those of both parts of a narrow one.
    if last < rank_of(op.result):
        return join_parts(b, _transpose(b, cast_bits(parts(b, op.operand)), last))
    return join_parts(b, cast_bits(_transpose(b, parts(b, op.operand), last - 1)))


def _transpose(b: Builder, pair: Pair, axis: int) -> Pair:
    """Of two values of two elements along an axis, the first elements of both, and the second ones."""
    first, second = ([b.slice_axis(value, axis, k, k + 1) for value in pair] for k in range(2))
    return b.concatenate(first, axis), b.concatenate(second, axis)


def spread_op(op: GraphOp, b: Builder) -> Sequence[SSAValue] | None:
    """What is carried, folded or sorted is both parts of every complex value; None where there is none."""
    if not any(map(holds_complex, (*op.operands, *op.results))):
        return None
    if isinstance(op, hlo.ReduceOp | hlo.ReduceWindowOp | hlo.ScatterOp) and (found := _apart(op, b)) is not None:
        return [found]
    together = 2 if isinstance(op, hlo.SortOp) else 1
    regions = [_spread_region(region, b.program, together) for region in op.regions]
    made = _again(b, op, spread(b, op.operands), spread_types(op.result_types), regions)
    return gather_parts(b, made, op.result_types)


def _again(
    b: Builder, op: GraphOp, operands: Sequence[SSAValue], types: Sequence[Attribute], regions: Sequence[Region] = ()
) -> Sequence[SSAValue]:
    """An op like another, of other operands, types and regions."""
    made = type(op).create(operands=operands, result_types=types, properties=dict(op.properties), regions=regions)
    return b.insert(made).results


def _spread_region(region: Region, program: Program, together: int) -> Region:
    """A copy whose complex arguments and returned values are spread; of so many arguments that stand together, all
    real parts come first, as those of a comparator do, which gets two of each."""
    copy = region.clone()
    block = copy.block
    old = list(block.args)
    start = InsertPoint.at_start(block) if block.first_op is None else InsertPoint.before(block.first_op)
    b = Builder(program, start)
    for k in range(0, len(old), together):
        args = old[k : k + together]
        if not holds_complex(args[0]):
            for arg in args:
                _move_to_end(block, arg)
            continue
        halves = [[block.insert_arg(part_type(arg), len(block.args)) for arg in args] for _ in range(2)]
        for arg, real, imag in zip(args, *halves, strict=True):
            if arg.first_use is not None:
                arg.replace_all_uses_with(join_parts(b, (real, imag)))
            block.erase_arg(arg)
    returned = cast(Operation, block.last_op)
    returned.operands = spread(Builder(program, InsertPoint.before(returned)), returned.operands)
    return copy


def _move_to_end(block: Block, arg: Any) -> None:
    arg.replace_all_uses_with(block.insert_arg(arg.type, len(block.args)))
    block.erase_arg(arg)


def _apart(op: Any, b: Builder) -> SSAValue | None:
    """A fold that adds, or puts in place, does it to either part by itself."""
    if len(op.results) != 1:
        return None
    (region,) = op.regions
    block = region.block
    *inner, returned = block.ops
    adds = [type(o) for o in inner] == [hlo.AddOp] and set(inner[0].operands) == set(block.args)
    puts = not inner and returned.operands[0] in block.args
    if not (adds and returned.operands[0] is inner[0].results[0]) and not puts:
        return None
    if any(a.type != block.args[0].type for a in block.args):
        return None

    def folded(operands: Sequence[SSAValue]) -> SSAValue:
        types = [part_type(a) for a in block.args]
        place = 0 if adds else block.args.index(returned.operands[0])
        body = b.region(types, lambda args: [b.add(*args) if adds else args[place]])
        return _again(b, op, operands, [part_type(op.results[0])], [body])[0]

    return each_part(b, op.operands, folded)
