"""Ops as lines whose names of values stay from pass to pass, so that a difference shows what changed and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, is_tensor, shape_of

LONGEST = 72
"""Characters of an attribute that a line shows."""

_SILENT = frozenset({"sym_name", "function_type", "arg_attrs", "res_attrs", "sym_visibility"})


@dataclass
class Lines:
    """The text of ops, each line kept once; a line is a number. What it has seen it keeps alive."""

    texts: list[str] = field(default_factory=list[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _values: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    _taken: set[str] = field(default_factory=set[str])
    _attributes: dict[Attribute, str] = field(default_factory=dict[Attribute, str])

    def name(self, value: SSAValue) -> str:
        """What a value is called, for good."""
        found = self._values.get(value)
        if found is None:
            hint = value.name_hint
            found = f"%{hint}" if hint and hint not in self._taken else f"%{len(self._values)}"
            self._taken.add(found[1:])
            self._values[value] = found
        return found

    def type(self, attribute: Attribute) -> str:
        """The text of a type or an attribute, cut where it is long."""
        found = self._attributes.get(attribute)
        if found is None:
            found = self._attributes[attribute] = _shorten(attribute)
        return found

    def shape(self, op: Operation) -> str:
        """What an op's first result is, for a box: `f32[batch, 128]`."""
        if not op.results:
            return ""
        type = op.result_types[0]
        if not is_tensor(type):
            return self.type(type)
        return f"{dtype_text(type)}[{', '.join(map(str, shape_of(type)))}]"

    def alias(self, value: SSAValue, like: SSAValue) -> None:
        """Call a value as another one is called."""
        self._values[value] = self.name(like)

    def line(self, op: Operation, depth: int = 0) -> int:
        """The number of an op's line."""
        return self.number(self.text(op.results, op.operands, self.words(op), depth))

    def words(self, op: Operation) -> tuple[str, str]:
        """What an op's line says without the names of values: what stands before and after its operands."""
        types = ", ".join([self.type(type) for type in op.result_types])
        after = f" : {types}" if types else ""
        if isinstance(op, LaunchOp):
            return f'{op.name} {op.kind_name} "{op.label_name}"', after
        shown = [f"{k} = {self.type(v)}" for k, v in op.properties.items() if k not in _SILENT]
        shown += [f"{k} = {self.type(v)}" for k, v in op.attributes.items() if k not in _SILENT]
        return op.name, f" {{{', '.join(shown)}}}{after}" if shown else after

    def text(
        self, results: Sequence[SSAValue], operands: Sequence[SSAValue], words: tuple[str, str], depth: int
    ) -> str:
        """The line of an op with these words."""
        made = ", ".join([self.name(result) for result in results])
        read = " ".join(["", ", ".join([self.name(operand) for operand in operands])]) if operands else ""
        return f"{'  ' * depth}{made}{' = ' if made else ''}{words[0]}{read}{words[1]}"

    def number(self, text: str) -> int:
        """The number of a line."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found


def _shorten(attribute: Attribute) -> str:
    match attribute:
        case DenseIntOrFPElementsAttr() if not attribute.is_splat() and len(attribute) > 16:
            return f"dense<{len(attribute)} elements>"
        case StringAttr():
            text = f'"{attribute.data}"'
        case ArrayAttr() if len(attribute) > 24:  # pyright: ignore[reportUnknownArgumentType]
            return f"[{len(attribute)} elements]"  # pyright: ignore[reportUnknownArgumentType]
        case DictionaryAttr() if not attribute.data:
            return "{}"
        case _:
            text = str(attribute)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"


def title_of(op: Operation) -> str:
    """What an op is called in a drawing: a kernel's label, a composite's name, or its own."""
    if isinstance(op, LaunchOp):
        return op.label_name
    name = op.properties.get("name") or op.properties.get("call_target_name")
    if op.name in ("stablehlo.composite", "stablehlo.custom_call") and isinstance(name, StringAttr):
        return name.data
    return op.name.removeprefix("stablehlo.")


def ops_in_order(block: Block, depth: int = 0) -> Iterator[tuple[Operation, int]]:
    """The ops of a block and of those inside, each with how deep it lies."""
    for op in block.ops:
        yield op, depth
        if not isinstance(op, FuncOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from ops_in_order(inner, depth + 1)


__all__ = ["Lines", "ops_in_order", "title_of"]
