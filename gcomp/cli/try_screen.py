"""What `gcomp try` prints: a few lines for each stage, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gcomp.cli.tables import FittedTable
from gcomp.trying.change import GPUS, Metrics, firing_elsewhere, total
from gcomp.trying.correct import RuleStatus
from gcomp.trying.findings import Findings, verdict
from gcomp.trying.stages import Trial
from gcomp.trying.worth import overall

_STYLES = {"wrong": "bold red", "misbehaves": "bold red", "unknown": "bold yellow", "right": "bold green"}
_SHOWN = 8
_ULP = 1.2e-7
"""What an error may grow by in any case: a unit in the last place of f32."""

FIGURES: Mapping[str, Callable[[Metrics], float]] = {
    "ops": lambda m: m.ops,
    "kernels": lambda m: m.kernels,
    "flops": lambda m: m.flops,
    "bytes moved": lambda m: m.bytes,
    "peak memory": lambda m: m.peak_bytes or 0,
    "code bytes": lambda m: m.code_bytes,
    "passes ms": lambda m: m.pass_seconds * 1e3,
}
"""What is added up over models that change."""


def stage_lines(stage: str, trial: Trial) -> Iterator[RenderableType]:
    """What to say once a stage is done."""
    yield from _LINES[stage](trial.found)


def _conduct(found: Findings) -> Iterator[RenderableType]:
    yield Text("correct?", style="bold")
    for said in found.correct.faults.values():
        yield Text(f"  it {said}", style="red")


def _proofs(found: Findings) -> Iterator[RenderableType]:
    for rule in found.correct.rules[:_SHOWN]:
        yield Text(f"  {rule.name}: {rule.status}{f', {rule.how}' if rule.how else ''}", style=_of_status(rule))
        if rule.counterexample:
            yield Text("    " + "\n    ".join(rule.counterexample.splitlines()[:6]), style="red")
    if len(found.correct.rules) > _SHOWN:
        yield Text(f"  and {len(found.correct.rules) - _SHOWN} rewrites more")


def _of_status(rule: RuleStatus) -> str:
    return {"proved": "green", "refuted": "red"}.get(rule.status, "yellow")


def _programs(found: Findings) -> Iterator[RenderableType]:
    c = found.correct
    yield Text(
        f"  {c.programs} programs aimed at it, {c.failing} fail: " + _rate(found), style="red" if c.failing else ""
    )
    for rule in sorted(c.rules, key=lambda rule: rule.applied)[:_SHOWN]:
        bound = "nothing is known of it" if rule.bound is None else f"fails with a rate below {rule.bound:.1e}"
        yield Text(f"    {rule.name}: applied {rule.applied} times in {rule.programs} programs; {bound}")
    for name in c.idle:
        yield Text(f"  {name} changed no program", style="yellow")


def _rate(found: Findings) -> str:
    c = found.correct
    return f"such programs fail with a rate below {c.bound:.1e} (95 %)" if c.judged else "nothing is known"


def _reduction(found: Findings) -> Iterator[RenderableType]:
    for case in found.correct.counterexamples:
        yield Text("  " + "\n  ".join(case.message.splitlines()[:5]), style="red")
        yield Text(f"  counterexample of {case.ops} ops, {case.path}:")
        yield Text("    " + "\n    ".join(case.text.splitlines()[:24]))
        yield Text(f"  again: {case.command}", style="dim")


def _values(found: Findings) -> Iterator[RenderableType]:
    for name, said in found.correct.values.items():
        yield Text(f"  {name}: {said}")


def _places(found: Findings) -> Iterator[RenderableType]:
    if not found.places:
        why = found.left_out.get("places")
        said = f"places were not tried: {why}" if why else "it changes no model at any place of the pipeline"
        yield Text(f"  {said}", style="yellow")
        return
    best = found.places[0]
    yield Text(f"  best place: {found.place} (applies {best.applied} times in {best.models} models there; "
               f"{len(found.places)} places tried at which it applies)")  # fmt: skip


def _changes(found: Findings) -> Iterator[RenderableType]:
    firing = found.firing
    yield Text("what does it change?", style="bold")
    names = ", ".join(f"{c.model} ({sum(c.applications.values())})" for c in firing)
    yield Text(f"  {len(firing)} of {len(found.changes)} models{': ' if names else ''}{names}")
    if same := [c for c in firing if c.same]:
        yield Text(f"  in {len(same)} of these, other passes would have done the same in the end")
    if len(firing) > len(same):
        yield figures_table(found)
    elsewhere = firing_elsewhere(firing)
    others = [f"{name} {b} -> {a}" for name, (b, a) in elsewhere.items() if name not in found.name.split(",")]
    if others:
        yield Text(f"  rewrites of other passes: {', '.join(others[:_SHOWN])}")
    for why in dict.fromkeys(found.skipped.values()):
        names = [name for name, said in found.skipped.items() if said == why]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Text(f"  skipped {', '.join(names[:_SHOWN])}{more}: {why}", style="yellow")
    if slow := found.correct.faults.get("slow"):
        yield Text(f"  it {slow}", style="red")


def figures_table(found: Findings) -> FittedTable:
    """Sums over the models that change."""
    table = FittedTable("of models that change", "before", "after", "", numbers=("before", "after"))
    for name, figure in (*FIGURES.items(), *_predictions(found)):
        before, after = total(found.firing, figure)
        change = f"{100 * (after / before - 1):+.1f} %" if before else ""
        table.add(name, number(before), number(after), change)
    return table


def _predictions(found: Findings) -> Iterator[tuple[str, Callable[[Metrics], float]]]:
    first = next(c.before for c in found.firing if c.before is not None)
    for machine in first.predicted:
        said = "GPU " if machine in GPUS else ""
        yield f"predicted us, {said}{machine}", lambda m, machine=machine: 1e6 * m.predicted.get(machine, 0.0)


def number(value: float) -> str:
    """A figure: whole, or with one place where it is small."""
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:,.1f}"


def bounds(ratio: Sequence[float]) -> str:
    """A ratio with its bounds."""
    middle, low, high = ratio
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def _misses(found: Findings) -> Iterator[RenderableType]:
    for miss in found.misses[:3]:
        yield Text(f"  nearest miss, {miss.count} times: {miss.rewrite}, but {miss.condition} ({miss.where})"[:220])


def _worth(found: Findings) -> Iterator[RenderableType]:
    yield Text("is it worth it?", style="bold")
    if not found.worth:
        changed = any(not change.same for change in found.firing)
        known = "no model is another in the end" if found.changes else "nothing is known of models"
        said = "no model that it changes was timed" if changed else known
        yield Text(f"  {said}", style="yellow")
        return
    mean = overall(found.worth)
    if mean is not None:
        yield Text(f"  run time with it over without, {len(found.worth)} models, one thread: {bounds(mean)}")
    for word, sure in (
        ("faster", [w for w in found.worth if w.faster]),
        ("slower", [w for w in found.worth if w.slower]),
    ):
        if sure:
            named = ", ".join(f"{w.model} {w.ratio[0]:.2f}" for w in sorted(sure, key=lambda w: w.ratio[0])[:6])
            yield Text(f"  surely {word}: {len(sure)} ({named})", style="green" if word == "faster" else "red")
    known = [w for w in found.worth if w.error_before is not None]
    grown = [w for w in known if (w.error_after or 0.0) > 2 * (w.error_before or 0.0) + _ULP]
    named = ", ".join(f"{w.model} {w.error_before:.1e} -> {w.error_after:.1e}" for w in grown[:6])
    if grown:
        yield Text(
            f"  the error against float64 more than doubles on {len(grown)} of {len(known)}: {named}", style="red"
        )
    elif known:
        yield Text(f"  the error against float64 at most doubles on all {len(known)}")


_LINES: Mapping[str, Callable[[Findings], Iterator[RenderableType]]] = {
    "conduct": _conduct, "proofs": _proofs, "programs": _programs, "reduction": _reduction, "values": _values,
    "places": _places, "changes": _changes, "misses": _misses, "worth": _worth,
}  # fmt: skip


def summary_lines(trial: Trial) -> Iterator[RenderableType]:
    """The verdict, and how long it took."""
    said = verdict(trial.found)
    text = Text(f"{trial.found.name}: ", style="bold")
    text.append(said.word, style=_STYLES[said.word])
    text.append(f", {said.why}")
    if said.worth:
        text.append(f"; {said.worth}")
    yield Text("")
    yield text
    spent = ", ".join(f"{name} {seconds:.0f}" for name, seconds in trial.found.seconds.items())
    yield Text(f"{sum(trial.found.seconds.values()):.0f} s: {spent}", style="dim")


# ---- two results ----


def compared(old: Mapping[str, Any], new: Mapping[str, Any], first: str, second: str) -> Iterator[RenderableType]:
    """Two stored results beside each other."""
    table = FittedTable("", first, second, prose=(first, second))
    for name, pick in _COMPARED:
        table.add(name, pick(old), pick(new))
    yield table
    for title, gone in (("no longer changed", _only(old, new)), ("newly changed", _only(new, old))):
        if gone:
            yield Text(f"{title}: {', '.join(gone)}")
    if old.get("corpus") != new.get("corpus"):
        yield Text("the two were tried on different versions of the corpus", style="yellow")


def _only(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return sorted(_fired(one).keys() - _fired(other).keys())


def _fired(data: Mapping[str, Any]) -> dict[str, int]:
    return {c["model"]: sum(c["applications"].values()) for c in data["changes"] if c["applications"]}


def _sum(data: Mapping[str, Any], key: str) -> str:
    pairs: Sequence[tuple[Any, Any]] = [
        (c["before"], c["after"]) for c in data["changes"] if c["before"] and c["after"]
    ]
    before, after = sum(b[key] or 0 for b, _ in pairs), sum(a[key] or 0 for _, a in pairs)
    return f"{number(before)} -> {number(after)}"


def _ratio(data: Mapping[str, Any]) -> str:
    mean = data.get("overall")
    return bounds(mean) if mean else "not timed"


_COMPARED: Sequence[tuple[str, Callable[[Mapping[str, Any]], str]]] = (
    ("verdict", lambda d: f"{d['verdict']}: {d['why']}"),
    ("programs, failures", lambda d: f"{d['correct']['programs']}, {d['correct']['failing']}"),
    ("rewrites proved", lambda d: str(sum(r["status"] == "proved" for r in d["correct"]["rules"]))),
    ("place", lambda d: d["place"] or "in the pipeline"),
    ("models changed", lambda d: str(len(_fired(d)))),
    ("applications", lambda d: str(sum(_fired(d).values()))),
    *((key.replace("_", " "), lambda d, key=key: _sum(d, key)) for key in ("ops", "kernels", "flops", "bytes",
                                                                          "peak_bytes", "code_bytes")),
    ("run time ratio", _ratio),
)  # fmt: skip


__all__ = ["FIGURES", "bounds", "compared", "figures_table", "number", "stage_lines", "summary_lines"]
