"""Write docs/generated/ulp.md: how far the reference is from independent implementations, op by op.

Usage: python tools/ulp_table.py [--quick] [--afresh]

A distance is the largest of this run and of what the page says already: NumPy and libm choose their instructions by
the processor, and round otherwise on another one. `--afresh` forgets what the page says.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

from gcomp.reference.table import MEANINGS, UNMODELLED
from gcomp.testing.oracles import Oracle, XlaOracle
from tests.support.cases import ELSEWHERE, all_cases
from tests.support.cases.evaluate import Verdict, judge, published_ulps

HEAD = """# How far the reference is from others

Written by `tools/ulp_table.py`; do not edit. Distances are the largest seen between `gcomp/reference` and an
independent implementation, in units of the last place, over the cases of `tests/support/cases` (edge values against
edge values, all patterns of 8-bit types and, for functions of one operand, of 16-bit types, and random values).
Each is the largest of the processors that the page was written on: libraries choose their instructions by them.
`tests/unit/reference/test_against_cpp.py` fails where a distance exceeds its figure here.

The judge is the StableHLO project's C++ reference interpreter, written by other people from the same specification
(CHLO's ops are first expanded by that project's pass, whose approximations these are then). Where it cannot judge,
XLA:CPU does, and the reason is in the third table.

0 means equal bits, except for the sign and payload of NaN where an op computes a NaN. Sums, products of matrices,
factorizations and transforms are measured in units of the result's largest element, complex numbers in units of their
larger part.
"""

SHARED_FAULTS = """
Two more faults of the C++ interpreter, which the cases avoid: `scatter` writes into its operand's storage, so that
later uses of that operand see the update; and an unsigned index beyond the signed range of its width counts as
negative in `gather`.
"""


def published(verdict: Verdict) -> Iterator[str]:
    """The rows with a distance above 0."""
    yield "\n## Not bit for bit\n"
    yield "| op | element type | judge | ulp | elements |"
    yield "|---|---|---|---|---|"
    for (op, text, who), ulps in sorted(verdict.ulps.items()):
        if ulps:
            yield f"| {op} | {text} | {who} | {_up(ulps):g} | {verdict.judged[op, text, who]} |"


def _up(ulps: float) -> float:
    """Rounded up to a quarter."""
    return math.ceil(ulps * 4) / 4


def exact(verdict: Verdict) -> Iterator[str]:
    """One row for each op and judge, with the element types on which all bits agree."""
    yield "\n## Bit for bit\n"
    yield "| op | judge | element types | elements |"
    yield "|---|---|---|---|"
    rows: dict[tuple[str, str], list[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for (op, text, who), ulps in sorted(verdict.ulps.items()):
        if not ulps:
            rows.setdefault((op, who), []).append(text)
            counts[op, who] = counts.get((op, who), 0) + verdict.judged[op, text, who]
    for (op, who), texts in sorted(rows.items()):
        yield f"| {op} | {who} | {' '.join(filter(None, texts)) or '-'} | {counts[op, who]} |"


def excused(full: bool) -> Iterator[str]:
    """What the C++ interpreter cannot judge, and who does."""
    yield "\n## What the C++ interpreter cannot judge\n"
    yield "| op | because the C++ interpreter | judged by |"
    yield "|---|---|---|"
    reasons = {(case.op, case.without_cpp) for case in all_cases(full=full) if case.without_cpp}
    for op, reason in sorted(reasons):
        yield f"| {op} | {reason} | XLA:CPU |"
    for op, (reason, test) in sorted(ELSEWHERE.items()):
        yield f"| {op} | {reason} | {test} |"
    yield SHARED_FAULTS
    yield "## What has no meaning in the reference\n"
    yield "| op | because |"
    yield "|---|---|"
    for op, reason in sorted(UNMODELLED.items(), key=lambda item: item[0].name):
        yield f"| {op.name} | {reason} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure the cases of the quick test only")
    parser.add_argument("--afresh", action="store_true", help="forget the distances measured on other processors")
    options = parser.parse_args()
    full = not options.quick
    with Oracle() as cpp, XlaOracle() as xla:
        verdict = judge(all_cases(), cpp, xla)
        if full:
            wide = judge(all_cases(full=True), cpp, xla)
            verdict.faults += wide.faults
            for key, ulps in wide.ulps.items():
                verdict.ulps[key] = max(verdict.ulps[key], ulps)
                verdict.judged[key] += wide.judged[key]
    page = Path("docs/generated/ulp.md")
    if not options.afresh:
        for key, ulps in published_ulps(page.read_text(encoding="utf-8")).items():
            if key in verdict.ulps:
                verdict.ulps[key] = max(verdict.ulps[key], ulps)
    lines = [HEAD.rstrip(), *published(verdict), *exact(verdict), *excused(full), ""]
    page.write_text("\n".join(lines), encoding="utf-8")
    print(f"{len(MEANINGS)} ops, {len(verdict.ulps)} measured pairs of op and type, {len(verdict.faults)} faults")
    for fault in verdict.faults[:40]:
        print("FAULT", fault)


if __name__ == "__main__":
    main()
