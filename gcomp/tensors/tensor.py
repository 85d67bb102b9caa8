"""The value that all operations take and give: an array that is known (eager), or one that a run will compute (traced).

Operators and methods are the operations of `VOCABULARY`. What Python wants to know of a traced value, a run only knows:
it is refused, with the line and the way to write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.dtypes import DTYPES
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, shape_of
from gcomp.tensors.eager import Known
from gcomp.tensors.operation import VOCABULARY
from gcomp.tensors.site import where_here
from gcomp.tensors.tracing import OPEN

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

WAYS = {
    "bool": "use ops.where, ops.cond or ops.while_loop, or decide by a static argument",
    "int": "compute with the tensor itself, use its shape, or pass the number as a static argument",
    "float": "compute with the tensor itself, or return it and convert the result",
    "array": "use the operations of gcomp.ops in place of NumPy's",
}
"""What Python wants of a traced value -> what to do instead."""


class Tensor:
    """A tensor: `shape`, `dtype`, NumPy's operators and methods. It never changes; `at` makes changed copies.

    A weak tensor is a Python number that a loop carries: beside others it promotes as the number would.
    """

    __slots__ = ("__weakref__", "builder", "value", "weak")

    def __init__(self, builder: Builder, value: SSAValue, *, weak: bool = False) -> None:
        self.builder, self.value, self.weak = builder, value, weak

    # ---- what is known of it ----

    @property
    def element(self) -> str:
        """The text of the element type (`f32`)."""
        return dtype_text(self.value.type)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return DTYPES[self.element]

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes: integers, and symbols where they are open."""
        return shape_of(self.value)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return dims.product(self.shape)

    @property
    def is_traced(self) -> bool:
        """Whether only a run knows its elements."""
        return not isinstance(self.value, Known)

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        if isinstance(self.value, Known):
            text = np.array2string(self.value.array, separator=", ", prefix="Tensor(")
            return f"Tensor({text}, dtype={self.dtype.name})"
        return f"<traced Tensor {self.dtype.name}[{sizes}]>"

    # ---- what Python wants to know ----

    def numpy(self) -> Array:
        """The elements as a read-only array. UnsupportedError where only a run knows them."""
        return self._known("array")

    def _known(self, what: str) -> Array:
        if not isinstance(self.value, Known):
            refuse(what)
        if OPEN.traces:
            OPEN.traces[-1].refuse_reading(self.value, what)
        return self.value.array

    def _scalar(self, what: str) -> Any:
        array = self._known(what)
        if array.size != 1:
            raise UsageError(
                f"a tensor of shape {array.shape} has no truth value, nor is it one number",
                where=where_here(),
                fix="reduce it first: `any`, `all`, `sum`",
            )
        return array.item() if array.dtype.kind in "biufc" else array.reshape(()).astype(np.float64).item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._known("array")
        return np.array(array, dtype) if copy or (dtype is not None and dtype != array.dtype) else array

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs on tensors are the operations of their names; others compute on arrays, if they are known."""
        name = _NAMES.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and name in VOCABULARY and not kwargs:
            return VOCABULARY[name](*args)
        return getattr(ufunc, method)(*_arrays(args), **_arrays(kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's other functions on tensors, in the same way."""
        if function.__name__ in VOCABULARY:
            return VOCABULARY[function.__name__](*args, **kwargs)
        return function(*_arrays(args), **_arrays(kwargs))

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("float"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise UsageError("only integer tensors of rank 0 are indices", where=where_here())
        return int(self._scalar("int"))

    def item(self) -> Any:
        """The only element as a Python number."""
        return self._scalar("float")

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self._known("array").tolist()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise UsageError("a tensor of rank 0 has no length", where=where_here())
        if isinstance(size := self.shape[0], Dim):
            raise UnsupportedError(
                f"the length {size} is symbolic, and Python wants a number", where=where_here(), fix="use `shape[0]`"
            )
        return size

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[i] for i in range(len(self))])

    __hash__ = object.__hash__

    # ---- operators ----

    def __add__(self, other: ArrayLike) -> Tensor:
        return apply("add", self, other)

    def __radd__(self, other: ArrayLike) -> Tensor:
        return apply("add", other, self)

    def __sub__(self, other: ArrayLike) -> Tensor:
        return apply("subtract", self, other)

    def __rsub__(self, other: ArrayLike) -> Tensor:
        return apply("subtract", other, self)

    def __mul__(self, other: ArrayLike) -> Tensor:
        return apply("multiply", self, other)

    def __rmul__(self, other: ArrayLike) -> Tensor:
        return apply("multiply", other, self)

    def __truediv__(self, other: ArrayLike) -> Tensor:
        return apply("divide", self, other)

    def __rtruediv__(self, other: ArrayLike) -> Tensor:
        return apply("divide", other, self)

    def __floordiv__(self, other: ArrayLike) -> Tensor:
        return apply("floor_divide", self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Tensor:
        return apply("floor_divide", other, self)

    def __mod__(self, other: ArrayLike) -> Tensor:
        return apply("remainder", self, other)

    def __rmod__(self, other: ArrayLike) -> Tensor:
        return apply("remainder", other, self)

    def __divmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]:
        return apply("floor_divide", self, other), apply("remainder", self, other)

    def __pow__(self, other: ArrayLike) -> Tensor:
        return apply("power", self, other)

    def __rpow__(self, other: ArrayLike) -> Tensor:
        return apply("power", other, self)

    def __matmul__(self, other: ArrayLike) -> Tensor:
        return apply("matmul", self, other)

    def __rmatmul__(self, other: ArrayLike) -> Tensor:
        return apply("matmul", other, self)

    def __and__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_and", self, other)

    def __rand__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_and", other, self)

    def __or__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_or", self, other)

    def __ror__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_or", other, self)

    def __xor__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_xor", self, other)

    def __rxor__(self, other: ArrayLike) -> Tensor:
        return apply("bitwise_xor", other, self)

    def __lshift__(self, other: ArrayLike) -> Tensor:
        return apply("left_shift", self, other)

    def __rlshift__(self, other: ArrayLike) -> Tensor:
        return apply("left_shift", other, self)

    def __rshift__(self, other: ArrayLike) -> Tensor:
        return apply("right_shift", self, other)

    def __rrshift__(self, other: ArrayLike) -> Tensor:
        return apply("right_shift", other, self)

    def __eq__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return apply("not_equal", self, other)

    def __lt__(self, other: ArrayLike) -> Tensor:
        return apply("less", self, other)

    def __le__(self, other: ArrayLike) -> Tensor:
        return apply("less_equal", self, other)

    def __gt__(self, other: ArrayLike) -> Tensor:
        return apply("greater", self, other)

    def __ge__(self, other: ArrayLike) -> Tensor:
        return apply("greater_equal", self, other)

    def __neg__(self) -> Tensor:
        return apply("negative", self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return apply("abs", self)

    def __invert__(self) -> Tensor:
        return apply("invert", self)

    def __getitem__(self, index: Any) -> Tensor:
        return apply("getitem", self, index)

    def __setitem__(self, index: Any, value: object) -> NoReturn:
        raise UsageError("tensors do not change", where=where_here(), fix="write `x = x.at[index].set(value)`")

    # ---- methods ----

    @property
    def T(self) -> Tensor:
        """All dimensions in reverse."""
        return apply("transpose", self)

    @property
    def real(self) -> Tensor:
        """The real parts."""
        return apply("real", self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts."""
        return apply("imag", self)

    @property
    def at(self) -> At:
        """Changed copies: `x.at[1:3].set(0)`, `x.at[i].add(y)`."""
        return At(self)

    def astype(self, dtype: Any) -> Tensor:
        """The elements converted."""
        return apply("astype", self, dtype)

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in another shape; one size may be -1."""
        return apply("reshape", self, _one_or_all(shape))

    def transpose(self, *axes: Any) -> Tensor:
        """The dimensions in another order; in reverse without arguments."""
        return apply("transpose", self, _one_or_all(axes) or None)

    def __getattr__(self, name: str) -> Any:
        """The operations that NumPy's arrays have as methods."""
        if name not in METHODS:
            raise AttributeError(f"a Tensor has no attribute {name!r}")
        function = VOCABULARY[name]
        return lambda *args, **kwargs: function(self, *args, **kwargs)  # pyright: ignore


_NAMES = {"absolute": "abs", "conjugate": "conj", "bitwise_not": "invert"}
"""NumPy's names of ufuncs that have others here."""


def _arrays(value: Any) -> Any:
    """Tensors in arguments as arrays. UnsupportedError for those that are traced."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: _arrays(part) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        parts = [_arrays(part) for part in cast("Sequence[Any]", value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    return value


def _one_or_all(arguments: tuple[Any, ...]) -> Any:
    """The only argument, if it is a sequence; else all of them."""
    first: Any = arguments[0] if len(arguments) == 1 else None
    return cast(Any, first) if isinstance(first, tuple | list) else arguments


METHODS = frozenset(
    ("all", "any", "argmax", "argmin", "argsort", "clip", "conj", "cumprod", "cumsum", "diagonal", "dot", "flatten",
     "max", "mean", "min", "prod", "ravel", "repeat", "round", "sort", "squeeze", "std", "sum", "swapaxes", "take",
     "trace", "var")
)  # fmt: skip
"""The operations that are methods, too: those of NumPy's arrays."""


class At:
    """`x.at[index]`: what to do with a part of a tensor, in a copy of it."""

    def __init__(self, x: Tensor, index: Any = None) -> None:
        self._x, self._index = x, index

    def __getitem__(self, index: Any) -> At:
        return At(self._x, index)

    def _update(self, how: str, value: ArrayLike) -> Tensor:
        return apply("update", self._x, self._index, value, how=how)

    def set(self, value: ArrayLike) -> Tensor:
        """The part replaced."""
        return self._update("set", value)

    def add(self, value: ArrayLike) -> Tensor:
        """A value added to the part; to elements that the index names twice, twice."""
        return self._update("add", value)

    def multiply(self, value: ArrayLike) -> Tensor:
        """The part multiplied."""
        return self._update("multiply", value)

    def min(self, value: ArrayLike) -> Tensor:
        """The smaller of the part and a value."""
        return self._update("min", value)

    def max(self, value: ArrayLike) -> Tensor:
        """The larger of the part and a value."""
        return self._update("max", value)


ArrayLike: TypeAlias = "Tensor | Array | np.generic | complex | Dim | Sequence[Any]"
"""What operations take: tensors, arrays, Python numbers, (nested) lists of these, and symbolic sizes."""


def apply(name: str, *args: object, **kwargs: object) -> Any:
    """The operation called `name`."""
    return VOCABULARY[name](*args, **kwargs)


def refuse(what: str) -> NoReturn:
    """Refuse to give Python what only a run knows."""
    raise UnsupportedError(
        f"a traced value is used as a Python {what}",
        where=where_here(),
        why="its elements are known only when the compiled program runs",
        fix=WAYS[what],
    )


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors in (nested) lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[object]", value):
            yield from tensors_in(one)
