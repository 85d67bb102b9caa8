"""What is checked of a program's text before XLA reads it.

XLA trusts its input: a size that overflows ends the process, a custom call runs whatever is registered under its name,
an infeed waits for ever. A program may come from a stranger's file, so its text is looked at here first.
"""

from __future__ import annotations

import math
import re
from importlib import import_module
from typing import Any

from gcomp.errors import ArtifactError, UnsupportedError
from gcomp.runtime.xla import structure_check

MAX_ELEMENTS = 1 << 40
"""Of a tensor. Far more than this overflows XLA's 64-bit sizes, and parts of its CPU backend count in fewer bits."""

MAX_RANK = 64
"""NumPy's limit."""

_SHAPE = re.compile(r"tensor<((?:[0-9]+x)+)")
_SUSPECT = re.compile(r"custom_call|infeed|outfeed|send|recv|\\")
"""What every program with such an op contains; a backslash may spell any of them."""
_CALL = re.compile(r"\bcall\b")


def check_program(text: str, *, foreign: bool = False, is_spread: bool = False) -> list[str]:
    """The custom functions that a program calls. Raises UnsupportedError or ArtifactError for what XLA may not see.

    A `foreign` program is one that gcomp has not just compiled: its structure is checked too. One that `is_spread` over
    the devices of a mesh may have shardings and collectives.
    """
    _check_sizes(text)
    if not foreign and _SUSPECT.search(text) is None and len(_CALL.findall(text)) <= structure_check.MAX_CALLS:
        return []
    # Read with MLIR's own parser: text can spell a call in many ways.
    mlir: Any = import_module("jax._src.interpreters.mlir")
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    with context:
        try:
            module = mlir.ir.Module.parse(text)
        except mlir.ir.MLIRError as error:
            why = str(error).strip().replace("\n", " ")[:500]
            raise ArtifactError("The program is not StableHLO.", why=why) from None
        if foreign:
            # As MLIR prints it: sizes cannot hide behind comments.
            _check_sizes(str(module))
        try:
            targets = structure_check.custom_functions(module, is_spread=is_spread)
            structure_check.check_structure(module, mlir.ir, is_spread=is_spread)
        except (TypeError, ValueError, KeyError) as error:
            # An attribute of a kind that none of gcomp's has.
            raise ArtifactError(
                "The program has an attribute that gcomp does not read.", why=str(error)[:200]
            ) from None
        return targets


def _check_sizes(text: str) -> None:
    for shape in set(_SHAPE.findall(text)):
        sizes = shape.split("x")[:-1]
        if len(sizes) > MAX_RANK:
            raise UnsupportedError("A tensor of the program has more dimensions than arrays have.", why=str(len(sizes)))
        if max(map(len, sizes)) > 18 or math.prod(int(size) for size in sizes if size != "0") >= MAX_ELEMENTS:
            raise UnsupportedError(
                "A tensor of the program is larger than any memory.",
                why=f"It would have {' x '.join(sizes)} elements."[:200],
                fix="Use smaller inputs, or check the sizes in the model.",
            )
