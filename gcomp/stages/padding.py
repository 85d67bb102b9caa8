"""From what a user says of buckets to a padded program."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gcomp.dims import Range
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.host import HostOp
from gcomp.ir.locations import where
from gcomp.ir.program import Program
from gcomp.options import Buckets, Options
from gcomp.runtime.engine import Ability
from gcomp.runtime.plan import MAX_BUCKETS, Bucketing, Plan
from gcomp.stages.base import Stage
from gcomp.targets.base import Target


class Padding(Stage):
    """Pads a program's symbols to buckets, and says so in its plan."""

    def __init__(self, options: Options, target: Target) -> None:
        self.buckets, self.target = options.buckets or {}, target
        self._found: dict[str, Bucketing] = {}

    def before_passes(self, program: Program) -> None:
        """Raises UsageError, UnsupportedError."""
        self.target.require(Ability.BUCKETS)
        self._found = pad_to_buckets(program, self.buckets)

    def on_plan(self, plan: Plan, program: Program) -> Plan:
        return replace(plan, buckets=dict(self._found))


def pad_to_buckets(program: Program, buckets: Buckets) -> dict[str, Bucketing]:
    """Pad a program's symbols to buckets; what its plan says of them. Raises UsageError, UnsupportedError."""
    from gcomp.padding.programs import input_of, pad_program  # few models have buckets, and it has a row for each op

    if any(port.state is not None for port in program.inputs()):
        raise UnsupportedError("a program with a state has no buckets", fix="give the symbols of a training step sizes")
    host = next((op for op in program.ops() if isinstance(op, HostOp) and op.symbols), None)
    if host is not None:
        raise UnsupportedError(
            "a program with sizes that depend on data has no buckets", where=where(host), fix="compile it without them"
        )
    found = {name: Bucketing(_sizes(program, name, sizes), input_of(name)) for name, sizes in buckets.items()}
    count = 1
    for bucketing in found.values():
        count *= len(bucketing.sizes)
    if count > MAX_BUCKETS:
        raise UsageError(f"there are {count} combinations of buckets, and may be {MAX_BUCKETS}")
    _check_constraints(program, found)
    structure = program.argument_structure
    pad_program(program, list(found), {name: bucketing.sizes[-1] for name, bucketing in found.items()})
    # Callers do not give the lengths, and so their arguments are arranged as before.
    program.argument_structure = structure
    return found


def _sizes(program: Program, name: str, sizes: Sequence[int]) -> tuple[int, ...]:
    known = program.ranges[name]
    try:
        found = tuple(sorted({operator.index(size) for size in sizes}))
    except TypeError:
        raise UsageError(
            f"the buckets of {name!r} are no sizes: {sizes!r}",
            fix=f"write buckets={{{name!r}: [32, 64, 128]}}; gcomp.padding.buckets.choose_buckets finds the best ones",
        ) from None
    if not found:
        raise UsageError(f"there are no buckets for {name!r}", fix="name the sizes to pad to")
    if bad := [size for size in found if size not in known]:
        raise UsageError(
            f"the bucket {bad[0]} of {name!r} is outside of its range, {known}",
            fix=f"choose sizes in the range, or widen it: dims={{{name!r}: ...}}",
        )
    return found


def _check_constraints(program: Program, buckets: Mapping[str, Bucketing]) -> None:
    """Refuse buckets that break what the program asks of its sizes, as far as one symbol decides it."""
    for name, bucketing in buckets.items():
        for constraint in program.constraints:
            if constraint.symbols == frozenset((name,)):
                for size in bucketing.sizes:
                    if (why := constraint.check({name: size})) is not None:
                        raise UsageError(f"the bucket {size} of {name!r} is not a size that the model takes", why=why)


def within_buckets(program: Program, buckets: Buckets) -> Program:
    """The program with ranges that end at the greatest bucket."""
    kept = {name: program.ranges[name] for name in buckets}
    program.ranges = program.ranges.with_ranges(
        {name: Range(r.lo, max(buckets[name]), r.multiple_of) for name, r in kept.items()}
    )
    return program
