"""The bugs that upstream_bugs.md claims are still there: every block of the page runs, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "upstream_bugs.md").read_text("utf-8")
OF_PROCESSORS = "This one depends on the processor."
"""What the page says of a bug that some processors do not show."""


def sections() -> tuple[str, dict[str, str]]:
    """The helpers, and the block of each heading."""
    helpers = re.search(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S)
    assert helpers is not None
    found = re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, flags=re.M | re.S)
    return helpers[1], {
        title: "".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)) for title, text in found
    }


def of_processors() -> list[str]:
    """The headings of the bugs that only some processors show."""
    found = re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, flags=re.M | re.S)
    return [title for title, text in found if OF_PROCESSORS in text]


def problem_of(block: str, helpers: str) -> str:
    """How a block fails; empty if it does not."""
    code = f"HELPERS = {helpers!r}\n{helpers}\n{block}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr[-500:]}"


@pytest.mark.slow
def test_every_bug_has_a_block_and_is_still_there() -> None:
    helpers, blocks = sections()
    assert blocks and all(blocks.values()), [title for title, block in blocks.items() if not block]
    # Blocks that end no process share one, which costs one import of JAX.
    blocks = {title: block for title, block in blocks.items() if title not in of_processors()}
    together = [block for block in blocks.values() if "signal_of" not in block]
    alone = {title: block for title, block in blocks.items() if "signal_of" in block}
    with ThreadPoolExecutor(2) as pool:
        problems = [*pool.map(lambda block: problem_of(block, helpers), ["\n".join(together), *alone.values()])]
    names = ["one of those that end no process", *alone]
    assert not any(problems), [f"{name}: {why}" for name, why in zip(names, problems, strict=True) if why]


@pytest.mark.slow
@pytest.mark.parametrize("title", of_processors())
def test_a_bug_of_some_processors_is_still_there(title: str) -> None:
    helpers, blocks = sections()
    if "AssertionError" in (problem := problem_of(blocks[title], helpers)):
        pytest.skip(f"this processor does not show it: {title}")
    assert not problem, problem
