"""What a caller says of inputs that are sequences or optionals: how many tensors they hold, and of which shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

import onnx_ir

from gcomp.errors import UnsupportedError, UsageError

Structure: TypeAlias = "int | Sequence[Sequence[int | str | None]] | None"
"""What a caller says about an input that is no tensor.

None: an optional that holds nothing. An int: a sequence (or an optional that holds one) of so many elements; 1 for an
optional that holds a tensor, 0 for one that does not. A list: the same, by the shapes of the elements; in a shape a
number is a size, a name a symbol, and None what the model declares, or else a symbol of its own.
"""

Row: TypeAlias = "Sequence[int | str | onnx_ir.SymbolicDim | None]"
"""The shape of one tensor: sizes, names that the caller gave, and dims of the model (None: one without a name)."""

_MOST_ELEMENTS = 1 << 14


class Kind(NamedTuple):
    """What an input holds, when it is no tensor."""

    of_sequence: bool
    optional: bool

    @staticmethod
    def of(value: onnx_ir.Value) -> Kind | None:
        """The kind of an input; None for tensors and for what ONNX's operators do not take."""
        match value.type:
            case onnx_ir.SequenceType(elem_type=onnx_ir.TensorType()):
                return Kind(True, False)
            case onnx_ir.OptionalType(elem_type=onnx_ir.TensorType()):
                return Kind(False, True)
            case onnx_ir.OptionalType(elem_type=onnx_ir.SequenceType(elem_type=onnx_ir.TensorType())):
                return Kind(True, True)
            case _:
                return None

    @property
    def most(self) -> int:
        """How many tensors it may hold."""
        return _MOST_ELEMENTS if self.of_sequence else 1


def check_names(structures: Mapping[str, Structure], values: Sequence[onnx_ir.Value], where: str) -> None:
    """Raises UsageError for a name that no input which is a sequence or an optional has."""
    taking = [str(v.name) for v in values if Kind.of(v) is not None]
    for name in structures:
        if name not in taking:
            raise UsageError(
                f"The model has no input `{name}` that is a sequence or an optional.",
                where=where,
                why=f"Such inputs are: {', '.join(taking) or 'none'}.",
                fix="Check the names given in `structures`.",
            )


def rows(value: onnx_ir.Value, kind: Kind, structures: Mapping[str, Structure], where: str) -> list[Row] | None:
    """The shapes of the tensors that an input holds; None for an optional that holds nothing."""
    name, declared = str(value.name), value.shape
    if name not in structures:
        raise UnsupportedError(
            f"The structure of the input `{name}` is not known.",
            where=where,
            why=f"its type is {value.type}, and gcomp compiles for a fixed number of tensors",
            fix=f'Say how many tensors it holds with structures={{"{name}": 1}}'
            + (", or None where it holds nothing." if kind.optional else "."),
        )
    given: object = structures[name]
    if given is None and kind.optional:
        return None
    if isinstance(given, int) and not (isinstance(given, bool) and kind.of_sequence):
        if not 0 <= given <= kind.most:
            raise _misfit(name, given, where, f"It holds 0 to {kind.most} tensors.")
        if given and declared is None:
            raise UnsupportedError(
                f"The rank of the tensors in the input `{name}` is not stated.",
                where=where,
                why="gcomp compiles for known ranks",
                fix=f'Give their shapes: structures={{"{name}": [(2, None), ("n", 3)]}}.',
            )
        return [_declared_row(declared)] * given
    return _given_rows(name, given, declared, kind, where)


def _declared_row(shape: onnx_ir.Shape | None) -> Row:
    return [d if isinstance(d, int) or d.value else None for d in shape or ()]


def _given_rows(name: str, given: object, declared: onnx_ir.Shape | None, kind: Kind, where: str) -> list[Row]:
    listed = _list(given)
    if listed is None or len(listed) > kind.most:
        raise _misfit(name, given, where, f"A number up to {kind.most}, or a list of shapes, is expected.")
    found: list[Row] = []
    for entry in listed:
        row = _list(entry)
        if row is None or not all(size is None or _is_size(size) for size in row):
            raise _misfit(name, given, where, "A shape is a list of sizes, names and None.")
        sizes = cast("list[int | str | None]", row)
        if declared is not None and not _fits(sizes, declared):
            raise _misfit(name, given, where, f"The model declares tensors of shape {declared}.")
        known = [None] * len(sizes) if declared is None else _declared_row(declared)
        found.append([d if size is None else size for size, d in zip(sizes, known, strict=True)])
    return found


def _list(given: object) -> list[object] | None:
    return list(cast("Sequence[object]", given)) if isinstance(given, (list, tuple)) else None


def _is_size(size: object) -> bool:
    if isinstance(size, str):
        return size.isidentifier() and len(size) <= 64
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


def _fits(row: Sequence[int | str | None], declared: onnx_ir.Shape) -> bool:
    if len(row) != len(declared):
        return False
    return all(not (isinstance(a, int) and isinstance(d, int)) or a == d for a, d in zip(row, declared, strict=True))


def _misfit(name: str, given: object, where: str, why: str) -> UsageError:
    return UsageError(f"The structure of the input `{name}` does not fit: {str(given)[:80]}.", where=where, why=why)
