"""What runs a plan, as models see it: one protocol for all targets, and one for states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gcomp.errors import InputError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from gcomp.runtime.profiling import Recording

Array: TypeAlias = np.ndarray[Any, Any]


class Executor(Protocol):
    """What runs a plan: calls, and XLA's or the planner's answers about them.

    A class that inherits from it writes `__call__`, `source` and `memory`; the rest is right for one that compiles
    nothing when it runs and keeps nothing between calls.
    """

    @property
    def source(self) -> str:
        """Who says how much memory a call needs."""
        ...

    @property
    def bare(self) -> Any:
        """An executable whose parameters are the inputs and nothing else; None where there is none."""
        return None

    @property
    def seconds(self) -> float:
        """Seconds spent compiling since the plan was read."""
        return 0.0

    def __call__(self, values: list[Any]) -> list[Any]:
        """The results for inputs in order, of the same kind as the inputs. Raises InputError, GcompError."""
        ...

    def again(self, values: list[Any]) -> list[Any]:
        """As a call, for values whose kinds, types, shapes and strides are known to be those of the last call."""
        return self(values)

    def prepare(self, env: Mapping[str, int]) -> object:
        """Compile what these sizes need."""

    def memory(self, env: Mapping[str, int]) -> dict[str, int]:
        """Bytes of `arguments`, `outputs`, `temporaries`, and of what arguments and outputs have `shared`."""
        ...

    def cost(self, env: Mapping[str, int]) -> dict[str, float]:
        """Figures of a call, such as `flops`, as far as they are known."""
        return {}

    def profile(self, values: list[Any], recording: Recording) -> None:
        """Do what a call does, and note the time of each step (`Ability.PROFILE`). Inputs stay as they are.

        Raises UnsupportedError where that is not to be had, InputError, GcompError.
        """
        raise UnsupportedError("the steps of a model that keeps a state are not timed")

    def keep(self, count: int) -> None:
        """Hold the executables of so many combinations of sizes. UsageError where there are none by sizes."""
        raise UsageError("the model keeps no executables by sizes", fix="leave executables out")

    def set_threads(self, count: int) -> None:
        """Compute with so many threads from the next call on. UsageError where that is not to be chosen any more."""
        raise UsageError("the number of threads is not set on this target")

    def instance(self) -> Executor:
        """An executor with memory of its own; itself, where calls have none in common."""
        return self


class StatefulExecutor(Executor, Protocol):
    """An executor that keeps values between calls, on its device."""

    def put_state(self, arrays: Sequence[Array]) -> None: ...
    def get_state(self, index: int) -> Array: ...


def state_gone() -> InputError:
    """What to raise where a call used the state up and did not give the next one."""
    return InputError(
        "The model's state is gone.",
        why="A call that used it up was interrupted before it gave the next one.",
        fix="Set it again: reset() or load_state(...).",
    )
