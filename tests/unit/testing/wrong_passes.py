"""Wrong passes, one small miscompilation each, and programs of 15 to 30 ops in which each one bites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.locations import named_location, where
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Var
from gcomp.ir.types import element_of, rank_of, shape_of, tensor
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, Rewrite, apply_rewrites

x, y, z = Var("x"), Var("y"), Var("z")


@dataclass(frozen=True)
class Wrong(Pass):
    """Applies `rewrites`."""

    name: ClassVar[str] = "wrong"
    rewrites: tuple[Any, ...] = ()

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, self.rewrites, context)


def wrong(name: str, *rewrites: Rewrite, exactness: Exactness = Exactness.E1) -> Pass:
    """A pass of its own name that applies these rewrites."""
    cls = type(name, (Wrong,), {"name": name, "exactness": exactness, "spec": lambda self: name})
    return cls(rewrites)


RIGHT = (
    Rule("negate-of-negate", Op(hlo.NegateOp, Op(hlo.NegateOp, x)), x),
    Rule("transpose-identity", Op(hlo.TransposeOp, x, permutation=Attr("p")), x,
         where=Calc(lambda p: p == tuple(range(len(p))))),
)  # fmt: skip
"""Correct rules that stand before the wrong one in each pass and apply too: the blame must not fall on them."""


class SliceForgetsOffset(Pattern):
    """A slice of a slice that forgets where the inner one starts."""

    name = "slice-of-slice"
    roots = (hlo.SliceOp,)

    def rewrite(self, op: hlo.SliceOp, b: Builder) -> Sequence[SSAValue] | None:
        if not (isinstance(op.operand, OpResult) and isinstance(inner := op.operand.op, hlo.SliceOp)):
            return None
        if any(s != 1 for s in (*op.value("strides"), *inner.value("strides"))):
            return None
        return [b.slice(inner.operand, sizes_of(op.start_indices), sizes_of(op.limit_indices))]


class ReduceShiftsAxis(Pattern):
    """A reduction of a reduced tensor that forgets that dimensions before it are gone."""

    name = "reduce-of-reduce"
    roots = (hlo.ReduceOp,)

    def applies(self, op: hlo.ReduceOp) -> bool:
        value = op.operands[0]
        return len(op.results) == 1 and isinstance(value, OpResult) and isinstance(value.op, hlo.ReduceOp)

    def rewrite(self, op: hlo.ReduceOp, b: Builder) -> Sequence[SSAValue] | None:
        inner = op.operands[0].owner
        axes = {*inner.value("dimensions"), *op.value("dimensions")}
        if len(axes) != rank_of(inner.operands[0]) - rank_of(op.results[0]):
            return None
        result = b.reduce(hlo.AddOp, inner.operands[0], sorted(axes))
        return [result] if result.type == op.results[0].type else [b.reshape(result, shape_of(op.results[0]))]


class PadDropsHigh(Pattern):
    """A pad by zeros of a sum that pads only one side, and keeps the shape by more on the other."""

    name = "pad-of-sum"
    roots = (hlo.PadOp,)

    def rewrite(self, op: hlo.PadOp, b: Builder) -> Sequence[SSAValue] | None:
        low, high = sizes_of(op.edge_padding_low), sizes_of(op.edge_padding_high)
        if all(h == 0 for h in high) or any(op.value("interior_padding")):
            return None
        return [b.pad(op.operand, op.padding_value, [a + c for a, c in zip(low, high, strict=True)], [0] * len(low))]


class CrashesOnReverse(Pattern):
    """Looks at a dimension that is not there."""

    name = "last-dimension"
    roots = (hlo.ReverseOp,)

    def rewrite(self, op: hlo.ReverseOp, b: Builder) -> Sequence[SSAValue] | None:
        return [op.operand] if shape_of(op.operand)[rank_of(op.operand)] == 1 else None


@dataclass(frozen=True)
class CseIgnoresAttributes(Pass):
    """Merges ops of the same name, operands and types, whatever their properties."""

    name: ClassVar[str] = "cse-ignores-attributes"

    def run(self, program: Program, context: PassContext) -> bool:
        known: dict[Any, Any] = {}
        changed = False
        for op in list(program.block.ops):
            if not op.operands or op.regions or not op.results:
                continue
            first = known.setdefault((op.name, tuple(op.operands), tuple(op.result_types)), op)
            if first is not op and context.allow("merge", where(op)):
                for old, new in zip(op.results, first.results, strict=True):
                    old.replace_all_uses_with(new)
                Rewriter.erase_op(op)
                changed = True
        return changed


@dataclass(frozen=True)
class UsesTooEarly(Pass):
    """Moves the first subtraction before what it uses."""

    name: ClassVar[str] = "too-early"

    def run(self, program: Program, context: PassContext) -> bool:
        op = next((op for op in program.block.ops if isinstance(op, hlo.SubtractOp)), None)
        first = program.block.first_op
        if op is None or first is None or op is first or not context.allow("hoist", where(op)):
            return False
        op.detach()
        program.block.insert_op_before(op, first)
        return True


@dataclass(frozen=True)
class Liar(Pass):
    """Removes double negations and never says so."""

    name: ClassVar[str] = "liar"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, RIGHT[:1], context) and False


@dataclass(frozen=True)
class Restless(Pass):
    """Swaps the operands of the first addition each time."""

    name: ClassVar[str] = "restless"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        op = next((op for op in program.ops() if isinstance(op, hlo.AddOp) and op.lhs is not op.rhs), None)
        if op is None or not context.allow("swap", where(op)):
            return False
        op.operands = (op.operands[1], op.operands[0])
        return True


@dataclass(frozen=True)
class DropsOutput(Pass):
    """Returns an output only once."""

    name: ClassVar[str] = "drops-output"

    def run(self, program: Program, context: PassContext) -> bool:
        values = list(dict.fromkeys(program.returned.operands))
        if len(values) == len(program.returned.operands):
            return False
        names = program.outputs()[: len(values)]
        Rewriter.erase_op(program.returned)
        program.finish([(port.name, v) for port, v in zip(names, values, strict=True)])
        return True


def _swapped(p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(q[i] for i in p)


def _float(x: SSAValue) -> bool:
    return str(element_of(x)).startswith("f")


def _square(x: SSAValue) -> bool:
    return len(set(shape_of(x))) <= 1


TRANSPOSES = Rule(
    "transpose-of-transpose",
    Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
    Op(hlo.TransposeOp, x, permutation=Calc(_swapped)),
    where=Calc(_square),
)

WRONG: dict[str, tuple[Pass, str]] = {
    "transposes composed the wrong way round": (wrong("transposes", *RIGHT, TRANSPOSES), "transpose-of-transpose"),
    "a slice forgets an offset": (wrong("slices", *RIGHT, SliceForgetsOffset()), "slice-of-slice"),
    "x * 0 is 0 for floats": (
        wrong("times-zero", *RIGHT, Rule("multiply-by-zero", Op(hlo.MultiplyOp, x, Const(value=0)), Const(value=0))),
        "multiply-by-zero",
    ),
    "max and min swapped": (
        wrong("clamp", *RIGHT, Rule("max-of-min", Op(hlo.MaximumOp, Op(hlo.MinimumOp, x, y), z),
                                    Op(hlo.MinimumOp, Op(hlo.MinimumOp, x, y), z))),
        "max-of-min",
    ),
    "x + 0 is x for floats, exactly": (
        wrong("add-zero", *RIGHT[:1], Rule("add-zero", Op(hlo.AddOp, x, Const(value=0)), x, where=Calc(_float)),
              exactness=Exactness.E0),
        "add-zero",
    ),
    "select's cases swapped": (
        wrong("select", *RIGHT, Rule("select-of-not", Op(hlo.SelectOp, Op(hlo.NotOp, x), y, z),
                                     Op(hlo.SelectOp, x, y, z))),
        "select-of-not",
    ),
    "subtraction taken to commute": (
        wrong("subtract", *RIGHT, Rule("subtract-of-negated", Op(hlo.SubtractOp, x, Op(hlo.NegateOp, y)),
                                       Op(hlo.SubtractOp, x, y))),
        "subtract-of-negated",
    ),
    "reassociation said to be exact": (
        wrong("reassociate", *RIGHT, Rule("add-of-add", Op(hlo.AddOp, Op(hlo.AddOp, x, y), z),
                                          Op(hlo.AddOp, x, Op(hlo.AddOp, y, z)))),
        "add-of-add",
    ),
    "sqrt of a square is its root": (
        wrong("sqrt", *RIGHT, Rule("sqrt-of-square", Op(hlo.SqrtOp, Op(hlo.MultiplyOp, x, x)), x),
              exactness=Exactness.E2),
        "sqrt-of-square",
    ),
    "a padding on the wrong side": (wrong("pads", *RIGHT, PadDropsHigh()), "pad-of-sum"),
    "a reduction of the wrong axis": (
        wrong("reduces", *RIGHT, ReduceShiftsAxis(), exactness=Exactness.E2), "reduce-of-reduce",
    ),
    "cse that ignores attributes": (CseIgnoresAttributes(), "merge"),
    "a crash": (wrong("crash", *RIGHT, CrashesOnReverse()), "last-dimension"),
    "a rewrite that changes a type": (
        wrong("types", *RIGHT, Rule("is-finite-of-abs", Op(hlo.IsFiniteOp, Op(hlo.AbsOp, x)), Op(hlo.AbsOp, x))),
        "is-finite-of-abs",
    ),
    "a use before the definition": (UsesTooEarly(), "hoist"),
    "a pass that hides a change": (Liar(), "negate-of-negate"),
    "a pass that never settles": (Restless(), "swap"),
    "a pass that loses an output": (DropsOutput(), ""),
    "a rule that undoes itself for ever": (
        wrong("endless", Rule("commute", Op(hlo.AddOp, x, y), Op(hlo.AddOp, y, x))), "commute",
    ),
}  # fmt: skip
"""What is wrong -> the pass, and the rewrite that is to be blamed."""

KINDS = {
    "a crash": "crash",
    "a rewrite that changes a type": "crash",
    "a use before the definition": "invalid",
    "a pass that hides a change": "claim",
    "a pass that never settles": "unsettled",
    "a pass that loses an output": "signature",
    "a rule that undoes itself for ever": "unsettled",
}


# ---- programs ----


def _noise(b: Builder, v: SSAValue, w: SSAValue, rng: np.random.Generator) -> SSAValue:
    """One op that none of the wrong rewrites looks for."""
    match int(rng.integers(0, 6)):
        case 0:
            return b.multiply(v, w)
        case 1:
            return b.emit(hlo.TanhOp, v)
        case 2:
            return b.emit(hlo.AbsOp, v)
        case 3:
            return b.emit(hlo.NegateOp, b.emit(hlo.NegateOp, v))
        case 4:
            return b.emit(hlo.TransposeOp, v, permutation=(0, 1, 2))
        case _:
            return b.emit(hlo.CosineOp, v)


Maker = Callable[[Builder, SSAValue, SSAValue, SSAValue], SSAValue]


def _t(b: Builder, v: SSAValue, *p: int) -> SSAValue:
    return b.emit(hlo.TransposeOp, v, permutation=p)


PATTERNS: dict[str, Maker] = {
    "transposes composed the wrong way round": lambda b, v, w, p: _t(b, _t(b, v, 1, 2, 0), 0, 2, 1),
    "a slice forgets an offset": lambda b, v, w, p: b.pad(
        b.slice(b.slice(v, (1, 0, 0), (4, 4, 4)), (0, 1, 0), (2, 3, 4)), b.full((), 0.0, "f32"), (1, 1, 0), (1, 1, 0)
    ),
    "x * 0 is 0 for floats": lambda b, v, w, p: b.multiply(b.emit(hlo.LogOp, v), b.full(shape_of(v), 0.0, "f32")),
    "max and min swapped": lambda b, v, w, p: b.maximum(b.minimum(v, w), b.full_like(v, 0.25)),
    "x + 0 is x for floats, exactly": lambda b, v, w, p: b.add(b.emit(hlo.NegateOp, b.multiply(v, b.full_like(v, 0.0))),
                                                               b.full(shape_of(v), 0.0, "f32")),
    "select's cases swapped": lambda b, v, w, p: b.select(b.emit(hlo.NotOp, p), v, w),
    "subtraction taken to commute": lambda b, v, w, p: b.subtract(v, b.emit(hlo.NegateOp, w)),
    "reassociation said to be exact": lambda b, v, w, p: b.add(b.add(v, w), b.full_like(v, 0.3)),
    "sqrt of a square is its root": lambda b, v, w, p: b.emit(hlo.SqrtOp, b.multiply(v, v)),
    "a padding on the wrong side": lambda b, v, w, p: b.slice(
        b.pad(v, b.full((), 0.0, "f32"), (0, 0, 0), (0, 2, 0)), (0, 2, 0), (4, 6, 4)
    ),
    "a reduction of the wrong axis": lambda b, v, w, p: b.broadcast(
        b.reduce(hlo.AddOp, b.reduce(hlo.AddOp, v, (0,)), (1,)), (4, 4, 4), (1,)
    ),
    "cse that ignores attributes": lambda b, v, w, p: b.add(_t(b, v, 1, 0, 2), _t(b, v, 2, 1, 0)),
    "a crash": lambda b, v, w, p: b.emit(hlo.ReverseOp, v, dimensions=(1, 2)),
    "a rewrite that changes a type": lambda b, v, w, p: b.emit(
        hlo.SelectOp, b.emit(hlo.IsFiniteOp, b.emit(hlo.AbsOp, v)), v, w
    ),
    "a use before the definition": lambda b, v, w, p: b.subtract(v, w),
    "a pass that hides a change": lambda b, v, w, p: b.emit(hlo.NegateOp, b.emit(hlo.NegateOp, v)),
    "a pass that never settles": lambda b, v, w, p: b.add(v, w),
    "a pass that loses an output": lambda b, v, w, p: v,
    "a rule that undoes itself for ever": lambda b, v, w, p: b.add(v, w),
}  # fmt: skip


def program_of(name: str, seed: int = 0) -> Program:
    """A program of about 20 ops, each with a location, that has what the wrong pass of this name looks for."""
    rng = np.random.default_rng(seed)
    cube = (4, 4, 4)
    program = Program.empty([("a", tensor(cube, "f32")), ("b", tensor(cube, "f32")), ("p", tensor(cube, "i1"))])
    b = Builder(program)
    values: list[SSAValue] = list(program.block.args[:2])
    predicate = program.block.args[2]

    def grow(count: int) -> None:
        while sum(1 for _ in program.block.ops) < count:
            b.location = named_location(f"node{sum(1 for _ in program.block.ops)}")
            values.append(_noise(b, values[-1], values[int(rng.integers(0, len(values)))], rng))

    grow(9)
    b.location = named_location("the pattern")
    pattern = PATTERNS[name](b, values[-1], program.block.args[1], predicate)
    values.append(pattern)
    grow(20)
    last = values[-1]
    results = [("r", last), ("s", pattern)] + ([("t", last)] if name == "a pass that loses an output" else [])
    program.finish(results)
    program.verify()
    return program
