"""The variables of rewritten code: read, set back, and watched from outside, through the cells that functions share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import Any, cast

from gcomp.errors import GcompError, UnsupportedError
from gcomp.frontends.python.state import State, differences, state_of
from gcomp.ir import locations
from gcomp.tensors.site import SITE, place_here, where_here
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import OPEN


def is_traced(value: object) -> bool:
    """Whether a value is one that only a run knows: a tensor, where a trace is open."""
    return isinstance(value, Tensor) and (value.is_traced or bool(OPEN.traces))


class Undefined:
    """What a variable holds after control flow that may not have set it. Any use is refused."""

    def __init__(self, name: str, why: str) -> None:
        self.__dict__.update(name=name, why=why, place=where_here())

    def refuse(self, where: str | None = None) -> UnsupportedError:
        """The error for a use of a variable that has no value on every path."""
        return UnsupportedError(
            f"the variable {self.name!r} has no value that is known here", where=where or where_here(), why=self.why,
            fix=f"give {self.name!r} a value of one type on every path, also before a loop",
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        raise self.refuse()

    def _use(self, *_: object, **__: object) -> Any:
        raise self.refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _use
    __neg__ = __getitem__ = __call__ = __iter__ = __len__ = __bool__ = __matmul__ = __rmatmul__ = _use
    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = __index__ = __array__ = __pow__ = __abs__ = _use
    __and__ = __or__ = __mod__ = __floordiv__ = _use


class Unset:
    """The content of an empty cell."""


UNSET = Unset()


class Variables:
    """The variables that some nested functions share with the function around them."""

    def __init__(self, names: Sequence[str], *functions: Callable[..., object]) -> None:
        cells: dict[str, CellType] = {}
        for function in functions:
            own = cast(FunctionType, function)
            cells.update(zip(own.__code__.co_freevars, own.__closure__ or (), strict=True))
        self.names = [name for name in names if name in cells]
        self._cells = [cells[name] for name in self.names]
        self._around = {name: cell for name, cell in cells.items() if name not in (*names, "__gcomp__", "__class__")}

    def get(self) -> list[Any]:
        """The values; `UNSET` for those without."""
        return [content(cell) for cell in self._cells]

    def set(self, values: Sequence[Any]) -> None:
        """Give the variables these values."""
        for cell, value in zip(self._cells, values, strict=True):
            if value is not UNSET:
                cell.cell_contents = value
            elif content(cell) is not UNSET:
                del cell.cell_contents

    def state(self) -> State:
        """What can be reached from here and might be changed in place."""
        found = zip([*self.names, *self._around], [*self._cells, *self._around.values()], strict=True)
        values = [(name, content(cell)) for name, cell in found]
        return state_of([(name, v) for name, v in values if not isinstance(v, Tensor | Unset | Undefined)])


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def check_unchanged(variables: Variables, before: State) -> None:
    """Refuse a branch or body that changed something in place: only a run knows whether it is done."""
    if changed := differences(before, variables.state()):
        raise UnsupportedError(
            "a branch or loop body changes an object in place, and only a run knows whether or how often",
            why=changed[0],
            fix="assign a variable instead; collect results with ops.scan, or in a tensor with `x.at[i].set(value)`",
        )


@contextmanager
def statement(name: str) -> Generator[None]:
    """Ops, and errors, of a statement in the user's line."""
    SITE.location, previous = place_here(name), SITE.location
    try:
        yield
    except GcompError as error:
        error.where = error.where or locations.describe(cast(Any, SITE.location))
        raise
    finally:
        SITE.location = previous
