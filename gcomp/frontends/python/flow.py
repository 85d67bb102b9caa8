"""What rewritten Python calls (see `rewriting`): control flow that runs as Python's where it can, and is built where a
traced value decides."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, cast

from gcomp.frontends.python.conditionals import if_
from gcomp.frontends.python.expressions import and_, compare, either, not_, or_
from gcomp.frontends.python.loops import for_, range_, while_
from gcomp.frontends.python.rewriting import RUNTIME, rewritten_code
from gcomp.owners import is_users
from gcomp.tensors.tensor import Tensor

__all__ = ["and_", "call", "compare", "convert_function", "either", "for_", "if_", "not_", "or_", "range_", "while_"]

_CALL = "__call__"
_FLOW = sys.modules[__name__]


def convert_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with its control flow rewritten; itself where it is not the user's, or has no source."""
    if isinstance(function, types.FunctionType):
        return _rebuilt(function)
    if isinstance(function, types.MethodType):
        inner = convert_function(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        given = cast("functools.partial[Any]", function)
        return functools.partial(convert_function(given.func), *given.args, **given.keywords)
    if isinstance(function, type) or type(function).__module__.startswith("gcomp."):
        return function
    call = getattr(type(function), _CALL, None)
    if isinstance(call, types.FunctionType) and (inner := _rebuilt(call)) is not call:
        return types.MethodType(inner, function)
    return function


def _rebuilt(function: types.FunctionType) -> types.FunctionType:
    code = function.__code__
    if RUNTIME in code.co_freevars or not is_users(code.co_filename):
        return function
    own = rewritten_code(code)
    if own is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(_FLOW)
    closure = tuple(cells[name] for name in own.co_freevars)
    made = types.FunctionType(own, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made


def call(function: Any) -> Any:
    """The function to call in place of one: the user's own functions are rewritten for tracing as well."""
    if function is len:
        return _length
    return convert_function(function) if callable(function) else function


def _length(value: Any) -> Any:
    return value.shape[0] if isinstance(value, Tensor) and value.ndim else len(value)
