"""Write docs/generated/functions.md: how exact the expanded functions of the tile level are.

Usage: python tools/function_table.py [NAME ...]

Names measure these only, and write nothing. Ends with 1 where a function is less exact than its table says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.expanding import EXPANSIONS, expand
from gcomp.lowering.tiles.functions import FUNCTIONS
from tests.support.elementary import EXACT, Array, applied, distances, kernel_of, meaning, samples

PAGE = Path("docs/generated/functions.md")
HEAD = """# How exact the functions of processors' kernels are

Written by `tools/function_table.py`; do not edit. On the target `cpu`, functions that IEEE 754 does not round are tile
programs of gcomp's own (`gcomp/lowering/tiles/expanding`). Distances are in units of the last place of the exact
result: what the table there states, and the largest that was measured, with the operands where it was. f64 is compared
with mpmath; f32 with mpmath, and on more samples with the reference in f64. Samples are of any bits, of all sizes, and
near the places where functions are 0 or grow without end. `ops` counts the basic functions of one element.

A function of f32 that is at most 0.51 away is computed in f64, and rounded: it is the nearest number but for very few
operands. `lgamma` of negative numbers is measured relative to log |gamma(-x)| where that is larger, as between its
poles it is a difference. `remainder`, `next_after` and `round_nearest_afz` are exact.

| function | type | stated | measured | at | samples | ops |
|---|---|---|---|---|---|---|
"""
FEW, MANY = 1 << 14, 1 << 19
SLOW = {"erf_inv": 1 << 11, "lgamma": 1 << 12, "erfc": 1 << 13, "erf": 1 << 13}
"""Functions that mpmath is slow with -> fewer samples."""


def far_from_double(name: str, found: Array, *operands: Array) -> Array:
    """Distances of f32 from what the reference gives in f64."""
    exact = meaning(name, *(x.astype(np.float64) for x in operands))
    with np.errstate(all="ignore"):
        most = 2.0**128
        exact = np.clip(exact, -most, most)
        size = np.abs(exact)
        unit = np.exp2(np.maximum(np.floor(np.log2(np.where(size > 0, size, 1.0))), -126) - 23)
        value = np.clip(found.astype(np.float64), -most, most)
        far = np.where(np.isfinite(exact) & np.isfinite(value), np.abs(value - exact) / unit, 0.0)
    return np.where(np.isnan(value) & np.isfinite(exact), np.inf, far)


def measured(name: str, dtype: str) -> tuple[float, str, int]:
    """The largest distance, where it was, and of how many samples."""
    count = SLOW.get(name, FEW)
    rounds = [(distances, samples(name, dtype, count, seed=1))]
    if dtype == "f32" and name not in ("lgamma", "power"):
        rounds.append((far_from_double, samples(name, dtype, MANY, seed=2)))
    worst, where, total = 0.0, "", 0
    for judge, operands in rounds:
        found = applied(name, *operands)
        far = judge(name, found, *operands)
        at = int(far.argmax())
        total += found.size
        if far[at] >= worst:
            worst, where = float(far[at]), ", ".join(str(x[at]) for x in operands)
    return worst, where, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="measure these only")
    names: list[str] = parser.parse_args().names
    text, wrong = HEAD, False
    for name, dtype in sorted(EXPANSIONS):
        if names and name not in names:
            continue
        stated = EXPANSIONS[name, dtype].ulps
        worst, where, total = measured(name, dtype) if name in EXACT else (0.0, "-", 0)
        kernel = kernel_of(name, dtype, FUNCTIONS[name].arity, 1)
        expand(kernel)
        ops = sum(isinstance(op, tile.ElementwiseOp | tile.CastOp) for op in kernel.walk())
        row = f"| {name} | {dtype} | {stated:g} | {worst:.3f} | {where} | {total or '-'} | {ops} |\n"
        print(row, end="", flush=True)
        wrong |= worst > stated
        text += row
    if not names:
        PAGE.write_text(text, encoding="utf-8")
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
