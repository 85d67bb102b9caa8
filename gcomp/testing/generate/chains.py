"""Chains of the ops that a pass names: imperative patterns have no left side to build programs from.

An op that a step made is made again with operands that come out of other ops which the pass names, of the very types:
a convolution of what a pad gives, a product of what a transpose gives, two levels deep at times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.rules import Const, Op, Term, Var
from gcomp.ir.types import Tensor, dtype_text, is_tensor, tensor_of
from gcomp.reference.values import about
from gcomp.testing.generate.directed import FAULTS, mark, roll_back, verify_since
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.recipes import RECIPES, Draft, Need

_EACH, _DEEPER, _SAME, _SHARED, _TRIES = 0.6, 0.25, 0.2, 0.35, 6
"""How often an operand is made by a named op, one of its operands is, and is the one that was there; how often all
makers of operands share what they read; how many tries."""
_CONSTANT = 0.6
"""How often one operand is a constant, for passes that ask for one."""
_NAMES = "abcdefgh"
"""What the operands of makers are called: those of one name are one value."""


def chain_ops(g: Growth, grow: Callable[[Growth], object]) -> None:
    """Take a step; then make one of its ops that the pass names again, of what other named ops give."""
    last = g.b.block.last_op
    grow(g)
    made: list[Operation] = []
    op = g.b.block.last_op
    while op is not None and op is not last:
        made.append(op)
        op = op.prev_op
    makers = [kind for kind in sorted(g.named, key=lambda kind: kind.__name__)
              if issubclass(kind, GraphOp) and any(base in RECIPES for base in kind.__mro__)]  # fmt: skip
    roots = [op for op in made if type(op) in g.named and op.operands and op.results]
    if roots and makers:
        _again(g, g.choices.chosen(roots), makers)


def _again(g: Growth, op: Operation, makers: Sequence[type[GraphOp]]) -> None:
    for _ in range(_TRIES):
        start = mark(g)
        places = [i for i, v in enumerate(op.operands) if is_tensor(v.type)]
        chosen = g.choices.some(places, _EACH) or places[:1]
        try:
            shared = _shared(g, op)
            constant = g.choices.chosen(places) if places and g.of_constants and g.choices.flag(_CONSTANT) else None
            values = {i: _make_value(g, op.operands[i], makers, shared) for i in chosen if i != constant}
            if constant is not None:
                values[constant] = _constant(g, tensor_of(op.operands[constant]))
            verify_since(g, start)
        except FAULTS:
            roll_back(g, start)
            continue
        copy = op.clone()
        for i, value in values.items():
            copy.operands[i] = value
        g.b.block.add_op(copy)
        for result in copy.results:
            if is_tensor(result.type):
                g.keep(result)
        return


def _constant(g: Growth, type: Tensor) -> SSAValue:
    """A constant that conditions ask for: all elements 0, 1 or what is compared with; or any."""
    kind, text = g.choices.integer(0, 3), dtype_text(type)
    if kind == 3 or text == "i1":
        return g.constant(type)
    if kind == 2 and g.compared:
        near = about(text, g.choices.chosen(g.compared))
        return g.splat(type, g.choices.chosen(list(near)) if near.size else 1)
    return g.splat(type, kind % 2)


def _shared(g: Growth, op: Operation) -> dict[str, SSAValue] | None:
    """Where the makers of operands share what they read by name: that, with an operand of the op among it at times.
    A rewrite may ask whether two values are the same. None: they share nothing."""
    tensors = [v for v in op.operands if is_tensor(v.type)]
    if not g.choices.flag(_SHARED):
        return None
    return {g.choices.chosen(_NAMES[:2]): g.choices.chosen(tensors)} if g.choices.flag() else {}


def _make_value(
    g: Growth, value: SSAValue, makers: Sequence[type[GraphOp]], shared: dict[str, SSAValue] | None
) -> SSAValue:
    """A value of the type of another, that a named op gives; at times of the other itself, or of what is `shared`."""
    draft = Draft(g, values={} if shared is None else shared)
    if shared is None and g.choices.flag(_SAME):
        draft.values[_NAMES[0]] = value
    found = draft.build(_term(g, makers, _DEEPER), Need(tensor_of(value)))
    if found.type != value.type:
        raise ValueError("of another type")
    return found


def _term(g: Growth, makers: Sequence[type[GraphOp]], deeper: float) -> Term:
    kind = g.choices.chosen(makers)
    names = [name for name, _ in kind.get_irdl_definition().operands]
    if kind is hlo.PadOp:
        return Op(kind, _operand(g, makers, deeper, 0), Const(value=g.choices.chosen((0, 0, None))))
    return Op(kind, *(_operand(g, makers, deeper, i) for i in range(len(names))))


def _operand(g: Growth, makers: Sequence[type[GraphOp]], deeper: float, place: int) -> Term:
    return _term(g, makers, deeper / 2) if g.choices.flag(deeper) else Var(_NAMES[place])


__all__ = ["chain_ops"]
