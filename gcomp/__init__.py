"""gcomp: a graph-level optimizing compiler for ONNX models, jaxprs and torch.fx graphs.

    model = gcomp.compile("model.onnx", dims={"batch": (1, 64)})
    outputs = model(x)
    model.save("model.gcomp")
    model = gcomp.load("model.gcomp")

Importing gcomp imports nothing heavy; each name brings in what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcomp.version import __version__

if TYPE_CHECKING:
    from gcomp import graph, ops, training
    from gcomp.driver import compile
    from gcomp.frontends.onnx.model.external_data import allow_links
    from gcomp.functions import eager, function
    from gcomp.gradients import grad, jvp
    from gcomp.ir.program import Program
    from gcomp.jitting import jit
    from gcomp.reference.numpy.printing import printing_to
    from gcomp.runtime.loading import load
    from gcomp.runtime.model import Model
    from gcomp.sources import import_model
    from gcomp.training.exporting import write_parameters
    from gcomp.training.step import train_step

_HOMES = {
    "allow_links": "gcomp.frontends.onnx.model.external_data",
    "compile": "gcomp.driver",
    "grad": "gcomp.gradients",
    "jvp": "gcomp.gradients",
    "eager": "gcomp.functions",
    "function": "gcomp.functions",
    "import_model": "gcomp.sources",
    "jit": "gcomp.jitting",
    "load": "gcomp.runtime.loading",
    "printing_to": "gcomp.reference.numpy.printing",
    "Model": "gcomp.runtime.model",
    "Program": "gcomp.ir.program",
    "train_step": "gcomp.training.step",
    "write_parameters": "gcomp.training.exporting",
    **dict.fromkeys(
        ("GcompError", "UnsupportedError", "InvalidModelError", "VerificationError", "ParseError", "ArtifactError",
         "InputError", "CheckError", "UsageError", "UserCodeError", "InternalError"),
        "gcomp.errors",
    ),
}  # fmt: skip

__all__ = [
    "Model",
    "Program",
    "__version__",
    "allow_links",
    "compile",
    "eager",
    "function",
    "grad",
    "graph",
    "import_model",
    "jit",
    "jvp",
    "load",
    "ops",
    "printing_to",
    "train_step",
    "training",
    "write_parameters",
]


_MODULES = ("graph", "ops", "training")
"""Names that are modules."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gcomp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gcomp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_MODULES, "__version__"])
