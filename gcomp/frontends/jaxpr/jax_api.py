"""What the frontend uses of JAX, in one place, and untyped: JAX's own annotations are partial."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from gcomp.owners import is_inside, is_own

jax: Any = import_module("jax")
JAX_FOLDER = str(Path(jax.__file__).parent)
dtypes: Any = import_module("jax.dtypes")
tree_util: Any = import_module("jax.tree_util")
core: Any = import_module("jax.extend.core")
_lax: Any = import_module("jax._src.lax.lax")
scaled_dot_definition: Any = import_module("jax._src.lax.scaled_dot")._scaled_dot_impl
_source_info: Any = import_module("jax._src.source_info_util")
_config: Any = import_module("jax._src.config")


def trace_context() -> Any:
    """The settings that what is traced depends on."""
    return _config.trace_context()


def scope_constraints(scope: Any) -> list[tuple[Literal["eq", "le"], Any, Any, str]]:
    """What a scope of symbolic sizes says of them: a relation, two sizes, and the text that the user wrote."""
    return [
        ("le", known.e2, known.e1, known.debug_str)
        if known.cmp.name == "GEQ"
        else ("eq", known.e1, known.e2, known.debug_str)
        for known in scope._explicit_constraints
    ]


def line_of(source_info: Any) -> tuple[str, int, int] | None:
    """File, line and column of the user's code that an equation comes from; None where there is none."""
    frame = _frame(source_info)
    return None if frame is None else (frame.file_name, frame.start_line, frame.start_column)


def as_weak(array: Any) -> Any:
    """An array whose element type yields to others', as a Python number's does."""
    return _lax._convert_element_type(array, weak_type=True)


def is_algorithm(precision: Any) -> bool:
    """Whether a precision names an algorithm."""
    return isinstance(precision, jax.lax.DotAlgorithm | jax.lax.DotAlgorithmPreset)


def algorithm_types(algorithm: Any, x: Any, y: Any, result: Any) -> tuple[Any, Any, Any]:
    """The dtypes that an algorithm multiplies and sums in, for operands and a result of some; None leaves one open."""
    return _lax.get_algorithm_compute_types(algorithm, x, y, result)


def sparse_definition(primitive: str) -> Any:
    """The function that defines a primitive of `jax.experimental.sparse` by others."""
    module = import_module(f"jax.experimental.sparse.{primitive.partition('_')[0]}")
    return getattr(module, f"_{primitive}_impl")


def place_of(source_info: Any) -> str | None:
    """The user's line of an equation, for people."""
    frame = _frame(source_info)
    if frame is None:
        return None
    column = f":{frame.start_column}" if frame.start_column else ""
    return f"{frame.file_name}:{frame.start_line}{column} ({frame.function_name})"


def definition_of(jaxpr: Any) -> str | None:
    """Where the user's function that a jaxpr was traced from begins, for people."""
    said = getattr(jaxpr.debug_info, "func_src_info", None)
    name, _, place = (said or "").rpartition(" at ")
    return f"{place} ({name})" if place and not is_inside(place, JAX_FOLDER) and not is_own(place) else None


def _frame(source_info: Any) -> Any:
    """The innermost frame that is neither JAX's, nor Python's, nor gcomp's."""
    frames = _source_info.user_frames(source_info.traceback)
    return next((frame for frame in frames if not is_own(frame.file_name)), None)
