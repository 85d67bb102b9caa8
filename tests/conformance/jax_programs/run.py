"""JAX programs through gcomp, beside jax.jit.

    python -m tests.conformance.jax_programs.run [NAME...] [--write]

Each must give what jax.jit gives: integers, keys and pytrees exactly, floats within the program's bound. `--write`
renews docs/generated/jax_programs.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jax
from rich.console import Console

import gcomp
from gcomp.errors import GcompError
from tests.conformance.jax_programs.check import Costs, costs, error
from tests.conformance.jax_programs.table import Program, programs

PAGE = Path(__file__).parents[3] / "docs" / "generated" / "jax_programs.md"
HEAD = """# JAX programs

Written by `python -m tests.conformance.jax_programs.run --write`; do not edit.

Programs as users write them ([their source](../../tests/conformance/jax_programs)), through `gcomp.jit` and
`gcomp.compile`, compared with `jax.jit` on CPU (jax {version}). Integers, keys and pytrees must be the same, and floats
within the bound: both are in units in the last place of the largest number of the array. `equations` counts those that
are imported, inside of others too. Times are of the CPU, on a shared machine: importing (best of three, with the
verification of the program), and compiling as a whole beside `jax.jit`'s tracing, lowering and compiling.

"""
COLUMNS = ("program", "what", "error", "bound", "equations", "import, µs each", "compile, s", "jax.jit, s", "ratio")


def main() -> int:
    """The exit code is 1 if any program fails, and 77 if one could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--write", action="store_true", help="renew the generated page")
    options = parser.parse_args()
    if options.write and options.names:
        parser.error("--write needs all of them")
    console = Console()
    chosen = {n: p for n, p in programs().items() if not options.names or n in options.names}
    absent = sorted({p.needs for p in chosen.values() if p.missing})
    results: dict[str, tuple[float | str, Costs | None]] = {}
    _warm_up()
    for name, program in chosen.items():
        if not program.missing:
            results[name] = result(program)
            console.print(name, *_cells(program, *results[name])[1:], markup=False, highlight=False)
    bad = [name for name, (found, _) in results.items() if isinstance(found, str) or found > chosen[name].ulps]
    text = _summary(results, bad)
    console.print(text, markup=False, highlight=False)
    if absent:
        console.print(f"[red]not run, because these are not installed: {', '.join(absent)}[/]")
    elif options.write:
        rows = [_cells(chosen[name], *found) for name, found in results.items()]
        lines = "".join(f"| {' | '.join(row)} |\n" for row in (COLUMNS, ("---", "---", *["---:"] * 7), *rows))
        PAGE.write_text(HEAD.format(version=jax.__version__) + text + "\n\n" + lines, encoding="utf-8")
    return 1 if bad else 77 if absent else 0


def result(program: Program) -> tuple[float | str, Costs | None]:
    """The error, or why there is none, and the costs."""
    try:
        return error(program), costs(program)
    except GcompError as refusal:
        return str(refusal).replace("\n", " "), None


def _warm_up() -> None:
    """What is loaded once is nobody's cost."""
    gcomp.jit(lambda x: x + 1)(1.0)
    jax.jit(lambda x: x + 1)(1.0)


def _cells(program: Program, found: float | str, costs: Costs | None) -> tuple[str, ...]:
    head = (program.name, program.what, found if isinstance(found, str) else f"{found:.2g}", f"{program.ulps:g}")
    if costs is None:
        return (*head, *[""] * 5)
    each = f"{costs.importing / costs.equations * 1e6:.0f}"
    times = f"{costs.compiling:.2f}", f"{costs.jax:.2f}", f"{costs.compiling / costs.jax:.2f}"
    return (*head, str(costs.equations), each, *times)


def _summary(results: dict[str, tuple[float | str, Costs | None]], bad: list[str]) -> str:
    measured = [c for _, c in results.values() if c is not None]
    equations, importing = sum(c.equations for c in measured), sum(c.importing for c in measured)
    ratio = sum(c.compiling for c in measured) / sum(c.jax for c in measured)
    failed = f" Not: {', '.join(bad)}." if bad else ""
    return (
        f"{len(results) - len(bad)} of {len(results)} programs pass.{failed} {equations} equations take "
        f"{importing / equations * 1e6:.0f} µs each to import; compiling takes {ratio:.2f} times jax.jit's time."
    )


if __name__ == "__main__":
    sys.exit(main())
