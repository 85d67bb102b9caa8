"""Which sources a result is of, for results that are kept."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sources_digest(root: Path, *folders: str) -> str:
    """A digest of the Python files in folders of `root`, by their names and contents."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
