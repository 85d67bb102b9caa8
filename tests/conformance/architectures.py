"""Architectures of transformers, small and random, exported with torch's two exporters, compiled and compared.

    python -m tests.conformance.architectures [NAME,NAME...] [--target TARGET] [--cache FOLDER] [--jobs N] [--write]

Each model is exported with dynamic dims, imported with them symbolic, compiled once, and run at the sizes that it was
exported with and at others. A result is right if its error against ONNX Runtime's, relative to the output's greatest
magnitude, is at most 2e-5 for f32 (1e-12 for f64, 4e-3 for f16, 3e-2 for bf16), or if it is at most twice as far from
torch's float64 result as ONNX Runtime's is. Exporting and checking run in worker processes with a time limit. Exports
are kept in the cache folder and made again when the table, the exporter or its libraries change. `--write` renews
docs/generated/onnx_architectures.md. Needs torch, transformers, onnxscript and onnxruntime; without them nothing is
checked, and the exit status is 77.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.conformance import target_page
from tests.conformance.architecture_check import STAGES, Outcome
from tests.conformance.architecture_table import ARCHITECTURES, Architecture, matching

NEEDED = ("torch", "transformers", "onnxscript", "onnxruntime")
EXPORTERS = ("dynamo", "torchscript")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "generated" / "onnx_architectures.md"
SKIPPED = 77
"""The exit status that says that nothing was checked."""


def versions(needed: Sequence[str] = NEEDED) -> dict[str, str | None]:
    """The installed versions of what the exports need; None for what is absent."""
    found: dict[str, str | None] = {}
    for name in needed:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def default_cache() -> Path:
    """A folder under the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcomp" / "architectures"


def folder_of(arch: Architecture, cache: Path) -> Path:
    """Where an architecture's exports are: by what they depend on."""
    source = Path(__file__).with_name("architecture_export.py").read_bytes()
    key = hashlib.sha256(source + repr((arch, sorted(versions().items()))).encode()).hexdigest()[:16]
    return cache / f"{arch.name}-{key}"


def worker(module: str, arguments: Sequence[str], limit: float) -> tuple[str, str]:
    """Run a module in a process of its own: what it printed, and why it failed or an empty text."""
    command = [sys.executable, "-m", f"tests.conformance.{module}", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "", f"it took longer than {limit:.0f} s"
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()]
        return done.stdout, f"exit status {done.returncode}: {last[-1][:300] if last else ''}"
    return done.stdout, ""


def run(arch: Architecture, cache: Path, limit: float, target: str) -> list[Outcome]:
    """Export an architecture where it is not in the cache, and check what each exporter made of it."""
    folder = folder_of(arch, cache)
    folder.mkdir(parents=True, exist_ok=True)
    why = ""
    if not (folder / f"{arch.name}.npz").exists():
        _, why = worker("architecture_export", [arch.name, str(folder)], limit)
    return [_check(arch.name, exporter, folder, why, limit, target) for exporter in EXPORTERS]


def _check(name: str, exporter: str, folder: Path, why: str, limit: float, target: str) -> Outcome:
    path = folder / f"{name}-{exporter}.onnx"
    if not path.exists() or not (folder / f"{name}.npz").exists():
        reason = path.with_suffix(".txt")
        text = reason.read_text(encoding="utf-8") if reason.exists() else why
        return Outcome(name, exporter, "missing", f"not exported: {text}")
    printed, why = worker("architecture_check", [str(path), name, exporter, target], limit)
    if why:
        return Outcome(name, exporter, "exported", f"crash: {why}")
    return Outcome(**json.loads(printed.splitlines()[-1]))


def run_all(
    chosen: Sequence[Architecture], run: Callable[[Architecture], list[Outcome]], jobs: int, console: Console
) -> list[Outcome]:
    """The outcomes of the architectures, in the table's order."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[str, list[Outcome]] = {}
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(jobs) as pool:
        task = progress.add_task("architectures", total=len(chosen))
        waiting = {pool.submit(run, arch): arch.name for arch in chosen}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            progress.update(task, advance=1, description=waiting[future])
    return [outcome for arch in chosen for outcome in found[arch.name]]


# ---- reports ---------------------------------------------------------------------------------------------------------


def first_cells(outcome: Outcome) -> Iterator[str]:
    """An outcome's name and exporter, the stages that it reached, and its distance from the peer."""
    reached = STAGES.index(outcome.stage)
    yield outcome.name
    yield outcome.exporter
    for stage in ("imported", "compiled", "matched"):
        yield "" if outcome.stage == "missing" else "yes" if reached >= STAGES.index(stage) else "no"
    yield "" if outcome.against_peer is None else f"{outcome.against_peer:.1e}"


def _cells(outcome: Outcome) -> Iterator[str]:
    yield from first_cells(outcome)
    yield _pair(outcome)
    yield ", ".join(f"{n} {f}" for f in dict.fromkeys(outcome.host) if (n := outcome.host.count(f)))
    why = textwrap.shorten(outcome.why, 200, placeholder=" ...") if outcome.stage == "missing" else outcome.why
    yield "; ".join(filter(None, (why, *outcome.notes)))


def _pair(outcome: Outcome) -> str:
    if outcome.against_float64 is None or outcome.peer_against_float64 is None:
        return ""
    return f"{outcome.against_float64:.1e} / {outcome.peer_against_float64:.1e}"


COLUMNS = (
    "architecture", "exporter", "imported", "compiled", "matched", "error", "from float64: gcomp / ORT", "host steps",
    "remarks",
)  # fmt: skip


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line: architectures that match with every exporter that exports them, and the count of each exporter."""
    exported = [o for o in outcomes if o.stage != "missing"]
    names = list(dict.fromkeys(o.name for o in exported))
    right = [n for n in names if all(o.match_dims for o in exported if o.name == n)]
    parts = (
        f"{e} {sum(o.match_dims for o in exported if o.exporter == e)} of {sum(o.exporter == e for o in exported)}"
        for e in EXPORTERS
    )
    return f"{len(right)} of {len(names)} architectures match ({', '.join(parts)})"


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print the table and the summary line."""
    table = Table(*COLUMNS)
    for outcome in outcomes:
        style = None if outcome.match_dims else "dim" if outcome.stage == "missing" else "red"
        table.add_row(*_cells(outcome), style=style)
    console.print(table)
    console.print(summary(outcomes))


def page(outcomes: Sequence[Outcome]) -> str:
    """The page of the documentation."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in _cells(o)) + " |" for o in outcomes]
    return "\n".join(
        (
            "# Architectures that gcomp is checked on",
            "",
            "Written by `python -m tests.conformance.architectures --write`, with " + used + ".",
            "",
            "These are small random models of transformers' architectures, exported with both of torch's exporters,",
            "imported with symbolic dims, compiled once, run at the sizes of the export (sizes 0 below) and at others",
            "(sizes 1), and compared with ONNX Runtime and with torch in float64. *Error* is the greatest difference",
            "from ONNX Runtime's result relative to the output's scale: 2e-5 is allowed in f32, or a distance from",
            "float64 of at most twice ONNX Runtime's own. Rows that are empty after the exporter's name are models",
            "that the exporter refuses, or exports so that ONNX Runtime refuses them.",
            "",
            f"**{summary(outcomes)}.**",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + " --- |" * len(COLUMNS),
            *rows,
            "",
        )
    )


def main() -> int:
    """Run the architectures whose names contain a part of the argument."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="parts of names, separated by commas")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where exports are kept")
    parser.add_argument("--target", default=target_page.OWN_PAGES, help="what gcomp compiles for")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one worker")
    parser.add_argument("--write", action="store_true", help="renew docs/generated/onnx_architectures.md")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 240)
    missing = [name for name, version in versions().items() if version is None]
    if missing:
        console.print(f"SKIPPED, no architecture was checked: {', '.join(missing)} not installed", style="bold yellow")
        return SKIPPED
    chosen = list(matching(options.pattern))
    outcomes = run_all(
        chosen, lambda arch: run(arch, options.cache, options.limit, options.target), options.jobs, console
    )
    show(outcomes, console)
    whole = options.write and len(chosen) == len(ARCHITECTURES)
    if whole and options.target == "cpu":
        target_page.renew_architectures("Architectures from files", "architectures", outcomes)
    elif whole and options.target == target_page.OWN_PAGES:
        PAGE.write_text(page(outcomes), encoding="utf-8")
    return 0 if all(o.match_dims or o.stage == "missing" for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
