"""`make quick`: lint, the types of what changed, and a look into every room, side by side; in less than a minute."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
BASES = ("origin/main", "main")
"""Where a branch left main, in a clone and in a working tree of its own."""


def changed() -> list[str]:
    """The files of gcomp that differ from where this branch left main, or from the last commit where there is none."""
    known = (subprocess.run(["git", "merge-base", "HEAD", b], capture_output=True, text=True).stdout for b in BASES)
    base = next((text.strip() for text in known if text), "HEAD")
    names = ["git", "diff", "--name-only", "--diff-filter=d", base, "--", "gcomp/*.py"]
    new = ["git", "ls-files", "--others", "--exclude-standard", "--", "gcomp/*.py"]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in (names, new)]
    return "".join(found).split()


def main() -> int:
    """0 where all is well; the output of what is not, otherwise."""
    started, files = time.monotonic(), changed()
    checks = {
        "lint": [BIN / "ruff", "check", "."],
        "format": [BIN / "ruff", "format", "--check", "."],
        "looks into rooms": [sys.executable, "-m", "pytest", "-q", "tests/smoke", "tests/unit/test_layers.py"],
    }
    if files:
        checks[f"types of {len(files)} files"] = [BIN / "pyright", *files]
    running = {
        name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in checks.items()
    }
    failed = 0
    for name, process in running.items():
        output, _ = process.communicate()
        failed += process.returncode != 0
        print(f"{name}: {'ok' if process.returncode == 0 else f'FAILED{chr(10)}{output}'}")
    print(f"{time.monotonic() - started:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
