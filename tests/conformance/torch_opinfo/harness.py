"""torch's own database of operators (OpInfo): a function and sample inputs each."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.conformance.torch_opinfo import modules
from tests.conformance.torch_opinfo.internal import internal

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
    gradients: bool = False
    """Whether gradients are compared too."""

    def __str__(self) -> str:
        return f"{self.operator}[{self.dtype}{', gradients' * self.gradients}]"

    @staticmethod
    def of(text: str) -> Case:
        """The case of a text: `add[float32]`, `add[float32, gradients]`."""
        operator, _, rest = text.removesuffix("]").partition("[")
        dtype, _, what = rest.partition(", ")
        return Case(operator, dtype, what == "gradients")


@lru_cache(1)
def database() -> dict[str, Any]:
    """Name -> OpInfo, of all operators."""
    return {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in internal("common_methods_invocations").op_db}


def cases() -> list[Case]:
    """All operators with those of the element types that they have."""
    import torch

    return sorted(
        Case(name, dtype)
        for name, op in database().items()
        for dtype in DTYPES
        if getattr(torch, dtype) in op.supported_dtypes("cpu")
    )


def gradient_cases() -> list[Case]:
    """All operators that have gradients, and all modules of torch.nn."""
    import torch

    return sorted(
        Case(name, "float32", gradients=True)
        for name, op in {**database(), **modules.database()}.items()
        if op.supports_autograd and torch.float32 in op.supported_dtypes("cpu")
    )


def operator_of(case: Case) -> Any:
    """The OpInfo of a case, or what says the same of a module."""
    return modules.database()[case.operator] if modules.is_module(case.operator) else database()[case.operator]


def samples(case: Case, count: int = SAMPLES) -> list[Any]:
    """The samples of a case: random, and always the same; evenly spread ones where there are more than `count`."""
    import torch

    torch.manual_seed(zlib.crc32(str(case).encode()))
    op = operator_of(case)
    found = list(op.sample_inputs("cpu", getattr(torch, case.dtype), requires_grad=case.gradients))
    if len(found) <= count:
        return found
    return [found[round(i * (len(found) - 1) / max(1, count - 1))] for i in range(count)]
