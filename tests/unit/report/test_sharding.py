"""The page of a plan shows all that is computed and sent, along its time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.sharding import SMALL
from gcomp.partitioning.search.by_hand import BY_HAND
from gcomp.partitioning.search.devices import mesh_named
from gcomp.partitioning.search.planning import Plan, plan_of
from gcomp.report.page import view_page
from gcomp.report.sharding import COLORS, LABEL, WIDTH, sharding_view
from tests.unit.partitioning.models import transformer
from tests.unit.report.browser import Opened, browser


@pytest.fixture(scope="module", name="plan")
def planned() -> Plan:
    return plan_of(transformer(2, batch=1), mesh_named("data=2,model=4"), SMALL)


def drawn(svg: str) -> list[tuple[float, float, str]]:
    """(begin, width, color) of the rectangles of messages."""
    found = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="18" fill="(hsl[^"]+)">', svg)
    return [(float(x), float(width), fill) for x, width, fill in found]


def test_all_messages_are_drawn_where_they_are_sent(plan: Plan) -> None:
    view = sharding_view(plan, {"data parallel": "it does not fit"})
    messages, found = [*plan.messages()], drawn(view.svg)
    assert len(found) == sum(1 + m.sent.axis.count("+") for m in messages) > 0
    assert {fill for _, _, fill in found} == {COLORS[m.sent.kind] for m in messages}
    across = (WIDTH - LABEL) / plan.seconds
    assert sum(width for _, width, _ in found) == pytest.approx(plan.communicating * across, rel=0.02)
    assert all(x >= LABEL and x + width <= WIDTH + 0.5 for x, width, _ in found)
    assert "data parallel: it does not fit" in view.svg and "<h2>Ops</h2>" in view.table


def test_edges_along_which_something_is_sent_are_marked(plan: Plan) -> None:
    svg = sharding_view(plan, {}).svg
    marked = re.findall(r'class="marked" d="[^"]*"><title>([^<]*)', svg)
    assert marked and all(re.search("along (data|model)", said) for said in marked)
    assert not re.search(r'data-to="k\d+" d="[^"]*"><title>[^<]*along', svg), "others stay as they lie"


def test_plans_by_hand_are_beside_it(plan: Plan) -> None:
    mesh = plan.problem.network.mesh
    other = plan_of(plan.problem.program, mesh, SMALL, kind=BY_HAND["data parallel"])
    svg = sharding_view(plan, {"data parallel": other}).svg
    ends = [float(x) for x in re.findall(r'class="small" x="([\d.]+)" y="\d+">[^<]* on each device', svg)]
    longer = (ends[1] - LABEL) / (ends[0] - LABEL)
    assert len(ends) == 2 and longer == pytest.approx(other.seconds / plan.seconds, rel=0.1)


def test_the_page_opens(plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    file.write_text(view_page("a plan", sharding_view(plan, {}), "kernel_graph.js"), "utf-8")
    with browser() as chromium:
        page = Opened(chromium, file, is_report=False)
        page.page.fill("#find", "dot_general")
        assert page.count("g.box.faint") > 0 and not page.said
