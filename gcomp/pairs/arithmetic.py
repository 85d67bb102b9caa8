"""Arithmetic and movement of complex numbers, as rules: exact, as docs/guides/semantics.md says it of the parts."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.rules import Calc, Const, Op, Rule, Term, Var
from gcomp.ir.types import dtype_text
from gcomp.pairs.parts import holds_complex, part_type

x, y, p = Var("x"), Var("y"), Var("p")
_OF_X = Calc(holds_complex, ("x",))
_TYPE = Calc(part_type, ("root",))


def _re(value: Term) -> Op:
    return Op(hlo.RealOp, value)


def _im(value: Term) -> Op:
    return Op(hlo.ImagOp, value)


def _pair(real: Term, imag: Term) -> Op:
    return Op(hlo.ComplexOp, real, imag)


def _rule(name: str, lhs: Op, rhs: Term, where: Calc = _OF_X) -> Rule:
    return Rule(f"pairs-of-{name}", lhs, rhs, where=where)


def _word(op: type[GraphOp]) -> str:
    return op.name.partition(".")[2].replace("_", "-")


def _by_parts(op: type[GraphOp], *operands: Term) -> Rule:
    """An op that does to complex numbers what it does to either part; `p` is no complex number."""
    halves = [[v if v is p else part(v) for v in operands] for part in (_re, _im)]
    declared = None if op.INFERS else _TYPE
    made = [Op(op, *half, like="root", type=declared) for half in halves]
    return _rule(_word(op), Op(op, *operands), _pair(*made))


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def _real(x: SSAValue) -> bool:
    return dtype_text(x.type) in ("f32", "f64")


def _makes_complex(x: SSAValue, root: SSAValue) -> bool:
    return holds_complex(root) and not holds_complex(x)


def _both(x: SSAValue, root: SSAValue) -> bool:
    return holds_complex(root) and holds_complex(x)


def _product(left: Term, right: Term) -> Op:
    return Op(hlo.MultiplyOp, left, right, like="root")


def _compare_rule(direction: str, together: type[GraphOp]) -> Rule:
    left = Op(hlo.CompareOp, x, y, comparison_direction=direction)
    right = Op(together, Op(hlo.CompareOp, _re(x), _re(y), like="root"), Op(hlo.CompareOp, _im(x), _im(y), like="root"))
    return _rule(f"compare-{direction.lower()}", left, right)


def _convert_part(part: Term) -> Op:
    return Op(hlo.ConvertOp, part, type=_TYPE)


ARITHMETIC: tuple[Rule, ...] = (
    Rule("real-of-pair", _re(_pair(x, y)), x),
    Rule("imag-of-pair", _im(_pair(x, y)), y),
    Rule("real-of-real", _re(x), x, where=Calc(_real)),
    Rule("imag-of-real", _im(x), Const(value=0, like="x"), where=Calc(_real)),
    _by_parts(hlo.AddOp, x, y),
    _by_parts(hlo.SubtractOp, x, y),
    _by_parts(hlo.NegateOp, x),
    _by_parts(hlo.SelectOp, p, x, y),
    _rule("multiply", Op(hlo.MultiplyOp, x, y),
          _pair(Op(hlo.SubtractOp, _product(_re(x), _re(y)), _product(_im(x), _im(y))),
                Op(hlo.AddOp, _product(_re(x), _im(y)), _product(_im(x), _re(y))))),
    _compare_rule("EQ", hlo.AndOp),
    _compare_rule("NE", hlo.OrOp),
    _rule("convert", Op(hlo.ConvertOp, x), _pair(_convert_part(_re(x)), _convert_part(_im(x))), where=Calc(_both)),
    _rule("convert-from-real", Op(hlo.ConvertOp, x), _pair(_convert_part(x), _im(_convert_part(x))),
          where=Calc(_makes_complex)),
)  # fmt: skip

# ---- movement -------------------------------------------------------------------------------------------------------

MOVEMENT: tuple[Rule, ...] = (
    *(_by_parts(op, x) for op in (hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.ReverseOp, hlo.TransposeOp)),
)

RULES = (*ARITHMETIC, *MOVEMENT)
"""All of them."""
