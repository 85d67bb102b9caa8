"""Padded programs against the programs they are of: the same results, whatever the padding holds.

`python -m gcomp.testing.padding 0 5000` compares the generated programs of seeds that have symbolic sizes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from gcomp import dims
from gcomp.errors import GcompError, InputError, UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.padding.programs import pad_program
from gcomp.reference.interpreter import interpret
from gcomp.testing.generate.choices import Choices, Seeded
from gcomp.testing.generate.inputs import Mode, sizes_for, value_for
from gcomp.testing.generate.program import seeded_program

Array = np.ndarray[Any, Any]
_STEPS = 200_000
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
        sizes[name] = high if choices.flag() else choices.integer(true[name], high)
    return sizes


def compared(program: Program, padded: Sequence[str], source: Choices, mode: Mode = "edges") -> list[str]:
    """How the padded program's results differ from the program's, for inputs and padding of choices; empty if not.

    Raises UnsupportedError where a symbol cannot be padded, and GcompError for inputs that do not fit the program.
    """
    ports = program.inputs()
    true = sizes_for(program, source, ports)
    sizes = greater_sizes(program, true, padded, source)
    values = [value_for(p.dtype, [dims.evaluate(s, true) for s in p.shape], source, mode) for p in ports]
    expected = interpret(program, values, max_steps=_STEPS)
    after = program.clone()
    pad_program(after, padded)
    after.verify("padded")
    grown: list[Array] = []
    for port, value in zip(ports, values, strict=True):
        shape = [dims.evaluate(s, sizes) for s in port.shape]
        grown.append(in_padding(value, shape, value_for(port.dtype, shape, source)))
    actual = interpret(after, [*grown, *(np.asarray(true[name], np.int64) for name in padded)], max_steps=4 * _STEPS)
    found: list[str] = []
    summing = any(isinstance(op, _SUMS) for op in program.ops())
    for port, want, full in zip(program.outputs(), expected, actual, strict=True):
        got = np.array(full[tuple(slice(0, n) for n in want.shape)], order="C")
        if got.shape != want.shape or not (got.tobytes() == want.tobytes() or (summing and _near(want, got))):
            found.append(f"{port.name} at {true} padded to {sizes}: expected {want!r}, got {got!r}")
    return found


def _near(want: Array, got: Array) -> bool:
    """Whether results in f64 differ by no more than another order of sums makes of them."""
    if want.dtype not in (np.float64, np.complex128):
        return False
    return bool(np.allclose(got, want, rtol=1e-12, atol=1e-300, equal_nan=True))


def subsets(symbols: Sequence[str]) -> list[tuple[str, ...]]:
    """What may be padded: any of the symbols, and all of them."""
    return [chosen for count in range(1, len(symbols) + 1) for chosen in combinations(symbols, count)]


def outcome(seed: int, mode: Mode, size: int = 15) -> tuple[str, list[str]] | None:
    """What comes of a seed: `same`, `refused`, `undefined` or `WRONG`, and details; None where it has no symbols."""
    program = seeded_program(seed, size)
    symbols = symbols_in(program)
    if not symbols:
        return None
    source = Seeded(seed)
    padded = source.chosen(subsets(symbols))
    try:
        try:
            found = compared(program, padded, source, mode)
        except UnsupportedError as error:
            return "refused", [f"{error.why} {(error.where or '')[:30]}"]
    except InputError as error:
        return "undefined", [str(error)]
    return ("WRONG", [f"seed {seed}, {padded}", *found]) if found else ("same", [])


def main(first: int, last: int, mode: Mode) -> int:
    """Compare the programs of seeds; how many are wrong."""
    counts, reasons = Counter[str](), Counter[str]()
    for seed in range(first, last):
        try:
            result = outcome(seed, mode)
        except (
            GcompError,
            VerifyException,
            ArithmeticError,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:
            result = "error", [f"seed {seed}: {type(error).__name__} {error}"]
        if result is None:
            continue
        counts[result[0]] += 1
        if result[0] in ("WRONG", "error"):
            sys.stdout.write("\n  ".join([f"seed {seed}", *result[1]]) + "\n")
        reasons.update(result[1] if result[0] == "refused" else [])
    sys.stdout.write(f"{dict(counts)}\n")
    for reason, count in reasons.most_common(12):
        sys.stdout.write(f"  {count} {reason}\n")
    return counts["WRONG"] + counts["error"]


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]), "whole" if "whole" in sys.argv else "edges")))
