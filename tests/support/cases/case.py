"""What a case is, and how its text is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gcomp.dtypes import text_of

Array = np.ndarray[Any, Any]
Comparison = Literal["bits", "values", "ulp", "norm"]
"""How two evaluations compare: equal bits; equal bits but for the payload and sign of NaN; within a number of ulp of
each element, with the same NaNs and infinities; or of the result's largest element, for sums that may cancel."""


@dataclass(frozen=True)
class Case:
    """A program around one op, with inputs at its edges."""

    op: str
    label: str
    text: str
    inputs: tuple[Array, ...]
    compare: Comparison = "values"
    without_cpp: str = ""
    """Why the C++ reference interpreter cannot judge the case; XLA:CPU does instead."""

    @property
    def name(self) -> str:
        """`add-f32`: unique among all cases of one level."""
        return f"{self.op.partition('.')[2]}-{self.label}"


Rng = np.random.Generator
Family = Callable[[Rng, bool], Iterator[Case]]
"""Yields the cases of some ops; the flag asks for the full sweep."""


def tensor(shape: Sequence[int], element: str) -> str:
    """`tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{s}x' for s in shape)}{element}>"


def type_of(x: Array) -> str:
    """The tensor type of an array."""
    return tensor(x.shape, text_of(x.dtype))


def ints(values: Sequence[int]) -> str:
    """`array<i64: 1, 2>`."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def apply(
    op: str,
    inputs: Sequence[Array],
    results: Sequence[str],
    attributes: Mapping[str, str] | None = None,
    regions: str = "",
) -> str:
    """The text of a module that applies one op, in generic form, to the arguments of main."""
    names = [f"%a{i}" for i in range(len(inputs))]
    types = [type_of(x) for x in inputs]
    given = ", ".join(f"{k} = {v}" for k, v in (attributes or {}).items())
    properties = f" <{{{given}}}>" if given else ""
    outputs = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    bound = f"%r:{len(results)}" if len(results) > 1 else "%r"
    signature = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return (
        f"func.func public @main({signature}) -> ({', '.join(results)}) {{\n"
        f'  {bound} = "{op}"({", ".join(names)}){properties}{regions}'
        f" : ({', '.join(types)}) -> ({', '.join(results)})\n"
        f"  return {outputs} : {', '.join(results)}\n}}\n"
    )


def body(arguments: Sequence[str], lines: Sequence[str], returned: Sequence[tuple[str, str]]) -> str:
    """A region: arguments `%x0, %x1, ...` of the given types, lines, and (value, type) pairs to return."""
    signature = ", ".join(f"%x{i}: {t}" for i, t in enumerate(arguments))
    values, types = ", ".join(v for v, _ in returned), ", ".join(t for _, t in returned)
    code = "".join(f"    {line}\n" for line in lines)
    return f"{{\n  ^bb0({signature}):\n{code}    stablehlo.return {values} : {types}\n  }}"


def binary_body(op: str, element: str) -> str:
    """The region that applies a binary op to its two rank 0 arguments."""
    scalar = tensor((), element)
    return body([scalar, scalar], [f"%y = stablehlo.{op} %x0, %x1 : {scalar}"], [("%y", scalar)])
