"""What the frontend uses of JAX, in one place, and untyped: JAX's own annotations are partial."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

jax: Any = import_module("jax")
dtypes: Any = import_module("jax.dtypes")
tree_util: Any = import_module("jax.tree_util")
core: Any = import_module("jax.extend.core")
_lax: Any = import_module("jax._src.lax.lax")
_source_info: Any = import_module("jax._src.source_info_util")
_config: Any = import_module("jax._src.config")


def trace_context() -> Any:
    """The settings that what is traced depends on."""
    return _config.trace_context()


def line_of(source_info: Any) -> tuple[str, int, int] | None:
    """File, line and column of the user's code that an equation comes from; None where there is none."""
    frame: Any = _source_info.user_frame(source_info.traceback)
    return None if frame is None else (frame.file_name, frame.start_line, frame.start_column)


def as_weak(array: Any) -> Any:
    """An array whose element type yields to others', as a Python number's does."""
    return _lax._convert_element_type(array, weak_type=True)


def place_of(source_info: Any) -> str:
    """The user's line of an equation, for people."""
    return cast(str, _source_info.summarize(source_info))
