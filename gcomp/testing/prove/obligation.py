"""A case as a question to the solver: can the two sides differ?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_complex
from gcomp.exactness import Exactness
from gcomp.ir.types import dtype_text, shape_of
from gcomp.testing.prove.cases import Case, nodes
from gcomp.testing.prove.movement import FOLDS
from gcomp.testing.prove.scalars import Kind, is_nan, is_zero, kind_of, parts
from gcomp.testing.prove.theory import Index, Term, z3
from gcomp.testing.prove.translation import Theory, Translation
from gcomp.testing.prove.views import Facts, View, number


class Answer(Enum):
    """What the solver said of the question whether the sides can differ."""

    NEVER = "never"
    DIFFER = "differ"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Instance:
    """Values for which the sides differ: sizes by symbol, and the bits of inputs that are one number everywhere."""

    what: str
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    bits: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Finding:
    """The solver's answer to one case."""

    answer: Answer
    instance: Instance | None = None


NEVER, UNKNOWN = Finding(Answer.NEVER), Finding(Answer.UNKNOWN)
_SMALL = 4
"""Counterexamples of sizes up to this are preferred."""
_PATIENCE = 3
"""The solver counts time on the wall, of which a busy machine gives it a part."""
_UNDECIDABLE = 1.0
"""Seconds for a question about products of unknown numbers, or folds: the solver answers at once or never."""
_POLISH = 2.0
"""Seconds that are spent on looking for a smaller counterexample."""


def _is_hard(case: Case) -> bool:
    return case.is_unknown or any(node.op in FOLDS for node in nodes(case.plan))


class Solver:
    """Answers cases until a deadline; questions about scalars alone are asked once."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.asked: dict[str, Finding] = {}

    def decide(self, case: Case, theory: Theory) -> Finding:
        """Whether the sides of a case can differ. UnsupportedError where the theory lacks an op or a type."""
        question = Question(case, theory)
        if z3.is_false(question.wrong):
            return NEVER
        scalar = question.scalar(question.wrong)
        if scalar is None:
            return self._solve(question, z3.And(*question.assumptions, question.wrong))
        # The text of a term does not tell the width of its variables.
        key = f"{scalar.sexpr()} {question.sorts}"
        if key not in self.asked:
            self.asked[key] = self._solve(question, scalar)
        return self.asked[key]

    def _solve(self, question: Question, claim: Term) -> Finding:
        solver = z3.SimpleSolver() if question.case.symbols else z3.Solver()
        solver.add(claim)
        left = self.deadline - time.process_time()
        answer = self._ask(solver, min(left, _UNDECIDABLE) if _is_hard(question.case) else left)
        if answer == z3.unsat:
            return NEVER
        small = [z3.Int(name) <= _SMALL for name in question.case.symbols]
        if answer == z3.sat and small:
            model = solver.model()
            solver.add(*small)
            again = self._ask(solver, min(self.deadline - time.process_time(), _POLISH))
            return Finding(Answer.DIFFER, question.instance(solver.model() if again == z3.sat else model))
        return Finding(Answer.DIFFER, question.instance(solver.model())) if answer == z3.sat else UNKNOWN

    def _ask(self, solver: Term, seconds: float) -> Term:
        if seconds <= 0:
            return z3.unknown
        solver.set("timeout", int(1000 * seconds * _PATIENCE) + 1)
        try:
            return solver.check()
        except z3.Z3Exception:
            return z3.unknown  # some corners of its theories are not implemented


class Question:
    """The terms of one case: what is assumed, and what would be wrong."""

    def __init__(self, case: Case, theory: Theory) -> None:
        assert case.after is not None
        self.case = case
        facts = Facts(theory.sort)
        self.inputs = {name: theory.variable(name, type.element, len(type.shape)) for name, type in case.leaves.items()}
        arguments = dict(zip(case.leaves, case.program.block.args, strict=False))
        views: dict[SSAValue, View] = {
            arguments[n]: _input(self.inputs[n], type.shape, type.element) for n, type in case.leaves.items()
        }
        translation = Translation(theory, facts, views)
        before = translation.view(case.before)
        assumed = len(facts.requires)
        after = translation.view(case.after)
        self._before = before
        self._granted = facts.requires[:assumed]
        self._index: Index = _place(len(before.shape))
        left = before.at(self._index)
        self._known = list(facts.known)
        right = after.at(self._index)
        element = dtype_text(case.before.type)
        exact = left.sort() == z3.BitVecSort(kind_of(element).width)
        differ = z3.Not(equal(left, right, element, case.rule.exactness if exact else Exactness.E0))
        granted = {t.get_id() for t in self._granted}
        obliged = [t for t in (*facts.requires[assumed:], *_same_sizes(case)) if t.get_id() not in granted]
        self.invalid = z3.simplify(z3.Not(z3.And(*obliged))) if obliged else z3.BoolVal(False)
        # What follows from the right side's being valid may only be used where it is.
        self.wrong = z3.simplify(z3.Or(self.invalid, z3.And(differ, *facts.known[len(self._known) :])))

    @property
    def sorts(self) -> str:
        """The sorts of the inputs' elements."""
        return " ".join(f"{name}:{type.element}" for name, type in self.case.leaves.items())

    @property
    def assumptions(self) -> list[Term]:
        """The left side is valid, and the index in range."""
        shape = self._before.shape
        return [
            *self._granted,
            *self._known,
            *[_not_negative(dims.symbol(name)) for name in self.case.symbols],
            *[_not_negative(size) for size in shape],
            *[_below(k, size) for k, size in enumerate(shape)],
        ]

    def scalar(self, claim: Term) -> Term | None:
        """A claim about one element of each input, without indices; None if it is about several, or about sizes."""
        if 0 in self._before.shape:
            return None  # there is no element to speak of
        places: dict[str, Term] = {}
        for term in _subterms(claim):
            if z3.is_int(term) and term.num_args() == 0 and not z3.is_int_value(term):
                continue
            name = term.decl().name()
            if name in self.inputs and places.setdefault(name, term).get_id() != term.get_id():
                return None
        pairs = [(place, z3.Const(name, place.sort())) for name, place in places.items()]
        changed = z3.substitute(claim, *pairs) if pairs else claim
        return None if any(z3.is_int(t) for t in _subterms(changed)) else changed

    def instance(self, model: Term) -> Instance:
        """What a model says, as far as it can be told in numbers."""
        sizes = {n: model.eval(z3.Int(n), model_completion=True).as_long() for n in self.case.symbols}
        bits: dict[str, int] = {}
        for declaration in model.decls():
            value = model[declaration]
            if declaration.name() in self.inputs and declaration.arity() == 0 and z3.is_bv_value(value):
                bits[declaration.name()] = value.as_long()
        invalid = z3.is_true(model.eval(self.invalid))
        return Instance("the right side is not valid" if invalid else "the results differ", sizes, bits)


@cache
def _place(rank: int) -> Index:
    return tuple(z3.Int(f"j{k}") for k in range(rank))


@cache
def _not_negative(size: Size) -> Term:
    return number(size) >= 0


@cache
def _below(dimension: int, size: Size) -> Term:
    j = z3.Int(f"j{dimension}")
    return z3.And(j >= 0, j < number(size))


def _input(function: Term, shape: tuple[Size, ...], element: str) -> View:
    return View(shape, element, lambda index: function(*index) if index else function)


def _same_sizes(case: Case) -> Iterator[Term]:
    """The driver has compared the types; sizes spelled differently may still be claimed equal."""
    assert case.after is not None
    for a, b in zip(shape_of(case.before), shape_of(case.after), strict=True):
        if a != b:
            yield number(a) == number(b)


def _subterms(term: Term) -> Iterator[Term]:
    seen: set[int] = set()
    pending = [term]
    while pending:
        current = pending.pop()
        if current.get_id() in seen or not z3.is_expr(current):
            continue
        seen.add(current.get_id())
        if z3.is_app(current):
            yield current
        pending += current.children()


def equal(left: Term, right: Term, element: str, exactness: Exactness) -> Term:
    """Equality as the contract has it: E0 by bits, E1 up to the sign of zero and what NaN it is."""
    kind = kind_of(element)
    if exactness is Exactness.E0 or kind.name in ("bool", "int"):
        return left == right
    if is_complex(element):
        pairs = zip(parts(left, kind), parts(right, kind), strict=True)
        return z3.And(*[_equal_values(a, b, kind.part) for a, b in pairs])
    return _equal_values(left, right, kind)


def _equal_values(a: Term, b: Term, kind: Kind) -> Term:
    both_nan, both_zero = z3.And(is_nan(a, kind), is_nan(b, kind)), z3.And(is_zero(a, kind), is_zero(b, kind))
    return z3.Or(a == b, both_nan, both_zero)
