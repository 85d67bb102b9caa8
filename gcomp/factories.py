"""`package.module:name`: a model as a function that makes it, for command lines.

The function is called without arguments and returns the pair of a function (or module) and its example arguments, a
tuple; or a source by itself. Importing runs the module: it is code of the user's own, named by the user.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from gcomp.errors import UsageError

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_reference(text: str) -> bool:
    """Whether text names a factory, and no file."""
    return _REFERENCE.fullmatch(text) is not None and not Path(text).exists()


def run_factory(reference: str) -> tuple[Any, tuple[Any, ...]]:
    """The source that a factory returns, and its example arguments.

    Modules are looked for in the current folder, too. Raises UsageError where there is no such factory, or it returns
    something else; errors of the factory itself pass through.
    """
    factory = _find(reference)
    result: Any = factory()
    if not isinstance(result, tuple):
        return result, ()
    parts = cast("tuple[Any, ...]", result)
    if len(parts) != 2 or not callable(parts[0]) or not isinstance(parts[1], tuple):
        raise UsageError(
            f"{reference} does not return a model",
            why="it returned a tuple that is no pair of a function and a tuple of arguments",
            fix="return (function, (x, y)): the function and its example arguments",
        )
    return parts[0], cast("tuple[Any, ...]", parts[1])


def _find(reference: str) -> Callable[[], Any]:
    module_name, _, path = reference.partition(":")
    sys.path.insert(0, "")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"there is no module {error.name!r}", where=reference, fix="run gcomp where the module is, or install it"
        ) from None
    finally:
        sys.path.remove("")
    for name in path.split("."):
        if not hasattr(found, name):
            raise UsageError(f"the module {module_name} has no {path!r}", where=reference)
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(f"{path!r} is no function", where=reference, fix="name a function that returns the model")
    return cast("Callable[[], Any]", found)
