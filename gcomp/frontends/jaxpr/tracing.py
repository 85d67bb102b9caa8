"""Python functions to jaxprs: traced by JAX itself on example arguments, so that grad, vmap and pytrees have happened.

Symbolic dimensions are those of `jax.export.symbolic_shape`, in `jax.ShapeDtypeStruct` arguments; JAX takes them to be
at least 1, and so does the program, unless `dims` says more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gcomp import owners
from gcomp.errors import GcompError, UnsupportedError
from gcomp.frontends.jaxpr.importer import import_jaxpr
from gcomp.frontends.jaxpr.jax_api import JAX_FOLDER, jax, tree_util
from gcomp.frontends.jaxpr.shardings import place_ports, settle_ports
from gcomp.ir.program import Program


@dataclass(frozen=True)
class Traced:
    """A traced function: jaxpr, names of flat inputs and outputs, and the trees of (args, kwargs) and results."""

    jaxpr: Any
    names: tuple[str, ...]
    results: tuple[str, ...]
    in_tree: Any
    out_tree: Any
    placed: tuple[Any, ...] = ()
    """How the arrays lie that it was traced on, where they say."""

    def program(self) -> Program:
        """The program, with the trees of arguments and results where JSON can hold them."""
        program = import_jaxpr(self.jaxpr, self.names, self.results)
        if self.placed:
            place_ports(program, self.placed, self.jaxpr.in_avals)
        settle_ports(program)
        program.argument_structure = structure_of(self.in_tree)
        program.result_structure = structure_of(self.out_tree)
        return program


class Tracing:
    """A function to be traced; arguments that are static take part as Python values."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        shardings: Mapping[str, Any] | None = None,
    ) -> None:
        """`shardings` has JAX's own `in_shardings` and `out_shardings`, where they are said."""
        self.function = function
        self.parameters = _parameters(function)
        numbers = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)
        names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
        count = len(self.parameters)
        numbers = [n + count if n < 0 else n for n in numbers]
        self.static_argnums = tuple(sorted({*numbers, *(i for i, p in enumerate(self.parameters) if p in names)}))
        known = (self.parameters[n] for n in self.static_argnums if n < count)
        self.static_argnames = tuple(sorted({*names, *known}))
        # A parameter may be passed by position or by name, and is static either way.
        static = {
            "static_argnums": self.static_argnums or None,
            "static_argnames": self.static_argnames or None,
        }
        # What is said of arguments is a part of a jaxpr that is called, and not of the outermost one.
        inner = jax.jit(function, **static, **shardings) if shardings else function
        self._jitted = jax.jit(inner, **static)

    def __call__(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Traced:
        """Trace on arrays, scalars or `jax.ShapeDtypeStruct`s, in any pytrees. Repeated types give the same jaxpr.

        Raises UnsupportedError, with the user's line, where Python decides by a traced value.
        """
        try:
            traced = self._jitted.trace(*args, **keywords)
        except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
            raise UnsupportedError(
                "Python decides by a value that is known only at run time",
                where=owners.line_of(error.__traceback__, JAX_FOLDER),
                why=str(error).strip().splitlines()[0],
                fix="use jax.lax.cond, jax.lax.while_loop or jnp.where, or mark the argument as static",
            ) from error
        except jax.errors.InconclusiveDimensionOperation as error:
            raise UnsupportedError(
                "what the function does depends on a symbolic size",
                where=owners.line_of(error.__traceback__, JAX_FOLDER),
                why=str(error).strip().splitlines()[0],
                fix='say more of it, as in jax.export.symbolic_shape("n", constraints=["n >= 5"]), or give it a number',
            ) from error
        dynamic = [n for i, n in enumerate(self.parameters) if i not in self.static_argnums]
        inputs, in_tree = tree_util.tree_flatten_with_path(traced.args_info)
        leaves, out_tree = tree_util.tree_flatten_with_path(traced.out_info)
        given = tree_util.tree_leaves(self.dynamic(args, keywords))
        placed = tuple(getattr(leaf, "sharding", None) for leaf in given)
        return Traced(
            traced.jaxpr,
            names_of(_by_parameter(dynamic, [path for path, _ in inputs]), "x"),
            names_of([path for path, _ in leaves], "r"),
            in_tree,
            out_tree,
            placed if len(placed) == len(inputs) else (),
        )

    def dynamic(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that are not static."""
        kept = {name: value for name, value in keywords.items() if name not in self.static_argnames}
        return [value for i, value in enumerate(args) if i not in self.static_argnums], kept


def trace(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any] | None = None) -> Traced:
    """Trace a function on example arguments (see `Tracing`)."""
    return Tracing(function)(args, keywords or {})


def import_jax(function: Callable[..., Any], *args: Any, **keywords: Any) -> Program:
    """The program of a JAX function, traced on example arguments."""
    return trace(function, args, keywords).program()


# ---- names ----------------------------------------------------------------------------------------------------------


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's positional parameters; none where Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in parameters if p.kind < p.VAR_POSITIONAL)


def _by_parameter(parameters: Sequence[str], paths: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Paths into (args, kwargs), positions replaced by the function's own names for them."""
    named: list[tuple[Any, ...]] = []
    for where, first, *rest in paths:
        if where.idx == 0 and first.idx < len(parameters):
            first = tree_util.GetAttrKey(parameters[first.idx])
        named.append((first, *rest))
    return named


def names_of(paths: Sequence[Sequence[Any]], default: str) -> tuple[str, ...]:
    """Paths as names, each its own."""
    return _unique([_name(path, default) for path in paths])


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
    """A pytree as the runtime's structure (`gcomp.runtime.structure`); None, for flat, where it has other nodes."""
    try:
        return _structure(tree_util.tree_unflatten(tree, range(tree.num_leaves)))
    except (TypeError, GcompError):
        return None


def _structure(value: Any) -> Any:
    if value is None or type(value) is int:
        return value
    kind = type(cast(object, value))
    if kind in (tuple, list):
        return {kind.__name__: [_structure(v) for v in value]}
    if kind is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, _structure(v)] for key, v in value.items()]}
    raise TypeError(f"JSON does not hold a {kind.__name__}")
