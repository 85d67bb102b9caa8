"""Printing from a running program."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from gcomp.formats import literal
from gcomp.ir.printing import PrintOp
from gcomp.tensors.lifting import lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.tensor import ArrayLike


@operation
def print(format: str, *values: ArrayLike, name: str = "") -> None:
    """Print a line when the program runs: `ops.print("{name}: {shape} mean {mean:.3f}, {nan} NaN", x, name="x")`.

    Fields are `shape`, `dtype`, `mean`, `min`, `max`, `nan`, `inf` and `values`, of the first value or of another
    (`{1.mean}`). Prints come in the order of the program, once for each time that they are reached, and change nothing
    else by a bit. A derivative of the program does not print again.
    """
    b, operands = lift_operands(*values)
    b.insert(PrintOp.of(*operands, types=(), format=StringAttr(format.replace("{name}", literal(name)))))


__all__ = ["print"]
