"""Padding: padded programs beside the programs they are of, the same results whatever the padding holds.

Programs are around every row of the table of padding, with symbols for sizes; which symbols are padded, to what sizes,
and the garbage in the padding come from the number. Results are the same to the bit, but where sums of products have
more terms: those are of whole numbers, or within rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.dims import Range
from gcomp.errors import InputError, UnsupportedError, VerificationError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ir.walking import inputs_of as read_by
from gcomp.padding.programs import pad_program
from gcomp.padding.rows import ROWS
from gcomp.reference.inputs import KINDS, InputSet
from gcomp.reference.interpreter import interpret
from gcomp.reference.sizes import size_choices
from gcomp.testing.fuzz.bucket_laws import LAWS
from gcomp.testing.fuzz.door import MAX_STEPS, Seen, Undefined, Wrong
from gcomp.testing.fuzz.laws import Law, LawDoor
from gcomp.testing.fuzz.refusals import PADDING
from gcomp.testing.generate.around import around, topic_of
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.inputs import value_for
from gcomp.testing.generate.padded import CASES
from gcomp.testing.generate.program import grow

Array = np.ndarray[Any, Any]
_LAW = 25
"""Every so many-th number is a law of buckets."""
_UNBOUNDED = 4
"""Of so many programs, one has symbols without an upper bound."""
_SUMS = (hlo.DotGeneralOp, hlo.DotOp, hlo.ConvolutionOp)
"""Ops that add products in an order of their own: the reference sums f64 as NumPy does, which depends on the count."""


def symbols_in(program: Program) -> list[str]:
    """The symbols of the inputs."""
    return sorted({s for port in program.inputs() for size in port.shape for s in dims.symbols_of(size)})


def in_padding(value: Array, shape: Sequence[int], garbage: Array) -> Array:
    """A value at the front of a greater array whose other elements are garbage."""
    padded = np.array(garbage).reshape(tuple(shape))
    padded[tuple(slice(0, n) for n in value.shape)] = value
    return padded


def greater_sizes(program: Program, true: Mapping[str, int], padded: Sequence[str], choices: Choices) -> dict[str, int]:
    """Sizes to pad to: in range, and no less than the true ones."""
    sizes = dict(true)
    for name in padded:
        known = program.ranges[name]
        high = known.hi if known.hi is not None else true[name] + 4
        least = true[name] if choices.flag(_SAME) else min(true[name] + 1, high)
        sizes[name] = high if choices.flag() else choices.integer(least, high)
    return sizes


_SAME = 0.1
"""How often a size may be padded by nothing."""


def _drop_bounds(program: Program) -> None:
    """Let nothing bound the symbols from above, where the program is valid so, too."""
    known = program.ranges
    names = symbols_in(program)
    program.ranges = known.with_ranges({s: Range(known[s].lo, None, known[s].multiple_of) for s in names})
    try:
        program.verify("without bounds")
    except (VerificationError, VerifyException):
        program.ranges = known


class Padding(LawDoor):
    """Padded symbols."""

    name: ClassVar[str] = "padding"
    summary: ClassVar[str] = "pad-dims: the same results, whatever the padding holds"
    components: ClassVar[str] = "rows of the table of padding, and the choice of buckets"

    def expected(self) -> Sequence[str]:
        return [*(op.name for op, row in ROWS.items() if row.kind != "refused"), *(law.about for law in LAWS.values())]

    def laws(self) -> Mapping[str, Law]:
        return LAWS

    def law_of(self, number: int) -> str:
        return [*LAWS][number // _LAW % len(LAWS)] if number % _LAW == _LAW - 1 else ""

    def program(self, number: int, size: int) -> Program:
        turn, kind = divmod(number, 3)
        if kind == 0:
            program = grow(Seeded(number), size, symbolic=1.0).program
        elif kind == 1:
            program = around(turn, Seeded(number), 4, symbolic=1.0)
        else:
            program = CASES[[*CASES][turn % len(CASES)]]()
        if turn % _UNBOUNDED == 0:
            _drop_bounds(program)
        return program

    def topic(self, number: int) -> str:
        turn, kind = divmod(number, 3)
        if name := self.law_of(number):
            return name
        return ("random", topic_of(turn), [*CASES][turn % len(CASES)])[kind]

    def transform(self, program: Program, number: int) -> object:
        padded = Seeded(number).chosen(subsets(symbols_in(program)))
        return pad_program(program.clone(), padded)

    def inputs(self, number: int, program: Program) -> list[Array]:
        choices = size_choices(program)
        # At the greatest sizes there is nothing to pad.
        room = [sizes for sizes in choices if any(_has_room(program, *one) for one in sizes.items())]
        sizes = Seeded(number).chosen(room or choices)
        return InputSet(KINDS[number % len(KINDS)], sizes, tuple(program.inputs()), number).arrays

    def judge(self, program: Program, inputs: Sequence[Array], number: int, seen: Seen) -> Wrong | None:
        symbols = symbols_in(program)
        if not symbols:
            raise Undefined("no symbols")
        source = Seeded(number)
        padded = source.chosen(subsets(symbols))
        expected = interpret(program, inputs, max_steps=MAX_STEPS)
        after = program.clone()
        try:
            pad_program(after, padded)
            after.verify("padded")
            wrong = _compare(program, after, padded, inputs, expected, source)
        except UnsupportedError as error:
            if PADDING.allow(program, error):
                raise
            return Wrong("refused", str(error), error.what)
        except (VerificationError, VerifyException) as error:
            return Wrong("invalid", str(error))
        except Undefined:
            raise
        except Exception as error:  # whatever a row makes of it
            return Wrong("crash", f"{type(error).__name__}: {error}", type(error).__name__)
        if wrong:
            return Wrong("meaning", wrong)
        seen.components.update({self.component(op) for op in program.ops()} - {""})
        return None

    def component(self, op: Operation) -> str:
        row = ROWS.get(type(op))
        values = [v for v in (*read_by(op), *op.results) if is_tensor(v.type)]
        sized = any(dims.symbols_of(size) for v in values for size in shape_of(v))
        return op.name if row is not None and row.kind != "refused" and sized else ""


def _has_room(program: Program, name: str, value: int) -> bool:
    most = program.ranges[name].hi
    return most is None or value < most


def _compare(
    program: Program, after: Program, padded: Sequence[str], inputs: Sequence[Array], expected: Sequence[Array],
    source: Choices,
) -> str:  # fmt: skip
    """How the padded program's results differ from the program's; empty if they do not."""
    ports = program.inputs()
    places = [(s, n, p.name) for p, x in zip(ports, inputs, strict=True) for s, n in zip(p.shape, x.shape, strict=True)]
    true = dims.bind(places, program.ranges)
    sizes = greater_sizes(program, true, padded, source)
    grown: list[Array] = []
    for port, value in zip(ports, inputs, strict=True):
        shape = [dims.evaluate(s, sizes) for s in port.shape]
        grown.append(in_padding(value, shape, value_for(port.dtype, shape, source)))
    lengths = [np.asarray(true[name], np.int64) for name in padded]
    try:
        actual = interpret(after, [*grown, *lengths], max_steps=4 * MAX_STEPS)
    except InputError as error:
        if program.constraints:
            raise Undefined("the greater sizes do not meet the constraints") from error
        raise
    summing = any(isinstance(op, _SUMS) for op in program.ops())
    for port, want, full in zip(program.outputs(), expected, actual, strict=True):
        got = np.array(full[tuple(slice(0, n) for n in want.shape)], order="C")
        if got.shape != want.shape or not (got.tobytes() == want.tobytes() or (summing and _near(want, got))):
            return f"{port.name} at {dict(true)} padded to {sizes}: expected {want!r}, got {got!r}"
    return ""


def _near(want: Array, got: Array) -> bool:
    """Whether results in f64 differ by no more than another order of sums makes of them."""
    if want.dtype not in (np.float64, np.complex128):
        return False
    return bool(np.allclose(got, want, rtol=1e-12, atol=1e-300, equal_nan=True))


def subsets(symbols: Sequence[str]) -> list[tuple[str, ...]]:
    """What may be padded: any of the symbols, and all of them."""
    return [chosen for count in range(1, len(symbols) + 1) for chosen in combinations(symbols, count)]
