# pyright: basic
"""torch's own database of operators (OpInfo): by name, functions of tensors and arguments for them.

It is a part of torch's test utilities, which every installation has.
"""

from __future__ import annotations

import sys
import unittest
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_RANDOM = ("dropout", "rand", "multinomial", "bernoulli", "normal", "uniform", "cauchy", "exponential", "geometric",
           "rrelu", "empty", "resize", "poisson", "jiterator", "fractional_max_pool", "lowrank")  # fmt: skip
"""What gives other numbers each time, or runs on GPUs alone."""
_TYPES = ("float32", "int64")
_FEW = 24
"""Samples of an operator to choose from: some have thousands."""


@cache
def operators() -> dict[str, Any]:
    """Name -> operator, of those that give the same each time, in an order of chance that is always the same."""
    module: Any = ModuleType("expecttest")  # torch's utilities derive a class of their own from this package's
    module.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known: Any = import_module("torch.testing._internal.common_methods_invocations")
    found = {f"{op.name} {op.variant_test_name}".strip(): op for op in known.op_db
             if not any(word in op.name for word in _RANDOM)}  # fmt: skip
    names = sorted(found)
    return {names[i]: found[names[i]] for i in np.random.default_rng(0).permutation(len(names))}


def name_of(number: int) -> str:
    """The operator of a number."""
    return [*operators()][number % len(operators())]


def function_of(number: int) -> tuple[str, Callable[..., Any], list[Array]]:
    """The operator of a number, as a function of the tensors of a sample, and these; LookupError where it has none."""
    import torch
    from torch.utils import _pytree as pytree

    name, turn = name_of(number), number // len(operators())
    op, random = operators()[name], np.random.default_rng(number)
    kinds = [kind for kind in _TYPES if getattr(torch, kind) in op.supported_dtypes("cpu")]
    if not kinds:
        raise LookupError(name)
    torch.manual_seed(turn % 1000)
    dtype = getattr(torch, kinds[-1] if random.random() < _SECOND else kinds[0])
    samples = [s for s, _ in zip(op.sample_inputs("cpu", dtype, requires_grad=False), range(_FEW), strict=False)]
    sample = samples[int(random.integers(len(samples)))]
    leaves, structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: Any) -> Any:
        given = dict(zip(places, tensors, strict=True))
        first, args, keywords = pytree.tree_unflatten([given.get(i, x) for i, x in enumerate(leaves)], structure)
        return sample.output_process_fn_grad(op.op(first, *args, **keywords))

    return name, function, [leaves[i].detach().contiguous().numpy() for i in places]


_SECOND = 0.3
"""How often an operator is tried on integers."""
