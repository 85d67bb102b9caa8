"""Sizes and inputs for a model where nobody gives any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gcomp import dims
from gcomp.dims import Range, least_sizes
from gcomp.dtypes import dtype_of, is_complex, is_float
from gcomp.errors import UsageError
from gcomp.runtime.signature import Signature

if TYPE_CHECKING:
    from gcomp.runtime.model import Model

Array = np.ndarray[Any, Any]


def sizes_for(signature: Signature, given: Mapping[str, int]) -> dict[str, int]:
    """Sizes for all symbols of a model: those given, and for the others the least that fulfil its constraints.

    They are 1 rather than 0, where that can be. UsageError where no such sizes are found.
    """
    shapes = [size for shape in signature.shapes for size in shape]
    filled = {name: Range(1, r.hi, r.multiple_of) for name, r in signature.ranges.items() if r.lo < 1 and 1 in r}
    for ranges in (signature.ranges.with_ranges(filled), signature.ranges):
        found = least_sizes(ranges, signature.constraints, given, shapes)
        if found is not None:
            return found
    open_ones = sorted(signature.symbols - given.keys())
    wanted = " ".join(f"--dim {name}=SIZE" for name in open_ones or sorted(given))
    raise UsageError(
        "found no sizes that fulfil the model's constraints" + (" with those given" if given else ""),
        why="; ".join(f"{c.where}: {c.lhs} {c.kind} {c.rhs}" for c in signature.constraints[:3]) or None,
        fix=f"give sizes that do: {wanted}",
    )


def random_inputs(model: Model, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Standard normal floats and small integers for every input; other symbols take the least sizes that fit.

    Inputs with defaults are left out.
    """
    env, rng = sizes_for(model.signature, sizes), np.random.default_rng(0)
    arrays: dict[str, Array] = {}
    for port in model.inputs:
        if port.default is not None:
            continue
        shape = [dims.evaluate(dims.parse(d), env) for d in port.dims]
        if is_float(port.dtype) or is_complex(port.dtype):
            arrays[port.name] = rng.standard_normal(shape).astype(dtype_of(port.dtype))
        else:
            arrays[port.name] = rng.integers(0, 2, shape).astype(dtype_of(port.dtype))
    return arrays


__all__ = ["random_inputs", "sizes_for"]
