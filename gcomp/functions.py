"""Define by run: functions that run op by op, or are traced and compiled.

@gcomp.function
def step(x, w):
    return ops.softmax(x @ w)

step(x, w)                  # traced and compiled once for each kind of arguments
with gcomp.eager():
    step(x, w)              # the same code, op by op: print, breakpoints, ordinary tracebacks
"""

from __future__ import annotations

import functools
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from dataclasses import dataclass, field, replace
from threading import Lock
from types import MethodType
from typing import Any

from gcomp.dims import DimSpec, symbols_of
from gcomp.driver import compile_with
from gcomp.errors import UsageError
from gcomp.frontends.python.flow import convert_function
from gcomp.frontends.python.function import Call, Shapes, Traceable, Traced, is_dynamic
from gcomp.frontends.python.state import differences
from gcomp.ir.program import Program
from gcomp.ops.creation import asarray
from gcomp.options import Options
from gcomp.owners import user_level
from gcomp.runtime.lru import Lru
from gcomp.runtime.model import Model
from gcomp.tensors import trees
from gcomp.tensors.site import SITE
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import OPEN
from gcomp.tensors.tracing import Trace as BuilderTrace

_MODELS = 256
"""How many kinds of calls one function keeps models for."""
_OFTEN = 8
"""From how many traces of a function on a warning is due; and again at each doubling."""


class RetraceWarning(UserWarning):
    """A function is traced again and again."""


class eager(ContextDecorator):
    """Inside of the `with`, functions of `gcomp.function` run op by op, as the Python that they are."""

    def __enter__(self) -> eager:
        self._previous, SITE.op_by_op = SITE.op_by_op, True
        return self

    def __exit__(self, *_: object) -> None:
        SITE.op_by_op = self._previous


def function(
    function: Callable[..., Any] | None = None,
    *,
    shapes: Shapes | None = None,
    dims: Mapping[str, DimSpec] | None = None,
    **options: Any,
) -> Any:
    """Compile a Python function of tensors, once for each kind of arguments.

    Tensors and arrays, in any nested structure, are inputs; Python numbers and other objects are static, and each value
    of them has a trace of its own. `shapes` makes sizes symbolic (`shapes={"x": ("batch", 3)}`), so that one trace does
    for all; `dims` gives ranges to these symbols. `options` are those of `gcomp.compile` (`target`, `pipeline`,
    `verify`, `memory_budget`, ...). The result has methods `model(*args)` and `program(*args)`, and `explain()` prints
    why it was traced. May be used as a decorator, with or without arguments.
    """
    chosen = Options.of_keywords({**options, "dims": dims or {}}, "function", _DECIDED)
    if function is None:
        return functools.partial(Function, shapes=shapes or {}, options=chosen)
    return Function(function, shapes=shapes or {}, options=chosen)


_DECIDED = ("structures", "constants", "donate", "fetch", "buckets")
"""Options of `gcomp.compile` that a traced function has no use for."""


@dataclass
class Trace:
    """One trace of a function: what for, why, and how often it was used."""

    call: Call
    traced: Traced
    model: Model | None
    reason: str
    seconds: float
    calls: int = field(default=0)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {abstract!r}" for name, abstract in self.call.abstract)
        return f"<trace for ({inputs}): {self.calls} calls; {self.reason}>"


class Function:
    """A Python function that is compiled when it is called."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        shapes: Shapes,
        options: Options,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._traceable = Traceable(function, shapes)
        self._options = options
        self._entries: Lru[Any, Trace] = Lru(_MODELS)
        self._lock = Lock()
        self.traces: list[Trace] = []
        """The traces so far, in order."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<gcomp.function {getattr(self.__wrapped__, '__qualname__', self.__wrapped__)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results: tensors where it computes tensors."""
        if (trace := _trace_of((args, kwargs))) is not None:
            with trace.open():  # the function becomes a part of it
                return convert_function(self.__wrapped__)(*args, **kwargs)
        if SITE.op_by_op:
            return _as_tensors(self.__wrapped__(*_as_tensors(args), **_as_tensors(kwargs)))
        call = self._traceable.call(args, kwargs)
        entry = self._entry(call)
        entry.calls += 1
        if entry.model is None:
            return entry.traced.results([])
        return entry.traced.results(entry.model.flat(entry.traced.inputs(call)))

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program for such arguments, before any pass. UsageError where nothing is left to run."""
        traced = self._traceable.trace(self._traceable.call(args, kwargs))
        if traced.program is None:
            raise UsageError("the function computes no tensor for these arguments")
        return traced.program

    def model(self, *args: Any, **kwargs: Any) -> Model:
        """The model for such arguments, which can be saved. What the function sees as state are inputs of it, too."""
        model = self._entry(self._traceable.call(args, kwargs)).model
        if model is None:
            raise UsageError("the function computes no tensor for these arguments")
        return model

    # ---- traces ----

    def _entry(self, call: Call) -> Trace:
        return self._entries.get(call.key, lambda: self._make(call))

    def _make(self, call: Call) -> Trace:
        started = time.perf_counter()
        reason = self._reason(call)
        traced = self._traceable.trace(call)
        model = None
        if traced.program is not None:
            known = {s for port in traced.program.inputs() for size in port.shape for s in symbols_of(size)}
            ranges = {name: spec for name, spec in (self._options.dims or {}).items() if name in known}
            model = compile_with(traced.program, (), replace(self._options, dims=ranges))
        entry = Trace(call, traced, model, reason, time.perf_counter() - started)
        with self._lock:
            self.traces.append(entry)
            count = len(self.traces)
        if count >= _OFTEN and count & (count - 1) == 0:
            warnings.warn(
                f"{self!r} was traced {count} times; the last time because {reason}. Declare sizes that vary as "
                "symbols (`shapes=`), pass numbers that vary as tensors; `explain()` lists all reasons.",
                RetraceWarning,
                stacklevel=user_level(),
            )
        return entry

    def _reason(self, call: Call) -> str:
        """Why this call needs a trace: how it differs from the most similar one before."""
        if not self.traces:
            return "it is the first call"
        return min((_differences(trace.call, call) for trace in reversed(self.traces)), key=len, default=["?"])[0]

    def explain(self) -> None:
        """Print the function's traces: for what arguments, why, how long each took, and how often it was used."""
        sys.stdout.write(self.explanation())

    def explanation(self) -> str:
        """What `explain` prints."""
        rows = [("trace", "arguments", "calls", "seconds", "because")]
        for i, trace in enumerate(self.traces, start=1):
            listed = ", ".join(f"{name}: {abstract!r}" for name, abstract in trace.call.abstract) or "none"
            rows.append((str(i), listed, str(trace.calls), f"{trace.seconds:.2f}", trace.reason))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
        return f"{self!r}\n" + "".join(f"{line.rstrip()}\n" for line in lines)


def _trace_of(arguments: Any) -> BuilderTrace | None:
    """The trace that is open, or that of a traced tensor among the arguments."""
    if OPEN.traces:
        return OPEN.traces[-1]
    builders = (leaf.builder for leaf in trees.flatten(arguments)[0] if isinstance(leaf, Tensor) and leaf.is_traced)
    return next((b for b in builders if isinstance(b, BuilderTrace)), None)


def _differences(before: Call, after: Call) -> list[str]:
    """How calls differ, for people."""
    if before.structure != after.structure or before.parameters != after.parameters:
        return [f"the structure of the arguments is {after.structure!r}, and was {before.structure!r}"]
    old, new = dict(before.abstract), dict(after.abstract)
    found = [f"{n} is {new[n]!r}, and was {old[n]!r}" for n in new if n in old and old[n] != new[n]]
    found += [f"{n} is a tensor, and was none" for n in new if n not in old]
    found += [f"{n} is no tensor, and was one" for n in old if n not in new]
    return found + differences(before.state, after.state) or ["the trace was dropped from the cache"]


def _as_tensors(tree: Any) -> Any:
    return trees.map_leaves(
        lambda leaf: asarray(leaf) if is_dynamic(leaf) and not isinstance(leaf, Tensor) else leaf, tree
    )
