"""The backend `gcomp` of `torch.compile`: graphs that TorchDynamo captures, compiled by gcomp.

    torch.compile(module, backend="gcomp", options={"verify": "each"})

AOTAutograd makes the graphs functional (mutation of inputs and buffers is written back, views and aliases are rebuilt)
and derives the backward graph; both are compiled. What gcomp does not import is refused with the operator, the module
and the line; only where the option `fallback` says so it runs in eager mode, with a warning. An index out of range
raises, unless `index_checks` is off. docs/guides/torch.md has the options.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcomp.driver import compile_with
from gcomp.errors import IndexCheckError, UnsupportedError, UsageError
from gcomp.options import Options
from gcomp.runtime.engine import Ability
from gcomp.targets.base import target_named

if TYPE_CHECKING:
    from gcomp.frontends.fx.graphs import ImportedGraph, Sharing

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""torch's modes say how long TorchInductor may search; gcomp compiles in one way for all of them."""

_OWN = ("fallback", "index_checks")
_DECIDED = ("dims", "structures", "constants", "verify_inputs", "donate", "fetch", "buckets", "prepare", "mesh",
            "shardings")  # fmt: skip
"""Options of `gcomp.compile` that a captured graph decides."""
OPTIONS = (*_OWN, *Options.names(_DECIDED))


class FallbackWarning(UserWarning):
    """A graph runs in eager mode, since gcomp does not compile it."""


@dataclass(frozen=True)
class _Chosen:
    """What the user asked for."""

    options: Options
    fallback: bool = False
    index_checks: bool = True

    @staticmethod
    def of(mode: str | None, options: Mapping[str, Any] | None) -> _Chosen:
        """Raises UsageError for a mode or an option that there is not."""
        if mode is not None and mode not in MODES:
            raise UsageError(f"there is no mode {mode!r}", fix=f"the modes are: {', '.join(MODES)}")
        given = dict(options or {})
        flags = {name: given.pop(name) for name in _OWN if name in given}
        for name, value in flags.items():
            if not isinstance(value, bool):
                raise UsageError(f"the option {name!r} is {value!r}", fix="it is True or False")
        chosen = Options.of(given, "the backend gcomp", _DECIDED, more=_OWN)
        # Where a target compiles no checks, they must be asked for, and are refused.
        flags.setdefault("index_checks", target_named(chosen.target).can(Ability.LOOKING))
        return _Chosen(chosen, **flags)


def backend(
    graph: Any, examples: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Any:
    """Compile an fx graph for inputs like `examples`, which may be called again and again.

    `options` are `fallback` (False), `index_checks` (True), and keywords of `gcomp.compile`. Raises UnsupportedError
    without `fallback`, UsageError for an unknown mode or option.
    """
    chosen = _Chosen.of(mode, options)
    try:
        return _Backend(graph, examples, chosen).compile()
    except UnsupportedError as error:  # of a definition that AOTAutograd traces
        return _eager(graph, error, chosen)


def _eager(graph: Any, error: UnsupportedError, chosen: _Chosen) -> Any:
    """A graph as it is, if the user asked for that. Raises the error otherwise."""
    if not chosen.fallback:
        raise error
    warnings.warn(f"gcomp leaves a graph to eager torch.\n{error}", FallbackWarning, stacklevel=2)
    return graph.forward


class _Backend:
    """The compilation of one captured graph: forward, and backward where gradients flow."""

    def __init__(self, graph: Any, examples: Sequence[Any], chosen: _Chosen) -> None:
        self.graph, self.examples, self.chosen = graph, examples, chosen
        self.direct: list[Callable[[list[Any]], list[Any]]] = []

    def compile(self) -> Any:
        """What runs the graph."""
        from gcomp.frontends.fx.definitions import before_autograd
        from gcomp.frontends.fx.exported import decompositions

        common: Any = import_module("torch._dynamo.backends.common")
        with before_autograd():
            wrapped = common.aot_autograd(
                fw_compiler=self._forward,
                bw_compiler=self._backward,
                inference_compiler=self._inference,
                decompositions=decompositions(),
            )(self.graph, self.examples)
        if not self.direct:
            return wrapped
        (run,) = self.direct

        def call(*inputs: Any) -> list[Any]:
            return run([*inputs])

        return call

    def _forward(self, module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        # AOTAutograd itself rebuilds the views among results that have gradients. What it saves for the backward graph
        # comes after the results, and nobody sees how it lies in memory.
        known = _metadata()
        visible = None if known is None else known.num_forward_returns
        return self._graph(
            module, len(inputs), index_checks=self.chosen.index_checks, visible=visible, sharing="inputs"
        )

    def _backward(self, module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        # Its indices are those of the forward graph, which checked them.
        return self._graph(module, len(inputs), index_checks=False)

    def _inference(self, module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        found = self._graph(module, len(inputs), index_checks=self.chosen.index_checks, sharing="all")
        if len(inputs) == len(self.examples) and _is_functional(self.examples):
            self.direct.append(found)
        return found

    def _graph(self, module: Any, count: int, **how: Any) -> Callable[[list[Any]], list[Any]]:
        try:
            return compile_graph(module, count, self.chosen.options, **how)
        except UnsupportedError as error:
            run = _eager(module, error, self.chosen)
        return _box(lambda inputs: [*run(*inputs)])


def _box(run: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess] - how AOTAutograd knows the calling convention
    return run


def _metadata() -> Any:
    """What AOTAutograd knows of the graph that it is compiling; None outside of it."""
    context: Any = import_module("torch._guards").TracingContext.try_get()
    return None if context is None else context.fw_metadata


def _is_functional(examples: Sequence[Any]) -> bool:
    """Whether the graph that AOTAutograd is compiling for inference is what Dynamo captured, so that a call needs none
    of its wrappers: no input is mutated, no output is a view of an input or of another, no random state advances.

    The wrappers take as long as a small graph itself.
    """
    torch: Any = import_module("torch")
    plain = {torch.Tensor, torch.nn.Parameter, import_module("torch._subclasses").FakeTensor, torch.SymInt, int}
    known = _metadata()
    return (
        known is not None
        and all(example.__class__ in plain for example in examples)
        and not known.num_mutated_inp_runtime_indices
        and not known.num_mutated_graph_handled_indices
        and not known.num_outputs_aliased
        and not known.num_intermediate_bases
        and not known.tokens
        and not known.is_rng_op_functionalized
        and not known.num_graphsafe_rng_states
        and not known.dynamic_outputs
        and known.grad_enabled_mutation is None
    )


def compile_graph(
    module: Any, count: int, options: Options, *, sharing: Sharing = "nothing", index_checks: bool = False,
    visible: int | None = None,
) -> Callable[[list[Any]], list[Any]]:  # fmt: skip
    """A function of a list of `count` inputs (tensors, and numbers that are sizes) that runs a functional graph.

    The keywords are those of `import_graph`.
    """
    from gcomp.frontends.fx.graphs import import_graph

    imported = import_graph(module, sharing=sharing, index_checks=index_checks, visible=visible)
    model = compile_with(imported.program, (), _with_checks(imported, options))

    # Dynamo's guards, and AOTAutograd for backward graphs, hold inputs to the types, shapes and strides of the first
    # call, unless sizes vary.
    call = model.flat if imported.sizes or not model.signature.is_static else model.flat_again
    call = _raising(call) if imported.is_checked else call
    own = imported.tensors == tuple(range(count)) and not imported.takes_more

    def run(inputs: list[Any]) -> list[Any]:
        sizes = {name: inputs[i] for name, i in imported.sizes.items()}
        tensors = imported.program_inputs(inputs, sizes)
        # AOTAutograd passes its only references, so that memory can be freed early.
        inputs.clear()
        return imported.graph_outputs(call(tensors), tensors, sizes)

    def run_plain(inputs: list[Any]) -> list[Any]:
        results = call(inputs)
        inputs.clear()
        return results

    is_plain = count and own and imported.outputs == tuple(range(len(imported.outputs)))
    return _box(run_plain if is_plain else run)


def _raising(call: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any]], list[Any]]:
    """A call that says how to go on where an index is out of range."""

    def run(values: list[Any]) -> list[Any]:
        try:
            return call(values)
        except IndexCheckError as error:
            fix = 'pass indices in range; options={"index_checks": False} takes the nearest one, unchecked'
            raise IndexCheckError(
                error.what, where=error.where, why="eager torch raises an error there", fix=fix
            ) from None

    return run


def _with_checks(imported: ImportedGraph, options: Options) -> Options:
    """The options, with the check of indices where there are any to check."""
    from gcomp.ir.checks import MARKED

    if not imported.is_checked:
        return options
    asked = options.checks
    return replace(options, checks=(*(asked.split(",") if isinstance(asked, str) else asked), MARKED))
