"""Nested structures of values: tuples, lists, dicts, named tuples and None; whatever else is a leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

LEAF: Any = object()
"""The structure of a leaf."""


@dataclass(frozen=True)
class Structure:
    """A container: its type, its keys (of a dict), and the structures of its parts. Equal for equal nesting."""

    kind: type
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]

    def __repr__(self) -> str:
        if self.kind is type(None):
            return "None"
        inner = [_show_structure(p) for p in self.parts]
        if self.kind is dict:
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self.keys, inner, strict=True)) + "}"
        name = "" if self.kind in (tuple, list) else self.kind.__name__
        left, right = "[]" if self.kind is list else "()"
        return f"{name}{left}{', '.join(inner)}{',' if self.kind is tuple and len(inner) == 1 else ''}{right}"


def _show_structure(structure: Any) -> str:
    return "*" if structure is LEAF else repr(structure)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and the structure that holds them. Entries of dicts come in the order of their keys."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Any:
    parts, kind = children(tree), type(cast(object, tree))
    if parts is None:
        leaves.append(tree)
        return LEAF
    keys = tuple(k for k, _ in parts) if kind is dict else ()
    return Structure(kind, keys, tuple([_flatten(part, leaves) for _, part in parts]))


def children(tree: Any) -> list[tuple[Any, Any]] | None:
    """The keys and parts of a container; None for a leaf."""
    if tree is None:
        return []
    if type(tree) in (tuple, list) or _is_named(tree):
        return list(enumerate(cast("Sequence[Any]", tree)))
    if type(tree) is dict:
        entries = cast("dict[Any, Any]", tree)
        return [(key, entries[key]) for key in _sort_entries(entries)]
    return None


def _is_named(tree: object) -> bool:
    return issubclass(type(tree), tuple) and hasattr(type(tree), "_fields")


def _sort_entries(entries: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(entries.keys())
    except TypeError:
        return list(entries.keys())


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """The tree of a structure with these leaves."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is LEAF:
        return next(leaves)
    parts = [_unflatten(part, leaves) for part in structure.parts]
    if structure.kind is type(None):
        return None
    if structure.kind is dict:
        return dict(zip(structure.keys, parts, strict=True))
    if structure.kind is list:
        return parts
    return tuple(parts) if structure.kind is tuple else structure.kind(*parts)


def paths(tree: Any, root: str) -> Iterator[tuple[str, Any]]:
    """The leaves with names for people: `params['w']`, `xs[0]`."""
    parts = children(tree)
    if parts is None:
        yield root, tree
        return
    for key, part in parts:
        name = f".{tree._fields[key]}" if _is_named(tree) else f"[{key!r}]"
        yield from paths(part, root + name)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with a function applied to each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def leaves_of(structure: Any) -> list[Any]:
    """One `LEAF` for each leaf of a structure."""
    if structure is LEAF:
        return [LEAF]
    if not isinstance(structure, Structure):
        return []
    return [leaf for part in structure.parts for leaf in leaves_of(part)]
