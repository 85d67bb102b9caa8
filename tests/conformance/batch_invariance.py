"""Whether a row's bits depend on the batch that it is in, and on threads: architectures on gcomp and on others.

    python -m tests.conformance.batch_invariance [NAME,NAME...] [--engines cpu,torch] [--write]

Row 0 of each architecture is computed in batches of 1 to 64 rows, on one and on two threads, and its bit patterns are
counted: one is what the target `cpu` promises. Each architecture is checked in a process of its own. `--write` renews
docs/generated/batch_invariance.md. The exit status is 1 where `cpu` has more than one pattern, or none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console

from tests.conformance.architecture_table import matching
from tests.conformance.architectures import ROOT, SKIPPED, versions, worker
from tests.conformance.batch_check import BATCHES, ENGINES, FEW_BATCHES

NEEDED = ("torch", "transformers", "onnxruntime", "openvino")
PAGE = ROOT / "docs" / "generated" / "batch_invariance.md"
CHOSEN = (
    "bert", "roberta", "distilbert", "albert", "electra", "deberta-v2", "xlnet", "modernbert", "gpt2", "gpt-neox",
    "opt", "bloom", "llama", "mistral", "qwen2", "gemma", "phi", "t5", "bart", "hubert", "wav2vec2", "vit", "swin",
    "dinov2", "clip-vision", "resnet", "convnext", "mobilenet-v2", "efficientnet", "segformer",
)  # fmt: skip
"""Of texts, with encoders and decoders, of sounds and of images."""

Patterns = Mapping[str, int | str]
"""Engine -> how many bit patterns, or why none."""


def page(found: Mapping[str, Patterns], engines: Sequence[str]) -> str:
    """The page of the documentation."""
    used = ", ".join(f"{name} {version}" for name, version in versions(NEEDED).items())
    reasons = [f"- {name}, {e}: {why}" for name, row in found.items() for e, why in row.items() if isinstance(why, str)]
    rows = [f"| {name} | {' | '.join(_cell(row.get(e, '')) for e in engines)} |" for name, row in found.items()]
    return "\n".join([
        "# Bits and batches",
        "",
        f"Written by `python -m tests.conformance.batch_invariance --write`, with {used}.",
        "",
        "Row 0 of small random models of transformers' architectures, computed in batches of",
        f"{', '.join(map(str, BATCHES))} rows, on 1 and on 2 threads: how many bit patterns it has. One is what the",
        "target `cpu` promises ([bits](../guides/semantics.md#bits-on-cpu)). `xla:cpu`, which compiles for each batch,",
        f"and whose threads are the process's, is tried on {', '.join(map(str, FEW_BATCHES))} rows.",
        "",
        f"| architecture | {' | '.join(engines)} |",
        "| --- |" + " ---: |" * len(engines),
        *rows,
        f"| **one pattern** | {' | '.join(f'**{_ones(found, e)} of {_counted(found, e)}**' for e in engines)} |",
        "",
        *([*reasons, ""] if reasons else []),
    ])  # fmt: skip


def _cell(value: int | str) -> str:
    return "-" if isinstance(value, str) else str(value)


def _ones(found: Mapping[str, Patterns], engine: str) -> int:
    return sum(row.get(engine) == 1 for row in found.values())


def _counted(found: Mapping[str, Patterns], engine: str) -> int:
    return sum(isinstance(row.get(engine), int) for row in found.values())


def main() -> int:
    """Count the patterns of the architectures whose names contain a part of the argument."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "pattern", nargs="?", default="", help="parts of names, separated by commas; else a choice of 30"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help="separated by commas")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one architecture")
    parser.add_argument("--write", action="store_true", help="renew docs/generated/batch_invariance.md")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    missing = [name for name, version in versions(NEEDED).items() if version is None]
    if missing:
        console.print(f"SKIPPED, nothing was counted: {', '.join(missing)} not installed", style="bold yellow")
        return SKIPPED
    engines = options.engines.split(",")
    names = [a.name for a in matching(options.pattern)] if options.pattern else CHOSEN
    found: dict[str, Patterns] = {}
    for name in names:
        printed, why = worker("batch_check", [name, options.engines], options.limit)
        found[name] = dict.fromkeys(engines, why) if why else json.loads(printed.splitlines()[-1])
        console.print(f"{name}: {found[name]}", soft_wrap=True, highlight=False)
    counts = [f"{engine} {_ones(found, engine)} of {_counted(found, engine)}" for engine in engines]
    console.print(f"one bit pattern in batches of {BATCHES[0]} to {BATCHES[-1]}: {', '.join(counts)}", soft_wrap=True)
    if options.write:
        PAGE.write_text(page(found, engines), encoding="utf-8")
    return int("cpu" in engines and _ones(found, "cpu") < len(found))


if __name__ == "__main__":
    sys.exit(main())
