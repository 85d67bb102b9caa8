"""onnx_coverage.md: what gcomp takes of ONNX, operator by operator, from the registry and the suite's outcomes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import onnx

from gcomp.frontends.onnx.engine import registry
from gcomp.frontends.onnx.engine.functions import has_body
from gcomp.frontends.onnx.engine.importer import OLDEST_OPSET
from tests.conformance.suite import Case
from tests.conformance.summary import SCOPES, Results, Summary

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "onnx_coverage.md"
MICROSOFT = "com.microsoft"
TITLES = {
    "": "ONNX (`ai.onnx`)",
    "ai.onnx.ml": "Classical machine learning (`ai.onnx.ml`)",
    "ai.onnx.preview": "Preview (`ai.onnx.preview`)",
    "ai.onnx.preview.training": "Training (`ai.onnx.preview.training`)",
    MICROSOFT: "ONNX Runtime's own (`com.microsoft`)",
}
HEAD = """# ONNX coverage

Written by `python -m tests.conformance.run --write` (`make conformance`); do not edit.

gcomp imports models of opset {oldest} to {newest} (onnx {version}). The cases are those of the test suite that comes
with the onnx package: its node, simple, PyTorch and light models, each compiled through XLA as an ONNX backend
(`gcomp.onnx_backend`). ONNX Runtime {peer} runs the same cases, and one comparison serves both: that of
ONNX's own runner, with the tolerances of the case. Where a case draws random numbers, shapes and dtypes are compared.

A case is not counted where it is about strings, maps or sequences of varying structure. A sequence or optional varies
when how many elements it has, whether it is there, or which of its elements is which depends on the values of the
model's inputs. ONNX Runtime is helped where only its Python binding is in the way: the suite's newest IR version is
written as one that it reads, and bfloat16, 8-bit floats and 4-bit integers go around NumPy.

## Summary

"""
TABLE_HEAD = "| operator | opsets | supported | cases passed | why not, and where not |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Operator:
    """An operator: opset versions that it exists in, and those of them that gcomp imports, directly or expanded."""

    domain: str
    name: str
    exists: tuple[int, ...]
    direct: tuple[int, ...]
    expanded: tuple[int, ...]

    @property
    def opsets(self) -> str:
        """The opset versions that gcomp imports, for people."""
        if not (self.direct or self.expanded):
            return "none"
        direct = _ranges(self.direct, self.exists)
        expanded = f"{_ranges(self.expanded, self.exists)} (by ONNX's definition)" if self.expanded else ""
        return ", ".join(text for text in (direct, expanded) if text)

    @property
    def missing(self) -> tuple[int, ...]:
        """The opset versions that gcomp does not import."""
        return tuple(v for v in self.exists if v not in self.direct and v not in self.expanded)


@lru_cache(1)
def operators() -> tuple[Operator, ...]:
    """All operators of ONNX, and those of other domains that gcomp imports. It takes no suite to tell."""
    schemas: dict[tuple[str, str], list[onnx.defs.OpSchema]] = defaultdict(list)
    newest: dict[str, int] = Counter()
    for schema in onnx.defs.get_all_schemas_with_history():
        schemas[schema.domain, schema.name].append(schema)
        newest[schema.domain] = max(newest[schema.domain], schema.since_version)
    newest[""] = onnx.defs.onnx_opset_version()
    found = [_operator(*key, sorted(s, key=lambda x: x.since_version), newest) for key, s in schemas.items()]
    found += [
        Operator(domain, name, tuple(starts), tuple(starts), ())
        for (domain, name), starts in registry.registered_versions().items()
        if (domain, name) not in schemas
    ]
    return tuple(sorted((o for o in found if o.exists), key=lambda o: (o.domain, o.name)))


def _operator(domain: str, name: str, history: Sequence[onnx.defs.OpSchema], newest: Mapping[str, int]) -> Operator:
    first = OLDEST_OPSET if not domain else 1
    exists = [v for v in range(first, newest[domain] + 1) if _exists(history, v)]
    direct = [v for v in exists if registry.lookup(domain, name, v) is not None]
    expanded = [v for v in exists if v not in direct and has_body(domain, name, v)]
    return Operator(domain, name, tuple(exists), tuple(direct), tuple(expanded))


def _exists(history: Sequence[onnx.defs.OpSchema], version: int) -> bool:
    current = [schema for schema in history if schema.since_version <= version]
    return bool(current) and not current[-1].deprecated


def _ranges(versions: Sequence[int], exists: Sequence[int]) -> str:
    """`7–28`: runs of versions that are neighbours among those that exist."""
    texts: list[str] = []
    for i, v in enumerate(versions):
        if i and exists.index(v) == exists.index(versions[i - 1]) + 1:
            texts[-1] = f"{texts[-1].partition('–')[0]}–{v}"
        else:
            texts.append(str(v))
    return ", ".join(texts)


def row_start(operator: Operator) -> str:
    """What of an operator's row the registry decides."""
    return f"| {operator.name} | {operator.opsets} |"


def heading(domain: str) -> str:
    """The heading of a domain's table."""
    return f"### {TITLES.get(domain, f'`{domain}`')}"


# ---- with the suite's outcomes ----


def write(results: Mapping[str, Results], chosen: Sequence[Case]) -> None:
    """Renew the page with the outcomes of gcomp and ONNX Runtime."""
    PAGE.write_text(page(results, chosen), encoding="utf-8")


def page(results: Mapping[str, Results], chosen: Sequence[Case]) -> str:
    """The page's text."""
    import onnxruntime

    head = HEAD.format(
        oldest=OLDEST_OPSET,
        newest=onnx.defs.onnx_opset_version(),
        version=onnx.__version__,
        peer=onnxruntime.__version__,
    )
    parts = [head + "\n".join(_summary(results, chosen))]
    parts += ["## Host steps", _host_steps(results["gcomp"], chosen), "## Operators", OPERATORS_TEXT]
    parts += list(_operator_tables(results["gcomp"], chosen))
    parts += ["## Cases that do not pass", "\n".join(_failures(results["gcomp"], chosen))]
    return "\n\n".join(parts) + "\n"


OPERATORS_TEXT = """\
*opsets* are the versions of the operator's domain that gcomp imports; where gcomp has no importer of its own, ONNX's
definition of the operator by others is expanded. *partly* means that an opset version or a case is refused, and by
what. *cases passed* counts the suite's cases that use the operator at all. No operator computes on strings: gcomp's
tensors hold numbers."""


def _summary(results: Mapping[str, Results], chosen: Sequence[Case]) -> Iterator[str]:
    summaries = [Summary.of(engine, found, chosen) for engine, found in results.items()]
    for scope, text in SCOPES.items():
        yield f"{'' if scope == 'counted' else chr(10)}Cases {text}:\n"
        yield from (f"- {summary.line(scope)}" for summary in summaries)
    if summaries[0].missing:
        yield f"\n**{summaries[0].missing} cases were not run: their data was not on disk.**"


def _host_steps(found: Results, chosen: Sequence[Case]) -> str:
    using = Counter(name for case in chosen for name in set(found[case.name].host_steps))
    if not using:
        return "No case has a step that runs on the host."
    return (
        "Steps that run on the host in NumPy, as their result size depends on data, by the cases that have them:\n\n"
        + ("\n".join(f"- `{name}`: {count}" for name, count in sorted(using.items())))
    )


def _operator_tables(found: Results, chosen: Sequence[Case]) -> Iterator[str]:
    totals, passed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    reasons: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for case in chosen:
        outcome = found[case.name]
        totals.update(case.operators)
        if outcome.kind == "passed":
            passed.update(case.operators)
        elif outcome.kind != "no data":
            for key in _blamed(case, outcome.detail):
                reasons[key].setdefault(_reason(outcome.kind, outcome.detail))
    for domain in sorted({o.domain for o in operators()}):
        rows: list[str] = []
        for operator in (o for o in operators() if o.domain == domain):
            key = domain, operator.name
            cases = f"{passed[key]} of {totals[key]}" if totals[key] else ""
            why = list(reasons[key])[:4]
            status = _status(operator, why)
            if status == "no":
                why = [_why_not(operator)]
            elif operator.missing:
                why.insert(0, f"opset {_ranges(operator.missing, operator.exists)} is not imported")
            rows.append(f"{row_start(operator)} {status} | {cases} | {'; '.join(why)} |")
        yield heading(domain)
        yield TABLE_HEAD + "\n".join(rows)


def _status(operator: Operator, why: Sequence[str]) -> str:
    if not (operator.direct or operator.expanded):
        return "no"
    return "partly" if why or operator.missing else "yes"


def _why_not(operator: Operator) -> str:
    """Why an operator is not imported."""
    schema = onnx.defs.get_schema(operator.name, operator.exists[-1], operator.domain)
    for what in ("string", "map"):
        if any(all(what in text for text in value.types) for value in (*schema.inputs, *schema.outputs)):
            return f"it is about {what}s"
    return "there is no importer"


def _blamed(case: Case, detail: str) -> set[tuple[str, str]]:
    """The operators that a failure is about: those that it names, else the only one of the case.

    Whole networks and definitions written out in other operators do not say which of theirs it is.
    """
    named = {key for key in case.operators if re.search(rf"\((\w+\.)*{key[1]}\)|\b{key[1]} \(domain", detail)}
    return named or (set(case.operators) if len(case.operators) == 1 else set())


def _reason(kind: str, detail: str) -> str:
    """A refusal's reason without the names of the case's nodes and values."""
    if kind in ("rounding", "wrong"):
        return {"rounding": "only roundings differ", "wrong": "wrong results"}[kind]
    if kind != "unsupported":
        return kind
    found = re.search(r"/ why: (.*?)(?: / fix:|$)", detail)
    return re.sub(r"\s+", " ", (found[1] if found else detail.split(" / ")[0])).strip().rstrip(".").replace("|", "\\|")


def _failures(found: Results, chosen: Sequence[Case]) -> Iterator[str]:
    yield "| case | about | outcome | why |\n|---|---|---|---|"
    for case in chosen:
        outcome = found[case.name]
        if outcome.kind != "passed":
            detail = outcome.detail.replace("|", "\\|")
            yield f"| {case.name} | {case.category} | {outcome.kind} | {detail} |"
