"""What a program computes on sets of inputs, to hold against it what a pass left; and how long that may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gcomp.dims import Size
from gcomp.errors import GcompError
from gcomp.exactness import Exactness
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.checking import Difference, difference, same_values
from gcomp.passes.compared import Compared
from gcomp.passes.structure import structure
from gcomp.reference.freedom import open_elements
from gcomp.reference.inputs import InputSet, Kind, input_sets, tells, with_more_draws
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.sizes import size_choices
from gcomp.reference.wider import WiderInterpreter

Array = np.ndarray[Any, Any]
Given = InputSet | Sequence[Array]
"""A set of inputs: one that is made up, or the arrays of a caller."""

MAX_STEPS = 200_000
"""Inputs that are made up may send a loop round for ever: a run of more ops than these says nothing."""
MOST_ELEMENTS = 1 << 20
"""Sets of inputs of more elements than these are left out where inputs are made up for generated programs."""
_MORE_SETS = 6
"""So many sets of inputs more than there are sizes serve a model."""
_FOR_MODELS: tuple[Kind, ...] = ("plain", "edges", "whole", "integers", "edges", "mixed")
_OPEN_RUNS = 48
"""Runs that it takes at most to find what a class leaves open."""
_NEW_SIZES = 12


class Budget:
    """How long a comparison on sets of inputs may take. The first is always made; the others together may take as long
    as the first did, or `seconds` where that is more; and no longer than `until`, a moment of `time.monotonic`. It is
    counted in processor time, so that a verdict does not depend on what else the machine does."""

    def __init__(self, seconds: float, until: float | None = None) -> None:
        self.seconds, self.until = seconds, until
        self._left: float | None = None
        self._first, self._elements = 0.0, 1

    def expected(self, elements: int, runs: int = 1) -> float | None:
        """How long so many runs on a set of inputs will take about; None where nothing is known yet."""
        return None if self._left is None else runs * self._first * max(1.0, elements / self._elements)

    def allows(self, elements: int, runs: int = 1) -> bool:
        """Whether there is time for it."""
        expected = self.expected(elements, runs)
        if expected is None or self._left is None:
            return True
        return expected <= self._left and (self.until is None or time.monotonic() + expected <= self.until)

    def renew(self) -> None:
        """Begin again, for another program."""
        self._left = None if self._left is None else max(self.seconds, self._first)

    def took(self, elements: int, seconds: float) -> None:
        """Note what a set of inputs took."""
        if self._left is None:
            self._first, self._elements, self._left = seconds, max(1, elements), max(self.seconds, seconds)
            return
        self._left -= seconds
        # The first run makes plans and imports what it needs: those that come after say better what a run takes.
        self._first = min(self._first, seconds / max(1.0, elements / self._elements))


class Reference:
    """What one program computes on sets of inputs, evaluated when it is asked for and kept.

    The program must not change. A set of inputs that the reference refuses is left out; where it refuses all of them,
    so does `usable`. Of a model of a user's, `max_steps` is None: the first set is run to its end.
    """

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Given] | Callable[[], Sequence[Given]],
        *,
        max_steps: int | None = MAX_STEPS,
        expected: Mapping[int, list[Array]] | None = None,
        budget: Budget | None = None,
        compared: Compared | None = None,
    ) -> None:
        self.program = program
        self.max_steps = max_steps
        self.budget = budget
        self.compared = compared if compared is not None else Compared()
        self._inputs = inputs
        self.ports = (program.inputs(), program.outputs())
        self._expected: dict[int, list[Array] | GcompError] = dict(expected or {})
        self.found: dict[int, list[Array]] = {}
        """What the program that was compared last computed."""
        self._wider: dict[int, list[Array]] = {}
        self._interpreters: dict[int | None, Interpreter] = {}

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """The program's structure, by which two programs are compared (`structure`)."""
        return structure(self.program)

    @cached_property
    def sets(self) -> list[Given]:
        """The sets of inputs; made when they are first asked for, where a function makes them."""
        return list(self._inputs() if callable(self._inputs) else self._inputs)

    @property
    def inputs(self) -> list[list[Array]]:
        """The arrays of all sets of inputs."""
        return [self.arrays(i) for i in range(len(self.sets))]

    def arrays(self, sample: int) -> list[Array]:
        """The arrays of a set of inputs."""
        given = self.sets[sample]
        return given.arrays if isinstance(given, InputSet) else list(given)

    def made(self, sample: int) -> InputSet | None:
        """A set of inputs, where it was made up."""
        given = self.sets[sample]
        return given if isinstance(given, InputSet) else None

    def elements(self, sample: int) -> int:
        """How many elements a set of inputs has."""
        given = self.sets[sample]
        return given.elements if isinstance(given, InputSet) else sum(np.size(array) for array in given)

    def steps(self, sample: int) -> int | None:
        """How many ops a run on a set of inputs may take."""
        made_up = sample > 0 and isinstance(self.sets[sample], InputSet)
        return MAX_STEPS if self.max_steps is None and made_up else self.max_steps

    def expected(self, sample: int) -> list[Array] | GcompError:
        """The outputs for a set of inputs, or why there are none."""
        if sample not in self._expected:
            steps = self.steps(sample)
            if steps not in self._interpreters:
                self._interpreters[steps] = Interpreter(self.program, max_steps=steps)
            try:
                self._expected[sample] = self._interpreters[steps].run(self.arrays(sample))
            except GcompError as error:
                self._expected[sample] = error
        return self._expected[sample]

    def wider(self, sample: int) -> list[Array]:
        """The outputs for a set of inputs, evaluated in wider precision."""
        if sample not in self._wider:
            interpreter = WiderInterpreter(self.program, max_steps=self.steps(sample))
            self._wider[sample] = interpreter.run(self.arrays(sample))
        return self._wider[sample]

    def usable(self) -> list[int]:
        """The sets of inputs that the reference can run. Raises its error for the last one where it can run none."""
        found = [i for i in range(len(self.sets)) if not isinstance(self.expected(i), GcompError)]
        if not found and self.sets and isinstance(last := self.expected(len(self.sets) - 1), GcompError):
            raise last
        return found

    def add_sizes(self, formulas: Iterable[Size]) -> range:
        """Add sets of inputs at sizes on both sides of where formulas change their sign; their numbers.

        None are added to a caller's own inputs.
        """
        start, known = len(self.sets), [one for one in self.sets if isinstance(one, InputSet)]
        formulas = list(formulas)
        if not formulas or not known or len(known) < start or not known[0].sizes:
            return range(start, start)
        seen = [one.sizes for one in known]
        new = [s for s in size_choices(self.program, formulas, most=2, ports=known[0].ports) if s not in seen]
        for i, sizes in enumerate(new[:_NEW_SIZES]):
            kind: Kind = "plain" if i % 2 else "mixed"
            self.sets.append(replace(known[0], kind=kind, sizes=sizes, seed=known[0].seed + start + i))
        return range(start, len(self.sets))

    def difference(
        self, exactness: Exactness, sample: int, run: Callable[[list[Array]], list[Array]]
    ) -> Difference | None:
        """How what `run` gives on a set of inputs differs from what the program does, by more than a class allows.

        A set that the reference refuses, or for which there is no time, is left out.
        """
        made, elements, budget = self.made(sample), self.elements(sample), self.budget
        if budget is not None and not budget.allows(elements):
            self.compared.left(made, "it would take too long")
            return None
        started = time.process_time()
        expected = self.expected(sample)
        if isinstance(expected, GcompError):
            self.compared.left(made, "the reference refuses it")
            return None
        try:
            actual = self.found[sample] = run(self.arrays(sample))
        except GcompError as error:
            return Difference("the result cannot be run", f"{error.what} ({error.where}; {error.why})")
        found = beyond(exactness, self, sample, expected, actual)
        if budget is not None:
            budget.took(elements, time.process_time() - started)
        self.compared.saw(made, expected)
        return found


def sets_for(step: Pass, program: Program, seed: int, *, most: int | None = None) -> list[InputSet]:
    """Sets of inputs of all kinds and sizes to judge a pass on (`gcomp.reference.inputs`); `most` of them at most."""
    return [one for one in input_sets(program, step.exactness, seed, most=most) if one.elements <= MOST_ELEMENTS]


def sets_for_model(program: Program, seed: int) -> list[InputSet]:
    """Sets of inputs to judge passes on a user's model on: plain ones at ordinary sizes first."""
    choices = size_choices(program)
    most = max(len(_FOR_MODELS), len(choices)) + _MORE_SETS * (len(choices) > 1)
    kinds: list[Kind] = [kind for kind in _FOR_MODELS if tells(kind, program.inputs())]
    return with_more_draws(input_sets(program, seed=seed, kinds=kinds, sizes=choices, most=most))


def beyond(
    exactness: Exactness, reference: Reference, sample: int, expected: Sequence[Array], actual: Sequence[Array]
) -> Difference | None:
    """How `actual` differs from what the program computes by more than a class of exactness allows, if it does."""
    ports, inputs, steps = reference.ports[1], reference.arrays(sample), reference.steps(sample)
    if same_values(ports, exactness, expected, actual):
        return None
    wider = reference.wider(sample) if exactness is Exactness.E2 else [None] * len(expected)
    found = difference(ports, exactness, expected, actual, wider)
    if found is None or exactness is Exactness.E0 or [a.shape for a in expected] != [a.shape for a in actual]:
        return found
    budget = reference.budget
    if sample and budget is not None and not budget.allows(reference.elements(sample), _OPEN_RUNS):
        reference.compared.left(reference.made(sample), "to find what its class leaves open would take too long")
        return None
    masks = open_elements(reference.program, exactness, inputs, expected, actual, max_steps=steps)
    if not any(mask.any() for mask in masks):
        return found
    held = [np.where(mask, old, new) if mask.any() else new
            for mask, old, new in zip(masks, expected, actual, strict=True)]  # fmt: skip
    return difference(ports, exactness, expected, held, wider)


__all__ = [
    "MAX_STEPS", "Budget", "Given", "Reference", "beyond", "sets_for", "sets_for_model",
]  # fmt: skip
