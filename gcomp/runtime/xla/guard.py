"""What is checked of a program's text before XLA reads it.

XLA trusts its input: a size that overflows ends the process, a custom call runs whatever is registered under its name,
an infeed waits for ever. A program may come from a stranger's file, so its text is looked at here first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gcomp.errors import ArtifactError, UnsupportedError
from gcomp.runtime.xla.custom_calls import refused

MAX_ELEMENTS = 1 << 40
"""Of a tensor. Far more than this overflows XLA's 64-bit sizes, and parts of its CPU backend count in fewer bits."""

_SHAPE = re.compile(r"tensor<((?:[0-9]+x)+)")
_SUSPECT = re.compile(r"custom_call|infeed|outfeed|send|recv|\\")
"""What every program with such an op contains; a backslash may spell any of them."""
_DIALECTS = frozenset(("builtin", "func", "stablehlo", "chlo"))
_STREAMS = frozenset(("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"))


def check_program(text: str) -> list[str]:
    """The custom functions that a program calls. Raises UnsupportedError or ArtifactError for what XLA may not see."""
    _check_sizes(text)
    return _checked_targets(text) if _SUSPECT.search(text) is not None else []


def _check_sizes(text: str) -> None:
    for shape in set(_SHAPE.findall(text)):
        sizes = shape.split("x")[:-1]
        if max(map(len, sizes)) > 18 or math.prod(int(size) for size in sizes if size != "0") >= MAX_ELEMENTS:
            raise UnsupportedError(
                "A tensor of the program is larger than any memory.",
                why=f"It would have {' x '.join(sizes)} elements."[:200],
                fix="Use smaller inputs, or check the sizes in the model.",
            )


def _checked_targets(text: str) -> list[str]:
    # Read with MLIR's own parser: text can spell a call in many ways.
    targets: list[str] = []
    for name, target in _ops(text):
        if name.partition(".")[0] not in _DIALECTS or name in _STREAMS:
            raise ArtifactError("The program has an op that gcomp does not run.", why=name[:80])
        if name == "stablehlo.custom_call":
            targets.append(target)
    if bad := refused(targets):
        raise ArtifactError("The program calls a custom function that gcomp does not allow.", why=bad[0][:80])
    return targets


def _ops(text: str) -> list[tuple[str, str]]:
    """The name of every op, regions included, and what it calls if it is a custom call."""
    mlir: Any = import_module("jax._src.interpreters.mlir")
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    with context:
        try:
            module = mlir.ir.Module.parse(text)
        except mlir.ir.MLIRError as error:
            why = str(error).strip().replace("\n", " ")[:500]
            raise ArtifactError("The program is not StableHLO.", why=why) from None
        return list(_walk(module.operation))


def _walk(root: Any) -> Iterator[tuple[str, str]]:
    pending = [root]
    while pending:
        op = pending.pop()
        is_call = op.name == "stablehlo.custom_call"
        yield op.name, str(op.attributes["call_target_name"].value) if is_call else ""
        pending += [inner.operation for region in op.regions for block in region for inner in block]
