"""How many of the attentions and norms of 40 architectures are found, by frontend: named by the source, and raised.

    python -m tests.conformance.raising [NAME,NAME...] [--cache FOLDER] [--jobs N] [--write]

What a source holds is counted while it runs in torch: calls of scaled_dot_product_attention and of softmax on weights,
and of norm modules. ONNX models are those that `tests.conformance.architectures` exported. `--write` renews
docs/generated/raising.md. Needs torch and transformers; without them nothing is counted, and the exit status is 77.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from tests.conformance.architecture_table import ARCHITECTURES, matching
from tests.conformance.architectures import ROOT, SKIPPED, default_cache, folder_of, versions, worker

FORTY = frozenset(
    ("albert", "bart", "bert", "bloom", "clip-text", "convbert", "deberta-v2", "distilbert", "electra",
     "falcon", "gemma", "gemma2", "gpt2", "gpt-neo", "gpt-neox", "hubert", "llama", "marian", "mbart",
     "mistral", "mixtral", "mobilebert", "modernbert", "mpnet", "mpt", "opt", "pegasus", "phi", "phi3", "qwen2",
     "qwen3", "resnet", "roberta", "squeezebert", "swin", "t5", "vit", "wav2vec2", "whisper", "xlnet")
)  # fmt: skip
"""The architectures that are counted unless others are named."""
PAGE = ROOT / "docs" / "generated" / "raising.md"
DOORS = ("torch.export", "ONNX, dynamo", "ONNX, torchscript")
HEAD = """# What raising finds

Counted by `python -m tests.conformance.raising --write`, on random models of transformers' architectures. A source
holds as many attentions and norms as it runs; a frontend names some (torch's operators, ONNX's), and the passes
`raise-*` find others in the primitives (the pipeline `gcomp.passes.pipelines.RAISE`). Attention counts where it has
become one composite, norms as `layer_norm`, `rms_norm` or `batch_norm_inference`.
"""


def main() -> int:
    """Count, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="?", default="")
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    console = Console()
    if missing := [name for name in ("torch", "transformers") if versions()[name] is None]:
        console.print(f"nothing was counted: {', '.join(missing)} is not installed")
        return SKIPPED
    chosen = list(matching(options.names)) if options.names else [a for a in ARCHITECTURES if a.name in FORTY]

    def run(arch: Any) -> dict[str, Any]:
        printed, why = worker("raising_check", [arch.name, str(folder_of(arch, options.cache))], 600)
        return json.loads(printed.splitlines()[-1]) if not why else {"name": arch.name, "why": why}

    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(track(pool.map(run, chosen), "architectures", total=len(chosen), console=console))
    text = "\n".join(_page(found))
    console.print(text, markup=False)
    if options.write:
        PAGE.write_text(text, "utf-8")
    return 0


def _page(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield HEAD
    for kind in ("attention", "norm"):
        yield f"## {kind.capitalize()}\n"
        yield "| frontend | in the sources | named | named or raised |"
        yield "|---|---|---|---|"
        for door in DOORS:
            counted = [
                (one["source"], one["doors"][door]) for one in found if "found" in one.get("doors", {}).get(door, {})
            ]
            held = sum(source.get(kind, 0) for source, _ in counted)
            named, total = (sum(result[key].get(kind, 0) for _, result in counted) for key in ("named", "found"))
            share = f" ({total / held:.0%})" if held else ""
            yield f"| {door} ({len(counted)} models) | {held} | {named} | {total}{share} |"
        yield ""
    yield "## Models\n"
    yield "Attentions and norms: in the source, then found by frontend.\n"
    yield f"| model | source | {' | '.join(DOORS)} |"
    yield "|---|---|" + "---|" * len(DOORS)
    for one in found:
        if "why" in one:
            yield f"| {one['name']} | {one['why'][:80]} |" + " |" * len(DOORS)
            continue
        cells = [_cell(one["doors"].get(door)) for door in DOORS]
        yield f"| {one['name']} | {_pair(one['source'])} | {' | '.join(cells)} |"
    yield ""


def _pair(counts: Mapping[str, int]) -> str:
    return f"{counts.get('attention', 0)}, {counts.get('norm', 0)}"


def _cell(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return ""
    return _pair(result["found"]) if "found" in result else str(result["error"])[:60]


if __name__ == "__main__":
    raise SystemExit(main())
