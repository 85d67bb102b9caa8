"""Shardy's attributes: meshes, shardings, and lists of them, each around a value of `gcomp.sharding`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.ir import Attribute, Data, OpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from gcomp.ir.enums import WordAttr
from gcomp.sharding import Axis, AxisRef, DimensionSharding, Mesh, Sharding, SubAxis, check_mesh

# ---- text ----------------------------------------------------------------------------------------------------------


def parse_mesh(parser: AttrParser) -> Mesh:
    """Parse `<["a"=2, "b"=4], device_ids=[7, 6, ...]>`."""

    def axis() -> Axis:
        name = parser.parse_str_literal()
        parser.parse_punctuation("=")
        return Axis(name, parser.parse_integer(allow_boolean=False))

    with parser.in_angle_brackets():
        axes = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, axis))
        ids: tuple[int, ...] = ()
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("device_ids")
            parser.parse_punctuation("=")
            ids = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
    return Mesh(axes, ids)


def parse_axis(parser: AttrParser) -> AxisRef:
    """Parse `"a"` or `"a":(2)4`."""
    name = parser.parse_str_literal()
    if parser.parse_optional_punctuation(":") is None:
        return AxisRef(name)
    with parser.in_parens():
        pre_size = parser.parse_integer()
    return AxisRef(name, SubAxis(pre_size, parser.parse_integer()))


def parse_axes(parser: AttrParser) -> tuple[AxisRef, ...]:
    """Parse `{"a", "b"}`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: parse_axis(parser)))


def parse_dimension(parser: AttrParser) -> DimensionSharding:
    """Parse `{"a", "b":(1)2, ?}p1`."""
    is_closed = True

    def item() -> AxisRef | None:
        nonlocal is_closed
        if not is_closed:
            parser.raise_error("`?` stands last in a dimension")
        if parser.parse_optional_punctuation("?") is None:
            return parse_axis(parser)
        is_closed = False
        return None

    items = parser.parse_comma_separated_list(parser.Delimiter.BRACES, item)
    axes = tuple(axis for axis in items if axis is not None)
    word, priority = parser.parse_optional_identifier(), None
    if word is not None:
        digits = word.removeprefix("p")
        if digits == word or not digits.isascii() or not digits.isdigit() or str(int(digits)) != digits:
            parser.raise_error(f"expected a priority as in `p1`, got {word!r}")
        priority = int(digits)
    return DimensionSharding(axes, is_closed, priority)


def parse_sharding(parser: AttrParser) -> Sharding:
    """Parse `<@mesh, [{"a"}, {?}], replicated={"b"}, unreduced={"c"}>`."""
    with parser.in_angle_brackets():
        mesh: str | Mesh
        if parser.parse_optional_keyword("mesh") is not None:
            mesh = parse_mesh(parser)
        else:
            mesh = parser.parse_symbol_name().data
        parser.parse_punctuation(",")
        dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dimension(parser))
        lists: dict[str, tuple[AxisRef, ...]] = {}
        while parser.parse_optional_punctuation(",") is not None:
            word = parser.parse_identifier()
            if word not in ("replicated", "unreduced") or word in lists:
                parser.raise_error(f"expected replicated or unreduced axes, each once, got {word!r}")
            parser.parse_punctuation("=")
            lists[word] = parse_axes(parser)
    return Sharding(mesh, tuple(dimensions), lists.get("replicated", ()), lists.get("unreduced", ()))


def parse_shardings(parser: AttrParser) -> tuple[Sharding, ...]:
    """Parse `[<@mesh, [{"a"}]>, ...]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_sharding(parser)))


def shardings_text(shardings: tuple[Sharding, ...]) -> str:
    """The text that `parse_shardings` reads."""
    return f"[{', '.join(s.text() for s in shardings)}]"


def parse_names(parser: AttrParser) -> tuple[str, ...]:
    """Parse `{"a", "b"}`, where axes are whole."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, parser.parse_str_literal))


def names_text(names: tuple[str, ...]) -> str:
    """The text that `parse_names` reads."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


# ---- attributes ----------------------------------------------------------------------------------------------------


@irdl_attr_definition
class MeshAttr(Data[Mesh]):
    """`#sdy.mesh<["a"=2, "b"=4]>`."""

    name = "sdy.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Mesh:
        return parse_mesh(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data.text())

    def verify(self) -> None:
        if why := check_mesh(self.data):
            raise VerifyException(why)


@irdl_attr_definition
class ShardingAttr(Data[Sharding]):
    """`#sdy.sharding<@mesh, [{"a"}, {?}]>`: how one value lies on a mesh."""

    name = "sdy.sharding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sharding:
        return parse_sharding(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data.text())

    def verify(self) -> None:
        if isinstance(self.data.mesh, Mesh) and (why := check_mesh(self.data.mesh)):
            raise VerifyException(why)


@irdl_attr_definition
class ShardingPerValueAttr(Data[tuple[Sharding, ...]]):
    """`#sdy.sharding_per_value<[<@mesh, [{"a"}]>, ...]>`: how the values lie that an op takes or gives."""

    name = "sdy.sharding_per_value"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Sharding, ...]:
        with parser.in_angle_brackets():
            return parse_shardings(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{shardings_text(self.data)}>")


@irdl_attr_definition
class ManualAxesAttr(Data[tuple[str, ...]], OpaqueSyntaxAttribute):
    """`#sdy<manual_axes{"a"}>`: the axes along which a computation is written for one device."""

    name = "sdy.manual_axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        return parse_names(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(names_text(self.data))


@irdl_attr_definition
class PropagationDirectionAttr(WordAttr):
    """In which directions shardings propagate through an op."""

    name = "sdy.propagation_direction"
    words = ("NONE", "FORWARD", "BACKWARD", "BOTH")


SHARDING = "sdy.sharding"
"""The attribute of arguments, results and ops that says how values lie."""


def sharding_in(attributes: Mapping[str, Attribute]) -> Sharding | None:
    """The sharding of a function's argument or result, among what the function says of it."""
    found = attributes.get(SHARDING)
    return found.data if isinstance(found, ShardingAttr) else None


ATTRIBUTES: tuple[type[Data[Any]], ...] = (MeshAttr, ShardingAttr, ShardingPerValueAttr, ManualAxesAttr)
"""The dialect's attributes."""
