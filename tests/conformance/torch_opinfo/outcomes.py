"""Running one case, eagerly and compiled by a backend, and how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gcomp.errors import GcompError, InternalError, UnsupportedError
from tests.conformance.torch_opinfo.comparison import RTOL, are_other_places, difference, is_as_exact, tolerances
from tests.conformance.torch_opinfo.harness import SAMPLES, Case, operator_of, samples

CLASSES = ("passed", "unsupported", "wrong", "error", "crash", "timeout", "not captured", "random", "torch cannot")
"""`passed`: eager torch's results. `unsupported`: gcomp refuses, and says why. `wrong`: other results. `error`: any
other exception. `crash`: the process died. `timeout`: it had to be ended. Of the others nobody can be asked: `not
captured`: Dynamo does not capture the call as one graph, whatever the backend. `random`: eager torch's results differ
from one call to the next. `torch cannot`: eager torch raises, or has no sample."""
NOBODYS = ("not captured", "random", "torch cannot")
ORDER = ("torch cannot", "random", "not captured", "passed", "unsupported", "error", "wrong", "timeout", "crash")
"""A case ends as the sample that ends worst, later ones being worse."""
PLACES = frozenset(("kthvalue", "median", "mode", "nanmedian", "sort", "topk"))
"""Operators that give places of values, and of equal values leave open which."""
MAGNIFIED = 8.0
"""Gradients may be so many times as far from eager torch's as results."""
UNINITIALIZED = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    kind: str
    detail: str = ""


def run_case(case: Case, backend: str = "gcomp", count: int = SAMPLES) -> Outcome:
    """Run the samples of a case both ways and compare; the worst outcome. `gcomp cpu` is gcomp for the target cpu."""
    import torch

    torch.set_num_threads(1)
    worst = Outcome("torch cannot", "it has no sample")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, sample in enumerate(samples(case, count)):
            found = run_sample(operator_of(case), sample, getattr(torch, case.dtype), backend, case.gradients)
            if ORDER.index(found.kind) > ORDER.index(worst.kind) or not index:
                worst = Outcome(found.kind, f"sample {index}: {found.detail}" if found.detail else "")
    return worst


def run_sample(op: Any, sample: Any, dtype: Any, backend: str, with_gradients: bool = False) -> Outcome:
    """Run one sample both ways and compare: its results, or results and gradients."""
    import torch

    # Of results that are not unique (singular vectors), torch's own tests compare what does not depend on the choice.
    unique = sample.output_process_fn_grad

    def call(arguments: Any) -> Any:
        input, args, keywords = arguments
        return op.op(input, *args, **keywords)

    def run(function: Callable[..., Any], seed: int, dtype: Any = None) -> Any:
        arguments = _copied(sample, dtype)
        torch.manual_seed(seed)
        results = function(arguments)
        return results_and_gradients(unique(results), arguments) if with_gradients else results

    try:
        wanted, again = (run(call, seed) for seed in (0, 1))
    except Exception as error:
        return Outcome("torch cannot", _first(error))
    if op.name in UNINITIALIZED or difference(_leaves(again), _leaves(wanted), (0.0, 0.0)):
        return Outcome("random")
    try:
        result = run(compiled(call, backend), 0)
    except Exception as error:
        return _failure(error, lambda: run(compiled(call, "aot_eager" if with_gradients else "eager"), 0))
    rtol, atol = tolerances(op, dtype)
    # A gradient is computed from results, whose rounding it magnifies.
    allowed = (MAGNIFIED * rtol, MAGNIFIED * atol) if with_gradients else (rtol, atol)
    problem = difference(_leaves(result), _leaves(wanted), allowed)
    if not problem:
        return Outcome("passed")
    try:
        if not with_gradients and not difference(_leaves(unique(result)), _leaves(unique(wanted)), allowed):
            return Outcome("passed")
        if op.name in PLACES and are_other_places(_leaves(result), _leaves(wanted), sample.input):
            return Outcome("passed")
        # The gradient of a weighted sum has terms that nearly cancel.
        rounding = RTOL if with_gradients else 0.0
        if is_as_exact(_leaves(result), _leaves(wanted), _leaves(run(call, 0, torch.float64)), rounding):
            return Outcome("passed")
    except Exception as error:
        problem += f" ({_first(error)})"
    return Outcome("wrong", problem)


def results_and_gradients(results: Any, arguments: Any) -> tuple[Any, Any, Any]:
    """Results; the gradients of a weighted sum of them by tensors and parameters among the arguments; buffers."""
    import torch

    outputs = [x for x in _leaves(results) if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for leaf in _leaves(arguments) for x in _differentiable(leaf)]
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs:
        real = torch.view_as_real(output.resolve_conj()) if output.is_complex() else output
        weights = torch.linspace(-1, 2, real.numel(), dtype=real.dtype).reshape(real.shape)
        total = total + (real * weights).sum()
    gradients = torch.autograd.grad(total, inputs, allow_unused=True) if total.requires_grad else ()
    buffers = [[*x.buffers()] for x in _leaves(arguments) if isinstance(x, torch.nn.Module)]
    return results, gradients, buffers


def _differentiable(leaf: Any) -> list[Any]:
    import torch

    if isinstance(leaf, torch.nn.Module):
        return [p for p in leaf.parameters() if p.requires_grad]
    return [leaf] if isinstance(leaf, torch.Tensor) and leaf.requires_grad else []


def compiled(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """The function through Dynamo and a backend, as one graph; a target may follow the backend's name."""
    import torch

    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = True  # pyright: ignore[reportPrivateImportUsage]
    name, _, target = backend.partition(" ")
    options = {"target": target} if target else None
    return torch.compile(function, backend=name, fullgraph=True, dynamic=False, options=options)


def _failure(error: BaseException, captured: Callable[[], Any]) -> Outcome:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnsupportedError):
            return Outcome("unsupported", _first(cause))
        cause = getattr(cause, "inner_exception", None) or cause.__cause__
    try:
        captured()
    except Exception as other:
        return Outcome("not captured", _first(other))
    return Outcome("error", f"{type(error).__name__}: {_first(error)}")


def _copied(sample: Any, dtype: Any = None) -> Any:
    """The arguments of a sample, tensors copied; floats in another type, if one is given."""
    import torch
    from torch.utils import _pytree as pytree

    def copy(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            other = value.detach().clone(memory_format=torch.preserve_format)
            other = other.to(dtype) if dtype is not None and other.is_floating_point() else other
            return other.requires_grad_(value.requires_grad)
        if isinstance(value, torch.nn.Module):
            return deepcopy(value).to(dtype)
        return dtype if dtype is not None and value is torch.float32 else value

    return pytree.tree_map(copy, (sample.input, sample.args, sample.kwargs))


def _leaves(results: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree as pytree

    return [
        x.to_dense() if isinstance(x, torch.Tensor) and x.layout is not torch.strided else x
        for x in pytree.tree_leaves(results)
    ]


def _first(error: BaseException) -> str:
    """An error's message in one line; of gcomp's refusals, what and why."""
    if isinstance(error, GcompError) and not isinstance(error, InternalError):
        what = " ".join(line.strip() for line in str(error.args[0]).splitlines())
        return f"{what}: {error.why}"[:300] if error.why else what[:300]
    return " / ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]
