"""Shardy's ops: meshes, what says how values lie on them, and computations that are written for one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Self, TypeVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, IntegerAttr, ModuleOp, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from gcomp.ir.assembly import I64, parse_operands
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.sdy.attributes import (
    ManualAxesAttr,
    MeshAttr,
    ShardingAttr,
    ShardingPerValueAttr,
    names_text,
    parse_names,
    parse_sharding,
    parse_shardings,
    shardings_text,
)
from gcomp.ir.stablehlo.control import ANY_VALUE
from gcomp.sharding import Mesh, Sharding

T = TypeVar("T")


@irdl_op_definition
class MeshOp(IRDLOperation):
    """A mesh with a name: `sdy.mesh @mesh = <["a"=2, "b"=4]>`."""

    name = "sdy.mesh"
    sym_name = prop_def(SymbolNameConstraint())
    mesh = prop_def(MeshAttr)
    traits = traits_def(SymbolOpInterface(), HasParent(ModuleOp))
    assembly_format = "$sym_name `=` $mesh attr-dict"

    @classmethod
    def named(cls, name: str, mesh: Mesh) -> MeshOp:
        """The op that gives a mesh a name."""
        return cls.create(properties={"sym_name": StringAttr(name), "mesh": MeshAttr(mesh)})


class PlacingOp(GraphOp):
    """An op whose result is its operand, on devices as its sharding says."""

    input = operand_def(ANY_VALUE)
    sharding = prop_def(ShardingAttr)
    result = result_def(ANY_VALUE)

    @property
    def layout(self) -> Sharding:
        """How the result lies."""
        return self.sharding.data

    def infer(self) -> Sequence[Attribute]:
        return (self.input.type,)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        sharding = ShardingAttr(parse_sharding(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        op = cls.of(parser.resolve_operand(operand, type), types=(type,), sharding=sharding)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        printer.print_string(f" {self.layout.text()}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class ShardingConstraintOp(PlacingOp):
    """What the source says of a value: `sdy.sharding_constraint %x <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>`."""

    name = "sdy.sharding_constraint"
    traits = traits_def(Pure())


@irdl_op_definition
class ReshardOp(PlacingOp):
    """The operand, moved between devices to lie as its sharding says."""

    name = "sdy.reshard"
    traits = traits_def(Pure())


@irdl_op_definition
class ShardingGroupOp(GraphOp):
    """The operand lies like all others of the group: `sdy.sharding_group %x group_id=3 : tensor<8xf32>`."""

    name = "sdy.sharding_group"
    input = operand_def(AnyTensorTypeConstr)
    group_id = prop_def(IntegerAttr)
    traits = traits_def(MemoryWriteEffect())
    custom_directives = (I64,)
    assembly_format = "$input `group_id` `` `=` `` custom<I64>($group_id) attr-dict `:` type($input)"


@irdl_op_definition
class ReturnOp(GraphOp):
    """End a computation with its results."""

    name = "sdy.return"
    values = var_operand_def(ANY_VALUE)
    traits = traits_def(Pure(), IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class ManualComputationOp(GraphOp):
    """A computation written for one device: `sdy.manual_computation(%x) in_shardings=[...] ... (%a: ...) {...} : ...`.

    Each device runs the body on its pieces along the manual axes, as `in_shardings` cut the operands; its results are
    the pieces of the op's, as `out_shardings` say. Along all other axes the body is as the program around it.
    """

    name = "sdy.manual_computation"
    INFERS: ClassVar = False
    tensors = var_operand_def(ANY_VALUE)
    in_shardings = prop_def(ShardingPerValueAttr)
    out_shardings = prop_def(ShardingPerValueAttr)
    manual_axes = prop_def(ManualAxesAttr)
    body = region_def()
    outputs = var_result_def(ANY_VALUE)
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())

    @classmethod
    def along(
        cls,
        axes: Sequence[str],
        operands: Sequence[SSAValue],
        inner: Sequence[Sharding],
        outer: Sequence[Sharding],
        body: Region,
        types: Sequence[Attribute],
    ) -> ManualComputationOp:
        """A body along manual axes, with how its operands are cut, and how its results are put together."""
        properties = {
            "in_shardings": ShardingPerValueAttr(tuple(inner)),
            "out_shardings": ShardingPerValueAttr(tuple(outer)),
            "manual_axes": ManualAxesAttr(tuple(axes)),
        }
        return cls.create(operands=operands, result_types=types, properties=properties, regions=[body])

    @property
    def block(self) -> Block:
        """The body's block, whose arguments stand for the operands' pieces."""
        return self.body.block

    @property
    def inner(self) -> tuple[Sharding, ...]:
        """How the operands are cut."""
        return self.in_shardings.data

    @property
    def outer(self) -> tuple[Sharding, ...]:
        """How the results are put together."""
        return self.out_shardings.data

    @property
    def axes(self) -> tuple[str, ...]:
        """The manual axes."""
        return self.manual_axes.data

    def check(self) -> None:
        if not isinstance(self.block.last_op, ReturnOp):
            self.fail("C2", "the body does not end in sdy.return")
        for what, values, shardings, local in (
            ("operand", self.operands, self.inner, self.block.args),
            ("result", self.results, self.outer, self.block.last_op.operands),
        ):
            if not len(values) == len(shardings) == len(local):
                counts = f"{len(values)} {what}s, {len(shardings)} shardings, and {len(local)} inside of the body"
                self.fail("C2", f"there are {counts}")

    # ---- text ----

    @classmethod
    def parse(cls, parser: Parser) -> ManualComputationOp:
        with parser.in_parens():
            operands = parse_operands(parser)
        inner = _parse_after("in_shardings", parser, parse_shardings)
        outer = _parse_after("out_shardings", parser, parse_shardings)
        axes = _parse_after("manual_axes", parser, parse_names)

        def argument() -> Parser.Argument:
            found = parser.parse_argument()
            parser.parse_optional_location()
            return found

        body = parser.parse_region(parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        values = parser.resolve_operands(operands, types.inputs.data, position)
        op = cls.along(axes, values, inner, outer, body, types.outputs.data)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f") in_shardings={shardings_text(self.inner)} out_shardings={shardings_text(self.outer)}")
        printer.print_string(f" manual_axes={names_text(self.axes)} (")
        printer.print_list(self.block.args, printer.print_block_argument)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


def _parse_after(word: str, parser: Parser, parse: Callable[[Parser], T]) -> T:
    """Parse what stands after `word=`."""
    parser.parse_keyword(word)
    parser.parse_punctuation("=")
    return parse(parser)


OPS = (MeshOp, ShardingConstraintOp, ReshardOp, ShardingGroupOp, ReturnOp, ManualComputationOp)
"""The dialect's ops."""
