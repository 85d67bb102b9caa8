"""IR text in files: the program in `NAME.mlir`, and its weights beside it in `NAME.weights.safetensors`."""

from __future__ import annotations

from pathlib import Path

from gcomp.dtypes import dtype_of
from gcomp.errors import InvalidModelError, ParseError, UsageError
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.runtime.safetensors import read_arrays, write_arrays

_LISTED = 3


def weights_path(path: Path) -> Path:
    """Where the weights of a text lie."""
    return path.with_suffix(".weights.safetensors")


def write_weights(path: Path, program: Program) -> Path | None:
    """Write what the text of a program in `path` reads; where to, or None where it reads no weights.

    Raises ArtifactError where the file cannot be written.
    """
    names = {op.symbol for op in weights_of(program)}
    arrays = {name: array for name, array in program.weights.items() if name in names}
    if not arrays:
        return None
    write_arrays(weights_path(path), arrays)
    return weights_path(path)


def read_program(path: Path) -> Program:
    """The program of a file, with its weights where they lie beside it. Raises GcompError."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise ParseError(f"cannot read {path}", where=str(path), why="it is not UTF-8 text") from None
    program = Program.parse(text, str(path))
    reads = {op.symbol: op for op in weights_of(program)}
    beside = weights_path(path)
    if reads and beside.exists():
        types = {name: dtype_of(dtype_text(op.result.type)) for name, op in reads.items()}
        arrays = read_arrays(beside, types)
        for name, op in reads.items():
            if name in arrays:
                if arrays[name].shape != shape_of(op.result):
                    raise InvalidModelError(
                        f"the weight @{name} of {path} is not the one in {beside}",
                        why=f"the text has {_shape(op)}, the file {list(arrays[name].shape)}",
                        fix="write both again: gcomp opt MODEL -o FILE.mlir",
                    )
                program.weights.add(name, arrays[name])
    return program


def require_weights(program: Program, source: object = None) -> None:
    """Raises UsageError for a program that reads weights which it does not have: there is nothing to run."""
    missing = list(dict.fromkeys(op.symbol for op in weights_of(program) if op.symbol not in program.weights))
    if missing:
        listed = ", ".join(f"@{name}" for name in missing[:_LISTED])
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        path = Path(source) if isinstance(source, str | Path) and "\n" not in str(source) else None
        place = weights_path(path) if path is not None and path.suffix == ".mlir" else None
        raise UsageError(
            f"the program reads weights that it does not have: {listed}{more}",
            where=None if path is None else str(path),
            why="IR text has no data" + (f", and {place} {_state(place)}" if place is not None else ""),
            fix="gcomp opt MODEL -o FILE.mlir writes both: the text, and its weights beside it",
        )


def weights_of(program: Program) -> list[WeightOp]:
    """The ops that read weights."""
    return [op for op in program.ops() if isinstance(op, WeightOp)]


def _state(place: Path) -> str:
    return "has others" if place.exists() else "is not there"


def _shape(op: WeightOp) -> str:
    return f"[{', '.join(str(size) for size in shape_of(op.result))}]"
