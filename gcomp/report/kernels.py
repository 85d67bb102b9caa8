"""Kernels as a report shows them: what they hold, what they cost, where their results lie, and why they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gcomp.analysis.accounts import Account
from gcomp.analysis.constants import place_of
from gcomp.analysis.fusion.decide import Decisions, decide, unfused_reasons
from gcomp.analysis.machines import MACHINES
from gcomp.analysis.work import Nominal
from gcomp.ir.buffer import places
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.passes.fusion.fuse import blocks_to_cut, label_of
from gcomp.report.costs import Cost, LaunchPlan, costs_of
from gcomp.report.graph import Level
from gcomp.report.lines import Lines
from gcomp.runtime.profiling import Profile

Key = tuple[str, str]
"""The label and the place of a kernel."""


REASONED = 10_000
"""Ops of a program for which reasons are looked for: it takes as long as fusing does."""


@dataclass
class Reason:
    """Why two kernels, of which the second reads the first, are not one."""

    first: Key
    second: Key
    text: str
    microseconds: float
    """What one kernel would save, by the cost model."""


def reasons_of(program: Program, machine: str) -> list[Reason]:
    """Why kernels stay apart, before a program is cut into them."""
    if machine not in MACHINES:
        return []
    nominal, found = Nominal(program.ranges), list[Reason]()
    for block in blocks_to_cut(program) if program.op_count() <= REASONED else ():
        decisions = decide(block, nominal, MACHINES[machine])
        for verdict in unfused_reasons(decisions):
            keys = [_key(decisions, members) for members in (verdict.first, verdict.second)]
            found.append(Reason(keys[0], keys[1], verdict.reason, 1e6 * verdict.gain))
    return found


def _key(decisions: Decisions, members: Sequence[int]) -> Key:
    ops = [decisions.flow.ops[i] for i in members]
    return label_of(ops), describe(place_of(ops))


def kernel_rows(
    level: Level, program: Program, plan: LaunchPlan, sizes: Mapping[str, int], lines: Lines, profile: Profile | None,
    accounts: Sequence[Account] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """A row for each kernel of a level, in order; with what a target says of how each is computed (`accounts`)."""
    said = {(account.label, account.place): account for account in accounts}
    launches = list(plan.launches())
    costs = costs_of(plan, sizes)
    measured = _measured(profile)
    nominal, rows, at = Nominal(program.ranges), list[dict[str, Any]](), 0
    kernels = [(n, op) for n, node in enumerate(level.nodes) if isinstance(op := node.op, LaunchOp)]
    keys = [(op.label_name, describe(op.location)) for _, op in kernels]
    for i, (number, op) in enumerate(kernels):
        key, mine = keys[i], list[Cost]()
        another = i + 1 < len(keys) and keys[i + 1] == key
        offsets = places(op) or ()
        while at < len(launches) and (launches[at].title, launches[at].place) == key:
            if mine and another and mine[-1].kernel is costs[at].kernel:
                break  # the next op's, which is alike
            mine.append(costs[at])
            at += 1
        rows.append({
            "label": op.label_name, "kind": op.kind_name, "node": number, "place": key[1],
            "ops": [lines.line(inner) for inner in op.block.ops if inner is not op.block.last_op],
            "flops": sum(cost.flops for cost in mine), "bytes": sum(cost.bytes for cost in mine),
            "grid": [" x ".join(map(str, cost.grid)) for cost in mine],
            "us": _microseconds([cost.seconds for cost in mine]), "measured": measured.get(key),
            "at": [[offset, nominal.bytes(result)] for offset, result in zip(offsets, op.results, strict=False)],
            "kernels": list(dict.fromkeys(cost.kernel.name for cost in mine)),
            "how": _how(said.get(key)),
            "sources": list(dict.fromkeys(cost.kernel.text for cost in mine)),
        })  # fmt: skip
    _share_measured(rows, measured)
    return rows


def _how(account: Account | None) -> list[str]:
    """How a kernel is computed and why, line by line; nothing where nobody says it."""
    if account is None:
        return []
    return [
        account.algorithm, *([f"tile: {account.tile}"] if account.tile else []),
        f"{account.programs} programs, {account.threads}", *account.layouts, *account.because,
        f"predicted for one thread: {1e6 * account.seconds:,.1f} \u00b5s",
    ]  # fmt: skip


def _microseconds(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return round(1e6 * sum(known), 3) if len(known) == len(seconds) and known else None


def _measured(profile: Profile | None) -> dict[Key, float]:
    if profile is None:
        return {}
    return {(row.label, row.place): 1e6 * row.seconds for row in profile.rows if row.kind == "kernel"}


def _share_measured(rows: Sequence[dict[str, Any]], measured: Mapping[Key, float]) -> None:
    """Kernels of one label and place were measured together: each has its part."""
    counts: dict[Key, int] = {}
    for row in rows:
        key = (row["label"], row["place"])
        counts[key] = counts.get(key, 0) + 1
    for row in rows:
        key = (row["label"], row["place"])
        if key in measured:
            row["measured"] = round(measured[key] / counts[key], 3)


def sources_of(texts: Mapping[str, str], codes: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The texts of the kernels in rows: `source:MEMBER` of the plan, and `code:KERNEL` of the target's compiler."""
    found: dict[str, str] = {}
    for row in rows:
        found |= {f"source:{name}": _cut(texts[name]) for name in row["sources"] if name in texts}
        found |= {f"code:{name}": _cut(codes[name]) for name in row["kernels"] if name in codes}
    return found


LONGEST = 400_000
"""Characters of a kernel's text that a page holds."""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... and {len(text) - LONGEST:,} characters more"


__all__ = ["Key", "Reason", "kernel_rows", "reasons_of", "sources_of"]
