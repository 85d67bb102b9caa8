"""docs/generated/torch_opinfo.md: how torch's own operator database ends through gcomp, next to TorchInductor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.torch_opinfo.harness import DTYPES, PEER_SAMPLES, SAMPLES, Case
from tests.conformance.torch_opinfo.outcomes import CLASSES, Outcome

PAGE = Path(__file__).parents[3] / "docs" / "generated" / "torch_opinfo.md"
HEAD = """# torch's operators (OpInfo)

Written by `python -m tests.conformance.torch_opinfo.run --write`; do not edit.

The cases are the operators of torch's own database (`op_db` of torch {version}), each with the element types that it
has of {dtypes}. Up to {samples} samples of each, evenly spread over torch's, go through
`torch.compile(op, backend="gcomp", fullgraph=True, dynamic=False)` and are compared with eager torch: integers and
booleans are equal; floats are within the operator's own tolerances in torch's tests, or about as near to eager torch's
results in float64 as eager torch is itself. Where results are not unique (singular vectors), what does not depend on
the choice is compared, as torch's tests do. A case ends as the sample that ends worst.

TorchInductor ran the same cases on the same machine, with up to {peer} samples each, since it compiles C++. It may call
eager torch's kernels for what it does not compile; gcomp may not.

"""
NOTES: Mapping[str, str] = {
    "passed": "eager torch's results",
    "unsupported": "gcomp refuses, and says why",
    "wrong": "other results",
    "error": "any other exception",
    "crash": "the process died",
    "timeout": "it had to be ended",
    "not captured": "Dynamo does not capture the call as one graph, whatever the backend",
    "random": "eager torch's own results differ from call to call",
    "torch cannot": "eager torch raises, or has no sample",
}


def write(results: Mapping[Case, Outcome], inductor: Mapping[Case, Outcome]) -> None:
    """Renew the page."""
    PAGE.write_text(text(results, inductor), encoding="utf-8")


def text(results: Mapping[Case, Outcome], inductor: Mapping[Case, Outcome]) -> str:
    """The page's text."""
    from importlib.metadata import version

    head = HEAD.format(
        version=version("torch").partition("+")[0], dtypes=" and ".join(DTYPES), samples=SAMPLES, peer=PEER_SAMPLES
    )
    return head + _summary(results, inductor) + _counts(results, inductor) + _not_passed(results, inductor)


def _summary(results: Mapping[Case, Outcome], inductor: Mapping[Case, Outcome]) -> str:
    lines = "| element type | TorchInductor passes | of these gcomp passes | | gcomp passes, TorchInductor not |\n"
    lines += "|---|---|---|---|---|\n"
    for dtype in DTYPES:
        held = [case for case in results if case.dtype == dtype and _passes(inductor, case)]
        passed = sum(_passes(results, case) for case in held)
        more = sum(_passes(results, c) and not _passes(inductor, c) for c in results if c.dtype == dtype)
        lines += f"| {dtype} | {len(held)} | {passed} | {100 * passed / max(1, len(held)):.1f} % | {more} |\n"
    return f"## Summary\n\n{lines}\n"


def _passes(outcomes: Mapping[Case, Outcome], case: Case) -> bool:
    return case in outcomes and outcomes[case].kind == "passed"


def _counts(results: Mapping[Case, Outcome], inductor: Mapping[Case, Outcome]) -> str:
    columns = [(name, dtype) for dtype in DTYPES for name in ("gcomp", "TorchInductor")]
    sources = {"gcomp": results, "TorchInductor": inductor}
    counts = [Counter(o.kind for c, o in sources[name].items() if c.dtype == dtype) for name, dtype in columns]
    lines = "| outcome | " + " | ".join(f"{name}, {dtype}" for name, dtype in columns) + " | |\n"
    lines += "|---|" + "---|" * (len(columns) + 1) + "\n"
    for kind in CLASSES:
        lines += f"| {kind} | " + " | ".join(str(count[kind] or "") for count in counts) + f" | {NOTES[kind]} |\n"
    return f"## Outcomes\n\n{lines}\n"


def _not_passed(results: Mapping[Case, Outcome], inductor: Mapping[Case, Outcome]) -> str:
    """What gcomp does not pass, by family; cases of one operator with one reason stand together."""
    found: dict[str, dict[tuple[str, str, str], list[Case]]] = {}
    for case, outcome in sorted(results.items()):
        if outcome.kind in ("passed", "torch cannot", "random", "not captured"):
            continue
        row = (case.operator, outcome.kind, _reason(outcome.detail))
        found.setdefault(_family(case.operator), {}).setdefault(row, []).append(case)
    lines = "## Not passed\n"
    for family, rows in sorted(found.items()):
        lines += (
            f"\n### {family}\n\n| operator | element types | outcome | why | TorchInductor |\n|---|---|---|---|---|\n"
        )
        for (operator, kind, why), cases in rows.items():
            dtypes = ", ".join(case.dtype for case in cases)
            peers = ", ".join(dict.fromkeys(inductor[case].kind for case in cases if case in inductor))
            lines += f"| `{operator}` | {dtypes} | {kind} | {why} | {peers} |\n"
    others: dict[str, list[str]] = {}
    for case, outcome in sorted(results.items()):
        if outcome.kind in ("random", "not captured", "torch cannot"):
            others.setdefault(outcome.kind, []).append(str(case))
    for kind, cases in sorted(others.items()):
        lines += f"\n### {kind}\n\n{NOTES[kind].capitalize()}: {', '.join(f'`{c}`' for c in cases)}.\n"
    return lines


def _family(operator: str) -> str:
    return operator.rpartition(".")[0].partition(".")[0] if operator.startswith(_PREFIXES) else "tensors"


_PREFIXES = ("fft.", "linalg.", "masked.", "nn.", "signal.", "special.", "sparse.")


def _reason(detail: str) -> str:
    """A refusal's reason, without places and numbers of samples."""
    detail = re.sub(r"^sample \d+: ", "", detail)
    detail = re.sub(r": /[^ ]*:\d+, node \w+", "", detail)
    detail = detail.replace("gcomp does not import these operators: ", "")
    detail = re.sub(r"(\S+): \1:", r"\1:", detail)
    return " ".join(detail.split()).replace("|", "/")[:200]
