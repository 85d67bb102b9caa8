"""How results lie in memory in eager mode: in another order of dimensions, or as a part of another result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.fx.torch_api import torch
from gcomp.frontends.fx.values import size_of

Order = tuple[int, ...]
"""Dimensions from the one whose elements lie farthest apart."""


@dataclass(frozen=True)
class Turned:
    """An output whose dimensions lie in another order: the program's result has them in the order of memory."""

    result: int
    axes: Order

    def of(self, result: Any) -> Any:
        """The output, in the result's memory."""
        return result.permute(self.axes)


@dataclass(frozen=True)
class View:
    """An output in memory that it shares: part of an input, or of a result that is laid out as in eager mode."""

    input: int | None
    """The input's place among the tensors; None for a part of a result."""
    result: int
    axes: Order | None
    """Where the result's dimensions stand in the order of memory, if it is another than their own."""
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size
    """From the first element of the whole, or if it is placed, of the memory that an input is a part of."""
    dtype: Any
    whole: tuple[tuple[Size, ...], tuple[Size, ...]]
    """Shape and strides of all of the result."""
    is_placed: bool = False

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that decide where it lies."""
        sizes = (*self.shape, *self.strides, self.offset, *(size for part in self.whole for size in part))
        return frozenset(name for size in sizes for name in dims.symbols_of(size))

    def of(self, whole: Any, sizes: Mapping[str, int]) -> Any:
        """The part of a tensor."""
        shape, strides = _values(self.shape, sizes), _values(self.strides, sizes)
        whole = whole.view(self.dtype)
        first = 0 if self.is_placed else whole.storage_offset()
        return whole.as_strided(shape, strides, first + dims.evaluate(self.offset, sizes))

    def laid_out(self, result: Any, sizes: Mapping[str, int]) -> Any:
        """All of the result, with its strides in eager mode."""
        if self.axes is not None:
            return result.permute(self.axes)
        shape, strides = _values(self.whole[0], sizes), _values(self.whole[1], sizes)
        if result.stride() == strides:
            return result
        return torch.empty_strided(shape, strides, dtype=result.dtype).copy_(result)


def _values(numbers: Sequence[Size], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([dims.evaluate(number, sizes) for number in numbers])


def view_of(
    part: Any, whole: Any, *, input: int | None = None, result: int = -1, axes: Order | None = None,
    is_placed: bool = False,
) -> View:  # fmt: skip
    """The view of an input or of a result that fake tensors say."""

    def sizes(values: Sequence[Any]) -> tuple[Size, ...]:
        return tuple([size_of(value) for value in values])

    offset = size_of(part.storage_offset()) - (0 if is_placed else size_of(whole.storage_offset()))
    layout = sizes(whole.shape), sizes(whole.stride())
    return View(input, result, axes, sizes(part.shape), sizes(part.stride()), offset, part.dtype, layout, is_placed)


def order_of(value: Any) -> Order | None:
    """The order of a fake tensor's dimensions in memory without gaps, None where it is their own or there are gaps.

    It is that of the sizes at which torch captured the graph, as its guards hold strides to their order.
    """
    if not is_plain(value):
        return None
    shape, strides = _hints(value.shape), _hints(value.stride())
    if shape is None or strides is None or 0 in shape or _is_dense(shape, strides, range(len(shape))):
        return None
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], -shape[i]))
    return tuple(order) if _is_dense(shape, strides, order) else None


def has_gaps(value: Any) -> bool:
    """Whether a fake tensor's elements do not follow one another in memory, in any order of its dimensions."""
    shape, strides = _hints(value.shape), _hints(value.stride())
    if shape is None or strides is None or 0 in shape or _is_dense(shape, strides, range(len(shape))):
        return False
    return order_of(value) is None


def inverse(order: Order) -> Order:
    """The inverse permutation: the position of each dimension in an order."""
    return tuple(order.index(i) for i in range(len(order)))


def _is_dense(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    step = 1
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != step:
            return False
        step *= shape[i]
    return True


def _hints(sizes: Sequence[Any]) -> list[int] | None:
    """The sizes of the tensors that a graph was captured on; None where only data determine one."""
    found = [size if isinstance(size, int) else _hint(size) for size in sizes]
    return None if None in found else found  # pyright: ignore[reportReturnType]


def _hint(size: Any) -> int | None:
    # torch gives no hint of what data determine; asking all the same is an error.
    return int(size.node.hint) if size.node.has_hint() else None


# ---- memory that is shared ------------------------------------------------------------------------------------------


def shared_outputs(outputs: Sequence[Any], *, inner: bool) -> dict[Any, Any]:
    """The outputs that are views of inputs, and with `inner` those that share memory with other outputs or leave some
    of it out: which node has all of that memory.

    AOTAutograd rebuilds views of inputs as we lay them out, and where gradients flow those of inner values; where none
    flow it leaves these to us.
    """
    groups: dict[Any, list[Any]] = {}
    for node in dict.fromkeys(outputs):
        if isinstance(node, torch.fx.Node) and is_plain(node.meta.get("val")):
            groups.setdefault(_maker(node), []).append(node)
    found: dict[Any, Any] = {}
    for maker, nodes in groups.items():
        if not is_plain(whole := maker.meta.get("val")):
            continue
        if maker.op == "placeholder":
            found |= {node: maker for node in nodes if node is not maker and _is_view(node, whole)}
        elif inner and maker.op == "call_function" and (len(nodes) > 1 or has_gaps(nodes[0].meta["val"])):
            found |= dict.fromkeys(nodes, maker)
    return found


def _is_view(node: Any, whole: Any) -> bool:
    """Whether a node's elements are a tensor's own: of the same type."""
    return node.meta["val"].dtype == whole.dtype


def _maker(node: Any) -> Any:
    """The node whose result a view is of, or the node itself."""
    while (base := _base(node)) is not None:
        node = base
    return node


def _base(node: Any) -> Any:
    """The node of whose result a node's is a view, as operators' schemas say; None where it is a result of its own."""
    operator = node.args[0] if node.target is getitem else node
    if operator.op != "call_function" or not isinstance(operator.target, torch._ops.OpOverload):
        return None
    returns = operator.target._schema.returns
    if not returns or returns[0].alias_info is None or returns[0].alias_info.is_write:
        return None
    return operator.args[0]


def owner_of(node: Any) -> Any:
    """The node whose result has the memory of which a node's is a view, as elements of the same type that are the
    same numbers (not conjugated, nor negated)."""
    while (base := _base(node)) is not None and _has_elements_of(base.meta.get("val"), node.meta["val"]):
        node = base
    return node


def is_placed(node: Any, owner: Any) -> bool:
    """Whether an `as_strided` between a view and its owner counts from where the memory begins, not the owner."""
    while node is not owner:
        if node.target is torch.ops.aten.as_strided.default and _has_start(node):
            return True
        node = _base(node)
    return False


def _has_start(node: Any) -> bool:
    return (*node.args[3:], node.kwargs.get("storage_offset"))[0] is not None


def _has_elements_of(value: Any, view: Any) -> bool:
    """Whether a fake tensor has the elements of another, which is a view."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.dtype == view.dtype
        and value.is_conj() == view.is_conj()
        and value.is_neg() == view.is_neg()
        and value.untyped_storage()._cdata == view.untyped_storage()._cdata
    )


def is_plain(value: Any) -> bool:
    """Whether a value is a tensor that is described by strides and nothing else."""
    return (
        isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_conj() and not value.is_neg()
    )
