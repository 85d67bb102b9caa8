"""Tensor types: equal ones are one object, whoever asked first."""

from __future__ import annotations

from xdsl.dialects.builtin import Float16Type, IntegerType

from gcomp.ir.types import ELEMENT_TYPES, tensor


def test_an_element_type_that_was_read_from_text_is_the_known_one() -> None:
    """Generators compare types by identity: a program's number stood for another one after such a type was met."""
    for own, text in ((IntegerType(32), "i32"), (Float16Type(), "f16")):
        type = tensor((3, 1, 1, 71), own)
        assert type.element_type is ELEMENT_TYPES[text] and type is tensor((3, 1, 1, 71), text)
