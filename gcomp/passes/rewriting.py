"""The pattern driver: applies rules and imperative patterns to a fixed point with one walk and a worklist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.analysis.constants import is_constant
from gcomp.errors import InternalError
from gcomp.exactness import Exactness
from gcomp.ir import locations
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import SIZE_PROPERTIES, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Const, Op, Rule, Term, Var
from gcomp.ir.types import compatible, shape_of, static_shape, tensor_of
from gcomp.passes.base import PassContext


class Pattern(ABC):
    """A rewrite that no `Rule` can say: it looks at `op` and returns the values that replace its results.

    `rewrite` builds with `b`, which inserts before `op`; it returns None, and has built nothing, if it does not apply.
    """

    name: ClassVar[str]
    roots: ClassVar[tuple[type[Operation], ...]]
    exactness: ClassVar[Exactness] = Exactness.E0

    @abstractmethod
    def rewrite(self, op: Any, b: Builder) -> Sequence[SSAValue] | None:
        """The values that replace the results of `op`, or None."""

    def applies(self, op: Any) -> bool:
        """A cheap look before `rewrite` is counted and tried; override where `rewrite` may build and then give up."""
        return True


Rewrite = Rule | Pattern


def apply_rewrites(program: Program, rewrites: Iterable[Rewrite], context: PassContext) -> bool:
    """Apply rewrites anywhere in the program until none applies; returns whether any did."""
    return _Driver(program, rewrites, context).run()


def most_rewrites(ops: int) -> int:
    """More rewrites than a pass that ends applies to a program of so many ops."""
    return 1000 + 50 * ops


class _Driver:
    def __init__(self, program: Program, rewrites: Iterable[Rewrite], context: PassContext) -> None:
        self.program, self.context = program, context
        self.by_root: dict[str, list[Rewrite]] = defaultdict(list)
        for rewrite in rewrites:
            if not context.takes(rewrite.exactness):
                continue
            context.known[rewrite.name] = rewrite
            roots = (rewrite.lhs.op,) if isinstance(rewrite, Rule) else rewrite.roots
            for root in roots:
                self.by_root[root.name].append(rewrite)
        self.candidates: dict[tuple[str, ...], list[Rewrite]] = {}
        """The name of an op, and of what computes each of its operands -> the rewrites that may match."""
        self.worklist: deque[Operation] = deque()
        self.queued: set[Operation] = set()
        self.changed = False
        self.applied = self.most = 0

    def run(self) -> bool:
        ops = list(self.program.ops())
        for op in ops:
            self.enqueue(op)
        self.most = most_rewrites(len(ops))
        while self.worklist:
            op = self.worklist.popleft()
            self.queued.discard(op)
            if op.parent is not None:
                self.visit(op)
        return self.changed

    def enqueue(self, op: Operation) -> None:
        if op.name in self.by_root and op not in self.queued:
            self.queued.add(op)
            self.worklist.append(op)

    def visit(self, op: Operation) -> None:
        if is_dead(op):
            self.erase(op)
            self.changed = True
            return
        for rewrite in self.candidates_for(op):
            try:
                applied = self.try_rewrite(rewrite, op)
            except Exception:
                self.context.failed = (rewrite.name, locations.where(op))
                raise
            if applied:
                self.changed = True
                return

    def candidates_for(self, op: Operation) -> Sequence[Rewrite]:
        """The rewrites that may match an op, by what defines its operands, which settles most attempts."""
        makers = _makers_of(op)
        key = (op.name, *makers)
        found = self.candidates.get(key)
        if found is None:
            found = self.candidates[key] = [
                rewrite
                for rewrite in self.by_root[op.name]
                if not isinstance(rewrite, Rule) or _may_match(rewrite.lhs, makers)
            ]
        return found

    def try_rewrite(self, rewrite: Rewrite, op: Operation) -> bool:
        before = op.prev_op
        if isinstance(rewrite, Rule):
            found = match(rewrite, op)
            if found is None or not self.context.allow(rewrite.name, locations.where(op)):
                return False
            b = Builder(self.program, InsertPoint.before(op))
            b.location = locations.fuse(o.location for o in found.ops if o is op or not is_constant(o))
            values: Sequence[SSAValue] | None = [build(rewrite.rhs, found.captured, b, op)]
        else:
            if self.context.exhausted or not rewrite.applies(op):
                return False
            b = Builder(self.program, InsertPoint.before(op))
            b.location = op.location
            values = rewrite.rewrite(op, b)
            if values is None or not self.context.allow(rewrite.name, locations.where(op)):
                return False
        self.context.classes[rewrite.name] = rewrite.exactness
        self.applied += 1
        if self.applied > self.most:
            raise InternalError(
                "the rewrites do not end", where=locations.where(op),
                why=f"{rewrite.name} is the last of {self.applied} that were applied",
            )  # fmt: skip
        self.replace(rewrite.name, op, values, before)
        return True

    def replace(self, name: str, op: Operation, values: Sequence[SSAValue], before: Operation | None) -> None:
        for old, new in zip(op.results, values, strict=True):
            if not compatible(old.type, new.type):
                raise InternalError(
                    f"the rewrite {name} changed a type from {old.type} to {new.type}", where=locations.where(op)
                )
        self._enqueue_new(op, before)
        for old, new in zip(op.results, values, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            users = [use.operation for use in old.uses]
            # Users of users, too: a rewrite may look at what makes the operand of an operand.
            for user in [*users, *(use.operation for u in users for result in u.results for use in result.uses)]:
                self.enqueue(user)
            old.replace_all_uses_with(new)
            if isinstance(new, OpResult):
                self.enqueue(new.op)
        self.erase(op)

    def _enqueue_new(self, op: Operation, before: Operation | None) -> None:
        block = op.parent
        current = before.next_op if before is not None else (block.first_op if block is not None else None)
        while current is not None and current is not op:
            for inner in current.walk():
                self.enqueue(inner)
            current = current.next_op

    def erase(self, op: Operation) -> None:
        """Erase an op, and then the ops that only it used."""
        pending = [op]
        while pending:
            current = pending.pop()
            # What its regions use from outside loses a user too.
            users = dict.fromkeys(current.walk() if current.regions else (current,))
            found = dict.fromkeys(v.op for user in users for v in user.operands if isinstance(v, OpResult))
            owners = [owner for owner in found if owner not in users]
            for owner in owners:
                self.enqueue(owner)
            values = dict.fromkeys(v for user in users for v in user.operands)
            Rewriter.erase_op(current, safe_erase=False)
            for value in values:
                # Some rewrites ask that an operand has no other user.
                if (last := value.get_user_of_unique_use()) is not None:
                    self.enqueue(last)
            pending += [o for o in owners if o.parent is not None and is_dead(o)]


def is_dead(op: Operation) -> bool:
    """Whether nothing uses an op's results and running it has no effect."""
    return bool(op.results) and all(r.first_use is None for r in op.results) and is_side_effect_free(op)


# ---- matching ---------------------------------------------------------------------------------------------------


class Match:
    """What a left side captured: values by variable name, plain values by attribute name, and the matched ops."""

    def __init__(self) -> None:
        self.captured: dict[str, Any] = {}
        self.ops: list[Operation] = []

    def bind(self, name: str, value: Any) -> bool:
        """Capture a name; a name captured twice must mean the same."""
        if name in self.captured:
            known = self.captured[name]
            return known is value or (not isinstance(known, SSAValue | np.ndarray) and known == value)
        self.captured[name] = value
        return True


def match(rule: Rule, op: Operation) -> Match | None:
    """The match of a rule's left side at `op`, or None."""
    found = Match()
    if not _matches_op(rule.lhs, op, found):
        return None
    found.captured["root"] = op.results[0]
    if rule.where is not None and not rule.where(found.captured):
        return None
    return None if rule.profit is not None and not rule.profit(found.captured) else found


def _makers_of(op: Operation) -> list[str]:
    """For each operand the name of the op that computes it, empty where none does."""
    return [value.op.name if isinstance(value, OpResult) else "" for value in op.operands]


def _may_match(term: Op, makers: list[str]) -> bool:
    """A cheap look at what defines the operands of an op of the term's name, which settles most attempts."""
    if len(makers) != len(term.operands):
        return False
    return _fit(term.makers, makers) or (term.commutes and _fit(term.makers, makers[::-1]))


def _fit(wanted: Sequence[frozenset[str]], makers: Sequence[str]) -> bool:
    return all(not names or maker in names for names, maker in zip(wanted, makers, strict=True))


def _matches_op(term: Op, op: Operation, found: Match) -> bool:
    # The name first: to ask whether an op is of another class takes ten times as long.
    if op.name != term.op.name or not isinstance(op, term.op):
        return False
    operands = tuple(op.operands)
    if len(operands) != len(term.operands):
        return False
    for name, wanted in term.properties.items():
        # Sizes may be symbolic, which their attribute spells as text.
        actual = sizes_of(op.properties[name]) if name in SIZE_PROPERTIES else op.value(name)
        if not (found.bind(wanted.name, actual) if isinstance(wanted, Attr) else actual == wanted):
            return False
    found.ops.append(op)
    if not term.commutes:
        return _match_all(term.operands, operands, found)
    captured, ops = dict(found.captured), list(found.ops)
    if _match_all(term.operands, operands, found):
        return True
    found.captured, found.ops = captured, ops
    return _match_all(term.operands, operands[::-1], found)


def _match_all(terms: Sequence[Term], values: Sequence[SSAValue], found: Match) -> bool:
    return all(map(_matches_value, terms, values, repeat(found)))


def _matches_value(term: Term, value: SSAValue, found: Match) -> bool:
    match term:
        case Var():
            return found.bind(term.name, value)
        case Const():
            return _matches_constant(term, value, found)
        case Op():
            return isinstance(value, OpResult) and _matches_op(term, value.op, found)


def _matches_constant(term: Const, value: SSAValue, found: Match) -> bool:
    if term.value is not None and not _is_splat_of(term.value, value):
        return False
    if not term.name and term.value is not None:
        return True
    array = constant_value(value)
    return array is not None and (not term.name or found.bind(term.name, array))


def _is_splat_of(number: Any, value: SSAValue) -> bool:
    """Whether a value is an inline constant with elements, all of which are a number."""
    if not isinstance(value, OpResult):
        return False
    op = value.op
    if isinstance(op, hlo.BroadcastInDimOp):
        return shape_of(op.operand) == () and 0 not in shape_of(value) and _is_splat_of(number, op.operand)
    if not isinstance(op, hlo.ConstantOp):
        return False
    elements = op.elements_attr
    data, bits = elements.data.data, _bits_of(np.asarray(number), elements.dtype)
    # Zero's sign is part of the value: a rule that says 0.0 does not match -0.0.
    return bits is not None and data.startswith(bits) and data == bits * (len(data) // len(bits))


_BITS: dict[tuple[np.dtype[Any], bytes, np.dtype[Any]], bytes | None] = {}


def _bits_of(number: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bytes | None:
    """A number in an element type; None where it is another one there: f8E8M0FNU has no 0, and makes NaN of it."""
    key = number.dtype, number.tobytes(), dtype
    if key not in _BITS:
        converted, wide = number.astype(dtype), np.complex128
        holds = np.array_equal(converted.astype(wide), number.astype(wide), equal_nan=True)
        _BITS[key] = converted.tobytes() if holds else None
    return _BITS[key]


def constant_value(value: SSAValue) -> np.ndarray[Any, Any] | None:
    """The array of an inline constant, looking through broadcasts of a scalar; None when it is not one."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, hlo.ConstantOp):
        return op.elements_attr.array()
    if isinstance(op, hlo.BroadcastInDimOp) and shape_of(op.operand) == ():
        scalar, shape = constant_value(op.operand), static_shape(value)
        if scalar is not None:
            # A symbolic shape cannot be an array's; the scalar says as much.
            return scalar if shape is None else np.broadcast_to(scalar, shape)
    return None


def build(term: Term, captured: Mapping[str, Any], b: Builder, root: Operation) -> SSAValue:
    """Build a right side; `root` is the op it replaces."""
    match term:
        case Var():
            return captured[term.name]
        case Const():
            like = captured[term.like] if term.like else root.results[0]
            value = term.value(captured) if isinstance(term.value, Calc) else term.value
            return b.full_like(like, value)
        case Op():
            operands = [build(t, captured, b, root) for t in term.operands]
            properties: dict[str, Any] = {}
            regions: list[Region] = []
            if term.like:
                model: Operation = captured[term.like].owner
                properties |= model.properties
                regions += [region.clone() for region in model.regions]
            for k, v in term.properties.items():
                properties[k] = v(captured) if isinstance(v, Calc) else captured[v.name] if isinstance(v, Attr) else v
            return b.emit(term.op, *operands, types=_types(term, captured, root), regions=regions, **properties)


def _types(term: Op, captured: Mapping[str, Any], root: Operation) -> Sequence[Any] | None:
    if term.type is not None:
        return (term.type(captured),)
    return None if term.op.INFERS else (tensor_of(root.results[0]),)


__all__ = ["Match", "Pattern", "Rewrite", "apply_rewrites", "build", "constant_value", "is_dead", "match"]
