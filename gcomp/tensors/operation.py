"""Operations: functions on tensors that know the user's line, and the table of them all.

An operation is written once, over the IR builder of its operands: `b, (x, y) = promoted(x, y)` and then
`Tensor(b, b.add(x, y))`. Where no operand is traced and no trace is open, that builder evaluates at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from xdsl.utils.exceptions import VerifyException

from gcomp.dims import DimError
from gcomp.errors import GcompError, UsageError
from gcomp.ir import locations
from gcomp.tensors.site import SITE, place_here
from gcomp.tensors.tracing import OPEN

P = ParamSpec("P")
R = TypeVar("R")

VOCABULARY: dict[str, Callable[..., Any]] = {}
"""Name -> operation."""


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """Register a function as the operation of its name.

    Its ops carry the user's line and the operation's name; what is wrong with its operands is an error that says both.
    """
    name = function.__name__.strip("_")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if SITE.location is not None:
            return function(*args, **kwargs)
        SITE.location = place = place_here(name)
        try:
            result = function(*args, **kwargs)
        except GcompError as error:
            error.where = error.where or locations.describe(place)
            raise
        except (VerifyException, DimError) as error:
            why = str(error).strip().splitlines()[-1]
            raise UsageError(
                f"{name} does not take these operands", where=locations.describe(place), why=why
            ) from error
        finally:
            SITE.location = None
        if OPEN.traces:
            OPEN.traces[-1].made(name, list(_flat(result)))
        return result

    VOCABULARY[name] = call
    return call


def _flat(result: object) -> Iterator[object]:
    if isinstance(result, tuple | list):
        yield from cast("Sequence[object]", result)
    else:
        yield result
