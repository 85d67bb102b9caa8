"""docs/generated/cpu_conformance.md: how suites end on the target `cpu`. Each runner's `--write` renews its section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.conformance.architecture_check import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "cpu_conformance.md"
HEAD = """# What passes on the target cpu

Each section is written by the command that it names; do not edit. The suites, and what counts as passing, are those of
the pages of `xla:cpu`: [ONNX](onnx_coverage.md), [JAX](jax_primitives.md), [torch](torch_opinfo.md), architectures
[from files](onnx_architectures.md) and [from torch.export](torch_architectures.md).
"""
OWN_PAGES = "xla:cpu"
"""The target that the suites' own pages are of. They were written first for it; it is the second opinion on `cpu`."""
MOST = 12
"""Cases that are named where many share a reason."""


class Ended(Protocol):
    """How a case ended."""

    @property
    def kind(self) -> str:
        """The class of its outcome."""
        ...

    @property
    def detail(self) -> str:
        """What there is to say of it."""
        ...


def renew(suite: str, command: str, results: Mapping[str, Ended], nobodys: tuple[str, ...] = ()) -> None:
    """Write the section of a suite. Outcomes of the classes `nobodys` are counted, and not listed."""
    sections = _sections(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    sections[suite] = _section(command, results, nobodys)
    page = HEAD + "".join(f"\n## {name}\n{text}" for name, text in sorted(sections.items()))
    PAGE.write_text(page.replace(f"{PAGE.parents[2]}/", ""), "utf-8")  # files are said from the checkout's folder on


def renew_architectures(suite: str, module: str, outcomes: Sequence[Outcome]) -> None:
    """Write the section of architectures that a module of this folder ran."""
    command = f"python -m tests.conformance.{module} --target cpu --write"
    renew(suite, command, {f"{o.name} ({o.exporter})": o for o in outcomes}, ("not exported",))


def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", page, flags=re.M)[1:]
    return {name: f"{text.rstrip()}\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _section(command: str, results: Mapping[str, Ended], nobodys: tuple[str, ...]) -> str:
    counts = Counter(outcome.kind for outcome in results.values())
    held = counts.total() - sum(counts[kind] for kind in nobodys)
    each = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    why: dict[tuple[str, str], list[str]] = {}
    for name, outcome in sorted(results.items()):
        if outcome.kind not in ("passed", *nobodys):
            why.setdefault((outcome.kind, _reason(outcome.detail)), []).append(name)
    rows = [f"| {kind} | {reason} | {_names(cases)} |\n" for (kind, reason), cases in sorted(why.items())]
    table = "\n| outcome | why | cases |\n|---|---|---|\n" + "".join(rows) if rows else ""
    return f"\n`{command}`: {held} cases: {each}.\n{table}"


def _names(cases: list[str]) -> str:
    more = f" and {len(cases) - MOST} more" if len(cases) > MOST else ""
    return ", ".join(f"`{name}`" for name in cases[:MOST]) + more


def _reason(detail: str) -> str:
    """A reason without what is the case's own: numbers of samples, places and names of values."""
    detail = re.sub(r"^sample \d+: ", "", detail)
    detail = re.sub(r"`[^`]*`", "...", detail)
    detail = re.sub(r"/[^ ]*/site-packages/", "", detail)
    return " ".join(detail.split()).replace("|", "/")[:160]


__all__ = ["OWN_PAGES", "PAGE", "Ended", "renew"]
