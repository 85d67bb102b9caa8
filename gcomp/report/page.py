"""Pages as files: styles and scripts of `assets` inside, nothing from elsewhere."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from gcomp.records import record


@record
class View:
    """One thing that is shown: words, a drawing as SVG, and a table as HTML."""

    summary: str
    svg: str
    table: str = ""

    def to_json(self) -> dict[str, str]:
        """As the page's script reads it."""
        return {"summary": self.summary, "svg": self.svg, "table": self.table}

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<style>{asset('style.css')}</style><p>{escape(self.summary)}</p>{self.svg}"


@cache
def asset(name: str) -> str:
    """The text of a file of `assets`."""
    return (Path(__file__).parent / "assets" / name).read_text("utf-8")


def view_page(title: str, view: View, script: str = "") -> str:
    """A page of one view; `script` is an asset that it needs."""
    body = (
        f'<main class="single"><h1>{escape(title)}</h1><p class="summary">{escape(view.summary)}</p>\n'
        f'<div class="drawing">{view.svg}</div>\n{view.table}</main>'
    )
    return _whole(title, body, ["shade.js", *([script] if script else [])])


def report_page(title: str, data: Any, texts: Any) -> str:
    """The page of a report: its data are unpacked when it opens, and the texts of kernels when one is looked at."""
    body = f"{asset('report.html')}\n{_packed('data', data)}\n{_packed('texts', texts)}"
    return _whole(title, body, ["shade.js", "core.js", "passes.js", "graph.js", "kernels.js", "views.js", "start.js"])


def _packed(name: str, data: Any) -> str:
    packed = gzip.compress(
        json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(), 6, mtime=0
    )
    return f'<script type="application/gzip" id="{name}">{base64.b64encode(packed).decode()}</script>'


def _whole(title: str, body: str, scripts: Sequence[str]) -> str:
    code = "\n".join(asset(name) for name in scripts)
    script = f"<script>\n{code}\n</script>" if code else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>\n<style>\n{asset('style.css')}</style></head>\n<body>\n{body}\n{script}\n"
        "</body></html>\n"
    )


__all__ = ["View", "asset", "report_page", "view_page"]
