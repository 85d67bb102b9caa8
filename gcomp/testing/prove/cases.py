"""Programs that contain a rule's left side: every type, attribute and way round, with symbolic sizes.

A case is a real program, built with gcomp's builder, in which the driver's own matcher has found the rule and its own
builder has made the right side. What a proof is about is therefore what the compiler does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Dim, Range, Ranges, Size
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.ir.types import ELEMENT_TYPES, compatible, element_of, rank_of, tensor
from gcomp.passes.rewriting import Pattern, build, match
from gcomp.testing.prove.choices import ANY, Prior, Row, Scope, Shape, Type, Want, row_of, symbols
from gcomp.testing.prove.unknown import UnknownBuilder, are_unknown, is_unknown

# ---- plans: typed left sides -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A free value."""

    name: str
    type: Type


@dataclass(frozen=True)
class Splat:
    """A constant that holds one number everywhere."""

    value: Any
    type: Type


@dataclass(frozen=True)
class Node:
    """An op; `turned` if its two operands stand in the other order."""

    op: type[GraphOp]
    operands: tuple[Plan, ...]
    properties: Mapping[str, Any] = field(hash=False)
    type: Type
    turned: bool = False


@dataclass(frozen=True)
class Imperative:
    """A pattern with one form of left side that it is looked at on."""

    name: str
    lhs: Op
    pattern: Pattern

    @property
    def exactness(self) -> Exactness:
        """The pattern's class."""
        return self.pattern.exactness


Subject: TypeAlias = Rule | Imperative
"""What can be looked at: what is said of a rule holds of all its left sides, of a pattern only of these."""

Plan: TypeAlias = Leaf | Splat | Node
Env: TypeAlias = Mapping[str, Any]

SAMPLED_CONSTANTS = (0, 1, 2, 3)
"""The constants that stand for a captured one; a rule that captures constants is not proved by them."""


def plans(rule: Subject, scope: Scope) -> Iterator[Node]:
    """Every left side of a rule within the scope."""
    for plan, _ in enumerate_plans(rule.lhs, ANY, {}, scope, "r"):
        if isinstance(plan, Node):
            yield plan


def enumerate_plans(term: Term, want: Want, env: Env, scope: Scope, path: str) -> Iterator[tuple[Plan, Env]]:
    """Every plan of a term that is as wanted, with what it captures; fresh sizes are named by `path`."""
    match term:
        case Var():
            yield from _leaf(term.name, want, env, scope)
        case Const():
            yield from ((plan, env) for plan in _constant(term, want, scope))
        case Op():
            yield from _op(term, want, env, scope, path)


def _leaf(name: str, want: Want, env: Env, scope: Scope) -> Iterator[tuple[Plan, Env]]:
    if name in env:
        if want.allows(env[name]):
            yield Leaf(name, env[name]), env
        return
    shapes = scope.shapes if want.shape is None else (want.shape,)
    for shape in shapes:
        # Sizes of unrelated values are unrelated symbols.
        own = tuple(dims.symbol(f"{name}_{s}") if isinstance(s, Dim) and want.shape is None else s for s in shape)
        type = Type(own, want.element or scope.element)
        yield Leaf(name, type), {**env, name: type}


def _constant(term: Const, want: Want, scope: Scope) -> Iterator[Plan]:
    values = SAMPLED_CONSTANTS if term.value is None else (term.value,)
    for shape, value in product(scope.shapes if want.shape is None else (want.shape,), values):
        yield Splat(value, Type(shape, want.element or scope.element))


def _op(term: Op, want: Want, env: Env, scope: Scope, path: str) -> Iterator[tuple[Plan, Env]]:
    row = row_of(term.op)
    if row is None:
        return
    # Constants come last: the other operands know their types.
    order = sorted(range(len(term.operands)), key=lambda i: (isinstance(term.operands[i], Const), i != row.first))
    for operands, inner in _operands(term, order, want, env, scope, path, {}):
        types = [operands[i].type for i in range(len(operands))]
        for properties, type in row.results(types, replace(scope, want=want), path):
            known = _bind(term, properties, inner)
            if known is None or not want.allows(type):
                continue
            given = tuple(operands[i] for i in range(len(operands)))
            yield Node(term.op, given, properties, type), known
            if term.commutes:
                yield Node(term.op, given[::-1], properties, type, True), known


def _operands(
    term: Op, order: Sequence[int], want: Want, env: Env, scope: Scope, path: str, done: Mapping[int, Plan]
) -> Iterator[tuple[Mapping[int, Plan], Env]]:
    row = row_of(term.op)
    if len(done) == len(order) or row is None:
        yield done, env
        return
    position = order[len(done)]
    prior: Prior = {i: p.type for i, p in done.items()}
    for wanted in row.wants(position, want, prior):
        for plan, inner in enumerate_plans(term.operands[position], wanted, env, scope, f"{path}{'abcd'[position]}"):
            yield from _operands(term, order, want, inner, scope, path, {**done, position: plan})


def _bind(term: Op, properties: Mapping[str, Any], env: Env) -> Env | None:
    """The environment with what the properties of a left side capture; None where they are not as it says."""
    for name, wanted in term.properties.items():
        value = properties.get(name)
        if not isinstance(wanted, Attr):
            if value != wanted:
                return None
        elif wanted.name not in env:
            env = {**env, wanted.name: value}
        elif env[wanted.name] != value:
            return None
    return env


# ---- scopes ------------------------------------------------------------------------------------------------------


def reads_types(rule: Subject) -> bool:
    """Whether a function of the rule is given a value, and so may look at its type."""
    if isinstance(rule, Imperative):
        return True
    attributes = {name for term in _ops(rule.lhs) for name in _captured_names(term)}
    functions = [rule.where, *_calcs(rule.rhs)]
    names = {n for f in functions if f is not None for n in f.needs}
    return not names <= attributes


def _ops(term: Term) -> Iterator[Op]:
    if isinstance(term, Op):
        yield term
        for operand in term.operands:
            yield from _ops(operand)


def _captured_names(term: Op) -> Iterator[str]:
    for value in term.properties.values():
        if isinstance(value, Attr):
            yield value.name


def _calcs(term: Term) -> Iterator[Calc]:
    if isinstance(term, Const) and isinstance(term.value, Calc):
        yield term.value
    for op in _ops(term):
        yield from (v for v in (*op.properties.values(), op.type) if isinstance(v, Calc))
        for operand in op.operands:
            if isinstance(operand, Const) and isinstance(operand.value, Calc):
                yield operand.value


MAX_RANK = 4
"""Shapes are enumerated to this rank."""


def scopes(rule: Subject, element: str, max_rank: int = MAX_RANK) -> Iterator[Scope]:
    """What is enumerated for one element type: one scope for each rank of the free values.

    Sizes are different symbols. Where the rule looks at types, sizes that are equal, or 0, 1 or 2, are enumerated too.
    """
    looks = reads_types(rule)
    for rank in range(max_rank + 1):
        shapes = tuple(_patterns(rank)) if looks else (symbols("n", rank),)
        yield Scope(shapes, element, max_rank, looks)


def _patterns(rank: int) -> Iterator[Shape]:
    """Shapes of a rank, up to renaming: which sizes are equal, and which are 1; small ranks with 0 and 2 as well."""
    n = symbols("n", rank)
    yield n
    if rank > 3:
        yield (n[0],) * rank
        return
    for unit_count in range(rank + 1):
        for units in combinations(range(rank), unit_count):
            for blocks in _partitions(rank - unit_count):
                names = iter(n[i] for i in blocks)
                shape = tuple(1 if i in units else next(names) for i in range(rank))
                if shape != n:
                    yield shape
    if rank in (1, 2):
        yield from (s for s in product((0, 1, 2), repeat=rank) if set(s) != {1})


def _partitions(count: int) -> Iterator[tuple[int, ...]]:
    """Restricted growth strings: each is one way to say which of `count` things are equal."""
    if count == 0:
        yield ()
        return
    for shorter in _partitions(count - 1):
        for block in range(max(shorter, default=-1) + 2):
            yield (*shorter, block)


# ---- programs ----------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A program in which a rule applied: the value that the left side computes, and what replaces it."""

    rule: Subject
    plan: Node
    program: Program
    before: SSAValue
    after: SSAValue | None
    """None where the right side could not be built, or has another type; `failure` says why."""
    failure: str
    leaves: Mapping[str, Type]
    symbols: tuple[str, ...]

    @property
    def bound(self) -> str:
        """What of the case's properties is only enumerated within limits; empty if nothing is."""
        if any(isinstance(t, Const) and t.value is None for op in _ops(self.rule.lhs) for t in op.operands):
            return f"captured constants are {', '.join(map(str, SAMPLED_CONSTANTS))} everywhere"
        return next((row.bound for _, row in self._sampled()), "")

    @property
    def is_unknown(self) -> bool:
        """Whether it is about unknown numbers."""
        return any(are_unknown(node.properties) for node in nodes(self.plan))

    @property
    def is_general(self) -> bool:
        """Whether all numbers that might be others are unknown, so that such a case stands for those within a bound."""
        sampled = [node for node, _ in self._sampled()]
        return bool(sampled) and all(are_unknown(node.properties) for node in sampled)

    def _sampled(self) -> Iterator[tuple[Node, Row]]:
        for node in nodes(self.plan):
            row = row_of(node.op)
            if row is not None and row.sampled(node.properties, [p.type for p in node.operands]):
                yield node, row

    def __str__(self) -> str:
        inputs = ", ".join(f"{name}: {type}" for name, type in self.leaves.items())
        return f"{inputs}; {plan_text(self.plan)}: {self.plan.type}"


def nodes(plan: Plan) -> Iterator[Node]:
    """The ops of a plan."""
    if isinstance(plan, Node):
        yield plan
        for operand in plan.operands:
            yield from nodes(operand)


def plan_text(plan: Plan) -> str:
    """A plan as people write it: `transpose(x, permutation=(1, 0))`."""
    match plan:
        case Leaf():
            return plan.name
        case Splat():
            return str(plan.value)
        case Node():
            operands = [plan_text(p) for p in plan.operands]
            properties = [f"{n}={_text(v)}" for n, v in plan.properties.items() if v is not None]
            return f"{plan.op.name.partition('.')[2]}({', '.join(operands + properties)})"


def _text(value: Any) -> str:
    return f"({', '.join(map(str, _items(value)))})" if type(value) is tuple else str(value)


def _items(values: Any) -> tuple[Any, ...]:
    return tuple(values)


def cases(rule: Subject, scope: Scope) -> Iterator[Case]:
    """Every case of a rule within a scope: left sides that are valid, and to which the rule applies."""
    for plan in plans(rule, scope):
        if (case := make_case(rule, plan)) is not None:
            yield case


def make_case(rule: Subject, plan: Node) -> Case | None:
    """The case of one left side; None where it is no valid program, or the rule does not apply to it."""
    leaves = dict(leaves_of(plan))
    try:
        program, before = left_side(plan, leaves)
        root = before.owner
        if not isinstance(root, Operation):
            return None
        rewrite = _rewriting(rule, root)
    except (VerifyException, dims.DimError, OverflowError):
        return None  # a constant that the element type does not hold is none of it
    except TypeError:
        if any(are_unknown(node.properties) for node in nodes(plan)):
            return None  # a condition that must know the numbers
        raise
    if rewrite is None:
        return None
    known = tuple(sorted(_symbols(plan)))
    old = set(program.block.ops)
    try:
        after = rewrite(UnknownBuilder(program, InsertPoint.before(root)))
        for op in program.block.ops:
            if op not in old and isinstance(op, GraphOp) and not is_unknown(op):
                op.verify_()
    except (VerifyException, GcompError, LookupError, ValueError, TypeError, AttributeError) as error:
        why = f"the right side cannot be built: {type(error).__name__}: {error}"
        return Case(rule, plan, program, before, None, why, leaves, known)
    if after is None:
        return None
    # Sizes that depend on unknown numbers are compared by the solver.
    alike = any(map(is_unknown, program.block.ops)) and rank_of(before) == rank_of(after)
    if not compatible(before.type, after.type) and not (alike and element_of(before) == element_of(after)):
        why = f"the type changes from {before.type} to {after.type}"
        return Case(rule, plan, program, before, None, why, leaves, known)
    return Case(rule, plan, program, before, after, "", leaves, known)


def _rewriting(rule: Subject, root: Operation) -> Callable[[Builder], SSAValue | None] | None:
    """What the driver would do at an op; None where it would do nothing."""
    if isinstance(rule, Rule):
        found = match(rule, root)
        return None if found is None else lambda b: build(rule.rhs, found.captured, b, root)
    if not rule.pattern.applies(root):
        return None

    def rewrite(b: Builder) -> SSAValue | None:
        values = rule.pattern.rewrite(root, b)
        return None if values is None else values[0]

    return rewrite


def leaves_of(plan: Plan) -> Iterator[tuple[str, Type]]:
    """The free values of a plan, as often as they occur."""
    if isinstance(plan, Leaf):
        yield plan.name, plan.type
    for operand in plan.operands if isinstance(plan, Node) else ():
        yield from leaves_of(operand)


def _symbols(plan: Plan) -> set[str]:
    found = {s for size in plan.type.shape for s in dims.symbols_of(size)}
    if isinstance(plan, Node):
        found |= {s for v in plan.properties.values() for s in _symbols_in(v)}
        for operand in plan.operands:
            found |= _symbols(operand)
    return found


def _symbols_in(value: Any) -> set[str]:
    if isinstance(value, Dim):
        return set(dims.symbols_of(value))
    return {s for v in _items(value) for s in _symbols_in(v)} if type(value) is tuple else set()


SIZES = "sizes"
"""An input without use, whose shape gives every symbol of a case its value when the case is run."""


def left_side(plan: Node, leaves: Mapping[str, Type]) -> tuple[Program, SSAValue]:
    """A program, still without outputs, that computes a left side, and its value."""
    inputs = [(name, tensor(type.shape, type.element)) for name, type in leaves.items()]
    names = sorted(_symbols(plan))
    sizes: list[Size] = [dims.symbol(name) for name in names]
    program = Program.empty([*inputs, (SIZES, tensor(sizes, "i1"))])
    program.ranges = Ranges({name: Range(0) for name in names})
    values = dict(zip(leaves, program.block.args, strict=False))
    b = UnknownBuilder(program)
    return program, _emit(plan, values, b)


def _emit(plan: Plan, values: Mapping[str, SSAValue], b: Builder) -> SSAValue:
    match plan:
        case Leaf():
            return values[plan.name]
        case Splat():
            return b.full(plan.type.shape, plan.value, ELEMENT_TYPES[plan.type.element])
        case Node():
            operands = [_emit(p, values, b) for p in plan.operands]
            types = (tensor(plan.type.shape, plan.type.element),)
            properties = {k: v for k, v in plan.properties.items() if v is not None}
            row = row_of(plan.op)
            regions = () if row is None else row.regions([p.type for p in plan.operands])
            value = b.emit(plan.op, *operands, types=types, regions=regions, **properties)
            if isinstance(value.owner, GraphOp) and not is_unknown(value.owner):
                value.owner.verify_()
            return value
