"""The page of `gcomp try`: all findings in one self-contained file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from gcomp.cli.try_screen import FIGURES, bounds, number
from gcomp.trying.change import Change, firing_elsewhere, total
from gcomp.trying.findings import Findings, verdict
from gcomp.trying.stages import Trial
from gcomp.trying.worth import Worth, overall

_COLOURS = {"wrong": "#b3261e", "misbehaves": "#b3261e", "unknown": "#9a6b00", "right": "#1b7f3b"}

_NAMED = 3
"""So many rewrites are named for a model."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gcomp try {name}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 24px 32px; max-width: 1320px; color: #1d1d1f; }}
h1 {{ font-size: 26px; margin: 0 0 4px; }} h2 {{ font-size: 19px; margin: 32px 0 8px; border-bottom: 1px solid #ddd; }}
.verdict {{ font-size: 20px; padding: 14px 18px; border-left: 6px solid {colour}; background: #f6f7f9; }}
.verdict b {{ color: {colour}; }}
table {{ border-collapse: collapse; margin: 10px 0; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 600; color: #555; border-bottom: 1px solid #bbb; }}
td, th {{ padding: 3px 14px 3px 0; vertical-align: top; }} td.n, th.n {{ text-align: right; white-space: nowrap; }}
tr:hover td {{ background: #f2f6fc; }}
pre {{ background: #f6f7f9; padding: 10px 14px; overflow-x: auto; font-size: 13px; }}
.red {{ color: #b3261e; }} .green {{ color: #1b7f3b; }} .dim {{ color: #777; }} .amber {{ color: #9a6b00; }}
svg text {{ font: 12px system-ui, sans-serif; }}
</style></head><body>
<h1>{name}</h1><p class="dim">target {target}, corpus {corpus}, {models} models, {seconds:.0f} s</p>
<p class="verdict"><b>{word}</b>: {why}{worth}</p>
{body}
</body></html>
"""


def try_page(trial: Trial) -> str:
    """The page of what is known."""
    found, said = trial.found, verdict(trial.found)
    body = "\n".join((*_correct(found), *_places(trial), *_changes(found), *_worth(found), *_rest(found)))
    return _PAGE.format(
        name=escape(found.name), target=escape(found.target), corpus=found.corpus or "not asked", models=found.models,
        seconds=sum(found.seconds.values()), colour=_COLOURS[said.word], word=said.word, why=escape(said.why),
        worth=f"; {escape(said.worth)}" if said.worth else "", body=body,
    )  # fmt: skip


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    def cells(row: Sequence[object], tag: str) -> str:
        kinds = [" class=n" if i in numbers else "" for i in range(len(row))]
        return "".join(f"<{tag}{kind}>{escape(str(cell))}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    lines = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{cells(heads, 'th')}</tr>{lines}</table>"


def _correct(found: Findings) -> Iterator[str]:
    c = found.correct
    yield "<h2>Is it correct?</h2>"
    for said in c.faults.values():
        yield f'<p class="red">It {escape(said)}.</p>'
    yield f"<p>{c.programs} programs aimed at it in {c.seconds:.0f} s, {c.failing} failures; such programs fail with a"
    yield f" rate below {c.bound:.1e} (95 % confidence).</p>"
    if c.rules:
        rows = [
            (r.name, r.status, r.how, r.applied, r.programs, r.failed, f"{r.bound:.1e}" if r.bound else "unknown")
            for r in c.rules
        ]
        heads = ("rewrite", "proof", "", "applied", "in programs", "failed", "failure rate below")
        yield _table(heads, rows, (3, 4, 5, 6))
    for rule in c.rules:
        if rule.counterexample:
            yield f"<p class=red>The prover refutes {escape(rule.name)}:</p><pre>{escape(rule.counterexample)}</pre>"
    for case in c.counterexamples:
        yield f"<p class=red>{escape(case.message)}</p>"
        yield f"<p>A counterexample of {case.ops} ops:</p><pre>{escape(case.text)}</pre>"
        yield f"<pre>{escape(case.command)}</pre>"
    if c.values:
        yield _table(("what it does to", ""), list(c.values.items()))


def _places(trial: Trial) -> Iterator[str]:
    found = trial.found
    if not found.places:
        return
    yield f"<h2>Where in the pipeline?</h2><p>Best: {escape(found.place)}.</p>"
    rows = [
        (trial.subject.describe_place(p.at), p.models, p.applied, f"{100 * p.gain:+.2f} %", f"{p.ops:+d}")
        for p in found.places
    ]
    yield _table(("place", "models", "applications", "predicted time, mean", "ops"), rows, (1, 2, 3, 4))


def _changes(found: Findings) -> Iterator[str]:
    if not found.changes:
        return
    firing = found.firing
    yield f"<h2>What does it change?</h2><p>{len(firing)} of {len(found.changes)} models.</p>"
    if firing:
        rows = [
            (name, *map(number, total(firing, figure)), _relative(firing, name)) for name, figure in FIGURES.items()
        ]
        yield _table(("all of these", "before", "after", ""), rows, (1, 2, 3))
        yield _table(("model", "applications", *FIGURES), [_model_row(c) for c in firing], range(2, 2 + len(FIGURES)))
    elsewhere = firing_elsewhere(firing)
    if elsewhere:
        yield "<p>Rewrites of the passes, in these models:</p>"
        yield _table(("pass", "before", "after"), [(n, b, a) for n, (b, a) in elsewhere.items()], (1, 2))
    if found.misses:
        yield "<p>Nearest misses: where it would have applied but for one condition.</p>"
        yield _table(
            ("rewrite", "condition", "times", "one of them"),
            [(m.rewrite, m.condition, m.count, m.where) for m in found.misses], (2,),
        )  # fmt: skip


def _relative(firing: Sequence[Change], name: str) -> str:
    before, after = total(firing, FIGURES[name])
    return f"{100 * (after / before - 1):+.1f} %" if before else ""


def _model_row(change: Change) -> tuple[object, ...]:
    assert change.before is not None and change.after is not None
    most = sorted(change.applications.items(), key=lambda item: -item[1])
    applied = ", ".join(f"{name} {count}" for name, count in most[:_NAMED])
    if len(most) > _NAMED:
        applied += f" and {sum(count for _, count in most[_NAMED:])} of {len(most) - _NAMED} others"
    figures = [_moved(figure(change.before), figure(change.after)) for figure in FIGURES.values()]
    return change.model, applied, *figures


def _moved(before: float, after: float) -> str:
    """A figure where it stays, and where to it moves."""
    return (
        number(before)
        if before == after
        else f"{number(after)} ({100 * (after / before - 1):+.1f} %)"
        if before
        else ""
    )


def _worth(found: Findings) -> Iterator[str]:
    timed = [w for w in found.worth if w.rounds]
    if not timed:
        return
    mean = overall(timed)
    assert mean is not None
    yield "<h2>Is it worth it?</h2>"
    yield f"<p>Run time with it over run time without, in turn on one thread, {len(timed)} models: {bounds(mean)}"
    yield " (95 % bounds).</p>"
    yield _bars(timed)
    rows = [
        (w.model, f"{w.before * 1e6:,.1f}", f"{w.after * 1e6:,.1f}", bounds(w.ratio), _error(w.error_before),
         _error(w.error_after))
        for w in timed
    ]  # fmt: skip
    heads = ("model", "us before", "us after", "ratio", "error before", "error after")
    yield _table(heads, rows, (1, 2, 3, 4, 5))


def _error(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1e}"


def _bars(timed: Sequence[Worth]) -> str:
    """Each model's ratio with its bounds, around 1."""
    order = sorted(timed, key=lambda w: w.ratio[0])
    low = min(0.9, *(w.ratio[1] for w in order))
    high = max(1.1, *(w.ratio[2] for w in order))
    width, left, row = 900, 190, 20

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (width - left - 60)

    lines = [
        f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="{row * len(order)}" stroke="#999" stroke-dasharray="3 3"/>'
    ]
    for i, w in enumerate(order):
        y, colour = row * i + row / 2, "#1b7f3b" if w.faster else "#b3261e" if w.slower else "#777"
        lines += [
            f'<text x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(w.model)}</text>',
            f'<line x1="{x(w.ratio[1]):.1f}" x2="{x(w.ratio[2]):.1f}" y1="{y}" y2="{y}" stroke="{colour}"'
            ' stroke-width="4"/>',
            f'<circle cx="{x(w.ratio[0]):.1f}" cy="{y}" r="5" fill="{colour}"/>',
            f'<text x="{width - 4}" y="{y + 4:.1f}" text-anchor="end">{w.ratio[0]:.3f}</text>',
        ]
    return f'<svg width="{width}" height="{row * len(order)}" role="img">{"".join(lines)}</svg>'


def _rest(found: Findings) -> Iterator[str]:
    if found.skipped:
        yield "<h2>What was skipped</h2>" + _table(("model", "why"), list(found.skipped.items()))
    if found.left_out:
        yield _table(("stage that was not run", "why"), list(found.left_out.items()))
    if found.interrupted:
        yield f'<p class="amber">{escape(found.interrupted)}</p>'


__all__ = ["try_page"]
