"""A report: a compilation watched from the source to the plan, as the data of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from gcomp.analysis.machines import MACHINES
from gcomp.driver import compile
from gcomp.ir.program import Program
from gcomp.passes.base import Pass
from gcomp.passes.manager import PassManager
from gcomp.passes.registry import parse_pipeline
from gcomp.reference.sizes import symbols_in
from gcomp.report.changes import changes
from gcomp.report.costs import LaunchPlan, costs_of, plans_of
from gcomp.report.graph import Level, Node, level_of, level_to_json
from gcomp.report.kernels import Reason, kernel_rows, reasons_of, sources_of
from gcomp.report.lines import Lines
from gcomp.report.matching import Listing, listing_of
from gcomp.report.memory import artifact_view, memory_view
from gcomp.report.origins import Origins
from gcomp.report.page import View, report_page
from gcomp.report.recording import Change, PassRecord, Recorder, Size
from gcomp.report.rewrites import rewrite_rows
from gcomp.report.roofline import points, roofline_view
from gcomp.runtime.engine import Ability
from gcomp.runtime.model import Model
from gcomp.runtime.profiling import Profile
from gcomp.runtime.sampling import random_inputs, sizes_for
from gcomp.sources import import_model
from gcomp.targets.base import target_named

PLANNING = "plan-memory"
"""The pass that ends a pipeline whose kernels gcomp makes: lowering needs what it says."""

CONTEXT, ROWS = 2, 400
"""Lines around a change in a difference, and lines of it that a page holds."""


@dataclass
class Report:
    """What a page shows: `data` opens with it, `texts` of kernels when one is looked at."""

    title: str
    data: dict[str, Any]
    texts: dict[str, str] = field(default_factory=dict[str, str])
    lines: Lines = field(default_factory=Lines)
    listings: dict[str, Listing] = field(default_factory=dict[str, Listing])
    """The program on each level of the graph, for comparisons."""

    def page(self) -> str:
        """The page, as one file."""
        return report_page(self.title, self.data, self.texts)

    def save(self, path: str | Path) -> None:
        """Write the page."""
        Path(path).write_text(self.page(), "utf-8")

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame."""
        return f'<iframe srcdoc="{escape(self.page())}" style="width:100%;height:720px;border:1px solid #ccc"></iframe>'


class _Watch(Recorder):
    """A recorder that keeps the graphs of all levels, and the program as it is in the end."""

    def __init__(self, origins: Origins, machine: str, *, errors: bool) -> None:
        super().__init__(self._imported, self._optimized, errors=errors)
        self.origins, self._machine = origins, machine
        self.levels: list[Level] = []
        self.reasons: list[Reason] = []
        self.program: Program | None = None
        self.listings: dict[str, Listing] = {}
        self.level_errors: dict[str, Mapping[Operation, float]] = {}

    def before(self, step: Pass, program: Program) -> None:
        self.program = program
        super().before(step, program)

    def _imported(self, program: Program) -> None:
        self._keep(program, "imported")

    def _optimized(self, program: Program) -> None:
        self._keep(program, "optimized")
        self.reasons = reasons_of(program, self._machine)

    def errors_on(self, level: str) -> Mapping[Operation, float]:
        """The errors of values on a level."""
        return self.level_errors.get(level, self.value_errors)

    def _keep(self, program: Program, level: str) -> None:
        self.level_errors[level] = self.value_errors
        self.levels.append(level_of(program, level, self.lines, self.origins))
        self.listings[level] = listing_of(program, self.lines)


def report_of(
    source: Any,
    *args: Any,
    target: str,
    title: str = "",
    pipeline: str | None = None,
    errors: bool = False,
    profile: bool | Profile = False,
    inputs: Mapping[str, Any] | None = None,
    progress: Callable[[str], object] = lambda _: None,
    **keywords: Any,
) -> Report:
    """The report of a compilation. `source`, `args` and `keywords` are those of `gcomp.compile`.

    With `errors` the reference runs the program after each pass that changed it, however large it is. With `profile`
    the model runs here, on `inputs` by name, random ones where there are none. Raises GcompError.
    """
    from gcomp.frontends.onnx.model.modules import node_modules

    chosen = target_named(target)
    watch = _Watch(Origins(node_modules(source)), chosen.machine, errors=errors)
    if chosen.can(Ability.LAUNCHES) and pipeline is not None and PLANNING not in pipeline:
        # These passes end before there is anything to lower.
        given = {key: keywords[key] for key in ("dims", "structures", "constants") if key in keywords}
        program = import_model(source, *args, **given)
        PassManager(parse_pipeline(pipeline), [watch]).run(program)
        watch.finish(program)
        return _report(title or str(source)[:80], watch, program, None, None)
    runs = profile is True
    model = compile(
        source, *args, target=target, pipeline=pipeline, instruments=[watch], progress=progress, prepare=runs,
        **keywords,
    )  # fmt: skip
    assert watch.program is not None, "a pipeline has a pass"
    watch.finish(watch.program)
    found = profile if isinstance(profile, Profile) else None
    if runs:
        progress("profile")
        arrays: dict[str, Any] = {**random_inputs(model, {}), **(inputs or {})}
        found = model.profile(*[arrays[port.name] for port in model.inputs if port.name in arrays])
    progress("page")
    return _report(title or str(source)[:80], watch, watch.program, model, found)


def _report(title: str, watch: _Watch, program: Program, model: Model | None, profile: Profile | None) -> Report:
    lines, plan, sizes = watch.lines, None, dict[str, int]()
    kernels, texts = list[dict[str, Any]](), dict[str, str]()
    if model is not None and model.on.can(Ability.LAUNCHES):
        sizes = sizes_for(model.plan.signature, {})
        level = level_of(program, "kernels", lines, watch.origins)
        watch.levels.append(level)
        plan = next(iter(plans_of(model)), None)
        if plan is not None:
            target = target_named(model.target)
            kernels = kernel_rows(level, program, plan, sizes, lines, profile, target.accounts(program))
            texts = sources_of(model.plan.texts, target.code_texts(program), kernels)
    data = {
        "title": title, "facts": _facts(model, plan, kernels, profile, sizes, watch),
        "passes": [_pass(record, watch) for record in watch.passes], "errorNote": watch.error_note,
        "firstError": watch.first_error,
        "levels": [
            level_to_json(level, _share(level, kernels), watch.errors_on(level.name)) for level in watch.levels
        ],
        "kernels": kernels, "reasons": _reasons(watch.reasons, kernels),
        "memory": _memory(program, plan, sizes).to_json() if plan is not None else None,
        "roofline": _roofline(plan, sizes, kernels), "times": _times(profile),
        "origins": [[o.name, ".".join(o.scope), o.line, o.text] for o in watch.origins.all],
        "lines": lines.texts,
    }  # fmt: skip
    return Report(title, data, texts, lines, watch.listings)


def _share(level: Level, kernels: Sequence[Mapping[str, Any]]) -> Callable[[Node], float]:
    """The part of the time of all kernels that a node takes: measured, else predicted."""
    if level.name != "kernels" or not kernels:
        return lambda node: 0.0
    times = {row["node"]: row["measured"] if row["measured"] is not None else row["us"] or 0.0 for row in kernels}
    whole = sum(times.values()) or 1.0
    parts = {n: time / whole for n, time in times.items()}
    return lambda node: parts.get(node.number, 0.0)


def _facts(
    model: Model | None, plan: LaunchPlan | None, kernels: Sequence[Mapping[str, Any]], profile: Profile | None,
    sizes: Mapping[str, int], watch: _Watch,
) -> list[list[str]]:  # fmt: skip
    """What stands in the head of a page."""
    first, last = watch.passes[0].before, watch.passes[-1].after
    found = [] if model is None else [["target", model.target]]
    found.append(["ops", f"{first.ops:,} \u2192 {last.ops:,}"])
    if sizes:
        found.append(["sizes", ", ".join(f"{name}={size}" for name, size in sizes.items())])
    if kernels:
        predicted = sum(row["us"] or 0.0 for row in kernels)
        found += [["kernels", f"{len(kernels):,}"], ["predicted", _duration(predicted)]]
    if profile is not None:
        found.append(["measured", _duration(1e6 * profile.step_seconds)])
    if model is not None:
        found.append(["weights", f"{sum(w.nbytes for w in model.weights.values()) / 1e6:,.1f} MB"])
    seconds = sum(record.seconds for record in watch.passes)
    return [*found, ["passes", f"{len(watch.passes)} in {1e3 * seconds:,.0f} ms"]]


def _duration(microseconds: float) -> str:
    return f"{microseconds:,.1f} \u00b5s" if microseconds < 1000 else f"{microseconds / 1e3:,.2f} ms"


# ---- passes ----


def _pass(record: PassRecord, watch: _Watch) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": record.name, "law": record.law, "level": record.level, "us": round(1e6 * record.seconds),
        "changed": record.changed, "before": _size(record.before), "after": _size(record.after),
        "verdict": record.verdict, "meaning": record.meaning, "error": record.error, "rewrites": rewrite_rows(record),
    }  # fmt: skip
    if record.change is not None:
        found |= change_to_json(record.change, watch.lines, record.old_errors, record.new_errors)
    return found


def change_to_json(change: Change, lines: Lines, *errors: Mapping[Operation, float]) -> dict[str, Any]:
    """What changed, drawn and as text."""
    rows = _hunks(change.difference.rows)
    return {
        "removed": sum(sign == "-" for sign, _ in change.difference.rows),
        "added": sum(sign == "+" for sign, _ in change.difference.rows),
        "text": rows[:ROWS], "more": max(0, len(rows) - ROWS), "kinds": changes(change, lines, *errors),
    }  # fmt: skip


def _size(size: Size) -> list[int | None]:
    return [size.ops, size.bytes, size.peak]


def _hunks(rows: Sequence[tuple[str, int]]) -> list[list[Any]]:
    """The rows that changed with those around them; a gap is a row of its length."""
    near = [False] * len(rows)
    for i, (sign, _) in enumerate(rows):
        if sign != " ":
            for k in range(max(0, i - CONTEXT), min(len(rows), i + CONTEXT + 1)):
                near[k] = True
    found: list[list[Any]] = []
    for is_near, group in groupby(zip(near, rows, strict=True), key=lambda pair: pair[0]):
        items = [row for _, row in group]
        found += [list(row) for row in items] if is_near else [["~", len(items)]]
    return found


# ---- other views ----


def _reasons(reasons: Sequence[Reason], kernels: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Pairs of kernels by number, and why they are two."""
    numbers = {(row["label"], row["place"]): n for n, row in reversed(list(enumerate(kernels)))}
    return [
        [numbers[r.first], numbers[r.second], r.text, round(r.microseconds, 2)]
        for r in reasons if r.first in numbers and r.second in numbers
    ]  # fmt: skip


def _memory(program: Program, plan: LaunchPlan, sizes: Mapping[str, int]) -> View:
    """The arena at the largest sizes; where these have no bound, at the sizes of the profile."""
    is_open = any(program.ranges[name].hi is None for name in symbols_in(program))
    return artifact_view(plan, sizes) if is_open else memory_view(program)


def _roofline(
    plan: LaunchPlan | None, sizes: Mapping[str, int], kernels: Sequence[Mapping[str, Any]]
) -> dict[str, str] | None:
    machine = None if plan is None else MACHINES.get(plan.architecture)
    if plan is None or machine is None:
        return None
    # A kernel with several launches was measured with all of them.
    alone = {row["kernels"][0]: row["measured"] for row in kernels if len(row["grid"]) == 1 and row["measured"]}
    measured = {cost.kernel.text: 1e-6 * alone[cost.kernel.name] for cost in costs_of(plan, sizes)
                if cost.kernel.name in alone}  # fmt: skip
    return roofline_view(points(costs_of(plan, sizes), measured), machine).to_json()


def _times(profile: Profile | None) -> dict[str, Any] | None:
    if profile is None:
        return None
    return {
        "summary": profile.summary,
        "rows": [
            [r.kind, r.label, r.place, r.count, round(1e6 * r.seconds, 3),
             None if r.predicted is None else round(1e6 * r.predicted, 3), r.flops, r.bytes]
            for r in profile.rows
        ],
        "samples": [
            [s.kind, s.label, round(1e6 * s.start, 2), round(1e6 * s.seconds, 2)] for s in profile.samples
        ],
    }  # fmt: skip


__all__ = ["Report", "change_to_json", "report_of"]
