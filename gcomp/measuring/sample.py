"""Inputs to run a model on where nobody gave any: plain numbers, at sizes that its symbols may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gcomp.dtypes import is_integer
from gcomp.ir.program import Program
from gcomp.reference.inputs import InputSet, input_sets
from gcomp.reference.sizes import Sizes, ordinary_sizes, size_choices

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sample:
    """A program, and inputs to run it on."""

    program: Program
    wanted: Mapping[str, int] | None = None
    """Sizes of its symbols; chosen where there are none."""

    @cached_property
    def sizes(self) -> Sizes:
        """The largest sizes that were chosen for its symbols, or those that were wanted."""
        if self.wanted is not None:
            return dict(self.wanted)
        choices = size_choices(self.program, most=8)
        return max(choices, key=lambda sizes: sum(sizes.values()), default=ordinary_sizes(self.program))

    @cached_property
    def inputs(self) -> list[Array]:
        """Plain inputs: normally distributed floats, small integers; of what is called a mask, 0 and 1."""
        found: list[InputSet] = input_sets(self.program, kinds=("plain",), sizes=[self.sizes], most=1)
        ports = zip(self.program.inputs(), found[0].arrays, strict=True)
        return [np.minimum(x, 1) if is_integer(port.dtype) and "mask" in port.name else x for port, x in ports]


__all__ = ["Sample"]
