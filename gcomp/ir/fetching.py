"""Finding a value of a program by what its user calls it, and the program that computes just such values.

A value is called by the name that the program's text prints (`%3`, `%x`), by the name of an input or output, by the
frontend's name (an ONNX node or tensor, a torch module or node, a JAX primitive), or by the line that made it
(`model.py:12`). A name of several values means all of them, as `name#0`, `name#1`, ...
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FileLineColLoc, NameLoc, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.printer import Printer

from gcomp.errors import UsageError, suggest
from gcomp.ir.locations import parts, where
from gcomp.ir.program import Program
from gcomp.ir.types import is_tensor
from gcomp.ir.walking import walk

Named = tuple[str, SSAValue]

_LINE = re.compile(r"(.+):([0-9]{1,9})")
_PART = re.compile(r"(.+)#([0-9]{1,9})")
_PORTS = 12


def find(program: Program, keys: Sequence[str]) -> list[Named]:
    """The values of `main` that keys name, each with a name of its own. UsageError for a key that names none."""
    names = _Names(program)
    found = dict(pair for key in keys for pair in names.of(key))
    return list(found.items())


def fetching(program: Program, keys: Sequence[str]) -> Program:
    """A copy of the program that returns the values that keys name, and nothing else. Its inputs are only lent to it.

    What nobody needs is still in it: `dce` comes next. Raises UsageError.
    """
    copy = program.clone()
    copy.result_structure = None
    copy.keep({}, {})
    copy.donate(set())
    found = find(copy, keys)
    copy.returned.operands = [value for _, value in found]
    copy.main.update_function_type()
    copy.main.res_attrs = ArrayAttr([DictionaryAttr({"gcomp.name": StringAttr(name)}) for name, _ in found])
    return copy


class _Names:
    """What every value of a program may be called."""

    def __init__(self, program: Program) -> None:
        self.program, self.block = program, program.block
        self.printed = {f"%{name}": value for value, name in printed_names(program).items()}
        self.ports: dict[str, SSAValue] = dict(zip([p.name for p in program.inputs()], self.block.args, strict=True))
        returned = zip(program.outputs(), program.returned.operands, strict=True)
        self.ports |= {port.name: value for port, value in returned}

    def of(self, key: str) -> list[Named]:
        """The values that a key names."""
        known = self._values(key)
        if known is None and (part := _PART.fullmatch(key)) and (several := self._values(part[1])):
            if int(part[2]) >= len(several):
                raise UsageError(f"{part[1]!r} names {len(several)} values, and {key!r} none of them")
            known = [several[int(part[2])]]
        if not known:
            raise UsageError(f"the program has no value {key!r}", fix=self._near(key))
        known = [value for value in known if is_tensor(value.type)]
        if outer := [value for value in known if _home(value) is self.block]:
            return [(key, outer[0])] if len(outer) == 1 else [(f"{key}#{i}", v) for i, v in enumerate(outer)]
        raise UsageError(
            f"{key!r} is not a value of the whole program",
            where=_around(known[0]) if known else None,
            why="it is made in a loop, a branch or a function: there is none, or there are many of them, in one run",
            fix="print it there (gcomp.ops.print, jax.debug.print), or fetch what the loop or branch returns",
        )

    def _values(self, key: str) -> list[SSAValue] | None:
        """The values of a key in the first of the ways to name them in which there are any."""
        for names in (self.printed, self.ports, self.program.names):
            if key in names:
                return [names[key]]
        return self._made_by(key) or self._on_line(key) or None

    def _made_by(self, key: str) -> list[SSAValue]:
        """What leaves the ops that a frontend's node became: values that other ops use, or nobody does."""
        ops = dict.fromkeys(op for op in self.program.ops() if key in _node_names(op.location))
        return [v for op in ops for v in op.results if not v.uses or any(use.operation not in ops for use in v.uses)]

    def _on_line(self, key: str) -> list[SSAValue]:
        """What ops of a line make."""
        if (line := _LINE.fullmatch(key)) is None:
            return []
        wanted = line[1], int(line[2])
        ops = (op for op in self.program.ops() if any(_same_place(wanted, at) for at in _lines(op.location)))
        return [value for op in ops for value in op.results]

    def _near(self, key: str) -> str:
        """Names that the user may have meant, and where all of them stand."""
        known: dict[str, None] = dict.fromkeys([*self.ports, *self.program.names, *self.printed])
        for op in walk(self.block.parent_op() or self.program.module):
            known.update(dict.fromkeys(_node_names(op.location)))
            known.update(dict.fromkeys(f"{PurePath(file).name}:{line}" for file, line in _lines(op.location)))
        ports = ", ".join(list(self.ports)[:_PORTS])
        rest = f'Inputs and outputs are: {ports}. `gcomp opt MODEL -p "" --locations` prints all values'
        return suggest(key, known) + rest


def printed_names(program: Program) -> Mapping[SSAValue, str]:
    """The names of `main`'s values in the program's text, without `%`."""
    printer = _Recorder(io.StringIO())
    printer.print_op(program.module)
    return {value: name for value, name in printer.seen.items() if _function(value) is program.main}


class _Recorder(Printer):
    """Prints, and keeps what each value is called."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream)
        self.seen: dict[SSAValue, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        self.seen[value] = name = super().print_ssa_value(value)
        return name


def _home(value: SSAValue) -> Block | None:
    return value.block if isinstance(value, BlockArgument) else cast(OpResult, value).op.parent


def _around(value: SSAValue) -> str | None:
    block = _home(value)
    op = None if block is None else block.parent_op()
    return None if op is None else where(op)


def _function(value: SSAValue) -> Operation | None:
    block = _home(value)
    op = None if block is None else block.parent_op()
    while op is not None and op.name != "func.func":
        op = op.parent_op()
    return op


def _node_names(location: Attribute) -> Iterator[str]:
    """The names in a location: of nodes, modules and operators."""
    for part in parts(location):
        if isinstance(part, NameLoc):
            yield part.desc.data


def _lines(location: Attribute) -> Iterator[tuple[str, int]]:
    for part in parts(location):
        if isinstance(part, FileLineColLoc):
            yield part.filename.data, part.line.data


def _same_place(wanted: tuple[str, int], at: tuple[str, int]) -> bool:
    """Whether a line is meant: by its file's path, or the end of it."""
    parts, given = PurePath(at[0]).parts, PurePath(wanted[0]).parts
    return at[1] == wanted[1] and parts[-len(given) :] == given


__all__ = ["Named", "fetching", "find", "printed_names"]
