"""From a program's values to what they hold at an index, in one of two theories.

The abstract theory knows nothing of elements but equality: what holds there holds for every element type and every
elementwise op. The exact theory has the bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import OpResult, SSAValue

from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.elementwise import BinaryOp, UnaryOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.testing.prove.movement import MOVEMENT
from gcomp.testing.prove.scalars import SCALARS, bits_of, convert, has_theory, kind_of
from gcomp.testing.prove.theory import Index, Term, z3
from gcomp.testing.prove.views import Facts, View

ELEMENTWISE = (UnaryOp, BinaryOp, hlo.CompareOp, hlo.ConvertOp, hlo.ClampOp, hlo.IsFiniteOp, hlo.ComplexOp)


class Theory(ABC):
    """What elements are, and what elementwise ops do with them."""

    @abstractmethod
    def sort(self, element: str) -> Term:
        """The sort of elements of a type."""

    @abstractmethod
    def constant(self, value: Any, element: str) -> Term:
        """One number."""

    @abstractmethod
    def apply(self, op: GraphOp, args: Sequence[Term], elements: Sequence[str], result: str) -> Term:
        """An elementwise op on one element of each operand. UnsupportedError where the theory does not have it."""

    def variable(self, name: str, element: str, rank: int) -> Term:
        """A function from indices to elements of which nothing is known; at rank 0, an element."""
        sort = self.sort(element)
        return z3.Function(name, *[z3.IntSort()] * rank, sort) if rank else z3.Const(name, sort)


class Abstract(Theory):
    """Elements of an unknown sort; elementwise ops are unknown functions, the same op the same one."""

    def sort(self, element: str) -> Term:
        return z3.BitVecSort(1) if element == "i1" else z3.DeclareSort(f"element_{element}")

    def constant(self, value: Any, element: str) -> Term:
        bits = bits_of(value, element)
        return z3.BitVecVal(bits, 1) if element == "i1" else z3.Const(f"number_{element}_{bits:x}", self.sort(element))

    def apply(self, op: GraphOp, args: Sequence[Term], elements: Sequence[str], result: str) -> Term:
        settings = ",".join(f"{name}={value}" for name, value in sorted(op.properties.items()))
        name = f"{op.name}[{settings}]:{','.join(elements)}->{result}"
        return z3.Function(name, *[a.sort() for a in args], self.sort(result))(*args)


class Exact(Theory):
    """Elements are their bits."""

    def sort(self, element: str) -> Term:
        if not has_theory(element):
            raise UnsupportedError(f"the solver has no theory of {element}")
        return z3.BitVecSort(kind_of(element).width)

    def constant(self, value: Any, element: str) -> Term:
        return z3.BitVecVal(bits_of(value, element), kind_of(element).width)

    def apply(self, op: GraphOp, args: Sequence[Term], elements: Sequence[str], result: str) -> Term:
        kind = kind_of(elements[0])
        if isinstance(op, hlo.ConvertOp):
            converted = convert(args[0], kind, kind_of(result))
            if converted is not None:
                return converted
        elif isinstance(op, hlo.ClampOp):
            low, x, high = args
            above = SCALARS[hlo.MaximumOp, kind.name]([x, low], kind, op)
            return SCALARS[hlo.MinimumOp, kind.name]([above, high], kind, op)
        elif (row := SCALARS.get((type(op), kind.name))) is not None:
            return row(args, kind, op)
        raise UnsupportedError(f"the solver has no theory of {op.name} on {elements[0]}")


class Translation:
    """The views of a program's values; `inputs` are those of its block arguments."""

    def __init__(self, theory: Theory, facts: Facts, inputs: Mapping[SSAValue, View]) -> None:
        self.theory, self.facts = theory, facts
        self._views = dict(inputs)

    def view(self, value: SSAValue) -> View:
        """What a value holds. UnsupportedError for an op without row."""
        if value not in self._views:
            if not (isinstance(value, OpResult) and isinstance(value.op, GraphOp)):
                raise UnsupportedError("the prover knows nothing of a value that no graph op computes")
            self._views[value] = self._of(value.op)
        return self._views[value]

    def _of(self, op: GraphOp) -> View:
        shape, element = shape_of(op.results[0]), dtype_text(op.results[0].type)
        if isinstance(op, hlo.ConstantOp):
            return self._constant(op, element)
        operands = [self.view(v) for v in op.operands]
        if (meaning := MOVEMENT.get(type(op))) is not None:
            return View(shape, element, meaning(op, operands, self.facts))
        if isinstance(op, ELEMENTWISE):
            elements = [o.element for o in operands]

            def at(index: Index) -> Term:
                args = [o.at(index if o.shape else ()) for o in operands]
                return self.theory.apply(op, args, elements, element)

            return View(shape, element, at)
        raise UnsupportedError(f"the prover has no meaning for {op.name}")

    def _constant(self, op: hlo.ConstantOp, element: str) -> View:
        attr = op.elements_attr
        if not attr.is_splat:
            raise UnsupportedError("the prover knows constants of one number only")
        number = self.theory.constant(attr.splat(), element)
        return View(attr.shape, element, lambda index: number)
