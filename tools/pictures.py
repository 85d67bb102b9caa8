"""Writes docs/guides/pictures: the views of the page of `gcomp report`, and the page of a plan for several devices, as
a browser draws them.

    python -m tools.pictures [FOLDER]

The page is that of a small BERT of the corpus, with a pass and an op opened. Needs Chromium and playwright.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image

from benchmarks.sharding import SMALL, opened
from gcomp.corpus.store import corpus
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import plan_of
from gcomp.passes.registry import parse_pipeline, pipeline_text
from gcomp.report.building import Report, report_of
from gcomp.report.comparing import compare
from gcomp.report.page import view_page
from gcomp.report.sharding import sharding_view
from gcomp.targets.base import target_named
from gcomp.trying.models import Model
from tests.unit.report.browser import Opened, browser

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "guides" / "pictures"
MODEL = "onnx/bert"
CUT = "torch/encoder"
WITHOUT = "fold-constants"
"""The comparison is with the pipeline without this pass."""
COLORS = 128
OP = "#canvas .box:not(.group):not(.stub)"


def passes(page: Opened, report: Report) -> None:
    """A pass that is opened: the one with the most to draw that is still small."""
    drawn = [(len(p["kinds"]), n) for n, p in enumerate(report.data["passes"]) if p["changed"] and len(p["kinds"]) < 7]
    page.go("passes", max(drawn)[1])


def graph(page: Opened, report: Report) -> None:
    """The optimized graph, down to an op."""
    page.go("graph", "optimized")
    while not page.count(OP):
        page.click("#canvas .box.group")
        page.page.wait_for_timeout(100)
    page.click(OP, nth=min(2, page.count(OP) - 1))


def kernels(page: Opened, report: Report) -> None:
    """The costliest kernel, with its code."""
    costs = [row["us"] or 0.0 for row in report.data["kernels"]]
    page.go("kernels", costs.index(max(costs)))
    page.click("#side button", "tile program")


VIEWS: Mapping[str, Callable[[Opened, Report], None]] = {
    "passes": passes, "graph": graph, "kernels": kernels,
    "memory": lambda page, report: page.go("memory"), "roofline": lambda page, report: page.go("roofline"),
    "times": lambda page, report: page.go("times"),
}  # fmt: skip


def reports() -> tuple[Report, Report]:
    """The page of the model, and that of it beside the pipeline without a pass."""
    (member,) = corpus([MODEL]).members
    program = Model(MODEL, member).program()
    whole = report_of(program.clone(), title=MODEL, target="cpu", profile=True)
    steps = parse_pipeline(target_named("cpu").pipeline())
    left = pipeline_text(step for step in steps if step.name != WITHOUT)
    other = report_of(program.clone(), title=f"{MODEL} without {WITHOUT}", target="cpu", pipeline=left)
    return whole, compare(other, report_of(program.clone(), title=MODEL, target="cpu"))


def cut() -> str:
    """The page of a plan for eight small devices, as `gcomp explain --mesh data=2,model=4 --graph` writes it."""
    (member,) = corpus([CUT]).members
    program, mesh = opened(member), mesh_named("data=2,model=4")
    plan = plan_of(program, mesh, SMALL)
    view = sharding_view(plan, {name: plan_of(program, mesh, SMALL, kind=kind) for name, kind in BY_HAND.items()})
    return view_page(f"{CUT} on data=2,model=4", view, "kernel_graph.js")


def save(page: Opened, path: Path) -> None:
    """Write what is seen as a small PNG."""
    page.page.wait_for_timeout(300)
    image = Image.open(io.BytesIO(page.page.screenshot())).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    sys.stdout.write(f"{path}: {path.stat().st_size / 1e3:.0f} kB\n")


def main(folder: Path) -> None:
    """Open each view, and write what is seen."""
    folder.mkdir(parents=True, exist_ok=True)
    whole, both = reports()
    with browser() as chromium, tempfile.TemporaryDirectory() as around:
        for report, views in ((whole, VIEWS), (both, {"comparison": lambda page, report: page.go("compare")})):
            file = Path(around) / "page.html"
            report.save(file)
            for name, show in views.items():
                page = Opened(chromium, file)
                show(page, report)
                save(page, folder / f"{name}.png")
                page.page.close()
        page = Opened(chromium, file, dark=True)
        page.go("graph", "kernels")
        save(page, folder / "dark.png")
        file.write_text(cut(), "utf-8")
        save(Opened(chromium, file, is_report=False), folder / "sharding.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
