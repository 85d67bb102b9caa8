"""What each pass of a compilation did, noted while it runs: time, rewrites, ops, bytes, peak, errors, differences."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from gcomp.analysis.liveness import block_peak
from gcomp.analysis.work import Nominal, flops_of
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.judging import MAX_STEPS
from gcomp.passes.manager import Instrument
from gcomp.reference.contract import compare
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.sizes import symbols_in
from gcomp.reference.wider import WiderInterpreter, interpret_wider
from gcomp.report.lines import Lines, ops_in_order

WORST = 1e300
"""The error where classes differ: a NaN, an infinity, another integer. A number that JSON has."""

ERROR_FLOPS = 20_000_000
"""The reference runs programs of so much work after every pass that changed them; larger ones only if asked."""

SECONDS = 1.5
"""So long may the reference take, where nobody asks for more."""

_UNCOUNTED = (Role.SOURCE, Role.GENERATOR)


@dataclass
class Size:
    """How large a program is: ops, bytes of all results, and the most bytes of results alive at a time."""

    ops: int
    bytes: int
    peak: int | None


@dataclass
class Snapshot:
    """The ops of a program in order, each with its line."""

    ops: list[Operation]
    lines: list[int]
    tops: dict[Operation, tuple[Operation, ...]]
    """For each op of the main block what made its operands, those of its regions included."""
    users: dict[Operation, list[Operation]] = field(default_factory=dict[Operation, list[Operation]])

    @cached_property
    def line(self) -> dict[Operation, int]:
        """The line of each op, as it was then: an op that is gone has no operands any more."""
        return dict(zip(self.ops, self.lines, strict=True))

    @cached_property
    def place(self) -> dict[Operation, int]:
        """The position of each op of the main block."""
        return {op: n for n, op in enumerate(self.tops)}


@dataclass
class Difference:
    """A diff of the ops before and after a pass: each line kept (" "), removed ("-") or new ("+"), and the new ops."""

    rows: list[tuple[str, int]]
    removed: list[Operation]
    added: list[Operation]


@dataclass
class Change:
    """The program before and after a pass that changed it, and the difference."""

    old: Snapshot
    new: Snapshot
    difference: Difference


@dataclass
class PassRecord:
    """What one run of a pass did."""

    name: str
    law: str
    level: str
    seconds: float
    changed: bool
    rewrites: list[tuple[str, str]]
    before: Size
    after: Size
    verdict: str = ""
    meaning: str = ""
    """Whether the outputs are the same to the bit, within the pass's class of exactness, or wrong; "" where unknown."""
    error: float | None = None
    """The largest error of an output against float64, relative to that output's largest element."""
    change: Change | None = None
    old_errors: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    new_errors: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    """The error of each op's first result before and after, as `error`, against the same program in float64."""
    module: str = ""
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    """The rewrites that the pattern driver was given, by name; `module` is the pass's."""


class Recorder(Instrument):
    """Watches passes. `started` is called with the program before the first, `before_kernels` before it is cut."""

    def __init__(
        self, started: Callable[[Program], object], before_kernels: Callable[[Program], object], *, errors: bool
    ) -> None:
        """With `errors` the reference runs the program after every pass, however long that takes."""
        self.lines = Lines()
        self.passes: list[PassRecord] = []
        self.error_note = ""
        """Why errors are not known, where they are not."""
        self._started, self._before_kernels, self._always = started, before_kernels, errors
        self._rewrites: list[tuple[str, str]] = []
        self._context = PassContext()
        self._snapshot: Snapshot | None = None
        self._size: Size | None = None
        self._is_graph = True
        self._inputs: list[Any] | None = None
        self._exact: list[Any] = []
        self.value_errors: Mapping[Operation, float] = {}
        """The error of each op's first result in the program as it is now, as far as it is known."""
        self._outputs: list[Any] | None = None
        """What the program gave last; None where the reference does not run it."""
        self._running = 0.0
        self.first_error: float | None = None

    def begin(self, context: PassContext) -> None:
        self._context = context
        context.watchers.append(lambda rule, where: self._rewrites.append((rule, where)))

    def before(self, step: Pass, program: Program) -> None:
        if self._snapshot is None:
            self._begin_errors(program)
            self._started(program)
            self._snapshot, self._size = snapshot(program, self.lines), size_of(program)
        if self._is_graph and step.level != "graph":
            self._is_graph = False
            self._before_kernels(program)
        self._rewrites = []

    def after(self, step: Pass, program: Program, changed: bool, seconds: float) -> None:
        assert self._size is not None and self._snapshot is not None, "a pass runs before it is done"
        law = (type(step).__doc__ or "").strip().partition("\n")[0]
        record = PassRecord(
            str(step.spec()), law, step.level, seconds, changed, list(self._rewrites), self._size, self._size,
            module=type(step).__module__, known=self._context.known,
        )  # fmt: skip
        self.passes.append(record)
        if not changed:
            return
        old, self._snapshot = self._snapshot, snapshot(program, self.lines)
        record.change = Change(old, self._snapshot, difference(old, self._snapshot))
        self._size = record.after = size_of(program)
        record.verdict = _verified(record.change.difference.added)
        before, record.old_errors = self._outputs, self.value_errors
        if before is not None and (found := self._run(program)) is not None:
            record.error = self._error(found)
            record.meaning = self._meaning(step.exactness, before, found)
            record.new_errors = self.value_errors

    def finish(self, program: Program) -> None:
        """After the last pass: what was not seen of it."""
        if self._snapshot is None:
            self._started(program)
            self._snapshot = snapshot(program, self.lines)
        if self._is_graph:
            self._before_kernels(program)

    # ---- verdicts ----

    def _begin_errors(self, program: Program) -> None:
        """Have inputs, and what is exact for them, where that is to be had."""
        nominal = Nominal(program.ranges)
        flops = sum(flops_of(op, nominal) for op in program.block.ops)
        if flops > ERROR_FLOPS and not self._always:
            self.error_note = f"errors are not measured: {flops:,} flops in the reference after each pass (--errors)"
            return
        try:
            self._inputs = sample_inputs(program)
            self._exact = interpret_wider(program, self._inputs, max_steps=MAX_STEPS)
        except GcompError as error:
            self.error_note = f"errors are not measured: {error}"
            return
        found = self._run(program)
        self.first_error = None if found is None else self._error(found)

    def _run(self, program: Program) -> list[Any] | None:
        """The outputs of the program; None, and a note, where the reference takes too long or refuses it."""
        self._outputs, self.value_errors = None, {}
        if self._running > SECONDS and not self._always:
            self.error_note = "errors are measured of the first passes only: the reference takes long (--errors)"
            return None
        started = time.perf_counter()
        try:
            self._outputs, self.value_errors = run_beside_exact(program, self._inputs or [])
        except GcompError as error:
            self.error_note = f"errors are not measured after {self.passes[-1].name if self.passes else ''}: {error}"
            return None
        finally:
            self._running += time.perf_counter() - started
        return self._outputs

    def _error(self, found: Sequence[Any]) -> float:
        return max([relative_error(x, y) for x, y in zip(self._exact, found, strict=True)], default=0.0)

    def _meaning(self, exactness: Exactness, before: Sequence[Any], found: Sequence[Any]) -> str:
        outputs = list(zip(before, found, self._exact, strict=True))
        if not any(compare(one, other, Exactness.E0) for one, other, _ in outputs):
            return "same bits"
        wrong = [m for one, other, exact in outputs for m in compare(one, other, exactness, wider=exact, limit=1)]
        return f"wrong: {wrong[0]}" if wrong else f"within {exactness.name}"


def _verified(ops: Sequence[Operation]) -> str:
    """Whether ops that are new, or changed, are valid by themselves; the whole program is verified at phase ends."""
    for op in ops:
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            return f"invalid: {op.name}: {error}"
    return "valid"


def run_beside_exact(program: Program, inputs: Sequence[Any]) -> tuple[list[Any], dict[Operation, float]]:
    """The outputs of a program, and for each op of its main block how far its first result is from float64's."""
    exact: dict[Operation, Any] = {}
    errors: dict[Operation, float] = {}

    def keep(op: Operation, results: Sequence[Any]) -> None:
        if op.parent is program.block and results and isinstance(results[0], np.ndarray):
            exact[op] = results[0]

    def judge(op: Operation, results: Sequence[Any]) -> None:
        if op in exact:
            errors[op] = relative_error(exact.pop(op), results[0])

    WiderInterpreter(program, observer=keep, max_steps=MAX_STEPS).run(inputs)
    return Interpreter(program, observer=judge, max_steps=MAX_STEPS).run(inputs), errors


def relative_error(exact: Any, found: Any) -> float:
    """The largest difference of finite elements, relative to the largest finite element; WORST where classes differ."""
    if exact.dtype.kind not in "fc" or not exact.size:
        return 0.0 if np.array_equal(exact, found) else WORST
    wide = np.asarray(found).astype(exact.dtype)
    finite = np.isfinite(exact)
    if not np.array_equal(exact[~finite], wide[~finite], equal_nan=True) or not np.isfinite(wide[finite]).all():
        return WORST
    if not finite.any():
        return 0.0
    return float(np.max(np.abs(exact[finite] - wide[finite])) / (np.max(np.abs(exact[finite])) or 1.0))


def snapshot(program: Program, lines: Lines) -> Snapshot:
    """The ops of the main function as they are now."""
    found = Snapshot([], [], {})
    top = program.block
    for op, depth in ops_in_order(top):
        found.ops.append(op)
        found.lines.append(lines.line(op, depth))
        if op.parent is top:
            sources = tuple([operand.owner for operand in op.operands if isinstance(operand.owner, Operation)])
            found.tops[op] = sources
            for source in sources:
                found.users.setdefault(source, []).append(op)
    return found


def size_of(program: Program) -> Size:
    """How large a program is now, at the largest sizes of its ranges."""
    nominal = Nominal(program.ranges)
    results = [result for op in program.block.ops if role_of(op) not in _UNCOUNTED for result in op.results]
    moved = sum(_bytes(result, nominal) for result in results)
    try:
        peak = block_peak(program.block, nominal.closed(symbols_in(program)))
    except GcompError:
        peak = None
    return Size(program.op_count(), moved, peak)


def _bytes(value: Any, nominal: Nominal) -> int:
    try:
        return nominal.bytes(value)
    except (GcompError, TypeError, AttributeError, AssertionError):
        return 0  # a token, a tuple


def difference(old: Snapshot, new: Snapshot) -> Difference:
    """What changed between two snapshots: an op is kept that is the same object, with the same line, in order."""
    at = {op: i for i, op in enumerate(new.ops)}
    same = [
        (i, j) for i, op in enumerate(old.ops) if (j := at.get(op)) is not None and old.lines[i] == new.lines[j]
    ]  # fmt: skip
    kept = _rising([j for _, j in same])
    pairs = [same[k] for k in kept]
    rows, removed, added = list[tuple[str, int]](), list[Operation](), list[Operation]()
    moved = {old.ops[i] for i, _ in same}
    i = j = 0
    for a, b in [*pairs, (len(old.ops), len(new.ops))]:
        rows += [("-", old.lines[k]) for k in range(i, a)]
        rows += [("+", new.lines[k]) for k in range(j, b)]
        removed += [op for op in old.ops[i:a] if op not in moved]
        added += [op for op in new.ops[j:b] if op not in moved]
        if a < len(old.ops):
            rows.append((" ", old.lines[a]))
        i, j = a + 1, b + 1
    return Difference(rows, removed, added)


def _rising(numbers: Sequence[int]) -> list[int]:
    """The positions of a longest rising subsequence."""
    ends, tails = list[int](), list[int]()
    before = [-1] * len(numbers)
    for k, number in enumerate(numbers):
        place = bisect_left(ends, number)
        before[k] = tails[place - 1] if place else -1
        if place == len(ends):
            ends.append(number)
            tails.append(k)
        else:
            ends[place], tails[place] = number, k
    found, k = list[int](), tails[-1] if tails else -1
    while k >= 0:
        found.append(k)
        k = before[k]
    return found[::-1]


__all__ = [
    "Difference",
    "PassRecord",
    "Recorder",
    "Size",
    "Snapshot",
    "difference",
    "relative_error",
    "size_of",
    "snapshot",
]
