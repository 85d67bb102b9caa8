"""Reading the values of options: `NAME=VALUE` pairs, sizes, arrays."""

from __future__ import annotations

import os
import re
import shlex
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp.errors import UsageError
from gcomp.records import record
from gcomp.runtime.replacing import replacing

if TYPE_CHECKING:
    from gcomp.frontends.onnx.model.input_structures import Structure

Array = np.ndarray[Any, Any]


@record
class Source:
    """What the command line says of a model to compile: the values of --dim, --structure and --constant."""

    dim: Sequence[str] = ()
    structure: Sequence[str] = ()
    constant: Sequence[str] = ()
    links: Sequence[Path] = ()

    def options(self) -> str:
        """The options again, for a command that is printed: a shell takes them as they were given."""
        given = {"--dim": self.dim, "--structure": self.structure, "--constant": self.constant,
                 "--allow-links": map(str, self.links)}  # fmt: skip
        return "".join(f" {name} {shlex.quote(value)}" for name, values in given.items() for value in values)

    def keywords(self) -> dict[str, Any]:
        """Keywords of `gcomp.compile`."""
        return {
            "dims": dim_specs(self.dim),
            "structures": structure_specs(self.structure),
            "constants": constant_arrays(self.constant),
        }


def source_of(
    model: Path,
    dim: Sequence[str] | None,
    structure: Sequence[str] | None,
    constant: Sequence[str] | None,
    links: Sequence[Path] | None,
) -> Source:
    """What the options of a command say of a model. While the command runs, links may lead into `links`."""
    if links:
        if model.suffix in _NO_LINKS:
            raise UsageError(
                "--allow-links is for ONNX models", why=f"{model} has no data in other files", fix="leave it out"
            )
        from gcomp.frontends.onnx.model.external_data import permit_links

        permit_links(*links)
    return Source(dim or [], structure or [], constant or [], links or [])


_NO_LINKS = (".mlir", ".gcomp", ".pt2", ".jax_export")


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a dict. UsageError for anything else, and for a name given twice."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not (name and equals and rest):
            raise UsageError(f"{option} takes NAME=VALUE, not {value!r}")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice")
        found[name] = rest
    return found


def split_list(value: str | None) -> list[str]:
    """What stands between commas."""
    return [item for item in (value or "").split(",") if item]


def dim_specs(values: Sequence[str]) -> dict[str, str]:
    """The sizes and ranges of `--dim` options."""
    return pairs(values, "--dim")


def structure_specs(values: Sequence[str]) -> dict[str, Structure]:
    """The structures of `--structure` options: `none`, a number of tensors, or shapes such as `[2,3],[n,?]`."""
    return {name: _structure(name, text) for name, text in pairs(values, "--structure").items()}


def _structure(name: str, text: str) -> Structure:
    if text == "none":
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    if _SHAPES.fullmatch(text) is None:
        raise UsageError(
            f"--structure {name}={text} is not a structure",
            fix=f"write {name}=3 for three tensors, '{name}=[2,3],[n,?]' for their shapes, or {name}=none for nothing",
        )
    return [[_size(size) for size in row.split(",") if size] for row in _ROW.findall(text)]


_SHAPES = re.compile(r"\[(?:[\w?]+(?:,[\w?]+)*)?\](?:,\[(?:[\w?]+(?:,[\w?]+)*)?\])*")
_ROW = re.compile(r"\[([^\]]*)\]")


def _size(text: str) -> int | str | None:
    """A number, the name of a symbol, or `?` for what the model declares."""
    if text == "?":
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def constant_arrays(values: Sequence[str]) -> dict[str, Array]:
    """The arrays of `--constant` options."""
    return {name: read_array(Path(file)) for name, file in pairs(values, "--constant").items()}


def load_files(paths: Sequence[Path]) -> None:
    """Add the passes of Python files to those that a pipeline may name."""
    if paths:
        from gcomp.passes.registry import load_passes

        for path in paths:
            load_passes(path)


def fixed_sizes(values: Sequence[str]) -> dict[str, int]:
    """The sizes of `--dim` options that must be numbers."""
    sizes: dict[str, int] = {}
    for name, text in dim_specs(values).items():
        if not text.isdigit() or len(text) > 18:
            raise UsageError(f"--dim {name}={text} is not a size here", fix=f"write --dim {name}=8")
        sizes[name] = int(text)
    return sizes


def check_sizes(sizes: Mapping[str, int], known: Collection[str]) -> None:
    """UsageError for a size of a dimension that the model does not have."""
    if unknown := sorted(sizes.keys() - set(known)):
        raise UsageError(
            f"the model has no symbolic dimension {unknown[0]!r}",
            fix=f"its symbols are: {', '.join(sorted(known)) or 'none'}",
        )


def check_writable(path: Path) -> None:
    """UsageError when no file can be written there: said before the work, not after it."""
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", fix="create it, or write somewhere else")
    if path.is_dir():
        raise UsageError(f"{path} is a folder", fix="name a file in it")


def write_file(path: Path, data: bytes) -> None:
    """Put `data` into a file, whole or not at all. Raises UsageError."""
    check_writable(path)
    try:
        # What exists and is not a plain file (/dev/null, a pipe) is written to, not replaced.
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            with replacing(Path(os.path.realpath(path))) as file:
                file.write(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}", why=error.strerror or str(error)) from None


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays in an .npz file, by name. UsageError when it is not one; nothing is ever unpickled."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray):
                raise ValueError("it holds a single array")
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"{path} is not an .npz file", why=str(error), fix="numpy.savez(path, NAME=ARRAY, ...) writes one"
        ) from None


def read_array(path: Path) -> Array:
    """The array in an .npy file. UsageError when it is not one; nothing is ever unpickled."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except (ValueError, EOFError) as error:
        raise UsageError(f"{path} is not an .npy file", why=str(error)) from None
