"""docs/generated/sharding_plans.md: plans of the corpus, run on eight virtual devices and counted.

    python -m tests.conformance.sharding_plans [--meshes data=2,model=4 ...] [--models NAME ...] [--keep FILE] [--write]

For each of forty architectures on each of four meshes: the search proposes a plan, `partition` states what it sends,
the reference runs it in lockstep, and XLA compiles it for eight devices of the processor. Both are held to the program
on one device; the collectives in XLA's partitioned text are counted, and its figure of memory is compared with what is
predicted. A step on the host, and what comes after it, is run by the reference alone: XLA has no such step.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.rewriter import Rewriter

import gcomp
from benchmarks.sharding import MESHES, SMALL, opened
from gcomp.corpus.store import Member, corpus
from gcomp.ir import sdy
from gcomp.ir.program import Program
from gcomp.judging.targets import target_failure
from gcomp.partitioning.memory import predicted_memory
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import plan_of
from gcomp.passes.base import PassContext
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply
from gcomp.reference.inputs import sample_inputs
from gcomp.reference.interpreter import interpret
from gcomp.testing.reduce.signature import set_outputs

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "sharding_plans.md"
DEVICES = 8
Array = np.ndarray[Any, Any]
Sends = Counter[tuple[str, int]]
"""(kind, bytes) -> how many of these; bytes of what a collective gives or takes on each device, whichever is more."""

_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_ITEM = {"pred": 1, "bf16": 2, "f16": 2, "c64": 8, "c128": 16} | {
    f"{letter}{bits}": bits // 8 for letter in "suf" for bits in (8, 16, 32, 64)
}
_SENT = re.compile(rf" = (\(.*\)|\S+) ({'|'.join(_KINDS)})(-start)?\(.*?(?:replica_groups=(\S+)|source_target)")


@dataclass(frozen=True)
class Row:
    """One plan: what it sends as planned and as counted, what is wrong in lockstep and by XLA, and bytes of memory."""

    model: str
    mesh: str
    ops: int
    collectives: int
    planned: int
    counted: int
    differs: str
    lockstep: str
    xla: str
    peak: int
    figure: int

    @property
    def ratio(self) -> float:
        """The predicted peak as a part of XLA's figure."""
        return self.peak / self.figure


def sends_in(hlo: str) -> Sends:
    """The collectives of a partitioned program's text."""
    found: Sends = Counter()
    for line in hlo.splitlines():
        if (match := _SENT.search(line)) is not None:
            kind, shapes = match[2], re.findall(r"(\w+)\[([\d,]*)\]", match[1])
            if match[3] and kind != "all-reduce":  # what is under way says its operands, too
                shapes = shapes[len(shapes) // 2 :]
            size = sum(_ITEM[dtype] * prod(int(n) for n in dims.split(",") if n) for dtype, dims in shapes)
            found[kind.replace("-", "_"), size * (_group(match[4]) if kind == "reduce-scatter" else 1)] += 1
    return found


def _group(groups: str) -> int:
    """How many devices are in each group: `{{0,1},{2,3}}`, or `[2,2]<=[4]`."""
    listed = re.match(r"\{\{([\d,]+)\}", groups)
    return listed[1].count(",") + 1 if listed else int(re.findall(r"\d+", groups)[1])


def on_devices(program: Program) -> Program:
    """The part of a partitioned program that runs on devices: it returns what its one computation gives."""
    cut = program.clone()
    (made,) = [op for op in cut.block.ops if isinstance(op, sdy.ManualComputationOp)]
    lies = sdy.result_shardings(cut.main) if made.next_op is cut.returned else list(made.outer)
    set_outputs(cut, [(f"r{i}", v) for i, v in enumerate(made.results)] if made.next_op is not cut.returned else [
        (port.name, v) for port, v in zip(cut.outputs(), cut.returned.operands, strict=True)
    ])  # fmt: skip
    for op in reversed([*cut.block.ops]):
        if op is not cut.returned and made.is_before_in_block(op):
            Rewriter.erase_op(op)
    sdy.set_result_shardings(cut.main, lies)
    return cut


def judged(program: Program, inputs: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array]) -> str:
    """What is wrong with results; empty for nothing beyond rounding and known deviations."""
    failure = target_failure(program, inputs, expected, actual)
    return "" if failure is None or failure.allowed else failure.message


def spread(program: Program, mesh: str) -> Sends:
    """Cut a program as the search plans for a mesh; the collectives that the plan says."""
    plan = plan_of(program, mesh_named(mesh), SMALL)
    planned: Sends = Counter((str(m.sent.kind), m.sent.bytes) for m in plan.messages())
    apply(plan)
    Partition().run(program, PassContext())
    return planned


def measured(member: Member, mesh: str) -> Row:
    """The row of a model on a mesh."""
    program = opened(member)
    whole, inputs = program.clone(), sample_inputs(program, 0)
    expected = interpret(program, inputs)
    planned = spread(program, mesh)
    lockstep = judged(whole, inputs, expected, interpret(program, inputs))
    devices = on_devices(program)
    reference = interpret(devices, inputs)
    model = gcomp.compile(devices, target="xla:cpu", pipeline="")
    executor: Any = model._executor  # pyright: ignore[reportPrivateUsage]
    actual = [np.asarray(result) for result in executor([*inputs])]
    counted = sends_in(executor.partitioned({}))
    more, fewer = counted - planned, planned - counted
    memory = executor.memory({})
    return Row(
        member.name, mesh, whole.op_count(), planned.total(), _bytes(planned), _bytes(counted),
        "; ".join(f"{word} {_text(sends)}" for word, sends in (("more", more), ("fewer", fewer)) if sends),
        lockstep, judged(devices, inputs, reference, actual), predicted_memory(devices),
        memory["arguments"] + memory["outputs"] + memory["temporaries"] - memory["shared"],
    )  # fmt: skip


def _bytes(sends: Sends) -> int:
    return sum(size * count for (_, size), count in sends.items())


def _text(sends: Sends) -> str:
    return ", ".join(f"{count} {kind} of {size} B" for (kind, size), count in sorted(sends.items()))


def rows(meshes: Sequence[str], models: Sequence[str], known: Sequence[Row]) -> Iterator[Row]:
    """A row for each model on each mesh; those that are known are not measured again."""
    found = {(row.model, row.mesh): row for row in known}
    for member in corpus(models).members:
        for mesh in meshes:
            yield found.get((member.name, mesh)) or measured(member, mesh)


# ---- the page -------------------------------------------------------------------------------------------------------

_HEAD = """# What plans for several devices do

Generated by `python -m tests.conformance.sharding_plans --write`; do not edit. For the corpus of forty small
architectures on meshes of eight devices: the [search](../guides/sharding_search.md) proposes a plan, `partition`
states what it sends, the reference runs it in lockstep on virtual devices, and XLA runs it on eight devices of the
processor.

"""
_CELLS = """
In each cell: collectives, bytes that are sent (of each, what it gives or takes on a device, whichever is more), and
predicted memory as a part of XLA's figure.

"""
_WHY = """
## How memory is predicted

The prediction ([gcomp/partitioning/memory](../../gcomp/partitioning/memory/)) knows what XLA computes again where it is
read, which copies it makes, in which order kernels run, what is written over what, and that results' places are used by
others before.
"""


def page(found: Sequence[Row]) -> str:
    """The page of rows."""
    meshes, models = list(dict.fromkeys(r.mesh for r in found)), list(dict.fromkeys(r.model for r in found))
    by = {(row.model, row.mesh): row for row in found}
    lines = [f"| model | {' | '.join(f'`{mesh}`' for mesh in meshes)} |", "|---" * (len(meshes) + 1) + "|"]
    for model in models:
        cells = [_cell(row) if (row := by.get((model, mesh))) is not None else "-" for mesh in meshes]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return _HEAD + "\n".join(_summary(found)) + "\n" + _CELLS + "\n".join([*lines, *_differences(found)]) + "\n" + _WHY


def _summary(found: Sequence[Row]) -> list[str]:
    ratios = [row.ratio for row in found]
    sending = [row for row in found if row.collectives]
    return [
        f"- {sum(not r.lockstep for r in found)} of {len(found)} agree with the program on one device in lockstep, and",
        f"  {sum(not r.xla for r in found)} by XLA (of `onnx/yolo`, what comes before its step on the host).",
        f"- {len(sending)} of them send, {sum(r.collectives for r in sending)} collectives in all: kinds and bytes are",
        f"  those in XLA's partitioned text for {sum(not r.differs for r in found)} of {len(found)}.",
        f"- The predicted memory of each device is within {NEAR:.0%} of XLA's figure for "
        f"{sum(abs(r - 1) <= NEAR for r in ratios)} of {len(found)}.",
        f"  It is {min(ratios):.2f} to {max(ratios):.2f} of it, in the median {statistics.median(ratios):.2f}.",
    ]


def _differences(found: Sequence[Row]) -> list[str]:
    sends = [f"- `{r.model}` on `{r.mesh}` sends {r.differs}." for r in found if r.differs]
    wrong = [f"- `{r.model}` on `{r.mesh}` {way}: {why}"
             for r in found for way, why in (("in lockstep", r.lockstep), ("by XLA", r.xla)) if why]  # fmt: skip
    return ["", "## What differs", "", *(sends or ["- XLA sends what is planned."]), *wrong]


NEAR = 0.1
"""How far from XLA's figure a prediction may be."""


def _cell(row: Row) -> str:
    sent = f"{row.collectives}, {row.counted / 1024:.1f} KiB" if row.collectives else "none"
    return f"{sent}, {row.ratio:.2f}"


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write the page; 1 if a plan does not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshes", nargs="+", default=list(MESHES))
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--keep", type=Path, default=None, help="keep rows there, and go on from them")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    kept: Path | None = options.keep
    known = [Row(**r) for r in json.loads(kept.read_text("utf-8"))] if kept is not None and kept.exists() else []
    found: list[Row] = []
    for row in rows(options.meshes, options.models, known):
        found.append(row)
        sys.stderr.write(json.dumps(asdict(row)) + "\n")
        if kept is not None:
            kept.write_text(json.dumps([asdict(r) for r in found]), "utf-8")
    if options.write:
        PAGE.write_text(page(found), "utf-8")
    else:
        sys.stdout.write(page(found))
    return int(any(row.lockstep or row.xla for row in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
