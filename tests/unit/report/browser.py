"""A headless Chromium for tests of pages: the system's own, driven by playwright."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
"""Where the browser is; None where none is installed."""


def _skip(why: str) -> NoReturn:
    """Skip, and say so among the warnings, too: whoever works on pages is to see it."""
    warnings.warn(f"pages are NOT tested in a browser: {why}", stacklevel=2)
    pytest.skip(why)


@contextmanager
def browser() -> Generator[Any]:
    """The browser. Without one the test is skipped, and says how to have it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _skip("playwright is not installed (pip install playwright)")
    if CHROMIUM is None:
        _skip("there is no Chromium here (apt-get install chromium)")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page that is open, and what its console said."""

    def __init__(self, chromium: Any, file: Path, *, dark: bool = False, is_report: bool = True) -> None:
        scheme = "dark" if dark else "light"
        self.page = chromium.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(10_000)
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        if is_report:
            self.page.wait_for_selector("body[data-ready]")

    def go(self, *parts: object) -> None:
        """Open a view by its address."""
        self.page.evaluate("parts => go(...parts)", list(parts))
        self.page.wait_for_timeout(60)  # drawings are placed in the next frame

    def click(self, selector: str, text: str | None = None, nth: int = 0) -> None:
        """Click on the first of such elements, or one further on, that has a text."""
        self.page.locator(selector, has_text=text).nth(nth).click()

    def has(self, selector: str, count: int) -> None:
        """Wait until there are so many elements; an error of playwright's if that does not come."""
        self.page.wait_for_function("([s, n]) => document.querySelectorAll(s).length === n", arg=[selector, count])

    def shows(self, selector: str, text: str) -> None:
        """Wait until the first such element has a text."""
        said = "([s, t]) => { const e = document.querySelector(s); return e && e.textContent.includes(t); }"
        self.page.wait_for_function(said, arg=[selector, text])

    def count(self, selector: str) -> int:
        """How many elements there are now."""
        return self.page.locator(selector).count()

    def text(self, selector: str) -> str:
        """What an element says now."""
        return self.page.locator(selector).first.inner_text()
