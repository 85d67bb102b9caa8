"""Host steps: functions of NumPy between device segments, whose results' sizes bind symbols."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dtypes import DTYPES
from gcomp.errors import InternalError
from gcomp.runtime.plan import HostStep, Value
from gcomp.runtime.signature import Signature, parse_dims

Array = np.ndarray[Any, Any]
Env = dict[str, int]
Type = tuple[tuple[int, ...], np.dtype[Any]]
"""A shape, and the type of elements."""


def host_functions() -> Container[str]:
    """The functions that host steps may name. Few models have any, and to load them takes as long as the rest."""
    from gcomp.reference.numpy.host import HOST_FUNCTIONS

    return HOST_FUNCTIONS


def run_host(step: HostStep, inputs: Sequence[Array], signature: Signature, env: Env) -> list[Array]:
    """A host step's results; binds in `env` the symbols that their sizes determine. Raises InternalError."""
    results = call_function(
        step.function, inputs, step.attributes, lambda: [_type(value, env) for value in step.outputs]
    )
    if len(results) != len(step.outputs):
        raise InternalError(f"The host step {step.function} gave {len(results)} results.")

    def bind() -> Env:
        found = dict(env)
        for result, declared in zip(results, step.outputs, strict=True):
            _bind_result(step, result, declared, signature, found)
        signature.check(found, env)
        return found

    # What the same sizes of results say is known from the last call.
    types = tuple([(result.shape, result.dtype) for result in results])
    env.update(signature.bindings.get((step.function, step.outputs, types, tuple(env.items())), bind))
    return list(results)


def call_function(
    function: str, inputs: Sequence[Array], keywords: Mapping[str, Any], types: Callable[[], Sequence[Type]]
) -> Sequence[Array]:
    """The results of a host function; `types` are those that they are to have. Raises InternalError."""
    from gcomp.reference.numpy.host import call_host

    try:
        return call_host(function, inputs, keywords, types)
    except (TypeError, ValueError, IndexError) as error:
        # Arguments that the function does not take: the compiler gives none such.
        why = f"{type(error).__name__}: {str(error)[:200]}"
        raise InternalError(f"The host step {function} failed.", why=why) from error


def _type(value: Value, env: Env) -> Type:
    return tuple([dims.evaluate(size, env) for size in parse_dims(value.dims)]), DTYPES[value.dtype]


def _bind_result(step: HostStep, result: Array, declared: Value, signature: Signature, env: Env) -> None:
    shape = [dims.substitute(size, env) for size in parse_dims(declared.dims)]
    got = f"{result.dtype}{list(result.shape)}"
    if result.dtype != DTYPES[declared.dtype] or len(shape) != result.ndim:
        raise InternalError(f"The host step {step.function} gave {got}, expected {declared}.")
    places = [
        (size, n, f"{step.function}.shape[{i}]") for i, (size, n) in enumerate(zip(shape, result.shape, strict=True))
    ]
    try:
        env.update(dims.bind(places, signature.ranges))
    except dims.DimError as error:
        raise InternalError(f"The host step {step.function} gave {got}.", why=str(error)) from None
