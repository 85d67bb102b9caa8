"""What `gcomp compile --emit` writes beside the artifact: the sources of kernels, or a library for C programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.runtime.model import Model
from gcomp.runtime.plan import is_image


def check_emitted(what: str) -> None:
    """Raises UsageError for what there is not."""
    if what not in EMITTED:
        raise UsageError(f"there is nothing called {what!r} to emit", fix=f"what there is: {', '.join(EMITTED)}")


def emit(what: str, model: Model, folder: Path) -> int:
    """Write files that are made of a model into a folder; how many there are."""
    check_emitted(what)
    files = EMITTED[what](model, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}", why=error.strerror or str(error)) from None
    return len(files)


def _triton_source(model: Model, _: Path) -> dict[str, bytes]:
    sources = {name: text.encode() for name, text in model.plan.texts.items() if name.endswith(".py")}
    if not sources:
        raise UsageError(
            f"a model for {model.target} has no Triton kernels", fix="compile for triton:sm_90 or the like"
        )
    return sources


def _c_library(model: Model, folder: Path) -> dict[str, bytes]:
    if not any(is_image(name) for name in model.plan.binaries):
        raise UsageError(
            f"a model for {model.target} has no machine code of processors",
            fix="compile for cpu, cpu:aarch64 or the like",
        )
    from gcomp.lowering.llvm.clibrary.library import library_files

    return library_files(model.plan, model.weights, folder.resolve().name)


EMITTED: Mapping[str, Callable[[Model, Path], dict[str, bytes]]] = {
    "triton-source": _triton_source,
    "c-library": _c_library,
}
"""What there is: made of a model, for a folder, the files by name."""

__all__ = ["EMITTED", "check_emitted", "emit"]
