"""Python functions to jaxprs: traced by JAX itself on example arguments, so that grad, vmap and pytrees have happened.

Symbolic dimensions are those of `jax.export.symbolic_shape`, in `jax.ShapeDtypeStruct` arguments; JAX takes them to be
at least 1, and so does the program, unless `dims` says more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gcomp.dims import Range, symbols_of
from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.frontends.jaxpr import avals
from gcomp.frontends.jaxpr.importer import import_jaxpr
from gcomp.frontends.jaxpr.jax_api import jax, tree_util
from gcomp.ir.program import Program
from gcomp.ir.types import shape_of


@dataclass(frozen=True)
class Traced:
    """A traced function: its jaxpr, the names of its flat inputs, and the tree of its results."""

    jaxpr: Any
    names: tuple[str, ...]
    results: tuple[str, ...]
    out_tree: Any

    def program(self, ranges: Mapping[str, Range] | None = None) -> Program:
        """The program. Its `result_structure` is the tree of the results, where JSON can hold it."""
        known = {name for aval in self.jaxpr.in_avals for s in shape_of(avals.type_of(aval)) for name in _symbols(s)}
        if unknown := sorted(set(ranges or {}) - known):
            raise UsageError(
                f"the function's arguments have no symbolic dimension {unknown[0]!r}",
                fix=f"its symbols are: {', '.join(sorted(known)) or 'none'}",
            )
        program = import_jaxpr(self.jaxpr, self.names, self.results, ranges=ranges)
        program.result_structure = structure_of(self.out_tree)
        return program


def trace(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any] | None = None,
    static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
) -> Traced:  # fmt: skip
    """Trace a function on arrays, scalars or `jax.ShapeDtypeStruct`s, in any pytrees.

    Raises UnsupportedError, with the user's line, where Python decides by a traced value.
    """
    jitted = jax.jit(function, static_argnums=static_argnums, static_argnames=static_argnames)
    try:
        traced = jitted.trace(*args, **(keywords or {}))
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
        raise UnsupportedError(
            "Python decides by a value that is known only at run time",
            where=_line(error),
            why=str(error).strip().splitlines()[0],
            fix="use jax.lax.cond, jax.lax.while_loop or jnp.where, or mark the argument as static",
        ) from error
    leaves, out_tree = tree_util.tree_flatten_with_path(traced.out_info)
    # Arguments that the function does not use stay inputs: callers pass them.
    inputs, _ = tree_util.tree_flatten_with_path(traced.args_info)
    return Traced(
        traced.jaxpr,
        _unique([_name(path, "x") for path in _by_parameter(function, [p for p, _ in inputs])]),
        _unique([_name(path, "r") for path, _ in leaves]),
        out_tree,
    )


def import_jax(
    function: Callable[..., Any], *args: Any, ranges: Mapping[str, Range] | None = None, **keywords: Any
) -> Program:
    """The program of a JAX function, traced on example arguments."""
    return trace(function, args, keywords).program(ranges)


def _symbols(size: Any) -> Sequence[str]:
    return [] if isinstance(size, int) else list(symbols_of(size))


def _line(error: BaseException) -> str:
    """The innermost line of the user's code in an error's traceback."""
    found, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "/jax/" not in name and "/gcomp/" not in name:
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# ---- names ----------------------------------------------------------------------------------------------------------


def _by_parameter(function: Callable[..., Any], paths: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Paths into (args, kwargs), positions replaced by the function's own names for them."""
    import inspect

    try:
        parameters = [p.name for p in inspect.signature(function).parameters.values() if p.kind < p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        parameters = []
    named: list[tuple[Any, ...]] = []
    for path in paths:
        where, first, *rest = path
        if where.idx == 0 and first.idx < len(parameters):
            first = tree_util.GetAttrKey(parameters[first.idx])
        named.append((first, *rest))
    return named


def _name(path: Sequence[Any], default: str) -> str:
    """A path as a name: `params.dense.w`, `xs.0`."""
    text = tree_util.keystr(tuple(path), simple=True, separator=".")
    text = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._")
    return text if text and not text[0].isdigit() else f"{default}{text}"


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    taken: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        count = taken.get(name, 0)
        taken[name] = count + 1
        found.append(f"{name}_{count}" if count else name)
    return tuple(found) if len(set(found)) == len(found) else tuple(f"{n}_{i}" for i, n in enumerate(names))


# ---- result trees ---------------------------------------------------------------------------------------------------


def structure_of(tree: Any) -> Any:
    """A result tree as the runtime's structure (`gcomp.runtime.structure`); a flat tuple where it has other nodes."""
    try:
        return _structure(tree_util.tree_unflatten(tree, range(tree.num_leaves)))
    except (TypeError, GcompError):
        return None


def _structure(value: Any) -> Any:
    if value is None or type(value) is int:
        return value
    if type(value) in (tuple, list):
        return {type(value).__name__: [_structure(v) for v in cast("Sequence[Any]", value)]}
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        if all(type(key) in (str, int) for key in entries):
            return {"dict": [[key, _structure(v)] for key, v in entries.items()]}
    raise TypeError(f"JSON does not hold a {type(value).__name__}")
