"""docs/generated/xla_cuda.md: what XLA's compiler for GPUs makes of programs, on a machine without one.

    python -m tests.conformance.gpu_plans [--meshes data=2,model=4 ...] [--models NAME ...] [--programs N] [--write]

Each of forty architectures is compiled for one GPU, and as the search's plan for eight of them on each of four meshes;
the bytes of the collectives in XLA's partitioned text are compared with those planned. Random programs are compiled
for one GPU. Nothing runs (`tests.support.gpu_compiler`, which says what must be installed).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sharding import MESHES, SMALL, opened
from gcomp.corpus.store import Member, corpus
from gcomp.errors import UnsupportedError
from gcomp.ir.program import Program
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import plan_of
from gcomp.passes.base import PassContext
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.passes.sharding.partition import Partition
from gcomp.passes.sharding.shard import apply
from gcomp.targets.base import target_named
from gcomp.testing.generate.program import seeded_program
from tests.conformance.sharding_plans import Sends, on_devices, sends_in, sends_of
from tests.support.gpu_compiler import ENVIRONMENT, MISSING, compile_for_gpus, is_there

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "xla_cuda.md"
ALONE = "one GPU"
_TARGET = target_named("xla:cuda")


class Row(NamedTuple):
    """A model on a mesh: why it is refused, what the compiler says against it, and how its collectives differ."""

    model: str
    mesh: str
    refused: str = ""
    wrong: str = ""
    differs: str = ""
    sent: int = 0


def compiled(program: Program, count: int) -> list[Any]:
    """What XLA makes of a program's segments for so many GPUs, at 4 of each size that inputs have open.

    Segments whose sizes steps on the host find are left out.

    Raises UnsupportedError for what gcomp refuses, jaxlib's JaxRuntimeError for what XLA does.
    """
    plan = _TARGET.lower(program, report=lambda _: None)
    sizes = dict.fromkeys(plan.signature.symbols, 4)
    return [
        compile_for_gpus(
            plan.templates[step.text].fill(sizes), count, len(step.inputs) + len(step.weights), len(step.outputs)
        )
        for step in plan.segments
        if plan.templates[step.text].symbols <= sizes.keys()
    ]


def row(member: Member, mesh: str) -> Row:
    """Compile a model for one GPU, or as planned for a mesh of eight."""
    program, planned, count = opened(member), Counter[str](), 1
    if mesh == ALONE:
        PassManager(parse_pipeline(_TARGET.pipeline())).run(program)
    else:
        plan, count = plan_of(program, mesh_named(mesh), SMALL), 8
        planned = _bytes_by_kind(sends_of(plan))
        apply(plan)
        Partition().run(program, PassContext())
        program = on_devices(program)
    try:
        made = compiled(program, count)
    except UnsupportedError as error:
        return Row(member.name, mesh, refused=_in_a_line(error))
    except Exception as error:  # of jaxlib's own kind, which is not named before it is imported
        return Row(member.name, mesh, wrong=str(error).splitlines()[0][:200])
    text = "\n".join(module.to_string() for executable in made for module in executable.hlo_modules())
    counted = _bytes_by_kind(sends_in(text))
    differs = ", ".join(
        f"{counted[kind]} B of {kind} where {planned[kind]} are planned"
        for kind in sorted(counted.keys() | planned.keys())
        if counted[kind] != planned[kind]
    )
    return Row(member.name, mesh, differs=differs, sent=counted.total())


def _in_a_line(error: UnsupportedError) -> str:
    what, *rest = str(error).splitlines()
    why = next((line.partition("why: ")[2] for line in rest if "why: " in line), "")
    return f"{what.removesuffix('.')}: {why.removesuffix('.')}"


def _bytes_by_kind(sends: Sends) -> Counter[str]:
    """XLA puts several small ones together: what they send is the same."""
    found: Counter[str] = Counter()
    for (kind, size), times in sends.items():
        found[kind] += size * times
    return found


def random_rows(count: int) -> Iterator[Row]:
    """Random programs, each for one GPU, after the target's passes."""
    for seed in range(count):
        program = seeded_program(seed)
        try:
            PassManager(parse_pipeline(_TARGET.pipeline())).run(program)
            compiled(program, 1)
        except UnsupportedError as error:
            yield Row(str(seed), ALONE, refused=_in_a_line(error))
        except Exception as error:
            yield Row(str(seed), ALONE, wrong=str(error).splitlines()[0][:200])
        else:
            yield Row(str(seed), ALONE)


def page(found: Sequence[Row], programs: Sequence[Row]) -> str:
    """The page of rows."""
    alone, spread = ([r for r in found if (r.mesh == ALONE) is one] for one in (True, False))
    lines = [
        "# What XLA's compiler for GPUs takes", "",
        "Generated by `python -m tests.conformance.gpu_plans --write`; do not edit. On a machine without a GPU,",
        "jaxlib's plugin for CUDA compiles for an H100 that is only described. Nothing ran or is measured.", "",
        f"- For one GPU: {_good(alone)} of {len(alone)} architectures of the corpus compile.",
        f"- For eight GPUs, as planned by the search: {_good(spread)} of {len(spread)} compile. XLA's partitioned text",
        f"  sends the bytes that are planned, by kind of collective, for "
        f"{sum(_is_good(r) and not r.differs for r in spread)} of {_good(spread)}",
        f"  ({sum(r.sent for r in spread):,} bytes of a call in all).",
        f"- Of {len(programs)} random programs {_good(programs)} compile, gcomp refuses "
        f"{sum(bool(r.refused) for r in programs)} by name, and XLA {sum(bool(r.wrong) for r in programs)}.", "",
        "## What does not", "",
    ]  # fmt: skip
    lines += [
        f"- `{r.model}` ({r.mesh}): {r.refused or r.wrong or r.differs}" for r in found if not _is_good(r) or r.differs
    ]
    lines += [f"- Random program {r.model}: {r.wrong}" for r in programs if r.wrong]
    refusals = Counter(r.refused.partition(": ")[0] for r in programs if r.refused)
    lines += [f"- Refused of random programs, {times} times: {why}" for why, times in refusals.most_common()]
    return "\n".join(lines) + "\n"


def _is_good(row: Row) -> bool:
    return not (row.refused or row.wrong)


def _good(rows: Sequence[Row]) -> int:
    return sum(map(_is_good, rows))


def main(arguments: Sequence[str]) -> int:
    """Compile, and print or write the page; 1 if XLA refuses a model that gcomp does not, or sends something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshes", nargs="+", default=[ALONE, *MESHES])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--programs", type=int, default=0, help="random programs")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    if not is_there():
        sys.stderr.write(f"{MISSING}\n")
        return 2
    os.environ.update(ENVIRONMENT)
    found: list[Row] = []
    for member in corpus(options.models).members:
        for mesh in options.meshes:
            found.append(row(member, mesh))
            sys.stderr.write(f"{found[-1]}\n")
    programs = list(random_rows(options.programs))
    if options.write:
        PAGE.write_text(page(found, programs), "utf-8")
    else:
        sys.stdout.write(page(found, programs))
    return int(any(r.wrong or r.differs for r in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
