"""What runs a model, to be timed beside each other: all with NumPy arrays in and NumPy arrays out.

That is what a user of each library writes. Each library is imported when its engine is made, never by importing this
module.
"""

from __future__ import annotations

import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import gcomp
from gcomp.errors import UnsupportedError, UsageError
from gcomp.factories import is_reference, run_factory

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]


def aligned(array: Array, boundary: int = 64) -> Array:
    """A copy that starts at a multiple of `boundary` bytes, so that no runtime has to copy it again."""
    buffer = np.empty(array.nbytes + boundary, np.uint8)
    start = -buffer.ctypes.data % boundary
    out = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


class Engine(ABC):
    """A model that is loaded: `import_seconds` and `load_seconds` are how long the library and the model took."""

    label: ClassVar[str]
    package: ClassVar[str]
    """What must be installed."""
    suffixes: ClassVar[tuple[str, ...]]
    """Files that it takes; an empty one stands for `package.module:factory`."""

    def __init__(self, source: str, threads: int) -> None:
        begun = time.perf_counter()
        library = self.ready(threads)
        started = time.perf_counter()
        self.load(source, threads, library)
        self.import_seconds, self.load_seconds = started - begun, time.perf_counter() - started

    def ready(self, threads: int) -> Any:
        """Import the library."""
        return None

    @abstractmethod
    def load(self, source: str, threads: int, library: Any) -> None:
        """Load the model."""

    @abstractmethod
    def __call__(self, inputs: Arrays) -> Any:
        """Run it once; return only when the result is there."""

    def numpy(self, inputs: Arrays) -> list[Array]:
        """Run it once, and return the outputs in order."""
        return [np.asarray(out) for out in self(inputs)]


class Gcomp(Engine):
    """gcomp: a source is compiled, an artifact is loaded."""

    label = "gcomp"
    package = "gcomp"
    suffixes = (".gcomp", ".onnx", ".mlir", ".pt2", ".jax_export", "")
    target = "cpu"

    def ready(self, threads: int) -> Any:
        return importlib.import_module("gcomp.runtime.cpu.executor")

    def load(self, source: str, threads: int, library: Any) -> None:
        if source.endswith(".gcomp"):
            self.model = gcomp.load(source, threads=self.threads(threads))
        else:
            self.model = gcomp.compile(source, target=self.target, threads=self.threads(threads))

    @staticmethod
    def threads(count: int) -> int | None:
        """Threads that the model is given; XLA takes the process's cores."""
        return count

    def __call__(self, inputs: Arrays) -> Any:
        return self.model(**inputs)

    def numpy(self, inputs: Arrays) -> list[Array]:
        return [np.asarray(out) for out in self.model.flat([inputs[spec.name] for spec in self.model.inputs])]


class GcompXla(Gcomp):
    """gcomp through XLA."""

    label = "gcomp xla:cpu"
    target = "xla:cpu"

    @staticmethod
    def threads(count: int) -> int | None:
        return None


class OnnxRuntime(Engine):
    """ONNX Runtime, all graph optimizations on."""

    label = "ONNX Runtime"
    package = "onnxruntime"
    suffixes = (".onnx",)

    def ready(self, threads: int) -> Any:
        return importlib.import_module("onnxruntime")

    def load(self, source: str, threads: int, library: Any) -> None:
        options = library.SessionOptions()
        options.intra_op_num_threads = threads
        # Its threads spin during a run, as they do by default, but not after it, into the next competitor's time.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = library.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    def __call__(self, inputs: Arrays) -> list[Array]:
        return self.session.run(None, inputs)


class OpenVino(Engine):
    """OpenVINO in f32."""

    label = "OpenVINO"
    package = "openvino"
    suffixes = (".onnx",)

    def ready(self, threads: int) -> Any:
        return importlib.import_module("openvino")

    def load(self, source: str, threads: int, library: Any) -> None:
        options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        try:
            self.request = library.Core().compile_model(source, "CPU", options).create_infer_request()
        except RuntimeError as error:
            raise UnsupportedError(f"OpenVINO refuses {source}", why=str(error).splitlines()[-1]) from None

    def __call__(self, inputs: Arrays) -> Any:
        return self.request.infer(inputs)

    def numpy(self, inputs: Arrays) -> list[Array]:
        return [np.array(out) for out in self.request.infer(inputs).values()]


class Torch(Engine):
    """PyTorch, eager, in inference mode."""

    label = "PyTorch"
    package = "torch"
    suffixes = (".pt2", "")

    def ready(self, threads: int) -> Any:
        torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        return torch

    def load(self, source: str, threads: int, library: Any) -> None:
        self.torch = library
        made = run_factory(source)[0] if is_reference(source) else library.export.load(source).module()
        if not isinstance(made, library.nn.Module):
            raise UnsupportedError(f"{source} is no torch module", why=f"it is a {type(made).__name__}")
        self.module: Any = made

    def __call__(self, inputs: Arrays) -> Any:
        with self.torch.inference_mode():
            return self.module(*map(self.torch.from_numpy, inputs.values()))

    def numpy(self, inputs: Arrays) -> list[Array]:
        leaves: list[Any] = self.torch.utils._pytree.tree_leaves(self(inputs))
        return [leaf.numpy() for leaf in leaves if isinstance(leaf, self.torch.Tensor)]


class Jax(Engine):
    """Plain `jax.jit`, on the cores of the process."""

    label = "jax.jit"
    package = "jax"
    suffixes = (".jax_export", "")

    def ready(self, threads: int) -> Any:
        return importlib.import_module("jax")

    def load(self, source: str, threads: int, library: Any) -> None:
        self.jax = library
        if is_reference(source):
            function, self.args = run_factory(source)
        else:
            exported: Any = importlib.import_module("jax.export").deserialize(bytearray(Path(source).read_bytes()))
            function, self.args = exported.call, None
        self.function: Callable[..., Any] = library.jit(function)

    def __call__(self, inputs: Arrays) -> list[Array]:
        values: Sequence[Any] = list(inputs.values())
        if self.args is not None:  # the arguments' own structure, with these values as its leaves
            structure = self.jax.tree.structure(self.args)
            return [
                np.asarray(x) for x in self.jax.tree.leaves(self.function(*self.jax.tree.unflatten(structure, values)))
            ]
        return [np.asarray(x) for x in self.jax.tree.leaves(self.function(*values))]


ENGINES: Mapping[str, type[Engine]] = {
    "gcomp": Gcomp, "xla": GcompXla, "ort": OnnxRuntime, "openvino": OpenVino, "torch": Torch, "jax": Jax,
}  # fmt: skip
"""By the names that commands take."""


def engine_of(name: str, source: str) -> type[Engine]:
    """The engine of a name, for a source. UsageError for another name, UnsupportedError where it cannot run that."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}", fix=f"engines are: {', '.join(ENGINES)}")
    kind = ENGINES[name]
    suffix = "" if is_reference(source) else Path(source).suffix
    if suffix not in kind.suffixes:
        taken = ", ".join(s or "package.module:factory" for s in kind.suffixes)
        raise UnsupportedError(f"{kind.label} does not take {source}", why=f"it takes {taken}")
    if importlib.util.find_spec(kind.package) is None:
        raise UnsupportedError(f"{kind.label} is not installed", fix=f"pip install {kind.package}")
    return kind


__all__ = ["ENGINES", "Engine", "aligned", "engine_of"]
