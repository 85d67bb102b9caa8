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

    def compiler(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compiled_graph(module, len(inputs), options or {})

    return common.aot_autograd(
        fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler, decompositions=decompositions()
    )(graph, examples)


def compiled_graph(module: Any, count: int, options: dict[str, Any]) -> Callable[[list[Any]], list[Any]]:
    """A function of a list of `count` inputs (tensors, and numbers that are sizes) that runs a functional graph."""
    from gcomp.frontends.fx.graphs import import_graph

    imported = import_graph(module)
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
