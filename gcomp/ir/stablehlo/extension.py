"""Ops that stand for something else: composites (a name and a decomposition) and custom calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TupleType,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicRegionVariable,
    irdl_custom_directive,
)
from xdsl.irdl.operations import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, SymbolTable, get_effects

from gcomp.ir.attributes import decode
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import ANY_VALUE, same_types
from gcomp.ir.types import is_tensor, rank_of
from gcomp.ir.walking import walk

_TYPED_FFI = 4
_EFFECTS = frozenset((EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)))


@irdl_custom_directive
class CompositeName(CustomDirective):
    """`"my.op"`."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, StringAttr(parser.parse_str_literal()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(cast(Attribute, self.value.get(op)))
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class CallTarget(CustomDirective):
    """`@target`."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, parser.parse_symbol_name())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_symbol_name(cast(StringAttr, self.value.get(op)).data)
        state.should_emit_space, state.last_was_punctuation = False, False


@irdl_custom_directive
class Regions(CustomDirective):
    """`({...}, {...})` when there are any."""

    regions: VariadicRegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.regions.set(state, parser.parse_region_list())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        printer.print_regions(self.regions.get(op))
        state.should_emit_space, state.last_was_punctuation = True, False


class CompositeEffects(MemoryEffect):
    """A composite has the effects of its decomposition; unknown ones while that is not there."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance] | None:
        effects: set[EffectInstance] = set()
        waiting, seen = [cast(CompositeOp, op)], set[str]()
        while waiting:
            composite = waiting.pop()
            function = composite.function()
            if function is None or not function.body.blocks:
                return None
            for inner in () if composite.decomposition_name in seen else walk(function):
                if isinstance(inner, CompositeOp):
                    waiting.append(inner)
                elif not (inner.regions or inner.name == "func.return" or is_side_effect_free(inner)):
                    found = get_effects(inner)
                    if found is None:
                        return None
                    effects |= found
            seen.add(composite.decomposition_name)
        return effects


@irdl_op_definition
class CompositeOp(GraphOp):
    """An op named `composite_name`, which means what the function `decomposition_name` computes."""

    name = "stablehlo.composite"
    INFERS: ClassVar = False
    inputs = var_operand_def(ANY_VALUE)
    composite_name_ = prop_def(StringAttr, prop_name="name")
    composite_attributes = prop_def(DictionaryAttr, default_value=DictionaryAttr({}))
    decomposition = prop_def(SymbolRefAttr)
    version = prop_def(IntegerAttr, default_value=IntegerAttr(0, i32))
    composite_regions = var_region_def()
    result = var_result_def(ANY_VALUE)
    traits = traits_def(CompositeEffects())
    custom_directives = (CompositeName, Regions)
    assembly_format = (
        "custom<CompositeName>($name) operands custom<Regions>($composite_regions) attr-dict "
        "`:` functional-type(operands, results)"
    )

    @property
    def composite_name(self) -> str:
        """The name of the op that it stands for."""
        return self.value("name")

    @property
    def decomposition_name(self) -> str:
        """The symbol of the decomposition."""
        return self.value("decomposition")

    def attributes_of(self) -> dict[str, Any]:
        """The attributes of the op that it stands for, as plain Python values."""
        return {name: decode(attribute) for name, attribute in self.composite_attributes.data.items()}

    def symbol_table(self) -> Operation | None:
        """The op whose symbols the composite sees, or None where it is not (yet) inside one."""
        parent = self.parent_op()
        while parent is not None and not parent.has_trait(SymbolTable):
            parent = parent.parent_op()
        return parent

    def function(self) -> FuncOp | None:
        """The decomposition, or None where there is none (yet)."""
        table = self.symbol_table()
        found = None if table is None else SymbolTable.lookup_symbol(table, self.decomposition)
        return found if isinstance(found, FuncOp) else None

    def check(self) -> None:
        if not re.fullmatch(r"[A-Za-z]\w*(\.[\w$]+)+", self.composite_name):
            self.fail("C1", f"{self.composite_name!r} is not a name with a namespace")
        function = self.function()
        if function is None:
            if self.symbol_table() is not None:
                self.fail("C2", f"there is no function @{self.decomposition_name}")
            return
        if not same_types(self.operand_types, function.function_type.inputs.data):
            self.fail("C3", f"@{self.decomposition_name} has type {function.function_type}")
        if not same_types(self.result_types, function.function_type.outputs.data):
            self.fail("C4", f"@{self.decomposition_name} has type {function.function_type}")


class CustomCallEffects(MemoryEffect):
    """A custom call reads and writes the world if it says so, else nothing."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return _EFFECTS if cast(CustomCallOp, op).value("has_side_effect") else frozenset()


@irdl_op_definition
class CustomCallOp(GraphOp):
    """A call of something outside the program, by name; its result types are declared."""

    name = "stablehlo.custom_call"
    INFERS: ClassVar = False
    inputs = var_operand_def(ANY_VALUE)
    call_target_name = prop_def(StringAttr)
    has_side_effect = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    backend_config = opt_prop_def(StringAttr | DictionaryAttr)
    api_version = prop_def(IntegerAttr, default_value=IntegerAttr(1, i32))
    called_computations = prop_def(ArrayAttr, default_value=ArrayAttr[Any]([]))
    operand_layouts = opt_prop_def(ArrayAttr)
    result_layouts = opt_prop_def(ArrayAttr)
    output_operand_aliases = prop_def(ArrayAttr, default_value=ArrayAttr[Any]([]))
    result_tilings = opt_prop_def(ArrayAttr)
    result = var_result_def(ANY_VALUE)
    traits = traits_def(CustomCallEffects())
    custom_directives = (CallTarget,)
    assembly_format = (
        "custom<CallTarget>($call_target_name) `(` $inputs `)` attr-dict `:` functional-type(operands, results)"
    )

    @property
    def configuration(self) -> Attribute | None:
        """The settings of what is called, under the name of StableHLO or, as JAX writes them, of MHLO."""
        return self.backend_config or self.attributes.get("mhlo.backend_config")

    def check(self) -> None:
        if (self.operand_layouts is None) != (self.result_layouts is None):
            self.fail("C", "layouts are given for operands or results only")
        for name, types in (("operand_layouts", self.operand_types), ("result_layouts", self.result_types)):
            self._check_layouts(name, types)
        for alias in self.value("output_operand_aliases"):
            if not 0 <= alias.operand_index < len(self.operands):
                self.fail("I7", f"an output shares memory with operand {alias.operand_index}, which is not there")
        version, config = self.value("api_version"), self.backend_config
        if config is not None and isinstance(config, DictionaryAttr) != (version == _TYPED_FFI):
            self.fail("I4", f"backend_config is not what api_version {version} takes")

    def _check_layouts(self, name: str, types: Sequence[Attribute]) -> None:
        layouts: Sequence[Any] | None = self.value(name)
        if layouts is None:
            return
        if len(types) == 1 and isinstance(types[0], TupleType):
            types = types[0].types.data
        if len(layouts) != len(types):
            self.fail("C", f"{len(layouts)} {name} for {len(types)} values")
        for layout, type in zip(layouts, types, strict=True):
            rank = rank_of(type) if is_tensor(type) else 0
            if sorted(layout) != list(range(rank)):
                self.fail("C", f"{name} has {list(layout)} for {type}")
