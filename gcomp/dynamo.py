"""The backend `gcomp` of `torch.compile`: graphs that TorchDynamo captures, compiled by gcomp.

    torch.compile(module, backend="gcomp")

AOTAutograd makes the graphs functional (mutation of inputs and buffers is written back, views and aliases are rebuilt)
and derives the backward graph; both are compiled. What gcomp does not import is refused with the operator, the module
and the line; it does not fall back to eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcomp.driver import compile

if TYPE_CHECKING:
    from gcomp.runtime.model import Model


def backend(graph: Any, examples: Sequence[Any], *, options: dict[str, Any] | None = None) -> Any:
    """Compile an fx graph for inputs like `examples`. `options` are keywords of `gcomp.compile`.

    Raises UnsupportedError.
    """
    from gcomp.frontends.fx.exported import decompositions

    common: Any = import_module("torch._dynamo.backends.common")
    direct: list[Callable[[list[Any]], list[Any]]] = []

    def compiler(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        # AOTAutograd itself rebuilds the views among results that have gradients.
        return compiled_graph(module, len(inputs), options or {})

    def inference_compiler(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        compiled = compiled_graph(module, len(inputs), options or {}, sharing=True)
        if len(inputs) == len(examples) and _is_functional(examples):
            direct.append(compiled)
        return compiled

    wrapped = common.aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=inference_compiler,
        decompositions=decompositions(),
    )(graph, examples)
    if not direct:
        return wrapped
    (run,) = direct

    def call(*inputs: Any) -> list[Any]:
        return run([*inputs])

    return call


def _is_functional(examples: Sequence[Any]) -> bool:
    """Whether the graph that AOTAutograd is compiling for inference is what Dynamo captured, so that a call needs none
    of its wrappers: no input is mutated, no output is a view of an input or of another, no random state advances.

    The wrappers take as long as a small graph itself.
    """
    torch: Any = import_module("torch")
    plain = {torch.Tensor, torch.nn.Parameter, import_module("torch._subclasses").FakeTensor, torch.SymInt, int}
    context: Any = import_module("torch._guards").TracingContext.try_get()
    known: Any = None if context is None else context.fw_metadata
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


def compiled_graph(
    module: Any, count: int, options: dict[str, Any], *, sharing: bool = False
) -> Callable[[list[Any]], list[Any]]:
    """A function of a list of `count` inputs (tensors, and numbers that are sizes) that runs a functional graph.

    With `sharing`, results lie in the same memory where they do in eager mode.
    """
    from gcomp.frontends.fx.graphs import import_graph

    imported = import_graph(module, sharing=sharing)
    model: Model = compile(imported.program, **options)

    # Dynamo's guards, and AOTAutograd for backward graphs, hold inputs to the types, shapes and strides of the first
    # call, unless sizes vary.
    call = model.flat if imported.sizes or not model.signature.is_static else model.flat_again

    def run(inputs: list[Any]) -> list[Any]:
        tensors = [inputs[i] for i in imported.tensors]
        sizes = {name: inputs[i] for name, i in imported.sizes.items()}
        # AOTAutograd passes its only references, so that memory can be freed early.
        inputs.clear()
        return imported.arranged(call(tensors), sizes)

    def run_plain(inputs: list[Any]) -> list[Any]:
        results = call(inputs)
        inputs.clear()
        return results

    if count and imported.tensors == tuple(range(count)) and imported.outputs == tuple(range(len(imported.outputs))):
        run = run_plain
    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess] - how AOTAutograd knows the calling convention
    return run
