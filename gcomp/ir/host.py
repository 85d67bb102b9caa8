"""`gcomp.host`: a step that runs on the host, for sizes that depend on data, and for what a target cannot compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects import builtin as bi
from xdsl.dialects.builtin import AnyTensorTypeConstr, BoolAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import prop_def, var_operand_def, var_result_def

from gcomp.dims import parse, symbols_of
from gcomp.ir.attributes import SIZE_PROPERTIES, decode, sizes_of
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import CaseOp, IfOp, WhileOp
from gcomp.ir.types import is_tensor, shape_of

HOST_FUNCTIONS = frozenset(
    (
        "cholesky",
        "decode_image",
        "extents",
        "lapack",
        "mel_weight_matrix",
        "non_max_suppression",
        "nonzero",
        "print_line",
        "triangular_solve",
        "unique",
    )
)
"""What a host step may be: functions of `gcomp.reference.numpy.host`."""


def _integer(value: int) -> Attribute:
    return IntegerAttr(value, bi.i64)


def _float(value: float) -> Attribute:
    return FloatAttr(value, bi.f64)


_CONFIG: Mapping[type, Callable[[Any], Attribute]] = {
    bool: BoolAttr.from_bool,
    int: _integer,
    float: _float,
    str: StringAttr,
}


@irdl_op_definition
class HostOp(GraphOp):
    """Call a host function: `"gcomp.host"(%x) <{function = "nonzero", config = {}}>`.

    The sizes of its results bind the symbols in their types that are not known before: every later op may use them.
    One that binds any stands in the entry function, and in order: a program is cut into device parts around it. In
    branches and loops stand those whose results' sizes follow from the operands'.
    """

    name = "gcomp.host"
    INFERS: ClassVar = False
    arguments = var_operand_def(AnyTensorTypeConstr)
    function = prop_def(StringAttr)
    config = prop_def(DictionaryAttr)
    outputs = var_result_def(AnyTensorTypeConstr)

    @classmethod
    def encode_property(cls, name: str, value: Any) -> Attribute:
        if name == "config":
            return DictionaryAttr({k: _CONFIG[type(v)](v) for k, v in value.items() if v is not None})
        return super().encode_property(name, value)

    @property
    def keywords(self) -> dict[str, Any]:
        """The configuration as plain Python values: keywords of the function."""
        attributes = cast(DictionaryAttr, self.properties["config"]).data
        return {name: decode(attribute) for name, attribute in attributes.items()}

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that the results' types mention."""
        return symbols_in(self.result_types)

    def check(self) -> None:
        parent = self.parent_op()
        if isinstance(parent, IfOp | CaseOp | WhileOp):
            if new := sorted(self.symbols - symbols_in([operand.type for operand in self.operands])):
                self.fail("C1", f"in a branch or a loop, its operands do not say what {', '.join(new)} is")
        elif parent is not None and not isinstance(parent, FuncOp):
            self.fail("C1", f"it does not stand in the body of {parent.name}, which may run in any order")
        if (name := self.value("function")) not in HOST_FUNCTIONS:
            self.fail("C2", f"there is no host function {name!r}; there are: {', '.join(sorted(HOST_FUNCTIONS))}")
        if any(type(v) not in _CONFIG for v in self.keywords.values()):
            self.fail("C3", "its configuration holds something other than numbers, booleans and strings")


def symbols_in(types: Sequence[Attribute]) -> frozenset[str]:
    """The symbols that tensor types mention."""
    return frozenset(name for t in types if is_tensor(t) for size in shape_of(t) for name in symbols_of(size))


def symbols_of_op(op: Operation) -> frozenset[str]:
    """The symbols that the types and sizes of an op (not of what is inside it) mention."""
    found = set(symbols_in(op.result_types))
    for region in op.regions:
        found |= symbols_in([arg.type for block in region.blocks for arg in block.args])
    for name in SIZE_PROPERTIES & op.properties.keys():
        found.update(s for size in sizes_of(op.properties[name]) for s in symbols_of(size))
    if op.name == "gcomp.dim":
        found |= symbols_of(parse(cast(StringAttr, op.properties["size"]).data))
    return frozenset(found)
