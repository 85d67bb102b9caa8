"""torch's own database of operators (OpInfo): a function and sample inputs each."""

from __future__ import annotations

import sys
import unittest
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

DTYPES = ("float32", "int64")
SAMPLES = 4
"""So many samples of an operator and element type are taken, evenly spread over those that torch has."""
PEER_SAMPLES = 2
"""And so many of them for TorchInductor, which compiles C++: the first and the last."""


@dataclass(frozen=True, order=True)
class Case:
    """An operator (with its variant) and an element type."""

    operator: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.operator}[{self.dtype}]"


@lru_cache(1)
def database() -> dict[str, Any]:
    """Name -> OpInfo, of all operators."""
    # torch's test utilities derive a class of their own from this package's; nothing else is used of it.
    sys.modules.setdefault("expecttest", _expecttest())
    invocations: Any = import_module("torch.testing._internal.common_methods_invocations")
    return {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in invocations.op_db}


def _expecttest() -> ModuleType:
    module: Any = ModuleType("expecttest")
    module.TestCase = unittest.TestCase
    return module


def cases() -> list[Case]:
    """All operators with those of the element types that they have."""
    import torch

    return sorted(
        Case(name, dtype)
        for name, op in database().items()
        for dtype in DTYPES
        if getattr(torch, dtype) in op.supported_dtypes("cpu")
    )


def samples(case: Case, count: int = SAMPLES) -> list[Any]:
    """The samples of a case: random, and always the same; evenly spread ones where there are more than `count`."""
    import torch

    torch.manual_seed(zlib.crc32(str(case).encode()))
    op = database()[case.operator]
    found = list(op.sample_inputs("cpu", getattr(torch, case.dtype), requires_grad=False))
    if len(found) <= count:
        return found
    return [found[round(i * (len(found) - 1) / max(1, count - 1))] for i in range(count)]
