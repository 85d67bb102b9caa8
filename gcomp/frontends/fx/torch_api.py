"""What the frontend uses of torch, in one place, and untyped: torch's own annotations are partial."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
TORCH_FOLDER = str(Path(torch.__file__).parent)
pytree: Any = import_module("torch.utils._pytree")
prims_common: Any = import_module("torch._prims_common")

without_modes: Any = import_module("torch.utils._python_dispatch")._disable_current_modes

_errors: Any = import_module("torch._dynamo.exc")
_shapes: Any = import_module("torch.fx.experimental.symbolic_shapes")
_fakes: Any = import_module("torch._subclasses.fake_tensor")
DECIDED_BY_DATA: type[BaseException] = _shapes.GuardOnDataDependentSymNode
NOT_CAPTURED: tuple[type[BaseException], ...] = (
    _errors.TorchDynamoException,
    DECIDED_BY_DATA,
    _shapes.ConstraintViolationError,
    _shapes.PendingUnbackedSymbolNotFound,
    _fakes.DataDependentOutputException,
    _fakes.DynamicOutputShapeException,
)
"""What torch.export raises for models that it does not capture as one graph."""
