"""How TorchInductor ends on the same cases: measured once (`run --peer`), since it compiles C++, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.conformance.torch_opinfo.harness import PEER_SAMPLES, Case
from tests.conformance.torch_opinfo.outcomes import Outcome

KEPT = Path(__file__).with_name("inductor.txt")


def load() -> dict[Case, Outcome]:
    """What is known of TorchInductor."""
    if not KEPT.exists():
        return {}
    found: dict[Case, Outcome] = {}
    for line in KEPT.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, kind, *detail = line.split("\t")
            found[Case.of(name)] = Outcome(kind, *detail)
    return found


def save(known: Mapping[Case, Outcome]) -> None:
    """Keep it."""
    from importlib.metadata import version

    head = f"# TorchInductor of torch {version('torch').partition('+')[0]} on CPU, {PEER_SAMPLES} samples each\n"
    rows = [
        "\t".join([str(case), outcome.kind, _plain(outcome.detail)]).rstrip() for case, outcome in sorted(known.items())
    ]
    KEPT.write_text(head + "\n".join(rows) + "\n", "utf-8")


def _plain(detail: str) -> str:
    return " ".join(detail.split())[:120]
