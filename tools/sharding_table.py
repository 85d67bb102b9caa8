"""Writes docs/generated/sharding_rules.md: gcomp's sharding rules beside Shardy's own, and why they differ.

    python -m tools.sharding_table [--check SEEDS]

With --check, rules are first held to the reference on the ops of all samples and of so many random programs (a thousand
take minutes), and how often is written to tools/sharding_checks.json, which the page tells.

Shardy's come from the pass `sdy-populate-op-sharding-rules` inside jaxlib, for the sample programs of all ops. A test
fails when the page is stale, when a difference has no reason, or a reason no difference.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jaxlib.mlir import ir as jaxlib
from xdsl.ir import Operation

from gcomp.errors import UnsupportedError
from gcomp.ir.families import GRAPH_OPS
from gcomp.ir.program import Program
from gcomp.ir.roles import BETWEEN_DEVICES
from gcomp.ir.text import parse_module
from gcomp.partitioning import RULES, Kind, ShardingRule, rule_of
from gcomp.testing.generate.choices import Seeded
from gcomp.testing.generate.program import seeded_program
from tests.support.cut_ops import check_rule
from tests.support.samples import samples
from tests.support.shardy import rule_texts
from tools.sharding_proofs import section, summary

PAGE = Path(__file__).resolve().parents[1] / "docs" / "generated" / "sharding_rules.md"
CHECKS = Path(__file__).with_name("sharding_checks.json")
_KINDS = {kind.replace("-", "_"): kind for kind in Kind}

Linked = frozenset[tuple[Kind, frozenset[tuple[int, int, int]]]]
"""What a rule says, however factors are numbered: the kind of each, and the (tensor, dimension, place) that have it."""


@dataclass(frozen=True)
class Difference:
    """An op for which the two rules do not say the same."""

    op: str
    ours: str
    theirs: str


SAME_PLACE = (
    "a part of the result is at the operands' parts, moved by a number of elements that is known: neighbours send "
    "some, not all (Shardy leaves it open whether to call this a permutation)"
)
REASONS: dict[str, str] = {
    "stablehlo.concatenate": SAME_PLACE,
    "stablehlo.convolution": "Shardy cuts windows along space as parts of a sum too; each such part needs edges of its "
    "neighbours besides, which the reference cannot run alone, so gcomp leaves kernels whole along space",
    "stablehlo.reduce_window": "Shardy lets equal sizes pass through; a window wider than one element reaches into the "
    "neighbours' parts whatever the sizes: the parts alone give another result",
    "stablehlo.select_and_scatter": "a part of the source lies with the windows of its part of the operand; Shardy "
    "replicates the source",
    "stablehlo.sort": "along the dimension of the sort, parts sorted alone are not the sorted whole; Shardy compares "
    "the dimension with its number as written, and so lets -1 pass through, and a sort of one dimension too",
    "stablehlo.dynamic_slice": "Shardy ties dimensions of different sizes and blocks propagation along them",
    "stablehlo.gather": "Shardy ties dimensions of different sizes, and blocks propagation along them",
    "stablehlo.scatter": "a body that is no sum keeps one of the updates: parts of these cannot be combined, so the "
    "updates have no factor in common",
    "stablehlo.dynamic_update_slice": "Shardy cuts the operand where the update is smaller, and replicates the update: "
    "each device then has to mask what is not its own, which the op on a part does not do",
    "stablehlo.triangular_solve": "each right hand side is solved alone, so their dimension passes through; Shardy "
    "replicates it",
    "stablehlo.fft": "Shardy ties dimensions of different sizes and blocks propagation along them",
    "stablehlo.rng_bit_generator": "Shardy ties the states and blocks propagation along them; gcomp leaves each alone",
}  # fmt: skip
"""Op -> why the rules differ."""


# ---- what rules say -------------------------------------------------------------------------------------------------


def linked_by_text(text: str) -> Linked:
    """What a rule in Shardy's text says."""
    mappings, _, rest = text.partition(" {")
    sizes = dict(re.findall(r"(\w+)=(\d+)", rest.partition("}")[0]))
    kinds = dict.fromkeys(sizes, Kind.PASS_THROUGH)
    for word, names in re.findall(r"(\w+)=\{([^}]*)\}", rest.partition("}")[2]):
        kinds |= {n.strip(): _KINDS[word] for n in names.split(",") if word in _KINDS}
    tensors = [
        [re.findall(r"[a-y]|z_\d+|z", dim) for dim in dims.split(",")] if dims else []
        for dims in re.findall(r"\[([^\]]*)\]", mappings)
    ]
    return _linked(tensors, {n: int(s) for n, s in sizes.items()}, kinds)


def linked_by_rule(rule: ShardingRule) -> Linked:
    """What one of gcomp's rules says."""
    return linked_by_text(str(rule)) if rule.factors else frozenset()


def _linked(tensors: Sequence[Sequence[Sequence[str]]], sizes: dict[str, int], kinds: dict[str, Kind]) -> Linked:
    places: dict[str, set[tuple[int, int, int]]] = {}
    for t, dims in enumerate(tensors):
        for d, names in enumerate(dims):
            for place, name in enumerate(n for n in names if sizes[n] != 1):
                places.setdefault(name, set()).add((t, d, place))
    # A factor of one dimension alone says nothing, unless it is a sum.
    told = {n: at for n, at in places.items() if len(at) > 1 or kinds[n] is Kind.REDUCTION}
    return frozenset((kinds[n], frozenset(at)) for n, at in told.items())


# ---- the comparison -------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """All sample programs that both have a rule for, and the ops that only one has one for."""

    equal: Counter[str]
    different: list[Difference]
    ours_only: set[str]
    theirs_only: set[str]


@cache
def compare() -> Comparison:
    """Compare the rules of every op of the sample programs."""
    found = Comparison(Counter(), [], set(), set())
    for text in samples().values():
        module = parse_module(text)
        try:
            theirs = rule_texts(module)
        except (jaxlib.MLIRError, ValueError):
            continue  # jaxlib does not read it: symbolic sizes, or a dialect that it does not have
        seen = Counter[str]()
        for op in module.walk():
            said = theirs.get(op.name, [])
            other = said[seen[op.name]] if seen[op.name] < len(said) else None
            seen[op.name] += 1
            if type(op) in GRAPH_OPS:
                _note(found, op.name, rule_of(op), other)
    found.ours_only -= {*found.equal, *(d.op for d in found.different)}
    return found


def _note(found: Comparison, name: str, ours: ShardingRule | None, theirs: str | None) -> None:
    if ours is None or theirs is None:
        found.ours_only |= {name} if ours is not None and ours.factors else set()
        found.theirs_only |= {name} if theirs is not None else set()
    elif linked_by_rule(ours) == linked_by_text(theirs):
        found.equal[name] += 1
    else:
        found.different.append(Difference(name, str(ours), theirs))


def check(seeds: int) -> dict[str, int]:
    """Op -> the programs (an op with its operands, cut in one way) on which its rule was held to the reference.

    AssertionError for one whose parts do not make the whole.
    """
    found = Counter[str]({kind.name: 0 for kind in RULES})

    def hold(ops: Iterable[Operation], seed: int) -> None:
        for op in ops:
            try:
                rule = rule_of(op)
                checked = None if rule is None else check_rule(op, rule, Seeded(seed))
            except UnsupportedError:  # it has no meaning on the reference
                continue
            if checked is not None:
                assert not checked.wrong, checked.wrong
                found[op.name] += checked.programs

    for text in samples().values():
        hold(Program.parse(text).module.walk(), 0)
    for seed in range(seeds):
        hold(seeded_program(seed).block.ops, seed)
    return dict(sorted(found.items()))


def _checks() -> list[str]:
    record = json.loads(CHECKS.read_text("utf-8"))
    ops: dict[str, int] = record["ops"]
    never = sorted(name for name, count in ops.items() if not count)
    lines = [
        "## How often each rule was checked", "",
        f"On the ops of the samples and of {record['seeds']} random programs, cut in every way: "
        f"{sum(ops.values())} programs of {len(ops) - len(never)} ops, all equal to the whole op on the reference.", "",
        f"Never run part by part: {', '.join(never)}. A part of a constant, a weight or "
        "a size is a part of what it says, random numbers are not cut, kernels have no meaning on the reference.", "",
    ]  # fmt: skip
    return lines


HEAD = """\
# Sharding rules beside Shardy's

Generated by `python -m tools.sharding_table`; do not edit. For the sample programs of all ops, what gcomp's rules
([sharding_search.md](../guides/sharding_search.md)) and those of Shardy say: which dimensions share a factor, and what
has to be sent where it is cut. Names and order of factors, factors of size 1, and factors that only one dimension has
(and are no sums) say nothing and are not compared.
"""


def render(found: Comparison) -> str:
    """The page."""
    lines = [HEAD, summary(), "", f"{found.equal.total()} programs of {len(found.equal)} ops have equal rules, "
             f"{len(found.different)} programs of {len({d.op for d in found.different})} ops have others.", "",
             "## Differences", ""]  # fmt: skip
    for name in sorted({d.op for d in found.different}):
        lines += [f"**{name}**: {REASONS.get(name, '**no reason**')}.", ""]
        shown = dict.fromkeys((d.ours, d.theirs) for d in found.different if d.op == name)
        lines += [line for ours, theirs in shown for line in (f"    gcomp   {ours}", f"    Shardy  {theirs}", "")]
    between = {op.name for op in BETWEEN_DEVICES}
    only = [n for n in sorted(found.theirs_only) if n not in between]
    lines += ["## Only one has a rule", "",
              "Shardy has none, gcomp has one: " + ", ".join(sorted(found.ours_only)) + ".", "",
              "gcomp has none, Shardy has one: " + (", ".join(only) or "none") + "; and ops between devices ("
              + ", ".join(sorted(found.theirs_only & between)) + "), which are of programs of single devices: nothing "
              "cuts those further. Custom calls, which Shardy knows by their target, gcomp imports as ops.",
              "", *_checks(),
              *section(json.loads(CHECKS.read_text("utf-8"))["ops"])]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=int, metavar="SEEDS", help="hold the rules to the reference first")
    if (seeds := parser.parse_args().check) is not None:
        CHECKS.write_text(json.dumps({"seeds": seeds, "ops": check(seeds)}, indent=1) + "\n", "utf-8")
    PAGE.write_text(render(compare()), "utf-8")
    print(f"wrote {PAGE}")
