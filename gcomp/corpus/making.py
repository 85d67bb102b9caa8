"""Makes models of the corpus in a process of its own: `python -m gcomp.corpus.making FOLDER KIND NAME...`.

Writes `NAME.mlir` and its weights, or `NAME.refused` with the reason, and prints each name once it is done.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from gcomp.corpus.entries import entry
from gcomp.sources import import_model
from gcomp.texts import weights_path, write_weights


def make(name: str, path: Path) -> None:
    """Write the program of a model to `path`, and its weights beside it. The text comes last, and whole."""
    source, args = entry(name).make()
    program = import_model(source, *args)
    partial = path.with_name(f".{os.getpid()}-{path.name}")
    if write_weights(partial, program) is not None:
        os.replace(weights_path(partial), weights_path(path))
    partial.write_text(program.text(locations=True), "utf-8")
    os.replace(partial, path)


def main(folder: Path, kind: str, names: list[str]) -> None:
    """Make the models of a kind; one that cannot be made costs itself."""
    warnings.simplefilter("ignore")
    for name in names:
        path = folder / f"{name}.mlir"
        try:
            make(f"{kind}/{name}", path)
        except Exception as error:
            path.with_suffix(".refused").write_text(f"{type(error).__name__}: {error}", "utf-8")
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
