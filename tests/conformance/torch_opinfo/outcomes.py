"""Running one case, eagerly and compiled by a backend, and how it ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gcomp.errors import GcompError, InternalError, UnsupportedError
from tests.conformance.torch_opinfo.comparison import are_other_places, difference, is_as_exact, tolerances
from tests.conformance.torch_opinfo.harness import SAMPLES, Case, database, samples

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
            found = run_sample(database()[case.operator], sample, getattr(torch, case.dtype), backend)
            if ORDER.index(found.kind) > ORDER.index(worst.kind) or not index:
                worst = Outcome(found.kind, f"sample {index}: {found.detail}" if found.detail else "")
    return worst


def run_sample(op: Any, sample: Any, dtype: Any, backend: str) -> Outcome:
    """Run one sample both ways and compare."""
    import torch

    def call(arguments: Any) -> Any:
        input, args, keywords = arguments
        return op.op(input, *args, **keywords)

    def eager(dtype: Any = None) -> Any:
        return call(_copied(sample, dtype))

    try:
        torch.manual_seed(0)
        wanted = eager()
        torch.manual_seed(1)
        again = eager()
    except Exception as error:
        return Outcome("torch cannot", _first(error))
    if op.name in UNINITIALIZED or difference(_leaves(again), _leaves(wanted), (0.0, 0.0)):
        return Outcome("random")
    try:
        result = compiled(call, backend)(_copied(sample))
    except Exception as error:
        return _failure(error, call, _copied(sample))
    allowed = tolerances(op, dtype)
    problem = difference(_leaves(result), _leaves(wanted), allowed)
    if not problem:
        return Outcome("passed")
    # Results that are not unique: torch's own tests compare what does not depend on the choice.
    unique = sample.output_process_fn_grad
    try:
        if not difference(_leaves(unique(result)), _leaves(unique(wanted)), allowed):
            return Outcome("passed")
        if op.name in PLACES and are_other_places(_leaves(result), _leaves(wanted), sample.input):
            return Outcome("passed")
        if is_as_exact(_leaves(result), _leaves(wanted), _leaves(eager(torch.float64))):
            return Outcome("passed")
    except Exception as error:
        problem += f" ({_first(error)})"
    return Outcome("wrong", problem)


def compiled(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """The function through Dynamo and a backend, as one graph; a target may follow the backend's name."""
    import torch

    torch._dynamo.reset()
    name, _, target = backend.partition(" ")
    options = {"target": target} if target else None
    return torch.compile(function, backend=name, fullgraph=True, dynamic=False, options=options)


def _failure(error: BaseException, call: Callable[..., Any], arguments: Any) -> Outcome:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnsupportedError):
            return Outcome("unsupported", _first(cause))
        cause = getattr(cause, "inner_exception", None) or cause.__cause__
    try:
        compiled(call, "eager")(arguments)
    except Exception as other:
        return Outcome("not captured", _first(other))
    return Outcome("error", f"{type(error).__name__}: {_first(error)}")


def _copied(sample: Any, dtype: Any = None) -> Any:
    """The arguments of a sample, tensors copied; floats in another type, if one is given."""
    import torch
    from torch.utils import _pytree as pytree

    def copy(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            value = value.detach().clone(memory_format=torch.preserve_format)
            return value.to(dtype) if dtype is not None and value.is_floating_point() else value
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
