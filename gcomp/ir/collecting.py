"""Dialects made from what is defined, so that no list of ops is kept by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from xdsl.ir import Attribute, Dialect, Operation

from gcomp.ir.definitions import derives


def make_dialect(name: str, namespace: Mapping[str, object], *modules: ModuleType) -> Dialect:
    """The dialect of all ops and attributes called `name.something` in a namespace and in modules."""
    values = [*namespace.values(), *(value for module in modules for value in vars(module).values())]
    classes = [v for v in dict.fromkeys(c for c in values if isinstance(c, type)) if _name(v).startswith(f"{name}.")]
    ops = [c for c in classes if derives(c, Operation)]
    return Dialect(name, ops, [c for c in classes if derives(c, Attribute)])


def _name(cls: type) -> str:
    name: object = getattr(cls, "name", None)
    return name if isinstance(name, str) else ""
