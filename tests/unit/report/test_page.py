"""Pages in a real browser: every view opens, shows what there is, and leads on; the console stays silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gcomp
from gcomp.analysis.machines import MACHINES
from gcomp.report.building import Report, report_of
from gcomp.report.comparing import compare
from gcomp.report.costs import costs_of, plans_of
from gcomp.report.kernel_graph import Box, graph_view
from gcomp.report.memory import artifact_view
from gcomp.report.page import view_page
from gcomp.report.roofline import points, roofline_view
from tests.unit.report.browser import Opened, browser

MODEL = """func.func @main(%x: tensor<16x64xf32> {gcomp.name = "x"}) -> (tensor<16x64xf32> {gcomp.name = "y"}) {
  %w = stablehlo.constant dense<0.02> : tensor<64x64xf32>
  HERE
  %t = stablehlo.transpose %l7, dims = [1, 0]
      : (tensor<16x64xf32>) -> tensor<64x16xf32> loc("tail"("T"("model.py":9:1)))
  %u = stablehlo.transpose %t, dims = [1, 0]
      : (tensor<64x16xf32>) -> tensor<16x64xf32> loc("tail"("T"("model.py":9:1)))
  %y = stablehlo.sine %u : tensor<16x64xf32> loc("tail"("Sin"("model.py":10:1)))
  return %y : tensor<16x64xf32>
}"""
LAYER = """  %d{n} = stablehlo.dot_general %l{m}, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32> loc("layers.{n}"("Dot"("model.py":3:1)))
  %e{n} = stablehlo.tanh %d{n} : tensor<16x64xf32> loc("layers.{n}"("Tanh"("model.py":4:1)))
  %l{n} = stablehlo.add %e{n}, %l{m} : tensor<16x64xf32> loc("layers.{n}"("Add"("model.py":5:1)))"""


def text() -> str:
    """Eight layers in modules of their own, and a tail in which a pass finds two transposes."""
    layers = "\n".join(LAYER.format(n=n, m=n - 1) for n in range(8))
    return MODEL.replace("  HERE", layers).replace("%l-1", "%x")


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(text(), title="eight layers", target="cpu", profile=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture
def opened(chromium: Any, report: Report, tmp_path: Path) -> Iterator[Opened]:
    file = tmp_path / "report.html"
    report.save(file)
    page = Opened(chromium, file)
    yield page
    assert not page.said, page.said
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == [], "a page needs no network"
    page.page.close()


def test_the_strip_has_all_passes_and_each_opens(opened: Opened, report: Report) -> None:
    passes = report.data["passes"]
    opened.has("#strip > button", len(passes))
    opened.has("#strip .pass", sum(record["changed"] for record in passes))
    for number, record in enumerate(passes):
        opened.click("#strip > button", nth=number)
        opened.shows("#pass h2", record["name"])
    changed = next(n for n, record in enumerate(passes) if any("transpose" in row[0] for row in record["rewrites"]))
    opened.go("passes", changed)
    opened.shows("#pass table", "proved")
    opened.shows("#pass table", "gcomp/passes/")
    opened.shows(".diff .minus", "stablehlo.transpose")
    assert opened.count(".pair .box.gone") >= 2 and opened.count(".diff .minus") >= 2


def test_the_graph_opens_group_by_group_down_to_an_op(opened: Opened) -> None:
    opened.go("graph", "imported")
    opened.shows("#outline", "layers ×8")
    opened.click("#canvas .box.group", "layers")
    opened.has("#canvas .box.group", 8)
    opened.click("#canvas .box.group", nth=2)
    opened.has("#canvas .box:not(.stub)", 3)
    titles = opened.page.locator("#canvas .box:not(.stub) text:first-of-type").all_text_contents()
    assert sorted(titles) == ["add", "dot_general", "tanh"]
    opened.click("#canvas .box", "tanh")
    for text in ("model.py:4", "layers.2", "On the level kernels"):
        opened.shows("#side", text)
    opened.has("#canvas .box.chosen", 1)
    opened.click("#crumbs a", "layers")
    opened.has("#canvas .box.group", 8)


def test_boxes_do_not_overlap_and_lines_join_them(opened: Opened) -> None:
    opened.go("graph", "imported", 1)
    boxes = opened.page.locator("#canvas .box rect.face").all()
    places = [box.bounding_box() for box in boxes]
    for i, a in enumerate(places):
        for b in places[:i]:
            assert (
                a["x"] >= b["x"] + b["width"] or b["x"] >= a["x"] + a["width"]
                or a["y"] >= b["y"] + b["height"] or b["y"] >= a["y"] + a["height"]
            )  # fmt: skip
    assert opened.count("#canvas path.edge") >= len(boxes) - 1
    opened.page.locator("#canvas .box").first.hover()
    assert opened.count("#canvas path.edge.on") >= 1


def test_a_drawing_moves_and_scales(opened: Opened) -> None:
    opened.go("graph", "imported", 1)
    placed = "document.querySelector('#canvas > svg > g').getAttribute('transform')"

    def scale() -> float:
        return float(opened.page.evaluate(placed).partition("scale(")[2].rstrip(")"))

    first, size = opened.page.evaluate(placed), scale()
    opened.page.mouse.move(700, 500)
    opened.page.mouse.wheel(0, 90)
    opened.page.wait_for_function(f"{placed} !== {first!r}")
    assert scale() == size
    opened.click("#zoom button", "+")
    assert scale() > size
    before = opened.page.evaluate(placed)
    opened.page.mouse.move(560, 700)
    opened.page.mouse.down()
    opened.page.mouse.move(640, 660)
    opened.page.mouse.up()
    opened.page.wait_for_function(f"{placed} !== {before!r}")
    assert scale() > size
    here, box = opened.page.url, opened.page.locator("#canvas .box.group").first.bounding_box()
    opened.page.mouse.move(box["x"] + 9, box["y"] + 9)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 60, box["y"] + 30, steps=4)
    opened.page.mouse.up()
    assert opened.page.url == here, "who drags a box opens nothing"


def test_an_op_on_any_level_leads_to_its_kernel_code_and_place_in_memory(opened: Opened, report: Report) -> None:
    for level in ("imported", "optimized"):
        opened.page.locator("#query").fill("layers.5 tanh")
        opened.page.locator("#found div", has_text=level).first.click()
        opened.shows("#side h2", "tanh")
        opened.shows("#crumbs .on", level)
        opened.page.locator("#side a.kernel").first.click()
        opened.shows("#side dl", "at byte")
        opened.shows("#side pre", "tanh")
        opened.click("#side button", "LLVM IR")
        opened.shows("#side pre.source", "define")


def test_search_finds_by_name_op_line_and_shape(opened: Opened) -> None:
    found = {"layers.5 tanh": "tanh", "model.py:10": "sine", "64x16": "transpose", "dot_general": "dot_general"}
    for query, wanted in found.items():
        opened.page.locator("#query").fill(query)
        opened.shows("#found div b", wanted)
        opened.page.locator("#query").press("Enter")
        opened.shows("#side h2", wanted)
        opened.has("#found div", 0)
    opened.page.locator("#query").fill("nothing like it")
    opened.shows("#found", "nothing has this")


def test_a_kernel_shows_its_texts_and_leads_to_the_graph_and_to_memory(opened: Opened, report: Report) -> None:
    opened.go("kernels")
    opened.has("#view tbody tr", len(report.data["kernels"]))
    opened.click("#view tbody tr")
    for text in ("predicted", "measured", "stablehlo.dot_general"):
        opened.shows("#side", text)
    opened.click("#side button", "tile program")
    opened.shows("#side pre.source", "tile.")
    opened.click("#side button", "LLVM IR")
    opened.shows("#side pre.source", "define void")
    opened.click("#side button", "in the graph")
    opened.has("#canvas .box.chosen", 1)
    opened.click("#side button", "its tile program")
    opened.has("#view tr.chosen", 1)
    opened.click("#side button", "in memory")
    opened.has("#view rect.storage", opened.count("#view tbody tr"))


def test_kernels_are_sorted_by_what_is_clicked(opened: Opened, report: Report) -> None:
    opened.go("kernels")
    opened.click("#view th", "measured")
    opened.shows("#view thead", "measured ▾")
    numbers = [int(n) for n in opened.page.locator("#view tbody td:first-child").all_inner_texts()]
    times = [report.data["kernels"][n]["measured"] for n in numbers]
    assert times == sorted(times, reverse=True)


def test_memory_roofline_and_times_are_drawn(opened: Opened, report: Report) -> None:
    opened.go("memory")
    assert opened.count("#view rect.storage") == opened.count("#view tbody tr") >= 1
    opened.go("roofline")
    assert opened.count("#view circle.measured") >= 1 and opened.count("#view line.roof") >= 2
    opened.go("times")
    opened.has("#view .spans rect", len(report.data["times"]["samples"]))
    opened.has("#view tbody tr", len(report.data["times"]["rows"]))


def test_two_compilations_stand_beside_each_other(chromium: Any, report: Report, tmp_path: Path) -> None:
    plain = report_of(text(), title="no passes", target="cpu", pipeline="dce")
    compare(plain, report).save(tmp_path / "two.html")
    opened = Opened(chromium, tmp_path / "two.html")
    opened.go("compare")
    opened.shows("#view h2", "no passes and eight layers")
    opened.shows("#view table", "ops, after all passes")
    assert opened.count("#view .up") + opened.count("#view .down") >= 1
    assert not opened.said


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_read_in_light_and_dark(chromium: Any, report: Report, tmp_path: Path, dark: bool) -> None:
    """The contrast of text with what is behind it is WCAG's 4.5 at least."""
    report.save(tmp_path / "r.html")
    opened = Opened(chromium, tmp_path / "r.html", dark=dark)
    for first, second in (("--ink", "--bg"), ("--ink", "--panel"), ("--soft", "--panel"), ("--accent", "--panel"),
                          ("--ink", "--matmul"), ("--ink", "--attention"), ("--ink", "--gone"), ("--ink", "--came"),
                          ("--good", "--panel"), ("--bad", "--panel")):  # fmt: skip
        colors = [opened.page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
                  for name in (first, second)]  # fmt: skip
        light, shade = sorted((luminance(color) for color in colors), reverse=True)
        assert (light + 0.05) / (shade + 0.05) >= 4.5, (first, second, colors)
    opened.page.locator("#shade").click()
    assert opened.page.evaluate("document.documentElement.classList.contains('dark')") is not dark


def luminance(color: str) -> float:
    """WCAG's relative luminance of `#rrggbb`."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_large_program_opens_collapsed_and_stays_usable(chromium: Any, tmp_path: Path) -> None:
    ops = ("sine", "tanh", "negate", "cosine")
    rows = "\n".join(f"  %{n + 1} = stablehlo.{ops[n % 4]} %{n} : tensor<8xf32>" for n in range(2000))
    program = f"func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {{\n{rows}\n  return %2000 : tensor<8xf32>\n}}"
    report_of(program, title="large", target="cpu", pipeline="dce").save(tmp_path / "large.html")
    opened = Opened(chromium, tmp_path / "large.html")
    opened.go("graph", "imported")
    assert 0 < opened.count("#canvas .box") <= 100
    assert opened.count("#outline .item") <= 100
    opened.page.locator("#query").fill("cosine")
    opened.has("#found > div", 60)
    opened.page.locator("#query").press("Enter")
    opened.has("#canvas .box.chosen", 1)
    assert not opened.said


def test_the_page_of_kernels_finds_and_marks(chromium: Any, tmp_path: Path) -> None:
    boxes = [Box("0 first", "matmul", "matmul, 2 us\n1 op", 0.7), Box("1 second", "loop", "loop, 1 us", 0.3, True)]
    page = view_page("kernels", graph_view(boxes, {(0, 1): "not one kernel: <why>"}, "two"), "kernel_graph.js")
    (tmp_path / "k.html").write_text(page, "utf-8")
    opened = chromium.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto((tmp_path / "k.html").as_uri())
    opened.locator("#find").fill("second")
    assert opened.locator("g.box.faint").count() == 1 and opened.locator("g.box.returned").count() == 1
    opened.locator("g.box").first.hover()
    assert opened.locator("path.on").count() == 1 and not said
    opened.close()


def test_pages_of_one_view_open_too(chromium: Any, tmp_path: Path) -> None:
    (plan,) = plans_of(gcomp.compile(text()))
    roofline = roofline_view(points(costs_of(plan, {}), {}), MACHINES[plan.architecture])
    views = {"memory": artifact_view(plan, {}), "roofline": roofline}
    for name, view in views.items():
        (tmp_path / f"{name}.html").write_text(view_page(name, view), "utf-8")
        page = chromium.new_page()
        said: list[str] = []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert page.locator("h1").inner_text() == name and page.locator("svg").count() == 1 and not said
        page.close()
