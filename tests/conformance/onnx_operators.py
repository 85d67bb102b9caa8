"""The table of ONNX operators that docs/onnx_operators.md holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import onnx

from gcomp.frontends.onnx import registry
from gcomp.frontends.onnx.functions import has_body
from tests.conformance.onnx_nodes import cases, operator

OLDEST = 7
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
HEAD = """# ONNX operators

Written by `python -m tests.conformance.onnx_nodes --write`; do not edit.

gcomp imports opset 7 to {newest}. *Imported* says from which opset version; *as a function* means that ONNX's own
definition of the operator is expanded. The last column counts ONNX's node tests that pass, run by the reference
interpreter; shapes and axes that the tests give as inputs are fixed as constants where they decide result sizes.

| operator | versions | imported | node tests |
|---|---|---|---|
"""


def table(failures: Mapping[str, str]) -> str:
    """The document, for the cases that fail."""
    versions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            versions[schema.domain, schema.name].append(schema.since_version)
    totals, passed = Counter[str](), Counter[str]()
    for name, case in cases().items():
        if not name.endswith("_expanded"):
            totals[operator(case)] += 1
            passed[operator(case)] += name not in failures
    rows = [_row(*key, sorted(found), totals, passed) for key, found in sorted(versions.items())]
    return HEAD.format(newest=onnx.defs.onnx_opset_version()) + "\n".join(rows) + "\n"


def _row(domain: str, name: str, versions: list[int], totals: Counter[str], passed: Counter[str]) -> str:
    shown = f"{domain}.{name}" if domain else name
    tests = f"{passed[name]} of {totals[name]}" if totals[name] else ""
    return f"| {shown} | {', '.join(map(str, versions))} | {_imported(domain, name, versions)} | {tests} |"


def _imported(domain: str, name: str, versions: list[int]) -> str:
    starts = registry.registered().get((domain, name))
    oldest = OLDEST if not domain else 1
    if starts:
        return f"from {max(starts[0], versions[0], oldest)}"
    covered = [v for v in versions if has_body(domain, name, v)]
    return f"from {max(covered[0], oldest)}, as a function" if covered else "not yet"
