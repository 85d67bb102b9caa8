"""Host steps: the functions that a plan may name. An artifact can choose among these and nothing else.

Each takes read-only arrays and the step's attributes as keywords, and returns a tuple of arrays. The sizes of its
results may depend on data: they bind the symbols in the step's output types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
HostFunction = Callable[..., tuple[Array, ...]]


def nonzero(x: Array) -> tuple[Array, ...]:
    """The indices of elements that are not zero, one column each, in row-major order (ONNX NonZero)."""
    return (np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64),)


HOST_FUNCTIONS: Mapping[str, HostFunction] = {"nonzero": nonzero}
"""Name -> function."""
