"""Counts of outcomes: over the cases that gcomp is held to, and over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.conformance.outcomes import CLASSES, Outcome
from tests.conformance.suite import Case

Results = dict[str, Outcome]
"""Case name -> outcome."""

SCOPES = {
    "counted": "without strings, maps and sequences of varying structure",
    "all": "of all kinds",
}
NAMES = {"gcomp": "gcomp (XLA)", "cpu": "gcomp (cpu)", "reference": "gcomp (reference)", "onnxruntime": "ONNX Runtime"}


@dataclass(frozen=True)
class Summary:
    """Counts for one engine. `host` and `fixed` count cases, `steps` host steps."""

    engine: str
    counts: Mapping[str, Counter[str]]
    host: Mapping[str, int]
    steps: Mapping[str, int]
    fixed: Mapping[str, int]
    missing: int

    @staticmethod
    def of(engine: str, results: Results, chosen: Sequence[Case]) -> Summary:
        """The summary of an engine's outcomes."""
        names = {
            "counted": [case.name for case in chosen if case.category == "tensor"],
            "all": [case.name for case in chosen],
        }
        present = {k: [results[n] for n in ns if results[n].kind != "no data"] for k, ns in names.items()}
        return Summary(
            engine,
            {k: Counter(o.kind for o in found) for k, found in present.items()},
            {k: sum(bool(o.host_steps) for o in found) for k, found in present.items()},
            {k: sum(len(o.host_steps) for o in found) for k, found in present.items()},
            {k: sum(o.fixed > 0 for o in found) for k, found in present.items()},
            len(names["all"]) - len(present["all"]),
        )

    def line(self, scope: str) -> str:
        """One line of text."""
        counts, total = self.counts[scope], self.counts[scope].total()
        rest = ", ".join(f"{counts[kind]} {kind}" for kind in CLASSES[1:-1])
        extra = ""
        if self.engine != "onnxruntime":
            extra = f"; {self.steps[scope]} host steps in {self.host[scope]} cases"
            extra += f"; {self.fixed[scope]} cases with inputs given as constants" if self.fixed[scope] else ""
        share = 100 * counts["passed"] / total if total else 0.0
        return f"{NAMES[self.engine]}: {counts['passed']} of {total} passed ({share:.2f} %), {rest}{extra}"

    def cells(self, scope: str) -> list[str]:
        """The line as cells of a table."""
        counts = self.counts[scope]
        ours = self.engine != "onnxruntime"
        return [
            NAMES[self.engine],
            str(counts.total()),
            *(str(counts[kind]) for kind in CLASSES[:-1]),
            f"{self.steps[scope]} in {self.host[scope]}" if ours else "",
            str(self.fixed[scope]) if ours else "",
        ]
