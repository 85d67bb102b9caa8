"""The base of every graph-level op: construction from Python values, type inference, and verification.

An op states facts (operands, properties, element types, text) as xDSL does; `infer` gives its result types from its
operands and properties, for builders, shape inference and the verifier alike; `check` holds the constraints of the
specification that the facts cannot say, and cites them by number.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

from xdsl.dialects.builtin import LocationAttr, NoneAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict
from xdsl.utils.exceptions import VerifyException

from gcomp.ir import types
from gcomp.ir.attributes import decode, encode


@cache
def _properties_of(kind: type[IRDLOperation]) -> tuple[tuple[str, Attribute | None], ...]:
    """The properties of an op class with their defaults."""
    return tuple((name, d.default_value) for name, d in kind.get_irdl_definition().properties.items())


class GraphOp(IRDLOperation, ABC):
    """An op on tensors. `ELEMENTS` bounds the element types of all tensor operands (the spec's I constraints)."""

    ELEMENTS: ClassVar[frozenset[Attribute]] = types.ALL
    INFERS: ClassVar[bool] = True
    """Whether `infer` determines the result types; otherwise they are declared by whoever builds the op."""

    irdl_options = (ParsePropInAttrDict(),)

    @classmethod
    def of(
        cls,
        *operands: SSAValue | Operation,
        types: Sequence[Attribute] | None = None,
        regions: Sequence[Region] = (),
        location: LocationAttr | None = None,
        **properties: Any,
    ) -> Self:
        """Build the op from flat operands and plain Python property values (None leaves one out).

        Result types are inferred unless `types` is given. Raises VerifyException where inference finds the operands
        or properties to be wrong.
        """
        op = cls.create(
            operands=[SSAValue.get(o) for o in operands],
            result_types=types or (),
            properties={k: cls.encode_property(k, v) for k, v in properties.items() if v is not None},
            regions=regions,
            location=location,
        )
        for name, definition in cls.get_irdl_definition().properties.items():
            if definition.default_value is not None:
                op.properties.setdefault(name, definition.default_value)
        if types is None:
            op.results = SSAValues(OpResult(t, op, i) for i, t in enumerate(op.infer()))
        return op

    @classmethod
    def encode_property(cls, name: str, value: Any) -> Attribute:
        """The attribute for a property's plain Python value."""
        return encode(name, value)

    def infer(self) -> Sequence[Attribute]:
        """The result types from operands, properties and regions (symbolic dims included)."""
        return self.result_types

    def check(self) -> None:
        """Verify what `infer` does not. Raises through `fail`."""

    def fail(self, constraint: str, message: str) -> NoReturn:
        """Refuse the op, citing a constraint of the specification (`C3`, `I1`)."""
        raise VerifyException(f"{self.name.partition('.')[2]}-{constraint}: {message}")

    def value(self, name: str) -> Any:
        """The plain Python value of a property; None when it is absent and has no default."""
        attr = self.properties.get(name)
        if attr is None:
            attr = self.get_irdl_definition().properties[name].default_value
        return None if attr is None else decode(attr)

    def attributes_dict(self) -> dict[str, Any]:
        """The plain Python values of all properties that are present or have a default."""
        found = {name: self.properties.get(name, default) for name, default in _properties_of(type(self))}
        return {n: v for n, attr in found.items() if attr is not None and (v := decode(attr)) is not None}

    def verify_(self) -> None:
        for position, operand in enumerate(self.operands):
            self._verify_tensor(operand.type, f"operand {position}", f"I{position + 1}", self.ELEMENTS)
        for position, result in enumerate(self.results):
            self._verify_tensor(result.type, f"result {position}", "O", types.ALL)
        try:
            self.check()
            inferred = self.infer() if self.INFERS else self.result_types
        except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
            # A constraint presupposes others that only make sense of the properties' form.
            self.fail("C", f"operands, properties or regions are malformed ({error})")
        if len(inferred) != len(self.results):
            self.fail("C", f"has {len(self.results)} results, expected {len(inferred)}")
        for result, expected in zip(self.results, inferred, strict=True):
            if not types.compatible(result.type, expected):
                self.fail("C", f"result type is {result.type}, expected {expected}")

    def _verify_tensor(self, type: Attribute, which: str, constraint: str, elements: frozenset[Attribute]) -> None:
        if not types.is_tensor(type):
            return
        if elements is not types.ALL and type.element_type not in elements:
            self.fail(constraint, f"{which} has element type {types.dtype_text(type)}, which the op does not take")
        if not isinstance(type.encoding, NoneAttr) and (why := types.check_encoding(type)):
            self.fail(constraint, f"{which}: {why}")
