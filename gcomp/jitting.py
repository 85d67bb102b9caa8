"""`gcomp.jit`: what `jax.jit` does, by gcomp's passes and pipelines.

    step = gcomp.jit(step, donate_argnums=0)

Pytrees, static and donated arguments are as in JAX, and so are the arrays: they stay on the device. Calls with known
types go through JAX's own dispatcher in C++. Inside of `jax.grad`, `jax.vmap` or another `jit` the function is traced
through, as if it were not jitted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gcomp.driver import compile_with
from gcomp.errors import UnsupportedError
from gcomp.options import OF_A_CALL, Options
from gcomp.owners import line_here
from gcomp.runtime.lru import Lru

if TYPE_CHECKING:
    from gcomp.runtime.model import Model

_MODELS = 256
"""How many types of arguments one function keeps models for."""


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    in_shardings: Any = None,
    out_shardings: Any = None,
    **options: Any,
) -> Any:
    """Compile a JAX function, once for each combination of argument types.

    `options` are those of `gcomp.compile` (`target`, `pipeline`, `verify`, `memory_budget`, ...). The result has a
    method `model(*args)`: the `gcomp.Model` for such arguments, which can be saved. `in_shardings` and `out_shardings`
    say how arguments and results lie on a mesh, as in JAX. The other options of `jax.jit` (XLA's own among them) are
    refused. Raises UnsupportedError, with the user's line, for what gcomp does not
    import. May be used as a decorator, with or without arguments.
    """
    chosen = _parse_options(options)
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums,
            donate_argnames=donate_argnames, in_shardings=in_shardings, out_shardings=out_shardings, **options,
        )  # fmt: skip
    donated = {donate_argnums} if isinstance(donate_argnums, int) else set(donate_argnums)
    named = {donate_argnames} if isinstance(donate_argnames, str) else set(donate_argnames)
    placed = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    said = {name: value for name, value in placed.items() if value is not None}
    return _Jitted(function, static_argnums, static_argnames, donated | named, chosen, said).callable()


_REFUSED = {
    "device": "`target` says what is compiled for",
    "backend": "`target` says what is compiled for",
    "keep_unused": "unused arguments are always kept",
    "inline": "functions inside of others are always inlined",
    "compiler_options": "they are XLA's, and `pipeline` is gcomp's",
}
"""Option of `jax.jit` -> why there is none here."""


def _parse_options(given: dict[str, Any]) -> Options:
    """The options of compiling. Refuses those that `jax.jit` has and gcomp has not, and those that nobody has."""
    for name in given.keys() & _REFUSED.keys():
        raise UnsupportedError(f"gcomp.jit has no {name}=", where=line_here(), why=_REFUSED[name], fix="leave it out")
    return Options.of_keywords(given, "jit", OF_A_CALL)


@dataclass(frozen=True)
class _Entry:
    """A compiled signature. The jaxpr must live as long: its identity is the key."""

    traced: Any
    model: Model


class _Jitted:
    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donated: Collection[int | str],
        options: Options,
        shardings: Mapping[str, Any],
    ) -> None:
        from gcomp.frontends.jaxpr.tracing import Tracing

        self.function, self.options = function, options
        self.tracing = Tracing(function, static_argnums, static_argnames, shardings)
        parameters = self.tracing.parameters
        # A parameter may be passed by position or by name, and is donated either way.
        self.donated = {parameters[d] if isinstance(d, int) and -len(parameters) <= d < len(parameters) else d
                        for d in donated}  # fmt: skip
        self.entries: Lru[int, _Entry] = Lru(_MODELS)

    def callable(self) -> Any:
        from gcomp.runtime.xla.dispatch import dispatcher

        call: Any = dispatcher(self.function, self.miss, self.tracing.static_argnums, self.tracing.static_argnames)
        call = functools.wraps(self.function)(call)
        call.model = self.model
        return call

    def model(self, *args: Any, **keywords: Any) -> Model:
        """The model for arguments of these types."""
        return self.entry(args, keywords).model

    def entry(self, args: Sequence[Any], keywords: dict[str, Any]) -> _Entry:
        traced = self.tracing(args, keywords)
        return self.entries.get(id(traced.jaxpr), lambda: _Entry(traced, self.compile(traced, args, keywords)))

    def compile(self, traced: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Model:
        program = traced.program()
        return compile_with(program, (), replace(self.options, donate=self.names_of_donated(program, args, keywords)))

    def names_of_donated(self, program: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[str]:
        """The names of the flat inputs that belong to donated arguments."""
        from gcomp.frontends.jaxpr.leaves import flat

        names, found = iter(port.name for port in program.inputs()), list[str]()
        known = dict(enumerate(self.tracing.parameters))
        given = [(known.get(i, i), v) for i, v in enumerate(args) if i not in self.tracing.static_argnums]
        given += [(name, keywords[name]) for name in sorted(keywords) if name not in self.tracing.static_argnames]
        for key, value in given:
            own = [next(names) for _ in flat(value)]
            if key in self.donated:
                found += own
        return found

    def miss(self, *args: Any, **keywords: Any) -> tuple[Any, Any]:
        """A call that the dispatcher does not know: the results, and how to run the next one like it."""
        from gcomp.frontends.jaxpr import leaves
        from gcomp.runtime.xla.dispatch import FastPath

        values = leaves.flat(self.tracing.dynamic(args, keywords))
        if leaves.is_traced(values):
            return self.function(*args, **keywords), None
        entry = self.entry(args, keywords)
        inputs, outputs = entry.traced.jaxpr.in_avals, entry.traced.jaxpr.out_avals
        results = entry.model.flat(leaves.arrays(values, inputs))
        found = leaves.results(entry.traced.out_tree, results, outputs)
        executable = entry.model.executable
        if executable is None or leaves.has_keys([*inputs, *outputs]):
            return found, None
        return found, FastPath(executable, entry.traced.out_tree, outputs, len(inputs))
