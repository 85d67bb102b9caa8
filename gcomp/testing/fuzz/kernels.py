"""Kernels for GPUs: programs cut into kernels, each held to what the graph means by a checker of a door's own.

What is judged is one kernel, as a program of its own: it is reduced by itself, and blamed on the op of it that is wrong
alone.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.ir import chlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.walking import captures
from gcomp.lowering.tiles.schedules import SCHEDULES, Scheduled, schedule
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.judging import MAX_STEPS
from gcomp.passes.pipelines import TO_FUSION
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.contract import Mismatch
from gcomp.reference.inputs import KINDS, InputSet
from gcomp.reference.sizes import size_choices
from gcomp.testing.fuzz.coverage import Coverage, Found
from gcomp.testing.fuzz.door import Door, Judge, Prepared, Report, Seen, Undefined, Wrong, alone, words_of
from gcomp.testing.fuzz.numbers import base_of, program_at
from gcomp.testing.generate.around import around, plain, topic_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.tiles import TileChecker, as_kernel, settings_for, with_sizes
from gcomp.testing.tiles import alone as kernel_alone

Array = np.ndarray[Any, Any]

CUT = f"{TO_FUSION},fuse"
"""What cuts a program into kernels."""
_SMALL = 0.75
"""How many kernels are scheduled in blocks so small that they take several."""
_PLAIN = 6
"""Of eight programs, this one holds one op and nothing else."""
_MAY_BE_REFUSED = ("scan", "cholesky", "triangular-solve", "batch-norm", "if", "case", "while", "call")
"""Steps that make what is no kernel of its own: a library's work, ops with regions of any ops in them."""
_TAKEN = ", which must be taken"
_KERNELS = 64
"""More kernels than a program has: each has a number of its own, from which its schedule is drawn."""


@cache
def _cut() -> Sequence[Pass]:
    return parse_pipeline(CUT)


class Checker(TileChecker):
    """Runs a program of kernels, and keeps the first kernel that is wrong, with what it was given."""

    def __init__(self, program: Program, number: int, seen: Seen) -> None:
        super().__init__(program, self._differs, self.scheduled, max_steps=MAX_STEPS)
        self.whole, self.seen = program, seen
        self._first, self._numbers = number, dict[LaunchOp, int]()
        self.unsupported: list[str] = []
        self.wrong: Wrong | None = None
        self.given: tuple[LaunchOp, Sequence[Array], Mapping[str, int]] | None = None
        self.number = number
        """Of the kernel that is wrong."""

    def scheduled(self, op: LaunchOp) -> Scheduled:
        """What a schedule makes of a kernel: in small blocks mostly."""
        random = self.random(op)
        settings = settings_for(op, random, self.least(op)) if random.random() < _SMALL else None
        return schedule(op, "kernel", self.ranges, settings)

    def transform(self, op: LaunchOp) -> object:
        """Do with a kernel what is judged, without judging it."""
        return self.scheduled(op)

    def random(self, op: LaunchOp) -> Random:
        """What a kernel's choices come from."""
        return Random(self._first + self._numbers.setdefault(op, len(self._numbers)))

    def least(self, op: LaunchOp) -> int:
        """The least side of tiles that are multiplied."""
        return 16

    def check(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        if self.wrong is not None:
            return
        fresh = op not in self._scheduled
        self.random(op)
        self.given, self.number = (op, args, sizes), self._first + self._numbers[op]
        try:
            self.judged(op, args, sizes, expected)
        except UnsupportedError as error:
            self.unsupported.append(_reason(error))
            return
        except Exception as error:  # what a schedule or the evaluator says is about the kernel
            self.wrong = Wrong("crash", self.of(op, str(error)), f"{op.kind_name} {type(error).__name__}")
            return
        if fresh:
            self.seen.components[op.kind_name] += 1

    def judged(self, op: LaunchOp, args: Sequence[Array], sizes: Mapping[str, int], expected: Sequence[Array]) -> None:
        """Hold a kernel to something: set `wrong` where it does not."""
        super().check(op, args, sizes, expected)

    def _differs(self, op: LaunchOp, mismatches: Sequence[Mismatch]) -> None:
        if mismatches:
            detail = mismatches[0].reason.partition(" ")[0]
            self.wrong = Wrong("meaning", self.of(op, "; ".join(map(str, mismatches))), f"{op.kind_name} {detail}")

    def refusal(self) -> Wrong | None:
        """What is wrong where nothing may be refused."""
        if self.wrong is None and self.unsupported and self.given is not None:
            self.wrong = Wrong("refused", self.of(self.given[0], f"refused: {self.unsupported[0]}"))
        return self.wrong

    def of(self, op: LaunchOp, message: str) -> str:
        """A message about a kernel."""
        return f"the {op.kind_name} kernel {op.label_name}: {message}"


def _reason(error: UnsupportedError) -> str:
    why = str(error.why or error).partition(";")[0]
    plain = why.startswith(("there is no schedule", "the tile level has no row")) or error.why is None
    return str(error).splitlines()[0] if plain else why


class OneKernel(Judge):
    """Judges a program as one kernel of a kind; of one that must be taken, a refusal is wrong."""

    def __init__(self, door: KernelDoor, kind: str, *, taken: bool = False) -> None:
        self.name, self.door, self.kind, self.taken = door.name, door, kind, taken  # type: ignore[misc]

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        checker = self.door.checker(as_kernel(program, self.kind), number, seen)
        checker.run(inputs)
        return checker.refusal() if self.taken else checker.wrong

    def component(self, op: Operation) -> str:
        return "" if isinstance(op, ReturnOp) else f"{op.name} in {self.kind} kernels"


class KernelDoor(Door):
    """A door of programs that are cut into kernels."""

    components: ClassVar[str] = "kinds of kernels"

    @abstractmethod
    def checker(self, program: Program, number: int, seen: Seen) -> Checker:
        """What runs a program and judges its kernels."""

    def expected(self) -> Sequence[str]:
        return [*SCHEDULES]

    def program(self, number: int, size: int) -> Program:
        """The program of a number: around what becomes one of the kinds of kernels, around any op, that alone, or
        random."""
        turn, kind = divmod(number, 8)
        if kind < 5:
            steps = STEPS_OF[[*STEPS_OF][(5 * turn + kind) % len(STEPS_OF)]]
            return around((5 * turn + kind) // len(STEPS_OF), Seeded(number), 4, steps=steps)
        if kind == _PLAIN:
            return plain(turn, Seeded(number))
        if kind < 7:
            return around(turn, Seeded(number), 4)
        return _write_program(turn // 2) if turn % 2 == 0 else seeded_program(number, size)

    def topic(self, number: int) -> str:
        turn, kind = divmod(number, 8)
        if kind < 5:
            name = [*STEPS_OF][(5 * turn + kind) % len(STEPS_OF)]
            return topic_of((5 * turn + kind) // len(STEPS_OF), STEPS_OF[name])
        return topic_of(turn) if kind < 7 else "random"

    def must_take(self, number: int) -> bool:
        """Whether it is wrong to refuse a kernel of the program of a number: it holds one op, and that is taken."""
        turn, kind = divmod(number, 8)
        return number == base_of(number) and kind == _PLAIN and topic_of(turn) not in _MAY_BE_REFUSED

    def made(self, number: int, size: int, *, keep: bool = False) -> Program:
        """The program of a number that may ask for variations."""
        return program_at(number, (self.name, size), lambda base: self.program(base, size), keep=keep)

    def prepare(self, number: int, size: int) -> Prepared:
        program = self.made(number, size, keep=True)
        return partial(self._schedule, program, number), words_of(program)

    def _schedule(self, program: Program, number: int) -> None:
        """Cut a program into kernels, and schedule these."""
        program = self.in_kernels(program)
        checker = self.checker(program, number * _KERNELS, Seen())
        for op in program.ops():
            if isinstance(op, LaunchOp):
                with suppress(GcompError):
                    checker.transform(op)

    def in_kernels(self, program: Program) -> Program:
        """A program cut into kernels. Raises GcompError for one that the passes refuse."""
        scan = next((op for op in program.block.ops if isinstance(op, chlo.ScanOp)), None)
        if scan is not None and not captures(scan):  # passes expand it: it is a kernel by itself, or none
            return as_kernel(alone(program, scan)[0], "scan")
        for step in _cut():
            step.run(program, PassContext())
        return program

    def cut(self, number: int, size: int) -> tuple[Program, list[Array]]:
        """The program of a number, cut into kernels, and inputs. Raises GcompError for one that the passes refuse."""
        program = self.in_kernels(self.made(number, size))
        return program, self.inputs(number, program)

    def inputs(self, number: int, program: Program) -> list[Array]:
        """Inputs of every kind, at sizes where something changes."""
        sizes = Seeded(number).chosen(size_choices(program))
        return InputSet(KINDS[number % len(KINDS)], sizes, tuple(program.inputs()), number).arrays

    def run(self, number: int, size: int, seen: Seen) -> Checker:
        """Run each kernel of the program of a number. Raises GcompError for what the reference refuses."""
        program, inputs = self.cut(number, size)
        checker = self.checker(program, number * _KERNELS, seen)
        checker.run(inputs)
        if self.must_take(number):
            checker.refusal()
        return checker

    def attempt(self, number: int, size: int, coverage: Coverage) -> Found | None:
        seen = Seen()
        coverage.programs += 1
        try:
            checker = self.run(number, size, seen)
        except (GcompError, Undefined):
            coverage.refused += 1
            return None
        coverage.saw_ops(checker.whole.ops())
        coverage.rules.update(seen.components.keys())
        if not seen.components and checker.wrong is None:
            coverage.unsupported.update(checker.unsupported[:1] or ["there are no kernels in it"])
        if checker.wrong is None or checker.given is None:
            return None
        (op, args, sizes), wrong = checker.given, checker.wrong
        judge = OneKernel(self, op.kind_name, taken=self.must_take(number))
        blamed = judge.blamed(kernel_alone(op, checker.ranges), with_sizes(op, args, sizes), checker.number, wrong)
        return Found(number, (self.name, wrong.kind, wrong.detail, blamed), judge.said(wrong, blamed))

    def write(self, found: Found, size: int, path: Path, seconds: float, report: Report | None = None) -> Path:
        checker = self.run(found.number, size, Seen())
        if checker.given is None:
            raise UsageError(f"the program {found.number} has no kernel", why="it ended the process that it ran in")
        op, args, sizes = checker.given
        judge = OneKernel(self, op.kind_name, taken=self.must_take(found.number))
        small, inputs = kernel_alone(op, checker.ranges), with_sizes(op, args, sizes)
        case = judge.reduced(small, inputs, checker.number, seconds, report)
        return judge.write_case(case, path, [f"As a {op.kind_name} kernel{_TAKEN * judge.taken}."])

    def again(self, path: Path, number: int) -> str:
        kind = re.search(
            rf"^// As a (\w+) kernel({_TAKEN})?\.$", path.read_text("utf-8") if path.exists() else "", re.M
        )
        if kind is None or kind[1] not in SCHEDULES:
            raise UsageError(f"{path} is no case of a kernel", why="no line says 'As a ... kernel.'")
        return OneKernel(self, kind[1], taken=bool(kind[2])).judged_again(path, number)


STEPS_OF: Mapping[str, Sequence[str]] = {
    "loop": ("binary", "gather", "concatenate", "pad", "select", "dynamic-update-slice", "convert", "reverse",
             "random-bits", "through-view", "dynamic-slice", "bitcast"),
    "reduction": ("reduce", "softmax", "norm", "argmax", "wider-reduce", "batch-norm"),
    "window": ("reduce-window", "select-and-scatter"),
    "matmul": ("dot", "matmul", "quantized"),
    "convolution": ("convolution", "network", "many-channels"),
    "attention": ("attention",),
    "scan": ("cumulative", "scan"),
    "scatter": ("scatter",),
    "sort": ("sort", "top-k"),
    "library": ("cholesky", "triangular-solve", "fft"),
}  # fmt: skip
"""Kind of kernel -> steps of programs that become one."""


# ---- what programs seldom hold --------------------------------------------------------------------------------------

TEXTS = (
    """func.func @main(%x: tensor<4x5xFLOAT>, %y: tensor<4x5xFLOAT>) -> tensor<4x5xi1> {
  %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4x5xFLOAT>, tensor<4x5xFLOAT>) -> tensor<4x5xi1>
  return %z : tensor<4x5xi1>
}""",
    """func.func @main(%x: tensor<12xNARROW>, %y: tensor<12xNARROW>) -> tensor<12xi1> {
  %0 = stablehlo.OP %x, %y : tensor<12xNARROW>
  %z = stablehlo.compare LT, %0, %x : (tensor<12xNARROW>, tensor<12xNARROW>) -> tensor<12xi1>
  return %z : tensor<12xi1>
}""",
    """func.func @main(%x: tensor<3x5x4xf32>, %y: tensor<3x4x6xf32>) -> tensor<3x5x6xf32> {
  %z = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<3x5x4xf32>, tensor<3x4x6xf32>) -> tensor<3x5x6xf32>
  return %z : tensor<3x5x6xf32>
}""",
    """func.func @main(%x: tensor<3x13xFLOAT>) -> tensor<3x13xFLOAT> {
  %c = stablehlo.constant dense<0.0> : tensor<FLOAT>
  %r = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 13>,
      padding = dense<PADDING> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<FLOAT>, %b: tensor<FLOAT>):
    %s = stablehlo.add %a, %b : tensor<FLOAT>
    stablehlo.return %s : tensor<FLOAT>
  }) : (tensor<3x13xFLOAT>, tensor<FLOAT>) -> tensor<3x13xFLOAT>
  return %r : tensor<3x13xFLOAT>
}""",
    """func.func @main(%x: tensor<6x7xINTEGER>, %y: tensor<6x7xINTEGER>) -> (tensor<6x7xINTEGER>, tensor<6x7xINTEGER>,
    tensor<6x7xINTEGER>, tensor<6x7xINTEGER>, tensor<6x7xINTEGER>) {
  %s = stablehlo.sign %y : tensor<6x7xINTEGER>
  %q = stablehlo.divide %x, %s : tensor<6x7xINTEGER>
  %r = stablehlo.remainder %x, %y : tensor<6x7xINTEGER>
  %a = stablehlo.shift_right_arithmetic %x, %y : tensor<6x7xINTEGER>
  %b = stablehlo.shift_right_logical %x, %y : tensor<6x7xINTEGER>
  %c = stablehlo.shift_left %x, %y : tensor<6x7xINTEGER>
  return %q, %r, %a, %b, %c : tensor<6x7xINTEGER>, tensor<6x7xINTEGER>, tensor<6x7xINTEGER>, tensor<6x7xINTEGER>,
    tensor<6x7xINTEGER>
}""",
    """func.func @main(%x: tensor<4x5xf64>) -> (tensor<4x5xf16>, tensor<4x5xHALF>) {
  %c = stablehlo.constant dense<[1.0004882812509095, 1.0039062500009095, 1.0625000000009095, 1.1250000000009095,
                                 1.2500000000009095]> : tensor<5xf64>
  %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<5xf64>) -> tensor<4x5xf64>
  %1 = stablehlo.sign %x : tensor<4x5xf64>
  %2 = stablehlo.multiply %0, %1 : tensor<4x5xf64>
  %3 = stablehlo.convert %2 : (tensor<4x5xf64>) -> tensor<4x5xf16>
  %4 = stablehlo.convert %2 : (tensor<4x5xf64>) -> tensor<4x5xHALF>
  return %3, %4 : tensor<4x5xf16>, tensor<4x5xHALF>
}""",
)
"""A total order; integers of few bits that leave their range; products of batches; running sums; integers divided by 0
and by -1, and shifted by their width and more; numbers a little more than halfway between two of a narrow type, which
rounding twice takes for halfway."""
_WORDS = {"FLOAT": ("f32", "f16", "f64"), "NARROW": ("i4", "i2", "ui4"), "OP": ("add", "multiply", "subtract"),
          "PADDING": ("[[0, 0], [12, 0]]", "[[0, 0], [0, 12]]"), "INTEGER": ("i32", "i8", "i64", "i16", "ui8"),
          "HALF": ("bf16", "f8E4M3FN", "f8E5M2", "f6E2M3FN")}  # fmt: skip


def _write_program(number: int) -> Program:
    choices = Seeded(number)  # in turn, each text would meet inputs of the same kinds only
    text = choices.chosen(TEXTS)
    for word, options in _WORDS.items():
        text = text.replace(word, choices.chosen(options))
    return Program.parse(text)


__all__ = ["Checker", "KernelDoor", "OneKernel"]
