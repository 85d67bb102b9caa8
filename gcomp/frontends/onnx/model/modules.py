"""Exporter metadata of ONNX nodes: the module that a node comes from, and the line of the user's source."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from typing import Any, cast

import onnx

_SCOPES, _TRACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace"
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def node_modules(source: Any) -> Mapping[str, tuple[str, str]]:
    """By the name of a node of the main graph, its module (`encoder.layer.0.attention`) and `file:line`, "" if unknown.

    torch's exporters say both in a node's metadata, and older ones the module in its name. Of a path that is no ONNX
    file, nothing.
    """
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, str | os.PathLike) and str(source).endswith(".onnx"):  # pyright: ignore[reportUnknownArgumentType]
        model = cast(Any, onnx).load(source, load_external_data=False)
    else:
        return {}
    found: dict[str, tuple[str, str]] = {}
    for node in model.graph.node:
        notes = {entry.key: entry.value for entry in node.metadata_props}
        name = node.name or f"{node.op_type}:{next(iter(node.output), '')}"
        found[name] = (_module(node.name, notes.get(_SCOPES)), _line(notes.get(_TRACE, "")))
    return found


def _module(name: str, scopes: str | None) -> str:
    if scopes is not None:
        try:
            return str(ast.literal_eval(scopes)[-2])
        except (ValueError, SyntaxError, IndexError, TypeError):
            return ""
    return ".".join(name.strip("/").split("/")[:-1]) if name.startswith("/") else ""


def _line(trace: str) -> str:
    """The file and line of the innermost frame of an exporter's stack trace."""
    frames = _FRAME.findall(trace)
    return ":".join(frames[-1]) if frames else ""


__all__ = ["node_modules"]
