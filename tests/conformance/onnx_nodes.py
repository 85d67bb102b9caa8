"""ONNX's own node tests, run through import and the reference interpreter.

`python -m tests.conformance.onnx_nodes` runs all cases, prints a summary, and with `--write` renews the list of
expected failures and docs/onnx_operators.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader as loader

from gcomp.errors import GcompError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.ir.program import Program
from gcomp.reference.interpreter import interpret

EXPECTED = Path(__file__).with_name("onnx_nodes_expected.txt")
"""Cases that do not pass, and why: `name: reason` on each line."""

ULPS = 64
"""Floats may differ by this many units in the last place of the largest expected element: the expected values are
NumPy's, computed in another order, often through float64, and a node may be a chain of a dozen
roundings. Sums add four for each square root of the number of terms, as random roundings do."""

LITERAL = dict.fromkeys(
    (
        "test_averagepool_2d_ceil_last_window_starts_on_pad",
        "test_gridsample_bicubic",
        "test_roialign_aligned_false",
        "test_roialign_aligned_true",
    ),
    1e-4,
)
"""Cases whose expected values are written down with four decimals, and what that may hide."""

RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
"""Operators whose elements are random: shapes and dtypes are compared."""


Execute = Callable[[Program, Sequence[Any]], Sequence[Any]]
"""What runs a program on arrays."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended: `pass`, `unsupported`, `wrong`, or `error`."""

    kind: str
    detail: str = ""


@lru_cache(1)
def cases() -> dict[str, Any]:
    """All node cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in loader.load_model_tests(kind="node")}


def operator(case: Any) -> str:
    """The operator that a case is for: that of its only node, or the name of an expanded function."""
    return case.model.graph.node[-1].op_type


def run(case: Any, execute: Execute = interpret) -> Outcome:
    """Import the case's model, interpret it, and compare.

    The node tests give shapes and axes as inputs. What gcomp cannot compile so, it is given as constants.
    """
    outcome = _run(case, [], execute)
    for chosen in _choices(case):
        if outcome.kind != "unsupported" or "depends on the data" not in outcome.detail:
            break
        outcome = _run(case, chosen, execute)
    return outcome


def _choices(case: Any) -> Iterator[list[int]]:
    """Which inputs to fix: integers other than the first; all others than the first; all."""
    arrays = [_array(x) for x in case.data_sets[0][0]] if not _has_lists(case) else []
    yield [i for i, a in enumerate(arrays) if i and a.dtype.kind in "iu"]
    yield list(range(1, len(arrays)))
    yield list(range(len(arrays)))


def _has_lists(case: Any) -> bool:
    return any(x is None or isinstance(x, list) for x in case.data_sets[0][0])


def _run(case: Any, fixed: Sequence[int], execute: Execute) -> Outcome:
    names = [v.name for v in case.model.graph.input]
    try:
        for inputs, expected in case.data_sets:
            constants = {names[i]: _array(inputs[i]) for i in fixed}
            program = import_onnx(case.model, constants=constants)
            program.verify("as imported")
            arrays = [_array(x) for i, x in enumerate(inputs) if i not in fixed]
            with np.errstate(all="ignore"):
                outputs = execute(program, arrays)
            if problem := _difference(case, outputs, expected):
                return Outcome("wrong", problem)
    except UnsupportedError as error:
        return Outcome("unsupported", _first(error))
    except GcompError as error:
        return Outcome("error", f"{type(error).__name__}: {_first(error)}")
    except Exception as error:
        return Outcome("crash", f"{type(error).__name__}: {error}"[:240])
    return Outcome("pass")


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _first(error: GcompError) -> str:
    text = " / ".join(line.strip() for line in str(error).splitlines())
    return text[:240]


def _difference(case: Any, outputs: Sequence[Any], expected: Sequence[Any]) -> str | None:
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    random = (
        {n.op_type for n in case.model.graph.node} & RANDOM
        or "_training" in case.name
        or "trainingdropout" in case.name
    )
    for i, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        want = _array(want)
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"output {i} is {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        terms = max((_array(x).size for x in case.data_sets[0][0]), default=1)
        if not random and (problem := _mismatch(got, want, terms, case.name)):
            return f"output {i}: {problem}"
    return None


def _mismatch(got: Any, want: Any, terms: int, name: str) -> str | None:
    if want.dtype.kind in "iub" or want.dtype.name.startswith(("int", "uint")):
        same = got == want
        return None if bool(np.all(same)) else f"{int((~same).sum())} of {same.size} elements differ"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    if bool(np.any(np.isnan(a) != np.isnan(b))) or bool(np.any((a != b) & (np.isinf(a) | np.isinf(b)))):
        return "NaN or infinity in different places"
    finite = np.isfinite(b)
    if not finite.any():
        return None
    scale, error = float(np.abs(b[finite]).max()), float(np.abs(a[finite] - b[finite]).max())
    bound = (ULPS + 4 * terms**0.5) * _epsilon(want.dtype) * scale + LITERAL.get(name, 0.0)
    return None if error <= bound else f"error {error:.3g} exceeds {bound:.3g}"


def _epsilon(dtype: Any) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(np.dtype(dtype)).eps) if np.dtype(dtype).kind != "c" else float(np.finfo(dtype).eps)


def expected() -> dict[str, str]:
    """The cases that are known not to pass."""
    lines = EXPECTED.read_text(encoding="utf-8").splitlines() if EXPECTED.exists() else []
    pairs = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {name: reason for name, reason in pairs}  # noqa: C416 - pairs are lists


def _outcomes(pattern: str) -> Iterator[tuple[str, Any, Outcome]]:
    for name, case in cases().items():
        if pattern in name:
            yield name, case, run(case)


def main() -> int:
    """Run the cases whose names contain the argument."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    failures: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for name, _, outcome in _outcomes(options.pattern):
        counts[outcome.kind] += 1
        if outcome.kind != "pass":
            failures[name] = f"{outcome.kind}: {outcome.detail[:160]}"
            sys.stdout.write(f"{name}: {failures[name]}\n")
    sys.stdout.write(f"{dict(counts)}\n")
    if options.write and not options.pattern:
        write(failures)
    return 0


def write(failures: dict[str, str]) -> None:
    """Renew the list of expected failures and the table of operators."""
    from tests.conformance.onnx_operators import table

    head = (
        "# Node cases of the onnx package that do not pass; renewed by python -m tests.conformance.onnx_nodes --write\n"
    )
    EXPECTED.write_text(head + "".join(f"{n}: {r}\n" for n, r in sorted(failures.items())), encoding="utf-8")
    docs = Path(__file__).parents[2] / "docs" / "onnx_operators.md"
    docs.write_text(table(failures), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
