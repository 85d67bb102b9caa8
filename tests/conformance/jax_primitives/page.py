"""docs/generated/jax_primitives.md: what gcomp imports of JAX, primitive by primitive, and how JAX's harnesses end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from gcomp.frontends.jaxpr import registry
from tests.conformance.jax_primitives.outcomes import CLASSES, Outcome

PAGE = Path(__file__).parents[3] / "docs" / "generated" / "jax_primitives.md"
HEAD = """# JAX primitives

Written by `python -m tests.conformance.jax_primitives.run --write`; do not edit.

gcomp imports jaxprs: what `jax.jit` traces a function to, after `grad`, `vmap` and the like. The cases are those of
JAX's own harnesses of its primitives (jax {version}, with 64-bit types), run through `gcomp.jit` and compared with
`jax.jit` on CPU. `passed`: the same bits, where a NaN is any NaN. `rounding`: floats within {ulps} units in the last
place of the largest element; both count as passing. `unsupported`: gcomp refuses, and says why.

"""


def write(results: Mapping[str, Outcome], groups: Mapping[str, str]) -> None:
    """Renew the page."""
    import jax

    from tests.conformance.jax_primitives.comparison import ULPS

    parts = [HEAD.format(version=jax.__version__, ulps=ULPS), _summary(results), primitives(), _cases(results, groups)]
    PAGE.write_text("".join(parts), encoding="utf-8")


def _summary(results: Mapping[str, Outcome]) -> str:
    counts = Counter(outcome.kind for outcome in results.values())
    held = counts.total() - counts["jax cannot"]
    fine = counts["passed"] + counts["rounding"]
    others = ", ".join(f"{counts[kind]} {kind}" for kind in CLASSES)
    return f"## Summary\n\n{fine} of {held} cases pass ({100 * fine / max(held, 1):.2f} %): {others}.\n\n"


def primitives() -> str:
    """The section that the registry decides."""
    registry.load_families()
    rows = [(name, "yes", "") for name in registry.registered_primitives()]
    rows += [(name, "no", why) for name, why in registry.REFUSED.items()]
    lines = "".join(f"| `{name}` | {imported} | {why} |\n" for name, imported, why in sorted(rows))
    return f"## Primitives\n\n| primitive | imported | why not |\n|---|---|---|\n{lines}\n"


def _cases(results: Mapping[str, Outcome], groups: Mapping[str, str]) -> str:
    counts: dict[str, Counter[str]] = {}
    for name, outcome in results.items():
        counts.setdefault(groups[name], Counter())[outcome.kind] += 1
    head = f"| group | cases | {' | '.join(CLASSES)} |\n|---|---|{'---|' * len(CLASSES)}\n"
    rows = "".join(
        f"| {group} | {row.total()} | {' | '.join(str(row[kind] or '') for kind in CLASSES)} |\n"
        for group, row in sorted(counts.items())
    )
    failed = {n: o for n, o in sorted(results.items()) if o.kind not in ("passed", "rounding")}
    rest = "".join(f"| {name} | {o.kind} | {o.detail.replace('|', '/')} |\n" for name, o in failed.items())
    other = f"\n## Cases that do not pass\n\n| case | outcome | why |\n|---|---|---|\n{rest}" if failed else ""
    return f"## Cases\n\n{head}{rows}{other}"
