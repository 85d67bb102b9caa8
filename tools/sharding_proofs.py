"""Proves gcomp's sharding rules, and writes what was proved to tools/sharding_proofs.json.

    python -m tools.sharding_proofs [SEEDS]

Rules are proved of ops in all forms up to a rank (`gcomp.testing.prove.sharding.forms`), of the sample programs' ops
and of those of so many random programs (100: minutes). `python -m tools.sharding_table` tells of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from xdsl.ir import Operation

from gcomp.ir.program import Program
from gcomp.partitioning import RULES, rule_of
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.prove.sharding import Status, prove_rule
from gcomp.testing.prove.sharding.forms import MAX_RANK, forms, like
from gcomp.testing.prove.sharding.prover import local_factors
from tests.support.cut_ops import MADE
from tests.support.samples import samples

RECORD = Path(__file__).with_name("sharding_proofs.json")


@dataclass
class Found:
    """What was proved of the rule of one op class."""

    ops: int = 0
    """Ops that have a factor that a device cuts alone."""
    factors: int = 0
    """Such factors of all of them."""
    open: Counter[str] = field(default_factory=Counter[str])
    """Why some are not proved, and how many."""

    def take(self, op: Operation) -> str | None:
        """Prove the rule of an op; where it is wrong, how."""
        rule = rule_of(op)
        if rule is None or isinstance(op, MADE) or not local_factors(rule):
            return None
        proof = prove_rule(op)
        self.ops += 1
        self.factors += proof.cases
        if proof.status is Status.PROVED:
            return None
        if proof.status is Status.REFUTED:
            return f"{proof}\n{op}"
        self.open[proof.how.rpartition(": ")[2]] += 1
        return None


def subjects(seeds: int) -> Iterator[Operation]:
    """All ops whose rules are proved."""
    yield from forms()
    for text in samples().values():
        for op in Program.parse(text).module.walk():
            yield op
            yield from like(op)
    for seed in range(seeds):
        yield from seeded_program(seed).block.ops


def prove_all(seeds: int) -> tuple[dict[str, Found], list[str]]:
    """Op -> what was proved of its rule; and all that was refuted."""
    found = {kind.name: Found() for kind in RULES}
    wrong = [text for op in subjects(seeds) if op.name in found and (text := found[op.name].take(op)) is not None]
    return found, wrong


# ---- the page -------------------------------------------------------------------------------------------------------


class Statuses(NamedTuple):
    """What holds the rule of each op."""

    proved: tuple[str, ...]
    open: dict[str, str]
    """Op -> what of its rule is not proved."""
    nothing: tuple[str, ...]
    """Ops whose rules let no device cut anything alone, or say of what a part of a text or of a file is."""


def statuses() -> Statuses:
    """All rules by what is recorded of them."""
    ops: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))["ops"]
    left = {n: [f"{why} ({k} of {f['ops']} ops)" for why, k in f["open"].items()] for n, f in ops.items()}
    return Statuses(
        tuple(n for n, f in ops.items() if f["factors"] and not left[n]),
        {n: "; ".join(why) for n, why in left.items() if why},
        tuple(n for n, f in ops.items() if not f["factors"]),
    )


def summary() -> str:
    """How many rules are proved."""
    proved, left, nothing = statuses()
    told = len(proved) + len(left)
    share = 100 * len(proved) / told
    return (
        f"{len(proved)} of {told} rules ({share:.0f} %) are proved for all sizes and numbers of parts "
        f"(not: {', '.join(left) or 'none'}); {len(nothing)} more say nothing that could be wrong."
    )


def section(checked: Mapping[str, int]) -> list[str]:
    """The lines of the page that say what holds each rule; `checked` counts programs that were run on the reference."""
    record, found = json.loads(RECORD.read_text("utf-8")), statuses()
    ops: dict[str, Any] = record["ops"]
    lines = [
        "## What holds each rule", "",
        "The theorem is in [sharding_search.md](../guides/sharding_search.md#proofs). "
        "`python -m tools.sharding_proofs` proves it of ops in all forms up to rank "
        f"{record['max_rank']} (slices, paddings, windows and products one less), of the samples, and of "
        f"{record['seeds']} random programs: {sum(f['factors'] for f in ops.values())} factors of "
        f"{sum(f['ops'] for f in ops.values())} ops, each of any size. Programs were run part by part on the reference "
        "as well. Nothing to prove: a part of a constant, a size or a file is what it says, and random numbers are not "
        "cut.", "",
        "| op | status | ops | factors | programs |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, f in ops.items():
        status = "proved" if name in found.proved else found.open.get(name, "nothing to prove")
        lines.append(f"| {name} | {status} | {f['ops']} | {f['factors']} | {checked.get(name, 0)} |")
    return [*lines, ""]


def main(seeds: int) -> int:
    """Prove, write, and say whether a rule came out wrong."""
    found, wrong = prove_all(seeds)
    ops = {n: {"ops": f.ops, "factors": f.factors, "open": dict(sorted(f.open.items()))} for n, f in found.items()}
    record = {"seeds": seeds, "max_rank": MAX_RANK, "ops": dict(sorted(ops.items()))}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(
        f"wrote {RECORD}: {sum(f.factors for f in found.values())} factors of {sum(f.ops for f in found.values())} ops"
    )
    for text in wrong:
        print(f"WRONG: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
