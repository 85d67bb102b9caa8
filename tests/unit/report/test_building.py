"""Reports of small programs of all kinds: what the page's data say agrees with the program and with itself."""

from __future__ import annotations

from typing import Any

import pytest

from gcomp.report.building import Report, report_of
from gcomp.report.comparing import compare
from tests.unit.runtime.cpu.test_profile import CHOLESKY, LOOP, ROWS

SMALL = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.exponential %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}"""


def made(text: str, **options: Any) -> Report:
    return report_of(text, title="t", **{"target": "cpu", **options})


def check(data: dict[str, Any]) -> None:
    """References are in range, edges lead down, and every node that is drawn is drawn once."""
    for level in data["levels"]:
        drawn = [ref for group in level["groups"] for ref in group[4] if ref >= 0]
        assert sorted(drawn) == [n for n, node in enumerate(level["nodes"]) if not node[8]]
        inner = [-1 - ref for group in level["groups"] for ref in group[4] if ref < 0]
        assert sorted(inner) == list(range(1, len(level["groups"])))
        for title, count, parent, number, refs, stubs, _ in level["groups"]:
            drawing = level["drawings"][number]
            assert title and count >= 0 and -1 <= parent < len(level["groups"])
            assert len(drawing["p"]) == len(refs) + len(stubs)
            assert all(drawing["p"][a][1] < drawing["p"][b][1] for a, b, _ in drawing["e"])
        for node in level["nodes"]:
            assert 0 <= node[1] < len(data["lines"]) and all(o < len(data["origins"]) for o in node[4])
    for record in data["passes"]:
        if record["changed"]:
            assert record["verdict"] == "valid"
            assert all(sign == "~" or line < len(data["lines"]) for sign, line in record["text"])


@pytest.mark.parametrize("text", [SMALL, ROWS, LOOP, CHOLESKY])
@pytest.mark.parametrize("target", ["cpu", "xla:cpu"])
def test_programs_of_all_kinds_have_a_report(text: str, target: str) -> None:
    found = made(text, target=target)
    check(found.data)
    names = [level["name"] for level in found.data["levels"]]
    assert names == (["imported", "optimized", "kernels"] if target == "cpu" else ["imported", "optimized"])
    assert bool(found.data["kernels"]) == (target == "cpu")
    assert len(found.page()) < 400_000


def test_kernels_have_their_ops_texts_place_and_times() -> None:
    data, texts = (found := made(ROWS, profile=True)).data, found.texts
    assert data["times"]["rows"] and data["memory"] and data["roofline"]
    for kernel in data["kernels"]:
        assert kernel["measured"] > 0 and kernel["us"] > 0 and kernel["ops"]
        assert all(f"source:{name}" in texts for name in kernel["sources"])
        assert all("define void" in texts[f"code:{name}"] for name in kernel["kernels"])
        node = data["levels"][-1]["nodes"][kernel["node"]]
        assert node[0] == kernel["label"] and node[5] > 0
    assert abs(sum(node[5] for node in data["levels"][-1]["nodes"]) - 1) < 1e-3


def test_rewrites_say_their_proof_and_where_they_stand() -> None:
    data = made(SMALL).data
    rows = {row[0]: row for record in data["passes"] for row in record["rewrites"]}
    name, count, exactness, status, place, where = next(row for row in rows.values() if "transpose" in row[0])
    assert count >= 1 and exactness == "E0" and status == "proved" and "transpose" in name
    file, _, line = place.rpartition(":")
    assert file.startswith("gcomp/passes/") and int(line) > 1 and where


def test_a_pipeline_without_a_plan_has_a_report_without_kernels() -> None:
    data = made(SMALL, pipeline="canonicalize").data
    check(data)
    assert [level["name"] for level in data["levels"]] == ["imported", "optimized"] and not data["kernels"]


def test_two_reports_stand_beside_each_other() -> None:
    first, second = made(SMALL, pipeline="cse"), made(SMALL, pipeline="canonicalize")
    found = compare(first, second).data["compare"]
    figures = {line[0]: line[1:3] for line in found["figures"]}
    assert figures["ops, after all passes"] == [4, 2]
    assert ["transpose", 2, None, "count"] in found["ops"]
    assert any(line[0].startswith("canonicalize: ") and line[1] is None for line in found["passes"])


def test_ops_know_what_they_became() -> None:
    """What the page follows from level to level: the origins that ops have in common."""
    text = SMALL.replace("tensor<4x8xf32>\n  return", 'tensor<4x8xf32> loc("act"("Exp"))\n  return')
    data = made(text).data
    act = next(n for n, origin in enumerate(data["origins"]) if origin[0].startswith("act"))
    for level in data["levels"]:
        assert any(act in node[4] for node in level["nodes"]), level["name"]


def test_what_two_programs_have_in_common_is_not_shown_as_different() -> None:
    """One op more near the begin: all that follows is the same op in both."""
    rows = [f"  %{n + 1} = stablehlo.tanh %{n} : tensor<4xf32>" for n in range(12)]
    texts = [
        "\n".join(["func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {", *body, "  return %12 : tensor<4xf32>", "}"])
        for body in (rows, [*rows[:2], "  %x = stablehlo.negate %2 : tensor<4xf32>",
                            rows[2].replace("%2 :", "%x :"), *rows[3:]])
    ]  # fmt: skip
    for order in (texts, texts[::-1]):
        found = compare(*(made(text, pipeline="dce") for text in order))
        for change in found.data["compare"]["changes"]:
            signs = [sign for sign, _ in change["text"] if sign != "~"]
            assert (signs.count("-"), signs.count("+")) in ((1, 2), (2, 1))
            shown = [found.data["lines"][line] for sign, line in change["text"] if sign in "+-"]
            assert sum("negate" in line for line in shown) == 1 and len(change["kinds"]) == 1


def test_regions_of_control_flow_are_groups_below_what_holds_them() -> None:
    level = made(LOOP).data["levels"][1]
    titles = {group[0].partition(": ")[2] for group in level["groups"]}
    assert {"condition", "body", "then", "else"} <= titles
    loop = next(n for n, node in enumerate(level["nodes"]) if node[0] == "while")
    root = next(group for group in level["groups"] if loop in group[4])
    drawing, stubs = level["drawings"][root[3]], len(root[5])
    below = [root[4][b - stubs] for a, b, _ in drawing["e"] if a - stubs == root[4].index(loop)]
    assert {level["groups"][-1 - ref][0].partition(": ")[2] for ref in below if ref < 0} >= {"condition", "body"}
