"""`make docs`: renews the generated pages. Which command writes which page is said here, and nowhere else.

    python -m tools.docs [--all] [PAGE ...]

Without `--all`, those that take more than minutes are left as they are, and their commands are printed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs" / "generated"


@dataclass(frozen=True)
class Page:
    """A generated page, what writes it (a module and its options), and about how many minutes that takes."""

    name: str
    command: str
    minutes: float = 0.0


PAGES = (
    Page("passes.md", "tools.pass_table"),
    Page("rules.md", "tools.rules_table"),
    Page("ops.md", "tools.op_table", 0.5),
    Page("sharding_rules.md", "tools.sharding_table", 0.2),
    Page("torch_operators.md", "tools.torch_table", 0.5),
    Page("proofs.md", "tools.prove_table", 10),
    Page("reach.md", "tools.reach_table", 3),
    Page("ulp.md", "tools.ulp_table", 5),
    Page("functions.md", "tools.function_table", 3),
    Page("jax_primitives.md", "tests.conformance.jax_primitives.run --write", 20),
    Page("jax_programs.md", "tests.conformance.jax_programs.run --write", 20),
    Page("onnx_coverage.md", "tests.conformance.run --write", 30),
    Page("onnx_architectures.md", "tests.conformance.architectures --write", 60),
    Page("torch_architectures.md", "tests.conformance.torch_architectures --write", 60),
    Page("torch_opinfo.md", "tests.conformance.torch_opinfo.run --write", 60),
    Page("batch_invariance.md", "tests.conformance.batch_invariance --write", 15),
    Page("raising.md", "tests.conformance.raising --write", 30),
    Page("conditions.md", "tests.mutants.conditions --write", 30),
    Page("gallery.md", "tests.gallery --write", 15),
    Page("pass_value.md", "tools.pass_value", 40),
    Page("published_bugs.md", "tests.mutants.published --write", 60),
    Page("mutants.md", "tests.mutants.run --seeds 5 --write", 50),
    Page("suite_mutants.md", "tests.mutants.automatic --sample 300 --write", 200),
    Page("automatic_mutants.md", "tests.mutants.front_doors --sample 30 --seeds 3 --write", 90),
    Page("training.md", "benchmarks.training --write", 30),
    Page("onnx_training.md", "benchmarks.onnx_training --write", 60),
)
SOON = 5.0
"""Minutes up to which a page is renewed without being asked for."""


def main() -> int:
    """Renew pages; 1 where a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="names of pages, as passes.md")
    parser.add_argument("--all", action="store_true", help="those that take long, too")
    options = parser.parse_args()
    if unknown := set(options.pages) - {page.name for page in PAGES}:
        parser.error(f"there is no generated page {unknown.pop()}; there are: {', '.join(page.name for page in PAGES)}")
    failed = 0
    for page in PAGES:
        if options.pages and page.name not in options.pages:
            continue
        if not options.pages and not options.all and page.minutes > SOON:
            print(f"left: {page.name} takes {page.minutes:.0f} minutes: python -m {page.command}")
            continue
        started = time.monotonic()
        status = subprocess.run([sys.executable, "-m", *shlex.split(page.command)]).returncode
        print(f"{page.name}: {'renewed' if status == 0 else 'FAILED'}, {time.monotonic() - started:.0f} s", flush=True)
        failed += status != 0
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
