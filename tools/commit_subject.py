"""A hook for commit messages: the first line is `area: what and why`, in at most 72 characters."""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUBJECT = re.compile(r"(Merge|Revert|fixup!|squash!) .*|[a-z][a-z0-9 ,_/-]*: \S.*")
LONGEST = 72


def main(path: str) -> int:
    """0 for a good subject; says what is wrong otherwise."""
    lines = Path(path).read_text("utf-8").splitlines()
    subject = next((line for line in lines if not line.startswith("#")), "")
    if SUBJECT.fullmatch(subject) and len(subject) <= LONGEST:
        return 0
    print(f"{subject!r} is no subject: write `area: what and why` in at most {LONGEST} characters, as in")
    print("    passes: fold the reverse of a reverse")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
