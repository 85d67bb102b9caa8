"""What `gcomp try` says of twenty wrong passes and ten right ones: `python -m tests.gallery [NAME...] [--write]`.

Each is tried as a user tries it, for at most a minute. Exits 1 where a verdict is not the right one, or where fewer
than 18 counterexamples have at most three ops. `--write` renews docs/generated/gallery.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from rich.console import Console

from tests.gallery import ROOT, Exhibit, exhibits

PAGE = ROOT / "docs" / "generated" / "gallery.md"
STAGES = ("conduct", "proofs", "programs", "reduction", "values")
SMALL, ENOUGH = 3, 18
MOST_SECONDS = 60.0

HEAD = """# A gallery of passes

Written by `python -m tests.gallery --write`; do not edit.

Twenty wrong passes and ten right ones, and what `gcomp try FILE` says of each about its correctness. The wrong ones
are bugs that were published, in trackers of other compilers, said again as passes of gcomp
(`tests/mutants/published/bugs`); the right ones are in `examples/passes/right.py`. Counterexamples are as the command
writes them; where ops are counted, constants are none.

"""


@dataclass(frozen=True)
class Shown:
    """What was said of a pass, in how many seconds."""

    exhibit: Exhibit
    verdict: str
    why: str
    seconds: float
    ops: int | None
    text: str
    rules: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the right one, and came in time."""
        return self.verdict == ("right" if self.exhibit.is_right else "wrong") and self.seconds <= MOST_SECONDS


def tried(exhibit: Exhibit, seconds: float = MOST_SECONDS) -> Shown:
    """Ask the command about a pass, in a process of its own."""
    stages = [word for stage in STAGES for word in ("--stage", stage)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gcomp", "try", str(exhibit.file), "--pass", exhibit.name, *stages, "--json",
                   "--seconds", f"{seconds:g}", "-o", folder]  # fmt: skip
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        taken = time.monotonic() - started
        if not done.stdout:
            return Shown(exhibit, "crash", done.stderr[-500:], taken, None, "", ())
        data = json.loads(done.stdout)
    cases = sorted(data["correct"]["counterexamples"], key=lambda case: case["ops"])
    rules = tuple(f"{rule['name']}: {rule['status']}" for rule in data["correct"]["rules"])
    best = cases[0] if cases else None
    return Shown(
        exhibit, data["verdict"], data["why"], taken, best and best["ops"], best["text"] if best else "", rules
    )


def page(shown: list[Shown]) -> str:
    """The page of the documentation."""
    wrong = [one for one in shown if not one.exhibit.is_right]
    small = [one for one in wrong if one.ops is not None and one.ops <= SMALL]
    lines = [
        f"**{sum(one.is_right for one in shown)} of {len(shown)} verdicts are right, each within {MOST_SECONDS:.0f} s; "
        f"{len(small)} of {len(wrong)} counterexamples have at most {SMALL} ops.**\n",
        "| pass | what it does | verdict | counterexample | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in shown:
        name = f"[{one.exhibit.name}]({one.exhibit.source})" if one.exhibit.source else one.exhibit.name
        ops = "" if one.ops is None else f"{one.ops} op{'s' * (one.ops != 1)}"
        about = one.exhibit.about.replace("|", "\\|")
        lines.append(f"| {name} | {about} | {one.verdict} | {ops} | {one.seconds:.0f} |")
    for one in shown:
        lines += ["", f"## {one.exhibit.name}", "", f"{one.exhibit.about}", "", f"{one.verdict}: {one.why}."]
        lines += ["", *(f"- {rule}" for rule in one.rules)]
        if one.text:
            lines += ["", "```mlir", *one.text.splitlines(), "```"]
    return HEAD + "\n".join(lines) + "\n"


def main() -> int:
    """Try them, and say how many verdicts are right."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    console = Console(width=160)
    shown: list[Shown] = []
    for exhibit in exhibits():
        if names and exhibit.name not in names:
            continue
        one = tried(exhibit)
        shown.append(one)
        mark = "ok " if one.is_right else "NOT"
        console.print(f"{mark} {exhibit.name}: {one.verdict} in {one.seconds:.0f} s, {one.ops} ops; {one.why}"[:158])
    wrong = [one for one in shown if not one.exhibit.is_right]
    small = sum(one.ops is not None and one.ops <= SMALL for one in wrong)
    if "--write" in sys.argv[1:] and not names:
        PAGE.write_text(page(shown), "utf-8")
    enough = names or small >= ENOUGH
    return 0 if all(one.is_right for one in shown) and enough else 1


if __name__ == "__main__":
    sys.exit(main())
