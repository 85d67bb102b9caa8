"""The `kernel` dialect: the program cut into kernels, each an isolated region of graph ops."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, FunctionType, StringAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, RecursiveMemoryEffect

from gcomp.ir.assembly import parse_bindings
from gcomp.ir.copying import copy_op
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.roles import KINDS, PER_ELEMENT, Role, role_of
from gcomp.ir.stablehlo.control import ReturnOp, check_region
from gcomp.ir.types import is_tensor


@irdl_op_definition
class LaunchOp(GraphOp):
    """One kernel: `kernel.launch reduction "softmax" (%x = %0) : (tensor<..>) -> tensor<..> { ... }`.

    It reads its operands from memory and writes its results there; what its body computes in between never leaves the
    kernel. `kind` says how the body is scheduled (`gcomp.ir.roles.KINDS`), `label` names it in reports and pictures.
    """

    name = "kernel.launch"
    INFERS: ClassVar = False
    inputs = var_operand_def(AnyTensorTypeConstr)
    kind = prop_def(StringAttr)
    label = opt_prop_def(StringAttr)
    body = region_def()
    outputs = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())

    @property
    def block(self) -> Block:
        """The body's block, whose arguments stand for the operands."""
        return self.body.block

    @property
    def returned(self) -> ReturnOp:
        """What ends the body."""
        return cast(ReturnOp, self.block.last_op)

    @property
    def kind_name(self) -> str:
        """The kind, as a plain string."""
        return cast(str, self.value("kind"))

    @property
    def label_name(self) -> str:
        """The label, or the kind where there is none."""
        return cast(str, self.value("label") or self.kind_name)

    def check(self) -> None:
        kind = self.kind_name
        if kind not in KINDS:
            self.fail("C1", f"there is no kind of kernel {kind!r}; there are: {', '.join(KINDS)}")
        if not self.results:
            self.fail("C2", "a kernel without results does nothing")
        check_region(self, self.body, self.operand_types, self.result_types, "C3")
        for op in self.block.ops:
            role = role_of(op)
            if role not in PER_ELEMENT and role not in KINDS[kind] and not isinstance(op, ReturnOp):
                self.fail("C4", f"a {kind} kernel cannot hold {op.name}, which has the role {role}")
            if any(not is_tensor(t) for t in op.result_types):
                self.fail("C5", f"{op.name} inside a kernel has a result that is not a tensor")

    # ---- text ----

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kind = parser.parse_identifier()
        label = parser.parse_optional_str_literal()
        bindings = parse_bindings(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        inputs = list(types.inputs.data)
        if len(inputs) != len(bindings):
            parser.raise_error(f"the kernel has {len(bindings)} operands and {len(inputs)} types for them", position)
        operands = parser.resolve_operands([b[1] for b in bindings], inputs, position)
        body = parser.parse_region([b[0].resolve(t) for b, t in zip(bindings, inputs, strict=True)])
        op = cls.of(*operands, types=types.outputs.data, regions=(body,), kind=kind, label=label)
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind_name} ")
        if (label := self.value("label")) is not None:
            printer.print_string_literal(label)
            printer.print_string(" ")
        printer.print_string("(")
        for i, (argument, operand) in enumerate(zip(self.block.args, self.operands, strict=True)):
            printer.print_string(", " if i else "")
            argument.name_hint = argument.name_hint or operand.name_hint
            printer.print_ssa_value(argument)
            printer.print_string(" = ")
            printer.print_ssa_value(operand)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_attribute(FunctionType.from_lists(list(self.operand_types), list(self.result_types)))
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def blocks_of_kernels(block: Block) -> list[Block]:
    """Where kernels stand: a block and those of the control flow in it, inner ones first."""
    found: list[Block] = []
    for op in block.ops:
        if role_of(op) is Role.CONTROL:
            found += [b for region in op.regions for inner in region.blocks for b in blocks_of_kernels(inner)]
    return [*found, block]


def outermost(op: Operation) -> Operation:
    """The op that an op is, or is inside of with nothing but control flow between."""
    while (around := op.parent_op()) is not None and role_of(around) is Role.CONTROL:
        op = around
    return op


def launch(
    kind: str, label: str | None, inputs: list[SSAValue], ops: list[Operation], results: list[SSAValue]
) -> LaunchOp:
    """A kernel that computes `results` of `ops` (in order, in a block or not), whose copies become its body."""
    block = Block(arg_types=[value.type for value in inputs])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for argument, value in zip(block.args, inputs, strict=True):
        argument.name_hint = value.name_hint
    for op in ops:
        block.add_op(copy_op(op, mapping))
    block.add_op(ReturnOp.create(operands=[mapping[value] for value in results]))
    types: list[Attribute] = [value.type for value in results]
    return LaunchOp.of(*inputs, types=types, regions=(Region(block),), kind=kind, label=label)


KERNEL = Dialect("kernel", [LaunchOp])
