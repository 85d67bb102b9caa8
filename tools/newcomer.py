"""Writes docs/generated/five_minutes.md: what a newcomer types and sees, from an empty folder to a verdict.

    python -m tools.newcomer [--write]

The lines are those at the head of docs/guides/writing_passes.md, run in an empty folder. Without `--write` the page is
printed. Exits 1 where a line fails, or where all of it takes longer than five minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "guides" / "writing_passes.md"
PAGE = ROOT / "docs" / "generated" / "five_minutes.md"
MOST_SECONDS = 300.0
HEAD = """# Five minutes, from an empty folder to a verdict

Written by `python -m tools.newcomer --write`; do not edit. It runs the lines at the head of
[writing_passes.md](../guides/writing_passes.md) in an empty folder, and shows what they print. The corpus had been made
before.

"""


def lines() -> list[str]:
    """What a newcomer types."""
    found = re.search(r"^```console\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.M | re.S)
    assert found is not None
    return found.group(1).splitlines()


def typed(line: str, folder: Path) -> tuple[str, int]:
    """Run a line in a folder: what it prints, and its exit status."""
    program, *words = shlex.split(line)
    around = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "110"}
    command = [sys.executable, "-m", program, *words]
    done = subprocess.run(command, cwd=folder, env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)  # fmt: skip
    return done.stdout.replace(str(folder), "."), done.returncode


def plain(text: str) -> str:
    """What a terminal shows in the end of what was printed: without colours, and without what was written over."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return "\n".join(line.rsplit("\r", 1)[-1].rstrip() for line in text.splitlines()).strip("\n")


def main() -> int:
    """Type the lines, and write or print the page."""
    shown, started, failed = list[str](), time.monotonic(), False
    with tempfile.TemporaryDirectory() as folder:
        for line in lines():
            began = time.monotonic()
            said, status = typed(line, Path(folder))
            failed |= status != 0
            shown.append(f"$ {line}\n{plain(said)}\n# {time.monotonic() - began:.0f} s")
    taken = time.monotonic() - started
    page = HEAD + "```text\n" + "\n\n".join(shown) + f"\n```\n\nAll of it took {taken:.0f} s.\n"
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page, "utf-8")
    else:
        sys.stdout.write(page)
    return int(failed or taken > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
