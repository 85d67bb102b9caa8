"""onnx_coverage.md says of each operator what the registry says, and names the cases that the list names."""

from __future__ import annotations

import re

from tests.conformance import coverage, lists

RENEW = "renew the page with make conformance"


def test_operators_are_those_of_the_registry() -> None:
    page = coverage.PAGE.read_text("utf-8")
    sections = dict(zip(*[iter(re.split(r"^(###? .*)$", page, flags=re.M)[1:])] * 2, strict=True))
    for domain in {operator.domain for operator in coverage.operators()}:
        rows = re.findall(r"^\| [^|]+ \| [^|]+ \|", sections[coverage.heading(domain)], flags=re.M)[1:]
        expected = [coverage.row_start(operator) for operator in coverage.operators() if operator.domain == domain]
        assert rows == expected, RENEW


def test_operators_without_importer_are_not_called_supported() -> None:
    rows = re.findall(r"^\| \S+ \| ([^|]+) \| (yes|no|partly) \|", coverage.PAGE.read_text("utf-8"), flags=re.M)
    assert len(rows) == len(coverage.operators()), RENEW
    assert all((opsets == "none") == (status == "no") for opsets, status in rows)


def test_cases_that_do_not_pass_are_listed() -> None:
    listed = coverage.PAGE.read_text("utf-8").partition("## Cases that do not pass")[2]
    assert set(re.findall(r"^\| (test_\S+) \|", listed, flags=re.M)) == lists.not_passed().keys(), RENEW
