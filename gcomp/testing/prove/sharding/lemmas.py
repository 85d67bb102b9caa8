"""What proofs of all sharding rules rest on, shown by the solver: of indices in parts, quotients, and combiners."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block

from gcomp.ir.builder import identity
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import COMMUTATIVE
from gcomp.ir.types import ELEMENT_TYPES, tensor
from gcomp.partitioning.local import COUNTING
from gcomp.testing.prove.theory import Term, z3
from gcomp.testing.prove.translation import Exact

WIDTHS = ("i1", "i8", "ui8", "i16", "i32", "i64")
"""Element types on which combiners are shown to take terms in any order; sums and products of i1 are none."""


def lemmas() -> Iterator[tuple[str, Term]]:
    """(name, formula) of all; each is true of all integers, or of all elements."""
    yield from _of_indices()
    for name, op in COMMUTATIVE.items():
        for element in WIDTHS:
            if element != "i1" or name.partition(".")[2] in ("and", "or", "xor"):
                yield from _of_combiner(op, element)


def is_true(formula: Term) -> bool:
    """Whether the opposite has no model."""
    solver = z3.Solver()
    solver.add(z3.Not(formula))
    return bool(solver.check() == z3.unsat)


def _of_indices() -> Iterator[tuple[str, Term]]:
    k, n, m, s, t, a, b, x = z3.Ints("k n m s t a b x")
    sizes = z3.And(n >= 1, m >= 1)
    q = k / m
    # A product of what is not negative is not: the solver is told of those that it needs.
    whole = z3.And(
        sizes, k >= 0, k < n * m, k == q * m + k % m, z3.Or(q < n, (q - n) * m >= 0), z3.Or(q >= 0, q * m <= -m)
    )
    yield "each index is in a part", z3.Implies(whole, z3.And(q >= 0, q < n, k % m >= 0, k % m < m))
    once = z3.And(sizes, a >= 0, a < m, b >= 0, b < m, s * m + a == t * m + b)
    apart = z3.Or(s == t, z3.And(s > t, (s - t) * m >= m), z3.And(s < t, (t - s) * m >= m))
    yield "and in no other", z3.Implies(z3.And(once, apart), s == t)
    left = x - k * b
    fits = z3.And(b >= 1, left >= 0, left < b, x == x / b * b + x % b, x % b >= 0, x % b < b)
    near = z3.Or(x / b == k, z3.And(x / b > k, (x / b - k) * b >= b), z3.And(x / b < k, (k - x / b) * b >= b))
    yield "a guess whose remainder is in range is the quotient", z3.Implies(z3.And(fits, near), x / b == k)
    # y = x / a, and c = y / b: then c is x / (a * b), as its remainder is in range.
    y, c = z3.Ints("y c")
    inner = z3.And(a >= 1, b >= 1, y * a <= x, x < y * a + a, c * b <= y, y < c * b + b)
    scaled = z3.And((y - c * b) * a >= 0, (c * b + b - 1 - y) * a >= 0)
    rest = x - c * (a * b)
    yield "a quotient of a quotient is that by both", z3.Implies(z3.And(inner, scaled), z3.And(rest >= 0, rest < a * b))


def _of_combiner(op: type[GraphOp], element: str) -> Iterator[tuple[str, Term]]:
    """Terms may come in any order, and the unit changes none; or an init value may be taken by each device."""
    theory, name = Exact(), op.name.partition(".")[2]
    kind = tensor((), ELEMENT_TYPES[element])
    made = op.of(*Block(arg_types=(kind, kind)).args)

    def both(x: Term, y: Term) -> Term:
        return theory.apply(made, (x, y), (element, element), element)

    x, y, w = (z3.Const(v, theory.sort(element)) for v in "xyw")
    yield (
        f"{name} of {element} takes terms in any order",
        z3.And(both(x, y) == both(y, x), both(x, both(y, w)) == both(both(x, y), w)),
    )
    yield f"{name} of {element} has a unit", both(x, theory.constant(identity(op, element), element)) == x
    if name not in COUNTING:
        yield f"{name} of {element} takes a term twice", both(both(w, x), both(w, y)) == both(w, both(x, y))
