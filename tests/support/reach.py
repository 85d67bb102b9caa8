"""Which classes of known compiler bugs a program and its inputs reach.

A class counts as reached where what triggers such a bug is really there when the reference runs the program (a NaN
does go through the maximum, the index is out of bounds), not merely the op. The classes stand in `bug_classes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.table import Array

Known = dict[SSAValue, Any]


@dataclass
class Run:
    """A program, its inputs, and the value that everything had (in loops: the last one)."""

    program: Program
    inputs: Sequence[Array]
    values: Known = field(default_factory=dict[SSAValue, Any])

    def __post_init__(self) -> None:
        values = self.values
        values.update(zip(self.program.block.args, self.inputs, strict=True))

        def observe(op: Operation, results: Sequence[Any]) -> None:
            values.update(zip(op.results, results, strict=True))

        self.outputs = Interpreter(self.program, observer=observe).run(self.inputs)

    @cached_property
    def ops(self) -> list[GraphOp]:
        """All ops of the graph level."""
        return [op for op in self.program.ops() if isinstance(op, GraphOp)]

    def of(self, *kinds: type[Operation]) -> Iterator[Any]:
        """The ops of some kinds."""
        return (op for op in self.ops if isinstance(op, kinds))

    def array(self, value: SSAValue) -> Array | None:
        """The value that an SSA value had; None for one that never was."""
        found = self.values.get(value)
        return cast(Array, found) if isinstance(found, np.ndarray) else None

    def operands(self, op: Operation) -> list[Array] | None:
        """The values of all operands, or None where one is not known."""
        found = [self.array(v) for v in op.operands]
        known = [a for a in found if a is not None]
        return known if len(known) == len(found) else None


Predicate = Callable[[Run], bool]


@dataclass(frozen=True)
class BugClass:
    """A class of bugs: its number in the collection of the field's bugs, what it is, and when a run reaches it."""

    number: int
    title: str
    reached: Predicate


CLASSES: list[BugClass] = []


def bug_class(number: int, title: str) -> Callable[[Predicate], Predicate]:
    """Register a class."""

    def register(predicate: Predicate) -> Predicate:
        CLASSES.append(BugClass(number, title, predicate))
        return predicate

    return register


def reached(run: Run) -> list[int]:
    """The numbers of the classes that a run reaches."""
    return [c.number for c in classes() if c.reached(run)]


def classes() -> list[BugClass]:
    """All classes, in the order of their numbers."""
    import_module("tests.support.bug_classes")
    return sorted(CLASSES, key=lambda c: c.number)
