"""Plain names at the end of a reduction: inputs x, y, z, ..., outputs r0, r1, ..., values by number."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from gcomp.ir.program import Program
from gcomp.testing.reduce.signature import input_attributes, set_outputs

_LETTERS = "xyzabcdefghijklmnopqrstuvw"


def plain_names(program: Program) -> bool:
    """Rename inputs, outputs and values, in place."""
    for op in program.ops():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    count = len(program.block.args)
    names = list(_LETTERS[:count]) if count <= len(_LETTERS) else [f"x{i}" for i in range(count)]
    attributes = input_attributes(program)
    program.main.arg_attrs = ArrayAttr(
        [DictionaryAttr({**a.data, "gcomp.name": StringAttr(n)}) for a, n in zip(attributes, names, strict=True)]
    )
    for arg, name in zip(program.block.args, names, strict=True):
        arg.name_hint = name
    set_outputs(program, [(f"r{i}", value) for i, (_, value) in enumerate(program.named_outputs())])
    return True
