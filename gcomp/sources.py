"""From any source to a program: a table of frontends, the first that accepts a source imports it.

Other packages add rows through the entry point group `gcomp.frontends`; they are asked after those of this package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gcomp.dims import DimSpec, Ranges, symbols_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.factories import is_reference, run_factory
from gcomp.ir.program import Program
from gcomp.options import Array, range_given
from gcomp.records import record
from gcomp.texts import read_program

if TYPE_CHECKING:
    from gcomp.frontends.onnx.model.input_structures import Structure


@record
class Source:
    """A source, its example arguments, and what the user says of it besides."""

    value: Any
    args: tuple[Any, ...] = ()
    dims: Mapping[str, DimSpec] | None = None
    structures: Mapping[str, Structure] | None = None
    constants: Mapping[str, Array] | None = None

    @property
    def path(self) -> Path | None:
        """The file that the source names; None where it is none."""
        value: object = self.value
        if not isinstance(value, str | os.PathLike):
            return None
        text = os.fsdecode(cast("str | os.PathLike[str]", value))
        return None if "\n" in text else Path(text)


@record
class Frontend:
    """What imports one kind of source.

    `suffixes` are of its files. Where it `takes_all`, it sets sizes, structures and constants itself. Example arguments
    are for those that `takes_arguments`: functions, and what is given with or without.
    """

    name: str
    accepts: Callable[[Source], bool]
    program: Callable[[Source], Program]
    suffixes: tuple[str, ...] = ()
    takes_all: bool = False
    takes_arguments: bool = False


def import_model(
    source: Any,
    *args: Any,
    dims: Mapping[str, DimSpec] | None = None,
    structures: Mapping[str, Structure] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Program:
    """The program of a source (see `gcomp.compile`), before any pass. Raises GcompError."""
    for name, spec in (dims or {}).items():
        range_given(name, spec)
    given = Source(*_resolve(source, args), dims, structures, constants)
    frontend = frontend_of(given)
    if frontend.takes_all:
        return frontend.program(given)
    if structures:
        raise UsageError("structures are for ONNX models", why="other sources have no sequences and optionals")
    if constants:
        raise UsageError(
            "constants are for ONNX models", why="sizes in other sources never come from an input's values"
        )
    return _with_ranges(frontend.program(given), dims)


def frontend_of(source: Source) -> Frontend:
    """The first frontend that accepts a source. Raises UsageError, UnsupportedError where none does."""
    found = next((row for row in chain(FRONTENDS, _others()) if row.accepts(source)), None)
    if source.args and not (found is not None and found.takes_arguments):
        raise UsageError(
            "example arguments are for functions",
            why=f"the source is a {type(source.value).__name__}, which has its own",
        )
    if found is not None:
        return found
    if source.path is not None:
        raise UsageError(f"{source.path} is compiled already", fix="load it with gcomp.load")
    raise UnsupportedError(
        f"there is no frontend for a {type(source.value).__module__}.{type(source.value).__qualname__}",
        why="gcomp takes ONNX models, torch modules, JAX functions and StableHLO text",
        fix="export the model to ONNX, or pass a path, a ModelProto, a function with example arguments, or a Program",
    )


def _others() -> Iterator[Frontend]:
    for entry in entry_points(group="gcomp.frontends"):
        yield entry.load()


def is_onnx(source: Any) -> bool:
    """Whether a source is an ONNX model: a file, bytes, or a ModelProto."""
    given = Source(source)
    return _is_onnx(given) and not (given.path is not None and is_reference(str(source)))


def _resolve(source: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The source, and its example arguments: those of a factory where it is the name of one."""
    if isinstance(source, str | os.PathLike):
        text = os.fsdecode(cast("str | os.PathLike[str]", source))
        if is_reference(text):
            found, own = run_factory(text)
            return found, args or own
    return cast(Any, source), args


# ---- frontends: whether a source is theirs, and its program ----


def _of_torch(source: Source) -> bool:
    """Whether a source is a module, an exported program, or a function of tensors of torch, if that is imported."""
    torch: Any = sys.modules.get("torch")
    if torch is None or isinstance(source.value, torch.nn.Module | torch.export.ExportedProgram):
        return torch is not None
    return callable(source.value) and any(isinstance(value, torch.Tensor) for value in source.args)


def _torch(source: Source) -> Program:
    from gcomp.frontends.fx import export_module, import_exported

    if hasattr(source.value, "graph_signature"):
        return import_exported(source.value)
    return export_module(source.value, source.args)


def _torch_file(source: Source) -> Program:
    from gcomp.frontends.fx.files import import_file

    return import_file(cast(Path, source.path))


def _is_jax_export(source: Source) -> bool:
    """Whether a source is a `jax.export.Exported`, if that is imported at all."""
    export: Any = sys.modules.get("jax.export")
    return export is not None and isinstance(source.value, export.Exported)


def _jax_export(source: Source) -> Program:
    from gcomp.frontends.jaxpr.files import import_exported

    return import_exported(source.value)


def _jax_file(source: Source) -> Program:
    from gcomp.frontends.jaxpr.files import import_file

    return import_file(cast(Path, source.path))


def _jax(source: Source) -> Program:
    from gcomp.frontends.jaxpr import trace

    return trace(source.value, source.args).program()


def _is_onnx(source: Source) -> bool:
    if (path := source.path) is not None:
        return path.suffix not in _SUFFIXES
    return isinstance(source.value, bytes) or type(source.value).__name__ == "ModelProto"


def _onnx(source: Source) -> Program:
    from gcomp.frontends.onnx import import_onnx

    return import_onnx(source.value, dims=source.dims, structures=source.structures, constants=source.constants)


def _file(name: str, suffix: str, program: Callable[[Source], Program]) -> Frontend:
    return Frontend(name, lambda s: s.path is not None and s.path.suffix == suffix, program, (suffix,))


FRONTENDS: tuple[Frontend, ...] = (
    Frontend("a program", lambda s: isinstance(s.value, Program), lambda s: s.value, takes_arguments=True),
    Frontend("jax.export", _is_jax_export, _jax_export, takes_arguments=True),
    Frontend("torch", _of_torch, _torch, takes_arguments=True),
    Frontend("IR text", lambda s: isinstance(s.value, str) and s.path is None, lambda s: Program.parse(s.value)),
    _file("a file of IR text", ".mlir", lambda s: read_program(cast(Path, s.path))),
    _file("a file of torch.export", ".pt2", _torch_file),
    _file("a file of jax.export", ".jax_export", _jax_file),
    Frontend("ONNX", _is_onnx, _onnx, (".onnx",), takes_all=True),
    Frontend("JAX", lambda s: callable(s.value), _jax, takes_arguments=True),
)
"""In the order in which they are asked. Files of other suffixes are ONNX's."""

_SUFFIXES = (".gcomp", *(suffix for row in FRONTENDS[:-2] for suffix in row.suffixes))


def _with_ranges(program: Program, dims: Mapping[str, DimSpec] | None) -> Program:
    """The program with sizes and ranges of its symbols set; a fixed size is substituted."""
    given = {name: range_given(name, spec) for name, spec in (dims or {}).items()}
    known = {
        s for port in program.inputs() for size in port.shape if not isinstance(size, int) for s in symbols_of(size)
    }
    if unknown := sorted(set(given) - known):
        raise UsageError(
            f"the model has no symbolic dimension {unknown[0]!r}",
            fix=f"its symbols are: {', '.join(sorted(known)) or 'none'}",
        )
    if not given:
        return program
    program.ranges = Ranges({**dict(program.ranges), **given})
    fixed = {name: r.lo for name, r in given.items() if r.lo == r.hi}
    return program.bind(fixed) if fixed else program
