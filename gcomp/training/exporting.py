"""Trained parameters as initializers of an ONNX file again."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import UsageError, did_you_mean
from gcomp.runtime.safetensors import read_arrays
from gcomp.training.step import STEP

Array = np.ndarray[Any, Any]
_SLOT = re.compile(r"\w+\((.*)\)", re.DOTALL)


def write_parameters(
    model: str | os.PathLike[str], state: str | os.PathLike[str] | Mapping[str, Array], output: str | os.PathLike[str]
) -> list[str]:
    """Write an ONNX file that is `model` with the parameters of a state as its initializers; their names.

    `state` is a training step's `state`, or a file that `save_state` wrote; moments and counter are left out. Only the
    initializers' data differ from the model. Raises UsageError for a state of another model.
    """
    from gcomp.frontends.onnx.model.writing import initializer_types, write_initializers

    types = initializer_types(Path(model))
    arrays = state if isinstance(state, Mapping) else read_arrays(state, types)
    unknown = [name for name in arrays if name not in types and not _of_optimizer(name, types)]
    if unknown:
        raise UsageError(
            f"the model has no initializer {unknown[0]!r}",
            where=str(model),
            why="the state is that of another model",
            fix=did_you_mean(unknown[0], types),
        )
    chosen = {name: np.asarray(arrays[name]) for name in arrays if name in types}
    if not chosen:
        raise UsageError("the state has no parameters", where="" if isinstance(state, Mapping) else str(state))
    write_initializers(Path(model), chosen, Path(output))
    return list(chosen)


def _of_optimizer(name: str, types: Mapping[str, Any]) -> bool:
    """Whether a part of a state is the step's number, or what an optimizer keeps of an initializer."""
    slot = _SLOT.fullmatch(name)
    return name == STEP or (slot is not None and slot[1] in types)
