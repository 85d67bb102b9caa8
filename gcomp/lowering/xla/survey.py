"""One walk over a program: what XLA cannot take, which weights each function reads, and what kind of work it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from gcomp.dims import product
from gcomp.dtypes import is_integer
from gcomp.errors import UnsupportedError
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.locations import where
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.stablehlo.constant import ConstantOp
from gcomp.ir.stablehlo.contraction import ConvolutionOp, DotGeneralOp
from gcomp.ir.stablehlo.extension import CustomCallOp
from gcomp.ir.types import Tensor, dtype_text, rank_of, shape_of
from gcomp.lowering.xla.indices import gathers_from_its_place
from gcomp.lowering.xla.legality import problem_of, type_problem

_SHOWN = 20


@dataclass
class Survey:
    """What the walk found. `uses` holds only functions that `main` reaches; a program without recursion is assumed."""

    uses: dict[str, list[tuple[str, Tensor]]] = field(default_factory=dict[str, list[tuple[str, Tensor]]])
    ops: dict[str, int] = field(default_factory=dict[str, int])
    grouped_convolutions: int = 0
    transposed_dots: int = 0
    whole_reductions: int = 0
    """Reductions of a tensor to one number."""
    updates_from_themselves: int = 0
    """Updates of a tensor with what was gathered from it."""
    unpackings: int = 0
    """Shifts that take bytes apart."""
    has_nan: bool = False
    """Whether a constant holds NaN."""


def survey(program: Program) -> Survey:
    """Walk the functions that `main` reaches. Raises UnsupportedError listing every op that XLA cannot take."""
    found = _Walk(program)
    main = program.main
    found.function(main)
    if found.problems:
        shown = found.problems[:_SHOWN]
        more = [f"and {len(found.problems) - _SHOWN} more"] if len(found.problems) > _SHOWN else []
        raise UnsupportedError(
            f"XLA cannot run {len(found.problems)} op{'s' if len(found.problems) > 1 else ''} of the program.",
            why="; ".join([*shown, *more]),
            fix="Rewrite the model without them, or choose another target.",
        )
    return found.survey


class _Walk:
    def __init__(self, program: Program) -> None:
        self.survey = Survey()
        self.problems: list[str] = []
        self._functions = {f.sym_name.data: f for f in program.functions()}

    def function(self, function: FuncOp) -> dict[str, Tensor]:
        """The weights that a function and its callees read, by name."""
        name = function.sym_name.data
        if name in self.survey.uses:
            return dict(self.survey.uses[name])
        weights: dict[str, Tensor] = {}
        self.survey.uses[name] = []
        for argument in function.body.block.args:
            if (why := type_problem(argument.type)) is not None:
                self.problems.append(f"argument {argument.index} of @{name} (XLA: {why})")
        for op in function.body.walk():
            if isinstance(op, WeightOp):
                weights.setdefault(op.symbol, op.result.type)
            self._note(op)
            for callee in callees(op):
                if (target := self._functions.get(callee)) is None:
                    self.problems.append(f"{where(op)} (there is no function @{callee})")
                else:
                    weights.update(self.function(target))
        self.survey.uses[name] = list(weights.items())
        return weights

    def _note(self, op: Operation) -> None:
        ops = self.survey.ops
        ops[op.name] = ops.get(op.name, 0) + 1
        if (why := problem_of(op)) is not None:
            self.problems.append(f"{where(op)} ({why})")
        if isinstance(op, DotGeneralOp):
            self.survey.transposed_dots += _reads_transposed(op)
        if op.name == "stablehlo.convolution":
            self.survey.grouped_convolutions += cast(ConvolutionOp, op).value("feature_group_count") > 1
        if op.name == "stablehlo.reduce":
            self.survey.whole_reductions += len(op.results) == 1 and not rank_of(op.results[0])
        if op.name == "stablehlo.dynamic_update_slice":
            self.survey.updates_from_themselves += gathers_from_its_place(op)
        if isinstance(op, ConstantOp):
            self.survey.has_nan = self.survey.has_nan or _holds_nan(op)
        if op.name == "stablehlo.shift_right_logical":
            self.survey.unpackings += dtype_text(op.results[0].type) == "ui8"


def _reads_transposed(op: DotGeneralOp) -> bool:
    """Whether a product of several rows reads its right matrix along rows (`[n, k]`)."""
    d = op.dimensions
    rows = product([s for i, s in enumerate(shape_of(op.lhs)) if i not in d.lhs_contracting_dimensions])
    return rows != 1 and rank_of(op.rhs) == 2 and d.rhs_contracting_dimensions == (1,)


def _holds_nan(op: ConstantOp) -> bool:
    if is_integer(dtype_text(op.results[0].type)):
        return False
    elements = cast(ElementsAttr, op.properties["value"])
    return bool(np.isnan(elements.splat() if elements.is_splat else elements.array()).any())


def callees(op: Operation) -> Iterator[str]:
    """The functions that an op names."""
    for name in ("callee", "decomposition"):
        if isinstance(callee := op.properties.get(name), SymbolRefAttr):
            yield callee.root_reference.data
    if op.name == "stablehlo.custom_call":
        called = cast(CustomCallOp, op).called_computations
        yield from (cast(SymbolRefAttr, symbol).root_reference.data for symbol in called.data)
