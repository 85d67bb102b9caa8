"""What can be fuzzed besides passes: each kind of transformation has a door, and all doors have one protocol.

    made = door.program(number, size)               a program of a number, and its inputs
    wrong = door.judge(made, inputs, number, seen)  what the transformation makes of it that is wrong, if anything
    door.write(found, size, path, seconds)          the program, reduced, with the component that is at fault

A door is used by `gcomp fuzz --what NAME`, by the property tests, and by the judges of mutants: what is measured is
what a user gets. `gcomp.testing.fuzz.doors` lists them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.dims import Ranges, bind, symbol, symbols_of
from gcomp.errors import GcompError, UnsupportedError, UsageError, VerificationError
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, shape_of, tensor, tensor_of
from gcomp.ir.walking import inputs_of as read_by
from gcomp.passes.base import Pass, PassContext
from gcomp.reference.interpreter import Interpreter
from gcomp.testing.fuzz.coverage import Coverage, Found, Undefined
from gcomp.testing.fuzz.numbers import program_at
from gcomp.testing.reduce import Progress, op_count, reduce_program
from gcomp.testing.reduce.casefile import case_text, read_inputs, write_inputs
from gcomp.testing.reduce.record import record_values, recorded_inputs
from gcomp.testing.reduce.signature import set_outputs

Array = np.ndarray[Any, Any]
Report = Callable[[Progress], object]
Prepared = tuple[Callable[[], object], frozenset[str]]
"""What to run of a program's transformation, and the words that a program has to do with: its ops, its operators."""

NOTHING_WRONG = "nothing is wrong"
"""What `gcomp fuzz --case` prints of a program that is judged right."""

MAX_STEPS = 200_000
"""The ops of one run of the reference: a loop that goes on longer says nothing."""


@dataclass(frozen=True)
class Wrong:
    """What is wrong: its kind, a detail that tells it from others of the kind, what to say, and who is at fault."""

    kind: str
    message: str
    detail: str = ""
    blamed: str = ""


def wrong_step(step: Pass, program: Program) -> Wrong | None:
    """Run a pass on a program: what is wrong if it crashes, or leaves what does not verify. Raises UnsupportedError."""
    try:
        step.run(program, PassContext())
        program.verify(f"after {step.name}")
    except UnsupportedError:
        raise
    except VerificationError as error:
        return Wrong("invalid", str(error), blamed=step.name)
    except Exception as error:  # whatever a pass makes of it
        return Wrong("crash", f"{type(error).__name__}: {error}", type(error).__name__, step.name)
    return None


@dataclass
class Seen:
    """Coverage of a judge: the components that it checked, and why it skipped others."""

    components: Counter[str] = field(default_factory=Counter[str])


class Door(ABC):
    """A kind of transformation that can be fuzzed."""

    name: ClassVar[str]
    summary: ClassVar[str]
    components: ClassVar[str] = "components"
    """What it is made of, in the plural: a table counts the programs that each was held to something on."""

    def missing(self) -> str:
        """Why it cannot be tried here, as where a library is not installed; empty where it can."""
        return ""

    def expected(self) -> Sequence[str]:
        """The components that programs should reach: those that were not are named at the end."""
        return ()

    looks: ClassVar[bool] = True
    """Whether transforming costs much less than judging, so that looking first is worth it."""
    varies: ClassVar[bool] = True
    """Whether a number may ask for variations of its program (`gcomp.testing.fuzz.numbers`)."""

    @abstractmethod
    def attempt(self, number: int, size: int, coverage: Coverage) -> Found | None:
        """Try the program of a number; what goes wrong, if anything does."""

    def topic(self, number: int) -> str:
        """What the program of a number is around, which is cheaply known; empty where it is not."""
        return ""

    def prepare(self, number: int, size: int) -> Prepared:
        """Make the program of a number. What is given transforms it, with as little of the judging as can be."""
        return partial(self.attempt, number, size, Coverage()), frozenset()

    @abstractmethod
    def write(self, found: Found, size: int, path: Path, seconds: float, report: Report | None = None) -> Path:
        """Reduce what was found, and write it; the file that was written, `path` with a suffix."""

    @abstractmethod
    def again(self, path: Path, number: int) -> str:
        """Judge what `write` wrote for a number; what is wrong, empty for nothing. UsageError for another file."""


@dataclass(frozen=True)
class Case:
    """A program of a number made small, how many ops it had, values of a run on failing inputs, and what is said."""

    number: int
    before: int
    program: Program
    known: Mapping[str, Array]
    message: str


class Judge(ABC):
    """Judges programs: finds what is wrong with the result, the op at fault, and a smaller failing program."""

    name: ClassVar[str]

    @abstractmethod
    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        """What the transformation makes of a program that is wrong, if anything. The program stays as it is.

        Choices beyond the program and its inputs come from the number. Raises Undefined for a program that says
        nothing, GcompError for one that the reference refuses, and UnsupportedError for one that is not taken.
        """

    def component(self, op: Operation) -> str:
        """What of the transformation has to do with an op, by name; empty for none."""
        return op.name

    def said(self, wrong: Wrong, blamed: str) -> str:
        """What to say of a failure."""
        return f"{self.name}: {wrong.message}" + (f"\n  at fault: {blamed}" if blamed else "")

    def wrong(self, program: Program, inputs: Sequence[Array], number: int) -> Wrong | None:
        """What is wrong; nothing, too, where the program says nothing or is refused."""
        try:
            return self.judge(program, inputs, number, Seen())
        except (GcompError, Undefined):
            return None

    def shows(self, program: Program, inputs: Sequence[Array], number: int, wrong: Wrong) -> bool:
        """Whether a program is wrong in the same way."""
        found = self.wrong(program, inputs, number)
        return found is not None and (found.kind, found.detail) == (wrong.kind, wrong.detail)

    def singles(self, program: Program, inputs: Sequence[Array]) -> Iterator[tuple[Operation, Program, list[Array]]]:
        """The ops of main, each as a program of its own on what it was given in a run."""
        known: dict[SSAValue, Any] = dict(zip(program.block.args, inputs, strict=True))
        ports = zip(program.inputs(), inputs, strict=True)
        sizes = bind([(s, n, port.name) for port, x in ports for s, n in zip(port.shape, x.shape, strict=True)],
                     program.ranges)  # fmt: skip

        def look(op: Operation, results: Sequence[Any]) -> None:
            known.update(zip(op.results, results, strict=True))

        with suppress(GcompError), np.errstate(all="ignore"):
            Interpreter(program, observer=look, max_steps=MAX_STEPS).run(inputs)
        for op in [*program.block.ops][:-1]:
            if op.operands or op.regions:
                with suppress(GcompError, LookupError, TypeError):
                    single, values, names = alone(program, op)
                    arrays = [np.asarray(known[v]) for v in values]
                    yield op, single, [*arrays, *(np.zeros(sizes[name], np.bool_) for name in names)]

    def blamed(self, program: Program, inputs: Sequence[Array], number: int, wrong: Wrong) -> str:
        """The component that is wrong on one op by itself, the first of them; else that of the first op whose value is
        wrong; else those of the whole program, if they are few."""
        for op, single, given in self.singles(program, inputs):
            if self.component(op) and self.shows(single, given, number, wrong):
                return self.component(op)
        for i, op in enumerate([*program.block.ops][:-1]):
            if self.component(op) and self.shows(up_to(program, i), inputs, number, wrong):
                return self.component(op)
        names = sorted({self.component(op) for op in program.block.ops if op.operands} - {""})
        return " + ".join(names) if len(names) <= _FEW else ""

    def reduced(
        self, program: Program, inputs: Sequence[Array], number: int, seconds: float, report: Report | None = None
    ) -> Case:
        """A program made small on which the same is wrong. The values of the program get names."""
        before = op_count(program)
        wrong = self.wrong(program, inputs, number)
        if wrong is None:  # it ended a worker, and is not made again here
            named = {port.name: array for port, array in zip(program.inputs(), inputs, strict=True)}
            return Case(number, before, program, named, "")
        for op, single, given in self.singles(program, inputs):
            if self.component(op) and self.shows(single, given, number, wrong):
                program, inputs = single, given
                break
        known = record_values(program, inputs)

        def interesting(candidate: Program) -> bool:
            arrays = recorded_inputs(candidate, known)
            return arrays is not None and self.shows(candidate, arrays, number, wrong)

        with suppress(UsageError):
            program = reduce_program(program, interesting, seconds=max(1.0, seconds), report=report)
        if (given := recorded_inputs(program, known)) is not None:  # none at all where it has no inputs any more
            inputs = given
        again = self.wrong(program, inputs, number) or wrong
        blamed = again.blamed or self.blamed(program, inputs, number, again)
        return Case(number, before, program, known, self.said(again, blamed))

    def write_case(self, case: Case, path: Path, said: Sequence[str] = ()) -> Path:
        """Write a case and its inputs, with the command that judges it again."""
        lines = [f"Number {case.number}: {case.before} ops became {op_count(case.program)}.", *said,
                 *case.message.splitlines()]  # fmt: skip
        run = f"gcomp fuzz --what {self.name} --case %s --seed {case.number} | filecheck %s"
        path = path.with_suffix(".mlir")
        path.write_text(case_text(case.program, run, lines, check=f"CHECK: {NOTHING_WRONG}"), "utf-8")
        write_inputs(path.with_suffix(".npz"), case.program, case.known)
        return path

    def judged_again(self, path: Path, number: int, inputs: Callable[[Program], list[Array]] | None = None) -> str:
        """What is wrong with the case of a file, on the inputs beside it (or made ones); empty for nothing."""
        try:
            program = Program.parse(path.read_text("utf-8"), path.name)
            given = read_inputs(path.with_suffix(".npz"), program)
            if given is None and inputs is not None:
                given = inputs(program)
            if given is None:
                raise UsageError(f"there are no inputs beside {path}", fix=f"{path.with_suffix('.npz')} holds them")
            wrong = self.judge(program, given, number, Seen())
        except (OSError, KeyError, ValueError) as error:
            raise UsageError(f"{path} is no case", why=f"{type(error).__name__}: {error}") from None
        except Undefined as error:
            raise UsageError(f"{path} says nothing of {self.name}", why=str(error)) from None
        return "" if wrong is None else self.said(wrong, wrong.blamed or self.blamed(program, given, number, wrong))


class ProgramDoor(Judge, Door):
    """A door whose programs are gcomp's own: reduced op by op, and blamed on the op that is wrong by itself."""

    @abstractmethod
    def program(self, number: int, size: int) -> Program:
        """The program of a number."""

    @abstractmethod
    def inputs(self, number: int, program: Program) -> list[Array]:
        """Inputs of a number for any program. InputError where there are none."""

    def made(self, number: int, size: int, *, keep: bool = False) -> Program:
        """The program of a number that may ask for variations."""
        return program_at(number, (self.name, size), lambda base: self.program(base, size), keep=keep)

    def transform(self, program: Program, number: int) -> object:
        """What is done to a program, without judging it where these can be told apart."""
        return self.judge(program, self.inputs(number, program), number, Seen())

    def prepare(self, number: int, size: int) -> Prepared:
        program = self.made(number, size, keep=True)
        return partial(self.transform, program, number), words_of(program)

    def attempt(self, number: int, size: int, coverage: Coverage) -> Found | None:
        program = self.made(number, size)
        coverage.saw(program.ops())
        seen = Seen()
        try:
            inputs = self.inputs(number, program)
            wrong = self.judge(program, inputs, number, seen)
        except UnsupportedError as error:
            coverage.unsupported[error.why or error.what] += 1
            return None
        except (GcompError, Undefined):
            coverage.refused += 1
            return None
        coverage.rules.update(seen.components.keys())
        if wrong is None:
            return None
        blamed = wrong.blamed or self.blamed(program, inputs, number, wrong)
        return Found(number, (self.name, wrong.kind, wrong.detail, blamed), self.said(wrong, blamed))

    def write(self, found: Found, size: int, path: Path, seconds: float, report: Report | None = None) -> Path:
        end, best = time.monotonic() + seconds, None
        for number in (found.number, *found.others):
            if best is not None and (op_count(best.program) <= _FEW or time.monotonic() >= end):
                break
            program = self.made(number, size)
            case = self.reduced(program, self.inputs(number, program), number, end - time.monotonic(), report)
            best = case if best is None or op_count(case.program) < op_count(best.program) else best
        assert best is not None
        return self.write_case(best, path)

    def again(self, path: Path, number: int) -> str:
        return self.judged_again(path, number, lambda program: self.inputs(number, program))


_FEW = 5


def words_of(program: Program) -> frozenset[str]:
    """The names of a program's ops, as source has them."""
    return frozenset(type(op).__name__ for op in program.ops())


def alone(program: Program, op: Operation) -> tuple[Program, list[SSAValue], list[str]]:
    """An op of main as a program of its own; the values that its first inputs stand for, and the symbols of the others:
    inputs of no other use, one for each symbol, say how large sizes are."""
    values = [*dict.fromkeys(read_by(op))]
    single = Program.empty([(f"x{i}", tensor_of(v)) for i, v in enumerate(values)])
    shapes = [shape_of(v) for v in (*values, *op.results) if is_tensor(v.type)]
    names = sorted({name for shape in shapes for size in shape for name in symbols_of(size)})
    for name in names:
        single.add_input(f"size_{name}", tensor((symbol(name),), "i1"))
    single.ranges = Ranges({name: program.ranges[name] for name in names})
    called = [f.clone() for f in program.functions() if f is not program.main]
    single.module.body.block.add_ops(called)
    copy = op.clone(dict(zip(values, single.block.args, strict=False)))
    copy.location = op.location
    single.block.add_op(copy)
    single.finish([(f"r{i}", result) for i, result in enumerate(copy.results)])
    single.verify("alone")
    return single, values, names


def up_to(program: Program, place: int) -> Program:
    """The program that returns what one op of main gives; what is dead then stays."""
    cut = program.clone()
    results = [*cut.block.ops][place].results
    set_outputs(cut, [(f"r{i}", result) for i, result in enumerate(results)])
    return cut
